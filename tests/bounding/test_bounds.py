"""Answers by bounds agree with those of full tables: value, tally and score."""

import pickle
import runpy
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bounding import BoundedTable, BoundsCertificate, bounded
from tallytree.losses.query import loss_query
from tallytree.planning.options import read_options
from tallytree.testing import check_bounds

CHECK = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "bounds_check"))


def chain(rng, variables, states=3):
    return tt.Model.chain(rng.normal(size=(variables, states)), rng.normal(size=(states, states)))


@pytest.mark.sanitize
@pytest.mark.parametrize("part", range(6))
def test_random_problems_of_every_shape(part):
    tally = Counter()
    kinds = ("solve", "loss")
    wrong = [CHECK["check"](10_000 * part + number, 10, tally, kinds) for number in range(20)]
    assert [words for words in wrong if words] == []
    assert tally["by bounds"] > 30


@pytest.mark.sanitize
@pytest.mark.parametrize("part", range(4))
def test_random_batches(part):
    tally = Counter()
    kinds = ("batch", "chains")
    wrong = [CHECK["check"](10_000 * part + number, 14, tally, kinds) for number in range(30)]
    assert [words for words in wrong if words] == []
    assert tally["in a batch by bounds"] > 30 and tally["chains"] > 60


@pytest.mark.sanitize
@pytest.mark.parametrize("part", range(2))
def test_random_lists_trees_and_sentences(part):
    tally = Counter()
    kinds = ("lists", "trees", "sentences")
    wrong = [CHECK["check"](10_000 * part + number, 10, tally, kinds) for number in range(60)]
    assert [words for words in wrong if words] == []
    assert tally["lists"] > 10 and tally["sentences"] > 40
    assert tally["trees by bounds"] > 50 and tally["trees in full"] > 50


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("margin", [1.0, 10.0, 60.0])
def test_f_measure_on_longer_chains(scaling, margin):
    rng = np.random.default_rng(int(margin))
    model = chain(rng, 60, 5)
    loss = tt.losses.FBeta(rng.integers(0, 5, 60), background=0)
    full = tt.loss_augmented(model, loss, scaling, margin=margin, strategy="full")
    found = tt.loss_augmented(model, loss, scaling, margin=margin, strategy="bounds")
    assert isinstance(found.certificate, BoundsCertificate)
    assert found.value == pytest.approx(full.value) and found.tally == full.tally
    check_bounds(found)


@pytest.mark.parametrize("make", [lambda k: k == 20, lambda k: k >= 30, lambda k: (k == 3) | (k == 33)])
def test_counts_of_a_chain(make):
    model = chain(np.random.default_rng(2), 60)
    where = make(tt.count(model, state=1))
    found = tt.solve(model, where=where, strategy="bounds")
    assert isinstance(found.certificate, BoundsCertificate)
    assert found.value == pytest.approx(tt.solve(model, where=where, strategy="full").value)
    check_bounds(found)


def test_among_equal_values_the_first_tally():
    model = tt.Model.chain(np.zeros((6, 2)), np.zeros((2, 2)))
    ones = tt.count(model, state=1)
    for where in (ones >= 2, (ones == 4) | (ones == 3)):
        full, found = (tt.solve(model, [ones], where=where, strategy=s) for s in ("full", "bounds"))
        assert found.tally == full.tally and isinstance(found.certificate, BoundsCertificate)


def test_long_messages_do_not_lose_the_best_labelling():
    rng = np.random.default_rng(5)
    model = chain(rng, 3000, 2)
    found = tt.solve(model, where=tt.count(model, state=1) == 1200, strategy="bounds", memory_limit=1e9)
    assert found.value == pytest.approx(tt.solve(model, where=tt.count(model, state=1) == 1200).value)


def test_what_does_not_fit_the_memory_is_answered_by_bounds():
    rng = np.random.default_rng(3)
    model, truth = chain(rng, 400, 3), rng.integers(0, 3, 400)
    loss = tt.losses.FBeta(truth, background=0)
    with pytest.raises(tt.BudgetError):
        tt.loss_augmented(model, loss, memory_limit=2e6, strategy="full")
    found = tt.loss_augmented(model, loss, memory_limit=2e6)
    assert isinstance(found.certificate, BoundsCertificate)
    assert found.value == pytest.approx(tt.loss_augmented(model, loss, strategy="full").value)


def test_neither_fits_and_it_says_what_is_known():
    rng = np.random.default_rng(3)
    model = chain(rng, 200, 3)
    where = (tt.count(model, state=1) == 70) & (tt.count(model, state=2) == 80)
    with pytest.raises(tt.BudgetError, match="no labelling has a value above"):
        tt.solve(model, where=where, memory_limit=1.42e5)


