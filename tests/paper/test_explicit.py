"""The explicit construction against enumeration, and back from it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.testing import brute_force, score_tolerance


@given(problem=problems(largest=4, most=2, feasible=False))
@settings(max_examples=150, deadline=None)
def test_every_labelling_has_one_completion_and_no_other_is_possible(problem):
    model, statistics = problem
    augmented = tt.augment(model, statistics)
    every = brute_force(model, statistics)
    assert len(augmented.model) == len(model) + len(augmented.tree.cliques)
    for y, score, tally in zip(every.labellings, every.scores, every.tallies, strict=True):
        states = augmented.complete(y)
        assert augmented.model.score(states) == pytest.approx(score, abs=score_tolerance(model))
        assert augmented.tallies[states[augmented.hub]].tolist() == tally.tolist()
        np.testing.assert_array_equal(augmented.lift(states), y)
    counted = tt.distribution(augmented.model).counts if every.scores.max() > -np.inf else [0]
    assert sum(counted) == (every.scores > -np.inf).sum()


@given(problem=problems(largest=5, most=2), scale=st.sampled_from([-2.0, 1.0]))
@settings(max_examples=100, deadline=None)
def test_eta_on_the_hub_is_margin_scaling(problem, scale):
    model, statistics = problem

    def eta(*tallies):
        return scale * np.sqrt(sum((np.abs(t) for t in tallies), start=np.zeros(len(tallies[0]))))

    augmented = tt.augment(model, statistics, eta if statistics else None)
    found = augmented.solution(tt.solve(augmented.model).assignment)
    best = brute_force(model, statistics).best(
        (lambda score, *tallies: score + eta(*tallies)) if statistics else None
    )
    assert found.value == pytest.approx(best.value, abs=score_tolerance(model))
    assert found.tally == tuple(s.tally(found.assignment) for s in statistics)
    assert found.score == model.score(found.assignment)


@given(problem=problems(largest=5, most=2))
@settings(max_examples=60, deadline=None)
def test_clamping_the_hub_gives_the_profile(problem):
    model, statistics = problem
    profile = tt.profile(model, statistics)
    for augmented in (
        tt.augment(model, statistics),
        tt.augment(model, statistics, lambda *t: np.full(1, 3.0)),
    ):
        seen = {}
        for tally in augmented.tallies.tolist():
            try:
                found = tt.solve(augmented.clamp(*tally))
            except tt.InfeasibleError:
                continue
            seen[tuple(tally)] = found.score
            assert augmented.solution(found.assignment).tally == tuple(tally)
        assert list(seen) == [tuple(tally) for tally in profile.tallies.tolist()]
        np.testing.assert_allclose(list(seen.values()), profile.scores, atol=score_tolerance(model))


def chain(length=6, states=3):
    rng = np.random.default_rng(0)
    return tt.Model.chain(rng.normal(size=(length, states)), rng.normal(size=(states, states)))


def test_other_programs_read_it(tmp_path):
    model, truth = chain(), np.array([0, 1, 2, 0, 1, 1])
    loss = tt.losses.FBeta(truth, background=0)
    statistics = loss.reduce(model).statistics
    augmented = tt.augment(model, statistics, loss.value)
    tt.io.write_uai(augmented.model, tmp_path / "augmented.uai")
    read = tt.io.read_uai(tmp_path / "augmented.uai")
    found = augmented.solution(tt.solve(read).assignment)
    expected = tt.loss_augmented(model, loss, "margin")
    assert found.value - model.score(truth) == pytest.approx(expected.value)
    values = {}
    for tally in augmented.tallies.tolist():
        tt.io.write_uai(augmented.clamp(*tally), tmp_path / "clamped.uai")
        try:
            best = augmented.solution(tt.solve(tt.io.read_uai(tmp_path / "clamped.uai")).assignment)
        except tt.InfeasibleError:
            continue
        values[tuple(tally)] = float(loss.value(*tally)) * (1 + best.score - model.score(truth))
    assert max(values.values()) == pytest.approx(tt.loss_augmented(model, loss, "slack").value)


def test_a_star_is_cloned_so_that_no_factor_has_many_auxiliary_variables():
    star = tt.Model.tree([-1] + [0] * 7, np.zeros((8, 2)), np.eye(2))
    ones = tt.count(star, state=1)
    augmented = tt.augment(star, [ones])
    assert augmented.tree.degree <= 3
    assert max(block.arity for block in augmented.model.blocks) <= 2 + 3
    np.testing.assert_allclose(
        [tt.solve(augmented.clamp(k)).score for k in range(9)], tt.profile(star, [ones]).scores
    )


def test_what_is_wrong_is_said():
    model = chain()
    ones = tt.count(model, state=1, name="ones")
    augmented = tt.augment(model, [ones])
    with pytest.raises(tt.ModelError, match="a tally has 1 integers here, got \\(1, 2\\)"):
        augmented.clamp(1, 2)
    with pytest.raises(tt.InfeasibleError, match="no labelling has the tally \\(9,\\)"):
        augmented.clamp(9)
    states = augmented.complete([0] * 6)
    states[augmented.hub] = 1
    with pytest.raises(tt.ModelError, match="do not add up"):
        augmented.lift(states)
    with pytest.raises(tt.BudgetError, match="the factors of the auxiliary variables need more than"):
        tt.augment(model, [ones], memory_limit=1000)
    with pytest.raises(tt.ModelError, match="eta is nan at the tally \\(0,\\)"):
        tt.augment(model, [ones], lambda k: np.where(k == 0, np.nan, 1.0))
    with pytest.raises(tt.ModelError, match="eta takes one array for each of \\(ones\\)"):
        tt.augment(model, [ones], lambda a, b: a)
    with pytest.raises(tt.ModelError, match="must be a Model"):
        tt.augment(3, [ones])
    assert repr(augmented) == "AugmentedModel(5 auxiliary variables, 7 tallies)"
