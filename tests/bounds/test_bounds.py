"""PAC-Bayes bounds: the maxima compared with enumeration, each term with its formula."""

import pickle
from fractions import Fraction
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators, models

import tallytree as tt
from tallytree.bounds import pac_bayes, worst_within_margin
from tallytree.model.rounding import rounding
from tallytree.testing import brute_force

LOSSES = [
    tt.losses.FBeta(),
    tt.losses.FBeta(background=0),
    tt.losses.FBeta(background=0, beta=2.0),
    tt.losses.Precision(background=0),
    tt.losses.Recall(background=0),
    tt.losses.Recall(),
    tt.losses.IntersectionOverUnion(background=0),
    tt.losses.HammingLoss(),
    tt.losses.ZeroOne(),
]


def by_enumeration(model, loss, truth, allowance):
    """Return ``max 1[F* - F <= Hamming + allowance]·loss`` from the definition."""
    everything = brute_force(model)
    distance = (everything.labellings != np.array(truth)).sum(axis=1)
    within = model.score(truth) - everything.scores <= distance + allowance
    return max(loss(y) if inside else 0.0 for y, inside in zip(everything.labellings, within, strict=True))


@st.composite
def examples(draw, *, states=3):
    """Draw a model of any shape and a truth that it allows."""
    model = draw(models(largest=5, states=states))
    everything = brute_force(model)
    possible = everything.labellings[everything.scores > -np.inf].tolist()
    return model, draw(st.sampled_from(possible))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(example=examples())
@settings(max_examples=60)
def test_maxima_against_enumeration(loss, example):
    model, truth = example
    bound = loss.against(truth).on(model)
    found = worst_within_margin(model, loss.against(truth), truth)
    slack = 3 * rounding(model.blocks)
    least, most = (by_enumeration(model, bound, truth, a) for a in (-slack, slack))
    assert least - 1e-12 <= found.loss <= most + 1e-12
    assert found.loss == pytest.approx(by_enumeration(model, bound, truth, slack), abs=1e-12) or least < most
    check(found, model, bound, truth)


def check(found, model, bound, truth):
    """The labelling attains the maximum, by the definitions."""
    y = found.solution.assignment
    assert found.mismatches == int((y != np.array(truth)).sum())
    assert found.difference == pytest.approx(model.score(truth) - model.score(y), abs=1e-9)
    if found.loss > 0:
        assert bound(y) == pytest.approx(found.loss, abs=1e-12)
        assert found.difference <= found.mismatches + 3 * rounding(model.blocks)
    assert found.solution.certificate.optimal


@given(rng=generators(), states=st.integers(2, 3), background=st.sampled_from([None, 0]))
def test_margins_that_are_met_exactly_count(rng, states, background):
    model = tt.Model.chain(rng.integers(-2, 3, (5, states)), rng.integers(-1, 2, (states, states)))
    truth = rng.integers(states, size=5).tolist()
    loss = tt.losses.FBeta(truth, background=background)
    found = worst_within_margin(model, loss, truth)
    assert found.loss == pytest.approx(by_enumeration(model, loss.on(model), truth, 0.0), abs=1e-12)


def test_rounding_goes_in_favour_of_one():
    met = 0
    rng = np.random.default_rng(0)
    for _ in range(
        200
    ):  # decimals: by their exact values the margin is met, by a sum of floats sometimes not
        table = rng.integers(-9, 10, (6, 2))
        table[0, 0] = table[0, 1] + 10 if table[0, 1] <= 0 else table[0, 0]
        scores = table / 10
        model = tt.Model.chain(scores, np.zeros((2, 2)))
        truth, other = [0] * 6, [1, 0, 0, 0, 0, 0]
        exactly = Fraction(int(table[0, 0] - table[0, 1]), 10) == 1
        computed = model.score(truth) - model.score(other)
        if exactly and computed > 1:
            met += 1
            restricted = model.restricted(allowed={v: [0] for v in range(1, 6)})
            assert worst_within_margin(restricted, tt.losses.ZeroOne(truth), truth).loss == 1.0
    assert met > 10


@pytest.mark.parametrize(
    ("loss", "states", "names"),
    [
        (tt.losses.FBeta(), 3, ("fp",)),  # every variable is a node: false positives are the mismatches
        (tt.losses.FBeta(background=0), 2, ("tp", "fp")),  # |y*| - TP + FP
        (tt.losses.FBeta(background=0), 3, ("tp", "fp", "wrong")),
        (tt.losses.Recall(background=0), 2, ("tp", "wrong")),  # false positives are not counted
        (tt.losses.HammingLoss(), 3, ("mismatches",)),
        (tt.losses.ZeroOne(), 3, ("wrong", "wrong_2")),  # one of them capped at 1
    ],
    ids=repr,
)
def test_mismatches_are_counted_only_where_the_loss_does_not_know_them(loss, states, names):
    model = tt.Model.chain(np.zeros((4, states)), np.zeros((states, states)))
    truth = [1, 0, 1, 1]
    assert worst_within_margin(model, loss.against(truth), truth).solution.tally._fields == names


@given(rng=generators(), labels=st.sampled_from([["O", "B-X"], ["O", "B-X", "I-X"], ["O", "I-X", "I-Y"]]))
@settings(max_examples=40)
def test_losses_of_whole_chunks(rng, labels):
    """A loss that is reduced to a longer-labelled chain: its true positives are not positions."""
    model = tt.Model.chain(rng.normal(size=(5, len(labels))), np.zeros((len(labels),) * 2), states=labels)
    truth = [labels[k] for k in rng.integers(len(labels), size=5)]
    loss = tt.losses.ChunkFBeta(truth, scheme="BIO")
    found = worst_within_margin(model, loss, truth)
    everything = brute_force(model)
    distance = (everything.labellings != model.encode(truth)).sum(axis=1)
    within = model.score(truth) - everything.scores <= distance + 1e-12
    wanted = max(loss(model.labels(y).tolist()) for y in everything.labellings[within])
    assert found.loss == pytest.approx(wanted, abs=1e-12)
    assert found.solution.model is model


