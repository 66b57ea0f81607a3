"""Distributions under a constraint: compared with enumeration, and no larger than the constraint requires."""

import pickle

import numpy as np
import pytest
from constraint_cases import constraints
from frequencies import check_frequencies
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.testing import brute_force, random_model, random_statistics
from tallytree.testing.enumeration import Enumeration, _satisfied


def enumerated(model, seen, where):
    """All labellings that satisfy a constraint; the others get the score -inf."""
    everything = brute_force(model, seen)
    holds = _satisfied(where.on(model), model, everything.labellings)
    scores = np.where(holds, everything.scores, -np.inf)
    return Enumeration(model, everything.statistics, everything.labellings, scores, everything.tallies)


def check_conditioned(model, seen, where, **options):
    wanted = enumerated(model, seen, where)
    if not (wanted.scores > -np.inf).any():
        with pytest.raises(tt.InfeasibleError, match="satisfies"):
            tt.distribution(model, seen, where=where, **options)
        return
    found = tt.distribution(model, seen, where=where, **options)
    np.testing.assert_array_equal(found.tallies, wanted.profile()[0])
    np.testing.assert_allclose(found.log_partitions, wanted.log_partitions(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.probabilities, wanted.probabilities(), rtol=1e-9, atol=1e-11)
    assert found.log_partition == pytest.approx(wanted.log_partition(), rel=1e-9, abs=1e-9)
    assert found.counts == wanted.counts()
    for tally in [None, *found.tallies.tolist()]:
        pairs = zip(model.by_variable(found.marginals(tally=tally)), wanted.marginals(tally), strict=True)
        for got, right in pairs:
            np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-11)
    if options.get("backend") != "reference":
        check_gradient_and_samples(found, wanted)


def check_gradient_and_samples(found, wanted):
    """Samples satisfy the constraint; the gradient is the probability of each entry."""
    allowed = set(map(tuple, wanted.labellings[wanted.scores > -np.inf].tolist()))
    assert set(map(tuple, found.sample(8, rng=1).reshape(8, -1).tolist())) <= allowed
    tally = found.tallies[-1]
    for labelling in found.sample(3, tally=tally, rng=2).reshape(3, -1):
        assert tuple(labelling.tolist()) in allowed
        assert [s.tally(labelling) for s in wanted.statistics] == tally.tolist()
    if not found.reduction.trivial:
        return  # derivatives are with respect to the entries of the model that is solved
    scores = wanted.scores[wanted.scores > -np.inf]
    weights = np.exp(scores - scores.max())
    rows = wanted.labellings[wanted.scores > -np.inf]
    for block, entries in zip(wanted.model.blocks, found.gradient(found.probabilities), strict=True):
        expected = np.zeros(entries.shape)
        for place, scope in enumerate(block.scopes.tolist()):
            table = 0 if len(entries) == 1 else place
            at = (np.full(len(rows), table), *(rows[:, v] for v in scope))
            np.add.at(expected, at, weights / weights.sum())
        np.testing.assert_allclose(entries, expected, rtol=1e-9, atol=1e-11)


@st.composite
def conditioned(draw, largest=5):
    model, statistics = draw(problems(largest=largest, states=3, most=3))
    seen = draw(st.lists(st.sampled_from(statistics), unique_by=id)) if statistics else []
    return model, seen, draw(constraints(statistics or [tt.count(model, state=0)]))


@given(case=conditioned())
@settings(max_examples=300)
def test_conditioned_distributions_equal_enumeration(case):
    check_conditioned(*case)


@pytest.mark.parametrize("options", [{"layout": "rows"}, {"layout": "cells"}, {"backend": "reference"}])
@given(case=conditioned(largest=4))
@settings(max_examples=60)
def test_in_every_layout_and_by_the_reference(options, case):
    check_conditioned(*case, **options)


def test_labellings_that_match_a_pattern():
    model = random_model(np.random.default_rng(4), "chain", variables=6, states=3)
    for where in (tt.regular("0 (1|2)* 0?"), tt.regular("(0 1?)* 2*") & (tt.count(state=1) >= 1)):
        check_conditioned(model, [tt.count(model, state=2)], where)


