"""Chains from long arrays: the same maxima as by the definitions, whatever the loss, for all truths alike."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bulk.chains import Chains, augmented_chains, chain_loss
from tallytree.kernels import native

pytestmark = pytest.mark.sanitize

LABELS = {
    "BIO": ["O", "B-NP", "I-NP", "B-VP"],  # a type that no I continues
    "BIOES": ["O", "B-NP", "I-NP", "E-NP", "S-NP", "I-VP"],
    "IO": ["NP", "O", "VP"],
    "no outside": ["B-NP", "I-NP"],
    "outside alone": ["O"],
}
LOSSES = [
    tt.losses.HammingDistance(),
    tt.losses.HammingLoss(),
    tt.losses.FBeta(),
    tt.losses.FBeta(background="O", beta=2.0),
    tt.losses.Precision(background="O"),
    tt.losses.Recall(background="O"),
    tt.losses.FalsePositives(background="O"),
    tt.losses.IntersectionOverUnion(background="O"),
]


@st.composite
def problems(draw, losses=None):
    """A few short chains of ties and other scores, one loss, and a scaling."""
    scheme = draw(st.sampled_from(sorted(LABELS)))
    names = LABELS[scheme]
    chunks = tt.losses.ChunkFBeta(scheme=scheme if scheme in ("BIO", "BIOES", "IO") else "BIO", beta=0.5)
    loss = draw(st.sampled_from([chunks] if losses is None or "O" not in names else losses))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lengths = draw(st.lists(st.integers(1, 4 if len(names) < 5 else 3), min_size=1, max_size=3))
    whole = draw(st.booleans())
    size = len(names)
    emissions, links = rng.normal(size=(sum(lengths), size)), rng.normal(size=(size, size))
    if whole:
        emissions, links = emissions.round(), links.round()
    truths = [rng.integers(0, size, length) for length in lengths]
    return (
        Chains(emissions, links, lengths, tuple(names)),
        loss,
        truths,
        draw(st.sampled_from(["margin", "slack"])),
    )


def values_of(chains, loss, truths, scaling):
    """For each chain, every labelling with its loss and value, by the definitions."""
    for model, truth in zip(chains.models(), truths, strict=True):
        bound, base = loss.against([chains.names[label] for label in truth]), model.score(truth)
        found = {}
        for y in product(range(len(chains.names)), repeat=len(truth)):
            cost = bound([chains.names[label] for label in y])
            found[y] = cost, float(tt.losses.scaled(scaling, cost, model.score(y) - base))
        yield found


def check_best(chains, loss, truths, scaling):
    found = augmented_chains(chains, chain_loss(loss, len(chains.names), chains.names), truths, scaling)
    for [(y, cost)], every in zip(found, values_of(chains, loss, truths, scaling), strict=True):
        expected, value = every[tuple(y.tolist())]
        assert cost == pytest.approx(expected, abs=1e-12)
        assert value == pytest.approx(max(value for _, value in every.values()), abs=1e-9)


@settings(max_examples=40)
@given(problems())
def test_chunks_are_counted_as_the_scorer_finds_them(problem):
    check_best(*problem)


@settings(max_examples=40)
@given(problems(LOSSES))
def test_positions_are_compared_as_the_losses_say(problem):
    check_best(*problem)


@settings(max_examples=30)
@given(problems(LOSSES), st.integers(2, 5))
def test_the_best_tallies_are_those_of_a_profile(problem, count):
    chains, loss, truths, scaling = problem
    tables = chain_loss(loss, len(chains.names), chains.names)
    found = augmented_chains(chains, tables, truths, scaling, count, threads=2)
    for some, model, truth, every in zip(
        found, chains.models(), truths, values_of(chains, loss, truths, scaling), strict=True
    ):
        profile = tt.losses.LossProfile(model, loss.against([chains.names[label] for label in truth]))
        values = [every[tuple(y.tolist())][1] for y, _ in some]
        np.testing.assert_allclose(values, [one.value for one in profile.top(count, scaling)], atol=1e-9)


def test_a_batch_does_not_depend_on_threads_or_company():
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 12, 9).tolist()
    chains = Chains(
        rng.normal(size=(sum(lengths), 4)), rng.normal(size=(4, 4)), lengths, tuple(LABELS["BIO"])
    )
    truths = [rng.integers(0, 4, length) for length in lengths]
    tables = chain_loss(tt.losses.ChunkFBeta(), 4, chains.names)
    one, several = (augmented_chains(chains, tables, truths, "slack", 2, threads=n) for n in (1, 3))
    alone = [
        augmented_chains(chains.part(i, i + 1), tables, truths[i : i + 1], "slack", 2)[0] for i in range(9)
    ]
    as_lists = [[[(y.tolist(), c) for y, c in some] for some in found] for found in (one, several, alone)]
    assert as_lists[0] == as_lists[1] == as_lists[2]


@pytest.mark.parametrize(
    ("loss", "names"),
    [
        (tt.losses.ZeroOne(), ("a", "b")),
        (tt.losses.FBeta(background="unknown"), ("a", "b")),
        (tt.losses.ChunkFBeta(scheme="IO"), ("I-NP", "NP")),  # two names of one label
        (tt.losses.ChunkFBeta(), None),
    ],
)
def test_losses_without_tables_say_so(loss, names):
    assert chain_loss(loss, 2, names) is None


def test_a_loss_of_your_own_has_no_tables():
    class Odd(tt.losses.FBeta):
        def anchor(self, model):
            return [0] * len(model)

    assert chain_loss(Odd(background=0), 2, None) is None


def test_a_scaling_that_does_not_exist_is_refused_as_always():
    chains = Chains(np.zeros((1, 2)), np.zeros((2, 2)), [1], None)
    with pytest.raises(tt.ModelError, match="scaling must be"):
        augmented_chains(chains, chain_loss(tt.losses.FBeta(background=0), 2, None), [np.array([0])], "odd")


def arguments(**changes):
    """What the native function takes for one chain of two positions and two labels."""
    tables = chain_loss(tt.losses.FBeta(background=0), 2, None)
    given = {
        "kinds": tables.compiled,
        "skeletons": [tables.skeleton(2, True)],
        "lengths": np.array([2]),
        "emissions": np.zeros((2, 2)),
        "links": np.zeros((2, 2)),
        "positions": np.array([0, 1]),
        "truths": np.array([0, 1]),
        "losses": [tables.priced(np.array([0, 1]), 1, "slack").table],
        "folds": np.zeros((0, 0)),
        "count": 1,
        "memory_limit": 1e9,
        "threads": 1,
    }
    return {**given, **changes}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"lengths": np.array([3])}, "lengths are too large"),
        ({"lengths": np.array([1])}, "lengths are too small"),
        ({"lengths": np.array([0])}, "no positions"),
        ({"positions": np.array([0, 2])}, "a kind is out of range"),
        ({"truths": np.array([0, -1])}, "a label of the truth is out of range"),
        ({"truths": np.array([0])}, "one kind per position"),
        ({"skeletons": []}, "one skeleton"),
        ({"emissions": np.zeros((2, 1)), "links": np.zeros((1, 1))}, "a label is out of range"),
        ({"emissions": np.zeros((2, 3)), "links": np.zeros((3, 3))}, "one state per label"),
        ({"links": np.zeros((2, 3))}, "links go from label to label"),
        ({"folds": np.zeros((1, 1))}, "folds has one number"),
        ({"folds": np.zeros((1, 2))}, "the skeleton is not that of a chain"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, text):
    native.augmented_chains(**arguments())
    with pytest.raises(ValueError, match=text):
        native.augmented_chains(**arguments(**changes))


def test_tables_that_do_not_fit_are_refused():
    tables = chain_loss(tt.losses.ChunkFBeta(), 4, LABELS["BIO"]).tables
    for name, wrong, text in (
        ("given", tables.given[:, 1:], "given has one entry"),
        ("pairs", tables.pairs[1:], "pairs has one entry"),
        ("pairs", tables.pairs + 1000, "is not there"),
        ("fits", tables.fits[:, 1:], "fits has one entry"),
        ("moved", tables.moved[1:], "moved has one entry"),
    ):
        with pytest.raises(ValueError, match=text):
            native.ChainKinds(*tables._replace(**{name: np.ascontiguousarray(wrong)}))


def test_a_labelling_that_breaks_its_promise_is_withheld():
    chains = Chains(np.array([[np.inf, 0.0], [0.0, 1.0]]), np.zeros((2, 2)), [2], ("O", "B"))
    hamming = chain_loss(tt.losses.HammingDistance(), 2, chains.names)
    with pytest.raises(tt.CertificateError, match="the certificate failed: a chain's labelling"):
        augmented_chains(chains, hamming, [np.array([0, 1])], "margin")


def test_labellings_have_named_columns():
    labels, known = native.augmented_chains(**arguments(count=3))
    assert known.dtype.names == ("chain", "begin", "end", "loss", "score")
    assert set(known["chain"].tolist()) == {0}
    assert (known["end"] - known["begin"]).tolist() == [2] * len(known)
    assert known["end"][-1] == len(labels)