def test_explanation_is_an_argument():
    model = tt.Model.chain(np.array([[0.0, 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    text = tt.solve(model, where=tt.count(state=1) == 1, strategy="bounds").explain()
    assert "a plain pass" in text and "all such labellings were examined" in text


def test_what_cannot_be_asked_is_answered_in_full():
    model = chain(np.random.default_rng(1), 5)
    ones = tt.count(model, state=1)
    undefined = tt.solve(model, [ones], lambda score, k: np.log(score) - k, strategy="bounds")
    assert not isinstance(undefined.certificate, BoundsCertificate)
    assert tt.solve(model, strategy="bounds").value == tt.solve(model).value
    with pytest.raises(tt.InfeasibleError):
        tt.solve(model, where=ones >= 7, strategy="bounds")


def test_strategies():
    model = tt.Model([2, 2])
    with pytest.raises(tt.ModelError, match="strategy must be"):
        tt.solve(model, strategy="quick")
    with pytest.raises(TypeError, match="strategy"):
        tt.profile(model, strategy="bounds")


@pytest.mark.parametrize("name", tt._native.instruction_sets())
def test_the_same_bits_on_every_instruction_set(name):
    rng = np.random.default_rng(8)
    model, truth = chain(rng, 150, 11), rng.integers(0, 11, 150)
    chosen = tt._native.instruction_set()
    answers = []
    try:
        for one in (chosen, name):
            tt._native.use_instruction_set(one)
            found = tt.loss_augmented(
                model, tt.losses.FBeta(truth, background=0), "slack", strategy="bounds"
            ).certificate
            answers.append((found.parts, found.passes))
    finally:
        tt._native.use_instruction_set(chosen)
    assert answers[0] == answers[1]


def test_a_verifier_finds_a_wrong_certificate():
    model = chain(np.random.default_rng(4), 12)
    found = tt.solve(model, where=tt.count(model, state=1) == 9, strategy="bounds")
    evidence = found.proof.plan
    evidence.parts = tuple(part._replace(most=part.most - 1) for part in evidence.parts)
    with pytest.raises(AssertionError, match="the certificate says"):
        check_bounds(found)


def wrong_certificates(found):
    """Change one number of a certificate at a time, so that it no longer proves anything."""
    evidence = found.proof.rests_on()
    vars(found)["proof"] = found.proof._replace(plan=evidence)  # kept, not made again
    parts, box = evidence.parts, evidence.box
    changes = {
        "regret|beyond the budget": {"parts": tuple(p._replace(budget=p.budget - 0.5) for p in parts)},
        "outside all boxes": {"parts": tuple(p._replace(low=p.high) for p in parts)},
        "was not examined|above|the value": {"value": evidence.value - 0.1},
    }
    for words, change in changes.items():
        before = {name: getattr(evidence, name) for name in change}
        vars(evidence).update(change)
        yield words
        vars(evidence).update(before)
    assert evidence.parts is parts and evidence.box is box


def test_a_verifier_checks_the_proof():
    rng = np.random.default_rng(6)
    model = chain(rng, 40)
    loss = tt.losses.FBeta(rng.integers(0, 3, 40), background=0)
    found = tt.loss_augmented(model, loss, margin=8.0, strategy="bounds")
    assert any(part.low != part.high for part in found.certificate.parts)
    for words in wrong_certificates(found):
        with pytest.raises(AssertionError, match=words):
            check_bounds(found)
    check_bounds(found)


def test_a_labelling_that_was_missed_is_found():
    """A budget of the right size around another labelling than the best."""
    model = tt.Model.chain(np.array([[0.0, 1.0], [0.0, 0.9], [0.0, 0.5]]), np.zeros((2, 2)))
    found = tt.solve(model, where=tt.count(model, state=1) == 1, strategy="bounds")
    second = tt.k_best(model, 2, where=tt.count(model, state=1) == 1)[1]
    evidence = found.proof.plan
    evidence.value = second.score
    evidence.parts = tuple(part._replace(budget=part.budget + 0.1) for part in evidence.parts)
    missed = tt.Solution(second.score, second.score, second.tally, second.assignment, model, found.proof)
    with pytest.raises(AssertionError, match="was not examined"):
        check_bounds(missed)


def test_a_loss_that_computes_its_value_in_another_way_is_another_loss():
    @dataclass(frozen=True)
    class Stepped(tt.losses.FBeta):
        def of_counts(self, tp, fp, size):
            plain = super().of_counts(tp, fp, size)
            return np.where((tp == 3) & (fp == 1), 2 * plain, plain)

    rng = np.random.default_rng(6)
    model = chain(rng, 12)
    loss = Stepped(rng.integers(0, 3, 12), background=0)
    full, found = (tt.loss_augmented(model, loss, margin=20.0, strategy=s) for s in ("full", "bounds"))
    assert found.value == pytest.approx(full.value) and found.tally == full.tally
    assert isinstance(found.certificate, BoundsCertificate)


@pytest.mark.parametrize("number", range(12))
def test_what_is_known_when_the_work_ends(number):
    rng = np.random.default_rng(number)
    model, truth = chain(rng, 30, 4), rng.integers(0, 4, 30)
    scaling = ("margin", "slack")[number % 2]
    asked = loss_query(model, tt.losses.FBeta(truth, background=0))
    best = tt.loss_augmented(model, asked.loss, scaling, margin=5.0, strategy="full").value
    question = asked.question(scaling, 5.0)
    for work in (0.0, 500.0, 2e3, 8e3, 1e5):
        found = bounded(asked.query, question, read_options({}, tt.solve), work)
        known = found.found if isinstance(found, BoundedTable) else found
        assert known.value <= best + 1e-9 <= known.bound + 2e-9


def test_a_bound_beyond_a_cap_is_met_by_nothing():
    """The uncapped sum may exceed the bound, but only the capped sum counts."""
    model = chain(np.random.default_rng(2), 6)
    capped = tt.count(model, state=1, name="ones").capped(3)
    loss = tt.losses.FBeta([1, 0, 2, 0, 1, 1], background=0)
    for strategy in ("full", "bounds", "auto"):
        with pytest.raises(tt.InfeasibleError):
            tt.solve(model, where=capped >= 4, strategy=strategy)
        with pytest.raises(tt.InfeasibleError):
            tt.loss_augmented(model, loss, "slack", where=capped >= 4, strategy=strategy)
    best = tt.solve(model, where=capped == 3, strategy="bounds")
    assert best.score == pytest.approx(tt.solve(model, where=capped == 3, strategy="full").score)


def test_a_tally_that_the_constraint_does_not_allow_is_withheld(monkeypatch):
    model = chain(np.random.default_rng(2), 6)
    monkeypatch.setattr("tallytree.bounding.question._box", lambda counted, query: ([0], [3]))
    with pytest.raises(tt.CertificateError, match="does not satisfy"):
        tt.solve(model, where=tt.count(model, state=1) >= 6, strategy="bounds")


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["margin", "slack"]),
    st.sampled_from([(0.0, 1.0), (0.5, 5.0), (0.0, 50.0), (2.0, 2.0)]),
)
def test_paths_of_margins(seed, scaling, ends):
    """Bounds find the same pieces as the full table."""
    rng = np.random.default_rng(seed)
    variables, states = int(rng.integers(1, 12)), int(rng.integers(2, 4))
    model, truth = chain(rng, variables, states), rng.integers(0, states, variables)
    kinds = [
        tt.losses.FBeta(truth, background=0),
        tt.losses.IntersectionOverUnion(truth),
        tt.losses.HammingLoss(truth),
    ]
    loss = kinds[int(rng.integers(3))]
    full, bounds = (
        tt.loss_augmented_path(model, loss, *ends, scaling, strategy=way) for way in ("full", "bounds")
    )
    np.testing.assert_allclose(bounds.breakpoints, full.breakpoints, atol=1e-7)
    np.testing.assert_allclose(bounds.losses, full.losses, atol=1e-12)
    for margin in np.linspace(*ends, 7):
        one, other = full.at(margin), bounds.at(margin)
        assert abs(one.value - other.value) < 1e-9
        assert other.value == pytest.approx(float(bounds.value(margin)), abs=1e-9)
        assert other.certificate.claim.startswith("no labelling with this tally")


def test_a_path_without_end_needs_the_table():
    model = chain(np.random.default_rng(1), 8)
    loss = tt.losses.FBeta([0, 1, 2, 0, 1, 2, 0, 1], background=0)
    ways = [tt.loss_augmented_path(model, loss, strategy=way) for way in ("full", "bounds")]
    np.testing.assert_array_equal(ways[0].breakpoints, ways[1].breakpoints)


def test_a_path_by_bounds_can_be_pickled():
    model = chain(np.random.default_rng(2), 8)
    path = tt.loss_augmented_path(model, tt.losses.FBeta([0, 1, 2, 0, 1, 2, 0, 1]), 0, 9, strategy="bounds")
    again = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(again.breakpoints, path.breakpoints)
    assert again.at(3.0).value == path.at(3.0).value


def test_certificates_tell_the_price_of_the_order_that_was_taken():
    rng = np.random.default_rng(0)
    model = tt.Model.grid(rng.normal(size=(3, 12, 2)), rng.normal(size=(2, 2)), rng.normal(size=(2, 2)))
    ones = tt.count(model, state=1)
    prices = set()
    for order in ("sweep", "natural"):  # along the grid, and across it
        found = tt.solve(model, where=ones == 9, strategy="bounds", order=order)
        assert found.certificate.price == tt.plan(model, where=ones == 9, order=order).search
        prices.add(found.certificate.price.pass_operations)
    assert len(prices) == 2


@pytest.mark.parametrize("positives", [100, 150])
def test_wide_graphs_are_searched_before_their_tables_are_computed(positives):
    model = tt.Model.grid(np.random.default_rng(1).normal(size=(10, 30, 2)), 0.3 * np.eye(2), 0.3 * np.eye(2))
    where = tt.count(model, state=1) == positives
    found = tt.solve(model, where=where)
    assert isinstance(found.certificate, BoundsCertificate)
    assert found.score == pytest.approx(tt.solve(model, where=where, strategy="full").score, rel=1e-12)
