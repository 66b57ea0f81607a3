"""Chains from long arrays: the maxima agree with the definitions, for every loss and every truth."""

import signal
import threading
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bulk.chains import Chains, best_of_chains
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.labellings import Labellings
from tallytree.bulk.loss_batch import most_violated
from tallytree.bulk.truth_tables import WHOLE_TABLES
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
    found = best_of_chains(chains, loss, truths, scaling)
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
    found = best_of_chains(chains, loss, truths, scaling, count, threads=2)
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
    loss = tt.losses.ChunkFBeta()
    one, several = (best_of_chains(chains, loss, truths, "slack", 2, threads=n) for n in (1, 3))
    alone = [best_of_chains(chains.part(i, i + 1), loss, truths[i : i + 1], "slack", 2)[0] for i in range(9)]
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
    assert truth_tables(loss, 2, names) is None


def test_a_loss_of_your_own_has_no_tables():
    class Odd(tt.losses.FBeta):
        def anchor(self, model):
            return [0] * len(model)

    assert truth_tables(Odd(background=0), 2, None) is None


def test_a_scaling_that_does_not_exist_is_refused_as_always():
    chains = Chains(np.zeros((1, 2)), np.zeros((2, 2)), [1], None)
    with pytest.raises(tt.ModelError, match="scaling must be"):
        best_of_chains(chains, tt.losses.FBeta(background=0), [np.array([0])], "odd")


LOSS = truth_tables(tt.losses.FBeta(background=0), 2, None)


def add_chains(**changes):
    """Return a batch with one chain of two positions and two labels, and a truth."""
    given = {
        "skeletons": [LOSS.chain(2, True)],
        "emissions": np.zeros((2, 2)),
        "links": np.zeros((2, 2)),
        "tables": LOSS.compiled,
        "kinds": np.array([0, 1]),
        "labels": np.array([0, 1]),
        "losses": [one.table for one in LOSS.losses.each(np.array([0, 1]), [2], [1], "slack")],
        "folds": np.zeros((0, 0)),
        "count": 1,
    }
    given |= changes
    scores = [given.pop(name) for name in ("skeletons", "emissions", "links")]
    batch = native.Batch(native.TallyMode.AUTO, 1e9)
    batch.add_chains(*scores, None if given["tables"] is None else native.Truths(**given))
    batch.run(1)
    return batch


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"emissions": np.zeros((1, 2))}, "one row of scores per position"),
        ({"emissions": np.zeros((3, 2))}, "one row of scores per position"),
        ({"kinds": np.array([0, 2])}, "a kind is out of range"),
        ({"labels": np.array([0, -1])}, "a label of the truth is out of range"),
        ({"labels": np.array([0])}, "one kind per label"),
        ({"kinds": np.array([0]), "labels": np.array([0])}, "one kind per variable"),
        ({"kinds": np.array([0, 1, 1]), "labels": np.array([0, 1, 1])}, "one kind per variable"),
        ({"losses": 2 * [native.LossTable(np.zeros(3), [0], False, 1.0)]}, "one table of losses"),
        ({"losses": [native.LossTable(np.zeros(3), [0], False, 1.0)]}, "one axis per statistic"),
        ({"skeletons": [LOSS.chain(2, False)]}, "do not look at variables as the tables do"),
        ({"skeletons": [LOSS.chain(2, True)], "tables": None}, "statistics need tables or a truth"),
        ({"emissions": np.zeros((2, 3)), "links": np.zeros((3, 3))}, "size does not fit its scope"),
        ({"links": np.zeros((2, 3))}, "links go from label to label"),
        ({"folds": np.zeros((1, 1))}, "folds has one number"),
        ({"folds": np.zeros((1, 2))}, "do not look at variables as the tables do"),
        ({"count": 0}, "the number of tallies is not positive"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, text):
    add_chains()
    with pytest.raises(ValueError, match=text):
        add_chains(**changes)


def test_states_that_are_no_labels_need_a_chain_that_has_them():
    names = tuple(LABELS["BIO"])
    tables = truth_tables(tt.losses.ChunkFBeta(), 4, names)
    truth = np.array([0, 1, 2])
    kinds, sizes = tables.kinds(truth, [3])

    def add(kinds=kinds, labels=4, skeleton=None):
        batch = native.Batch(native.TallyMode.AUTO, 1e9)
        losses = [one.table for one in tables.losses.each(truth, [len(truth)], sizes, "slack")]
        truths = native.Truths(tables.compiled, kinds, truth, losses, np.zeros((0, 0)), 1)
        scores = np.zeros((3, labels)), np.zeros((labels, labels))
        batch.add_chains([skeleton or tables.chain(3, True)], *scores, truths)

    add()
    with pytest.raises(ValueError, match="a label is out of range"):
        add(labels=3)
    with pytest.raises(ValueError, match="two kinds are no neighbours"):
        add(kinds=kinds[[1, 0, 2]])
    star = tt.Model([tables.tables.labels.shape[1]] * 3, [((0,), np.zeros(5))])
    with pytest.raises(ValueError, match="do not look at variables as the tables do"):
        add(skeleton=tt.plan(star, [tt.count(star, state=1)] * 2).skeleton)