def corpus(count=4):
    rng = np.random.default_rng(5)
    stay = 0.3 * np.eye(3)
    made = [tt.Model.chain(rng.normal(size=(6, 3)), stay, states=["O", "B", "I"]) for _ in range(count)]
    return made, [tt.solve(model).labels.tolist() for model in made]


def test_the_terms_are_those_of_the_formula():
    made, truths = corpus()
    seen = []
    bound = pac_bayes(
        made,
        truths,
        tt.losses.FBeta(background="O"),
        squared_norm=2.5,
        dimension=40,
        delta=0.1,
        progress=lambda done, total: seen.append((done, total)),
    )
    n = 4
    assert bound.norm == 2.5 / n
    assert bound.complexity == pytest.approx(
        sqrt((2.5 * log(2 * 40 * n / 2.5) + log(n / 0.1)) / (2 * (n - 1)))
    )
    losses = [tt.losses.FBeta(truth, background="O") for truth in truths]
    maxima = [worst_within_margin(m, one, t) for m, one, t in zip(made, losses, truths, strict=True)]
    assert [one.loss for one in bound.maxima] == [one.loss for one in maxima]
    assert bound.empirical == pytest.approx(np.mean([one.loss for one in maxima]))
    assert bound.value == bound.norm + bound.complexity + bound.empirical
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    listed = pac_bayes(made, truths, losses, squared_norm=2.5, dimension=40, delta=0.1)
    assert listed.value == bound.value
    assert pickle.loads(pickle.dumps(bound)).value == bound.value


def test_how_a_bound_prints():
    made, truths = corpus()
    bound = pac_bayes(made, truths, tt.losses.HammingLoss(), squared_norm=2.5, dimension=40)
    text = str(bound)
    assert text.startswith(
        f"the expected loss is at most {bound.value:.6g}, with probability at least 0.95\n"
    )
    assert "norm: ‖w‖²/n, with ‖w‖² = 2.5 and n = 4" in text
    assert "complexity: the root, with d = 40 and δ = 0.05" in text
    assert bound.vacuous
    assert text.endswith("a bound of 1 or more is vacuous: no loss is larger than 1")
    assert repr(bound).startswith(f"PacBayesBound(value={bound.value:.6g}, norm=0.625, ")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"squared_norm": 0.0}, "not defined for the zero vector"),
        ({"squared_norm": "1"}, "finite and positive; got '1'"),
        ({"delta": "1"}, "delta must be a probability"),
        ({"squared_norm": -1.0}, "finite and positive; got -1.0"),
        ({"squared_norm": np.nan}, "finite and positive; got nan"),
        ({"squared_norm": 1e6}, r"the bound is undefined: .* = -.*‖w‖² = 1e\+06 is above 2dn = 320"),
        ({"dimension": 0}, "at least 1; got 0"),
        ({"dimension": 2.5}, "dimension must be an integer, got 2.5"),
        ({"delta": 0.0}, "strictly between 0 and 1; got 0.0"),
        ({"delta": 1.0}, "strictly between 0 and 1; got 1.0"),
        ({"delta": np.nan}, "between 0 and 1"),
        (
            {"loss": tt.losses.HammingDistance()},
            "example 0: the bound needs a loss between 0 and 1, .* from 0 to 6",
        ),
        ({"loss": tt.losses.LabelCount()}, "LabelCount ranges from 0 to"),
        ({"loss": [tt.losses.HammingLoss()]}, "one for each of the 4 examples"),
        ({"loss": "f1"}, "give one loss such as"),
        ({"truths": [["O"] * 6]}, "got 4 models and 1 truths"),
        ({"models": [], "truths": []}, "at least 2 examples, got 0"),
    ],
    ids=repr,
)
def test_what_gives_no_bound(changes, text):
    made, truths = corpus()
    asked = {
        "models": made,
        "truths": truths,
        "loss": tt.losses.HammingLoss(),
        "squared_norm": 2.5,
        "dimension": 40,
        **changes,
    }
    with pytest.raises(tt.ModelError, match=text):
        pac_bayes(**asked)


def test_one_example_is_not_enough():
    made, truths = corpus(1)
    with pytest.raises(tt.ModelError, match="divides by n - 1 and needs at least 2 examples, got 1"):
        pac_bayes(made, truths, tt.losses.HammingLoss(), squared_norm=1.0, dimension=3)


def test_a_truth_that_is_forbidden_is_named():
    made, truths = corpus(2)
    forbidden = made[1].restricted(fixed={0: "O" if truths[1][0] != "O" else "B"})
    with pytest.raises(tt.ModelError, match="example 1: the truth scores -inf"):
        pac_bayes([made[0], forbidden], truths, tt.losses.HammingLoss(), squared_norm=1.0, dimension=3)


def test_larger_than_enumeration():
    rng = np.random.default_rng(1)
    model = tt.Model.chain(rng.normal(size=(60, 2)), rng.normal(size=(2, 2)))
    truth = tt.solve(model).assignment.tolist()
    found = worst_within_margin(model, tt.losses.FBeta(truth, background=1), truth)
    profile = tt.losses.LossProfile(model, tt.losses.FBeta(truth, background=1))
    tallies, scores = profile.table()
    size = sum(a != 1 for a in truth)
    within = profile.truth_score - scores <= size - tallies[:, 0] + tallies[:, 1] + 1e-9
    assert found.loss == pytest.approx(profile.loss.value(*tallies[within].T).max(), abs=1e-12)