def test_samples_come_as_often_as_their_probability_says():
    rng = np.random.default_rng(3)
    model = random_model(rng, "cycle", variables=5, states=3)
    seen, hidden = random_statistics(rng, model, 2, low=0, high=1, terms=3)
    wanted = enumerated(model, [seen], where := (hidden >= 1) & (hidden != 2))
    found = tt.distribution(model, [seen], where=where)
    assert len(found._cells) > len(found)  # several cells in a row
    weights = np.exp(wanted.scores)
    check_frequencies(found.sample(20_000, rng=0), wanted.labellings, weights / weights.sum())
    tally = found.tallies[len(found) // 2]
    within = np.where((wanted.tallies == tally).all(axis=1), weights, 0.0)
    drawn = found.sample(10_000, tally=tally, rng=1)
    check_frequencies(drawn, wanted.labellings, within / within.sum())


def test_what_the_constraint_rules_out_is_not_computed():
    model = tt.Model.chain(np.zeros((200, 3)), np.eye(3))
    ones = tt.count(model, state=1, name="ones")
    whole = tt.distribution(model, [ones])
    few = tt.distribution(model, [ones], where="ones == 5")
    assert few.plan.operations < whole.plan.operations / 10
    assert few.plan.table_bytes < whole.plan.table_bytes / 5
    np.testing.assert_allclose(few.marginals(), whole.marginals(ones=5), rtol=1e-9)
    assert few.log_partition == pytest.approx(whole.log_partitions[5], rel=1e-12)


def test_a_plan_is_for_its_constraint():
    model = tt.Model.chain(np.zeros((20, 2)), np.eye(2))
    ones = tt.count(model, state=1, name="ones")
    made = tt.plan(model, [ones], where="ones <= 3")
    found = tt.distribution(model, [ones], where="ones <= 3", plan=made)
    assert found.plan is made
    assert found.tallies.ravel().tolist() == [0, 1, 2, 3]
    with pytest.raises(tt.ModelError, match="leaves out tallies"):
        tt.distribution(model, [ones], plan=made)
    with pytest.raises(tt.ModelError, match="made for another constraint, or for none"):
        tt.distribution(model, [ones], where="ones <= 4", plan=made)


def test_nothing_satisfies_the_constraint():
    model = tt.Model.chain(np.zeros((5, 2)), np.eye(2))
    with pytest.raises(tt.InfeasibleError, match=r"no labelling satisfies 'ones == 9'; the nearest .*ones=5"):
        tt.distribution(model, [tt.count(state=1, name="ones")], where="ones == 9")


def test_a_tally_that_the_constraint_rules_out():
    model = tt.Model.chain(np.zeros((5, 2)), np.eye(2))
    found = tt.distribution(model, [tt.count(state=1, name="ones")], where="ones >= 3")
    for call in (found.marginals, lambda tally: found.sample(tally=tally)):
        with pytest.raises(tt.InfeasibleError, match=r"that satisfies 'ones >= 3' has the tally \(ones=2\)"):
            call(2)
    assert found.at(2) == 0.0


def test_conditioned_distributions_are_pickled():
    model = tt.Model.chain(np.zeros((5, 2)), np.eye(2))
    found = tt.distribution(model, [tt.count(state=1)], where=tt.count(model, state=1, variables=[0]) == 1)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(found.sample(5, rng=0), again.sample(5, rng=0))
    np.testing.assert_array_equal(found.marginals(), again.marginals())


def test_tallies_in_every_manner():
    model = tt.Model.chain(np.zeros((6, 2)), np.eye(2))
    d = tt.distribution(model, [tt.count(state=1, name="ones"), tt.count(state=0, name="zeros")])
    row = d.tallies.tolist().index([2, 4])
    for chance in (d.at(2, 4), d.at([2, 4]), d.at(ones=2, zeros=4), d.at({"zeros": 4, "ones": 2})):
        assert chance == d.probabilities[row]
    assert d.at(2, 2) == 0.0
    wanted = d.marginals([2, 4])
    for got in (d.marginals(2, 4), d.marginals(zeros=4, ones=2), d.marginals(tally={"ones": 2, "zeros": 4})):
        np.testing.assert_array_equal(got, wanted)
    drawn = d.sample(5, tally=[2, 4], rng=3)
    np.testing.assert_array_equal(d.sample(5, ones=2, zeros=4, rng=3), drawn)
    with pytest.raises(tt.ModelError, match="not in two ways"):
        d.sample(tally=[2, 4], ones=2)
    for wrong in (d.at, d.marginals, d.sample):
        with pytest.raises(tt.ModelError, match=r"one integer for each of \(ones, zeros\)"):
            wrong(ones=2)


@pytest.mark.parametrize("name", ["random_state", "seed"])
def test_other_names_of_the_generator(name):
    model = tt.Model.chain(np.zeros((3, 2)), np.eye(2))
    with pytest.raises(tt.ModelError, match=f"no argument '{name}'. Did you mean rng=0?"):
        tt.distribution(model, [tt.count(state=1)]).sample(3, **{name: 0})
    named = tt.distribution(model, [tt.count(state=1, name=name)])
    assert named.sample(3, **{name: 1}).sum(axis=1).tolist() == [1, 1, 1]