def test_tables_that_do_not_fit_are_refused():
    tables = truth_tables(tt.losses.ChunkFBeta(), 4, LABELS["BIO"]).tables
    for name, wrong, text in (
        ("given", tables.given[:, 1:], "given has one entry"),
        ("pairs", tables.pairs[1:], "pairs has one entry"),
        ("pairs", tables.pairs + 1000, "is not there"),
        ("fits", tables.fits[:, 1:], "fits has one entry"),
        ("moved", tables.moved[1:], "moved has one entry"),
    ):
        with pytest.raises(ValueError, match=text):
            native.TruthTables(*tables._replace(**{name: np.ascontiguousarray(wrong)}))
    plain = LOSS.tables
    with pytest.raises(ValueError, match="a label is out of range"):
        native.TruthTables(*plain._replace(labels=plain.labels + 1))


def test_a_labelling_that_breaks_its_promise_is_withheld():
    batch = native.Batch(native.TallyMode.AUTO, 1e9)
    chain = tt.plan(tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))).skeleton
    batch.add_chains([chain], np.array([[np.inf, 0.0], [0.0, 1.0]]), np.zeros((2, 2)), None)
    batch.run(1)
    found = Labellings(*batch.labellings())
    assert found.known["certified"].tolist() == [False]
    with pytest.raises(tt.CertificateError, match="the certificate failed: messages promise score inf"):
        found.certify()


def test_labellings_have_named_columns():
    labels, tallies, sums, known = add_chains(count=3).labellings()
    assert {"item", "labels_begin", "labels_end", "loss", "score", "certified"} < set(known.dtype.names)
    assert set(known["item"].tolist()) == {0} and known["certified"].all()
    assert (known["labels_end"] - known["labels_begin"]).tolist() == [2] * len(known)
    assert known["labels_end"][-1] == len(labels) == known["tally_end"][-1] == len(tallies) == len(sums)


# ---------------------------------------------------------------- the same as single calls


def random_chains(seed, count=12, longest=15, names=None, whole=False):
    rng = np.random.default_rng(seed)
    size = 3 if names is None else len(names)
    lengths = rng.integers(1, longest + 1, count).tolist()
    emissions, links = rng.normal(size=(sum(lengths), size)), rng.normal(size=(size, size))
    if whole:  # many ties
        emissions, links = emissions.round(), links.round()
    truths = [rng.integers(0, size, length) for length in lengths]
    return Chains(emissions, links, lengths, names), truths


def as_lists(found):
    return [[(labels.tolist(), loss) for labels, loss in some] for some in found]


@pytest.mark.parametrize("instructions", native.instruction_sets())
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_best_labellings_are_those_of_single_calls(instructions, whole, threads):
    chains, _ = random_chains(7, whole=whole)
    native.use_instruction_set(instructions)
    try:
        found = best_of_chains(chains, threads=threads)
        assert as_lists(found) == [[(tt.solve(m).assignment.tolist(), 0.0)] for m in chains.models()]
    finally:
        native.use_instruction_set()


@pytest.mark.parametrize("loss", [tt.losses.ZeroOne(), *LOSSES, tt.losses.ChunkFBeta()], ids=repr)
@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("count", [1, 3])
def test_chains_and_models_choose_the_same(loss, scaling, count):
    names = tuple(LABELS["BIO"])
    chains, truths = random_chains(11, count=6, longest=7, names=names)
    found = best_of_chains(chains, loss, truths, scaling, count)
    in_models = most_violated(chains.models(), loss, truths, scaling, count)
    assert as_lists(found) == as_lists([[(s.assignment, s.loss) for s in some] for some in in_models])


@pytest.mark.parametrize("loss", [None, tt.losses.FBeta(background=0)])
def test_only_chains_that_do_not_fit_are_solved_as_models(monkeypatch, loss):
    chains, truths = random_chains(13, count=8, longest=30)
    expected = best_of_chains(chains, loss, truths, "slack", 2)
    models = [tt.Model.chain(np.zeros((n, 3)), np.zeros((3, 3))) for n in (1, max(chains.lengths))]
    statistics = [tt.count(state=1), tt.count(state=2)] if loss else []
    small, large = (tt.plan(model, statistics).peak_bytes for model in models)
    monkeypatch.setattr("tallytree.bulk.chains.default_memory_limit", lambda: small + (large - small) / 3)
    monkeypatch.setattr("tallytree.bulk.chains.best_labels", lambda *_: None)  # which needs no tables
    with pytest.warns(tt.PerformanceWarning, match=r"the tables of [1-7] chains exceed the memory limit"):
        found = best_of_chains(chains, loss, truths, "slack", 2)
    assert as_lists(found) == as_lists(expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_of_chains_can_be_interrupted(threads):
    chains, truths = random_chains(17, count=40, longest=60, names=tuple(LABELS["BIOES"]))
    chains = chains._replace(emissions=np.tile(chains.emissions, (1500, 1)), lengths=chains.lengths * 1500)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run behind
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            best_of_chains(
                chains,
                tt.losses.FBeta(background="O"),
                truths * 1500,
                "slack",
                threads=threads,
                search=WHOLE_TABLES,
            )
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
