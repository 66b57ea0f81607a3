"""``solve`` with constraints of every form, capped and pruned internally, compared with enumeration."""

import numpy as np
import pytest
from constraint_cases import (
    OBJECTIVES,
    check_against_enumeration,
    constraints,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.planning.plan import Plan


@given(problem=problems(), data=st.data())
@settings(max_examples=300)
def test_solve_equals_enumeration(problem, data):
    model, statistics = problem
    seen = statistics[: data.draw(st.integers(0, len(statistics)))]
    where = data.draw(constraints(statistics or [tt.count(model, state=0)]))
    objective = OBJECTIVES[data.draw(st.sampled_from(sorted(OBJECTIVES)))]
    check_against_enumeration(model, seen, objective, where)


@pytest.mark.parametrize(
    "options", [{"layout": "rows"}, {"layout": "cells"}, {"backend": "reference"}], ids=str
)
@given(problem=problems(largest=4, most=2), data=st.data())
@settings(max_examples=80)
def test_every_way_to_run_gives_the_same(options, problem, data):
    model, statistics = problem
    seen = statistics[: data.draw(st.integers(0, len(statistics)))]
    where = data.draw(constraints(statistics or [tt.count(model, state=0)]))
    check_against_enumeration(model, seen, None, where, **options)


@given(problem=problems(most=2, local=True), low=st.integers(-4, 6), width=st.integers(0, 3))
@settings(max_examples=120)
def test_windows_on_two_statistics(problem, low, width):
    """Both ends of both ranges: what is pruned early must not be missed later."""
    model, statistics = problem
    for g in statistics:
        where = (g >= low) & (g <= low + width)
        check_against_enumeration(model, [], None, where)
        check_against_enumeration(model, statistics, None, where & (statistics[0] != low))


@pytest.mark.parametrize("tallies", ["rows", "cells"])
def test_a_cap_below_the_least_sum_makes_a_constant(tallies):
    """``min(3, 5 or 6)`` is 3 whatever is chosen: the window is on the 3, not on the 5."""
    model = tt.Model([2, 2], [((0,), [0.0, 1.0])])
    always = tt.Statistic([((0,), [5, 6])], name="always", cap=3)
    never = tt.Statistic([], name="never", cap=-1)
    for where in (always <= 3, always == 3, always >= 3, never == -1, never <= 0):
        assert tt.solve(model, where=where, layout=tallies).score == 1.0
    for where in (always >= 4, always <= 2, never >= 0, never == 0, (always == 3) & (never == 0)):
        with pytest.raises(tt.InfeasibleError):
            tt.solve(model, where=where, layout=tallies)


# ---------------------------------------------------------------- long rows, many tallies


def independent(size):
    rng = np.random.default_rng(size)
    gain = rng.normal(size=size)
    star = tt.Model.tree([-1] + [0] * (size - 1), np.stack([np.zeros(size), gain], axis=1), np.zeros((2, 2)))
    return star, np.concatenate([[0.0], np.cumsum(np.sort(gain)[::-1])])


@pytest.mark.parametrize("tally", [0, 1, 130, 299, 300])
def test_exactly_k_of_300_takes_the_k_largest_gains(tally):
    model, best = independent(300)
    ones = tt.count(model, state=1)
    for solution in (
        tt.solve(model, where=ones == tally),
        tt.solve(model, [ones], where=ones == tally),
        tt.solve(model, [ones], lambda score, k: score, where=(2 * ones >= 2 * tally) & (ones < tally + 1)),
    ):
        assert solution.score == pytest.approx(best[tally], abs=1e-9)
        assert solution.assignment.sum() == tally == solution.tally[0]


def test_bounds_of_300_from_either_side():
    model, best = independent(300)
    ones = tt.count(model, state=1)
    for k in (5, 140, 290):
        assert tt.solve(model, where=ones >= k).score == pytest.approx(best[k:].max(), abs=1e-9)
        assert tt.solve(model, where=ones <= k).score == pytest.approx(best[: k + 1].max(), abs=1e-9)
        assert tt.solve(model, where=ones != k).score == pytest.approx(np.delete(best, k).max(), abs=1e-9)
        assert tt.solve(model, where=(ones <= k) | (ones == 300)).score == pytest.approx(
            max(best[: k + 1].max(), best[300]), abs=1e-9
        )


def test_a_window_makes_the_plan_cheaper():
    model, _ = independent(300)
    ones = tt.count(model, state=1)
    whole, pruned = Plan(model, [ones]), Plan(model, [ones], window={0: (0, 5)})
    assert pruned.pruned > 0 == whole.pruned
    assert pruned.operations < whole.operations / 5


# ---------------------------------------------------------------- what is seen and what is reported


def attractive(size=10):
    return tt.Model.chain(np.tile([0.0, 1.0], (size, 1)), np.zeros((2, 2)))


def test_tallies_are_reported_uncapped():
    model = attractive()
    ones, zeros = tt.count(model, state=1, name="ones"), tt.count(model, state=0, name="zeros")
    solution = tt.solve(model, [zeros], where=ones >= 2)
    assert solution.tally._asdict() == {"zeros": 0, "ones": 10}
    capped = tt.solve(model, where=tt.count(model, state=1, name="ones", cap=3) >= 2)
    assert capped.tally._asdict() == {"ones": 3}, "the user's own cap stays"


def test_the_objective_gets_its_own_statistics_only():
    model = attractive()
    ones, zeros = tt.count(model, state=1), tt.count(model, state=0)
    got = []

    def objective(score, *tallies):
        got.append(len(tallies))
        return score

    tt.solve(model, [ones], objective, where=(zeros >= 2) & (ones - zeros <= 3))
    tt.solve(model, [], objective, where=zeros >= 2)
    assert set(got) == {0, 1}


def test_recipes_are_bound_to_the_model():
    solution = tt.solve(attractive(), [tt.count(state=0, name="zeros")], where=tt.count(state=1) <= 4)
    assert solution.tally.zeros == 6


def test_the_same_statistic_in_objective_and_constraint_is_carried_once():
    ones = tt.count(attractive(), state=1)
    again = tt.count(attractive(), state=1, name="again")
    solution = tt.solve(attractive(), [ones], lambda score, k: score - k, where=again <= 4)
    assert len(solution.tally) == 1


def test_infeasible_constraints_say_so():
    model = attractive()
    ones, zeros = tt.count(model, state=1, name="ones"), tt.count(model, state=0, name="zeros")
    for where in (
        ones >= 11,
        ones < 0,
        (ones == 4) & (zeros == 5),
        ones + zeros != 10,
        (ones <= 3) & (ones >= 4),
    ):
        with pytest.raises(tt.InfeasibleError, match="satisfies") as caught:
            tt.solve(model, where=where)
        assert str(where) in str(caught.value)


def test_bounds_beyond_64_bits_are_just_bounds():
    model = attractive()
    ones = tt.count(model, state=1)
    for big in (2**62, 2**63, 10**30):
        assert tt.solve(model, where=ones <= big).tally == (10,)
        assert tt.solve(model, where=ones >= -big).tally == (10,)
        assert tt.solve(model, where=ones != big).tally == (10,)
        assert tt.solve(model, [ones], where=(ones <= big) & (big * ones >= big)).tally == (10,)
        for where in (ones >= big, ones <= -big, ones == big):
            with pytest.raises(tt.InfeasibleError):
                tt.solve(model, where=where)


def test_an_objective_of_too_many_arguments_is_told_what_it_gets():
    model = attractive()
    ones, zeros = tt.count(model, state=1, name="ones"), tt.count(model, state=0)
    with pytest.raises(tt.ObjectiveError, match=r"\(score, ones\); this one takes \(score, a, b\)"):
        tt.solve(model, [ones], lambda score, a, b: score, where=zeros >= 2)


def test_a_comparison_of_two_statistics_is_no_constraint():
    model = attractive()
    with pytest.raises(tt.ModelError, match="a - b == 0"):
        tt.solve(model, where=tt.count(model, state=1) == tt.count(model, state=0))


def test_a_constraint_in_place_of_statistics_is_told_where_to_go():
    model = tt.Model([2] * 3)
    two = tt.count(model, state=1) == 2
    for ask in (
        tt.solve,
        tt.profile,
        lambda m, c: tt.k_best(m, 3, c),
        lambda m, c: tt.diverse_k_best(m, 3, 2, c),
    ):
        with pytest.raises(tt.ModelError, match="pass the constraint as where="):
            ask(model, two)
