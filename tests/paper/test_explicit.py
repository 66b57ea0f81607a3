"""The explicit construction compared with enumeration, and converted back."""

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
    explicit = tt.explicit_model(model, statistics)
    every = brute_force(model, statistics)
    assert len(explicit.model) == len(model) + len(explicit.tree.cliques)
    for y, score, tally in zip(every.labellings, every.scores, every.tallies, strict=True):
        states = explicit.complete(y)
        assert explicit.model.score(states) == pytest.approx(score, abs=score_tolerance(model))
        assert explicit.tallies[states[explicit.hub]].tolist() == tally.tolist()
        np.testing.assert_array_equal(explicit.lift(states), y)
    counted = tt.distribution(explicit.model).counts if every.scores.max() > -np.inf else [0]
    assert sum(counted) == (every.scores > -np.inf).sum()


@given(problem=problems(largest=5, most=2), scale=st.sampled_from([-2.0, 1.0]))
@settings(max_examples=100, deadline=None)
def test_eta_on_the_hub_is_margin_scaling(problem, scale):
    model, statistics = problem

    def eta(*tallies):
        return scale * np.sqrt(sum((np.abs(t) for t in tallies), start=np.zeros(len(tallies[0]))))

    explicit = tt.explicit_model(model, statistics, eta if statistics else None)
    found = explicit.solution(tt.solve(explicit.model).assignment)
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
    for explicit in (
        tt.explicit_model(model, statistics),
        tt.explicit_model(model, statistics, lambda *t: np.full(1, 3.0)),
    ):
        seen = {}
        for tally in explicit.tallies.tolist():
            try:
                found = tt.solve(explicit.clamp(*tally))
            except tt.InfeasibleError:
                continue
            seen[tuple(tally)] = found.score
            assert explicit.solution(found.assignment).tally == tuple(tally)
        assert list(seen) == [tuple(tally) for tally in profile.tallies.tolist()]
        np.testing.assert_allclose(list(seen.values()), profile.scores, atol=score_tolerance(model))


def chain(length=6, states=3):
    rng = np.random.default_rng(0)
    return tt.Model.chain(rng.normal(size=(length, states)), rng.normal(size=(states, states)))


def test_other_programs_read_it(tmp_path):
    model, truth = chain(), np.array([0, 1, 2, 0, 1, 1])
    loss = tt.losses.FBeta(truth, background=0)
    statistics = loss.reduce(model).statistics
    explicit = tt.explicit_model(model, statistics, loss.value)
    tt.io.write_uai(explicit.model, tmp_path / "explicit.uai")
    read = tt.io.read_uai(tmp_path / "explicit.uai")
    found = explicit.solution(tt.solve(read).assignment)
    expected = tt.loss_augmented(model, loss, "margin")
    assert found.value - model.score(truth) == pytest.approx(expected.value)
    values = {}
    for tally in explicit.tallies.tolist():
        tt.io.write_uai(explicit.clamp(*tally), tmp_path / "clamped.uai")
        try:
            best = explicit.solution(tt.solve(tt.io.read_uai(tmp_path / "clamped.uai")).assignment)
        except tt.InfeasibleError:
            continue
        values[tuple(tally)] = float(loss.value(*tally)) * (1 + best.score - model.score(truth))
    assert max(values.values()) == pytest.approx(tt.loss_augmented(model, loss, "slack").value)


def test_a_star_is_cloned_so_that_no_factor_has_many_auxiliary_variables():
    star = tt.Model.tree([-1] + [0] * 7, np.zeros((8, 2)), np.eye(2))
    ones = tt.count(star, state=1)
    explicit = tt.explicit_model(star, [ones])
    assert explicit.tree.degree <= 3
    assert max(block.arity for block in explicit.model.blocks) <= 2 + 3
    np.testing.assert_allclose(
        [tt.solve(explicit.clamp(k)).score for k in range(9)], tt.profile(star, [ones]).scores
    )


def test_what_is_wrong_is_said():
    model = chain()
    ones = tt.count(model, state=1, name="ones")
    explicit = tt.explicit_model(model, [ones])
    with pytest.raises(tt.ModelError, match="a tally needs 1 integers here, got \\(1, 2\\)"):
        explicit.clamp(1, 2)
    with pytest.raises(tt.InfeasibleError, match="no labelling has the tally \\(9,\\)"):
        explicit.clamp(9)
    states = explicit.complete([0] * 6)
    states[explicit.hub] = 1
    with pytest.raises(tt.ModelError, match="are inconsistent"):
        explicit.lift(states)
    with pytest.raises(tt.BudgetError, match="the factors of the auxiliary variables need more than"):
        tt.explicit_model(model, [ones], memory_limit=1000)
    with pytest.raises(tt.ModelError, match="eta is nan at the tally \\(0,\\)"):
        tt.explicit_model(model, [ones], lambda k: np.where(k == 0, np.nan, 1.0))
    with pytest.raises(tt.ModelError, match="eta takes one array for each of \\(ones\\)"):
        tt.explicit_model(model, [ones], lambda a, b: a)
    with pytest.raises(tt.ModelError, match="must be a Model"):
        tt.explicit_model(3, [ones])
    assert repr(explicit) == "ExplicitModel(5 auxiliary variables, 7 tallies)"
