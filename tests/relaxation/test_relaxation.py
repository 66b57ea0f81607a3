"""Relaxations compared with enumeration: bounds hold, solutions are feasible, a gap of 0 is a proof."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.errors import InfeasibleError, ModelError
from tallytree.model.rounding import rounding
from tallytree.planning.orders import skeleton
from tallytree.testing import brute_force, check_solution, score_tolerance

BOUND = st.integers(-4, 5)


@st.composite
def conjunctions(draw, statistics):
    """Draw a conjunction of linear comparisons."""
    a, b = statistics[0], statistics[-1]
    forms = [
        lambda m: a >= m,
        lambda m: b <= m,
        lambda m: a == m,
        lambda m: 2 * a + 0 >= m,
        lambda m: a - 2 * b <= m,
        lambda m: 3 * a + 2 * b == m,
        lambda m: (a >= m) & (a <= m + 2),
    ]
    parts = [draw(st.sampled_from(forms))(draw(BOUND)) for _ in range(draw(st.integers(1, 3)))]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    return whole


@st.composite
def constrained(draw, **options):
    model, statistics = draw(problems(capped=False, **options).filter(lambda problem: problem[1]))
    return model, statistics, draw(conjunctions(statistics))


def optimum(model, where):
    """Return the best score under a constraint, None if there is none."""
    try:
        return brute_force(model).best(where=where).score
    except InfeasibleError:
        return None


@given(
    problem=constrained(largest=5),
    iterations=st.sampled_from([1, 2, 5, 60]),
    candidates=st.sampled_from([0, 3, 99]),
)
@settings(max_examples=400)
def test_against_enumeration(problem, iterations, candidates):
    model, statistics, where = problem
    best = optimum(model, where)
    try:
        found = tt.relax(model, statistics, where=where, iterations=iterations, candidates=candidates)
    except InfeasibleError:
        assert best is None
        return
    if best is not None:
        assert found.upper_bound >= best
    if found.solution is None:
        assert found.gap == np.inf
        return
    assert best is not None
    check_solution(found.solution, model, statistics)
    values = {s: s.tally(found.solution.assignment) for s in where.on(model).statistics}
    assert where.holds(values)
    assert found.solution.score <= best + score_tolerance(model)
    assert 0 <= found.gap <= found.upper_bound - found.solution.score + 1e-15
    if found.optimal:
        assert found.solution.score >= best - 1e-9


@given(problem=constrained(largest=5))
@settings(max_examples=150)
def test_looking_through_all_labellings_closes_every_gap(problem):
    model, _, where = problem
    best = optimum(model, where)
    if best is None:
        with pytest.raises(InfeasibleError):
            tt.relax(model, where=where, candidates=10**6)
        return
    found = tt.relax(model, where=where, candidates=10**6)
    assert found.optimal
    assert found.solution.score == pytest.approx(best, abs=1e-9)


@given(
    problem=problems(largest=6, most=1, capped=False).filter(lambda problem: problem[1]),
    at=BOUND,
    upper=st.booleans(),
)
@settings(max_examples=150)
def test_one_combination_reaches_the_least_dual_value(problem, at, upper):
    model, (statistic,) = problem
    where = statistic <= at if upper else statistic >= at
    profile = tt.profile(model, [statistic])
    tallies, scores = profile.tallies[:, 0], profile.scores
    if not where.holds({statistic: tallies}).any():
        with pytest.raises(InfeasibleError):
            tt.relax(model, where=where)
        return
    # the least dual value is the concave hull of the profile, at the bound or beyond it
    hull = hull_at(tallies, scores, at, upper)
    found = tt.relax(model, where=where, candidates=0)
    assert found.upper_bound == pytest.approx(hull, abs=1e-9)


def hull_at(tallies, scores, at, upper):
    """Evaluate the concave hull of points at a place, made monotone in the direction that is allowed."""
    sign = 1 if upper else -1
    values = [s for t, s in zip(tallies, scores, strict=True) if sign * t <= sign * at]
    for t, s in zip(tallies, scores, strict=True):
        for u, r in zip(tallies, scores, strict=True):
            if t < at < u:
                values.append(s + (r - s) * (at - t) / (u - t))
    return max(values)


def test_a_long_chain_with_two_constraints():
    rng = np.random.default_rng(5)
    model = tt.Model.chain(rng.normal(size=(60, 3)), rng.normal(size=(3, 3)))
    ones, twos = tt.count(model, state=1), tt.count(model, state=2)
    where = (ones == 30) & (twos <= 9)
    exact = tt.solve(model, where=where)
    found = tt.relax(model, where=where)
    assert found.upper_bound >= exact.score
    assert found.upper_bound - exact.score < 0.2
    assert found.solution is not None
    assert exact.score - found.solution.score < 0.5
    assert found.solution.tally[0] == 30
    assert found.solution.tally[1] <= 9


def test_answers_are_always_the_same():
    rng = np.random.default_rng(1)
    model = tt.Model.chain(rng.normal(size=(20, 3)), rng.normal(size=(3, 3)))
    where = (tt.count(state=1) == 9) & (tt.count(state=0) >= 4)
    once, again = tt.relax(model, where=where), tt.relax(model, where=where)
    assert (once.upper_bound, once.multipliers, once.iterations) == (
        again.upper_bound,
        again.multipliers,
        again.iterations,
    )
    assert once.solution.assignment.tolist() == again.solution.assignment.tolist()


def test_progress_is_reported_and_bounds_never_rise():
    rng = np.random.default_rng(2)
    model = tt.Model.chain(rng.normal(size=(20, 3)), rng.normal(size=(3, 3)))
    seen = []
    where = (tt.count(state=1) == 9) & (tt.count(state=0) == 7)
    found = tt.relax(model, where=where, iterations=30, progress=seen.append)
    bounds = [state.upper_bound for state in seen]
    assert bounds == sorted(bounds, reverse=True)
    assert found.upper_bound <= bounds[-1]
    assert [state.iterations for state in seen] == sorted(state.iterations for state in seen)


def test_an_interrupt_passes_through():
    def interrupt(_):
        raise KeyboardInterrupt

    model = tt.Model.chain(np.zeros((3, 2)), np.eye(2))
    with pytest.raises(KeyboardInterrupt):
        tt.relax(model, where=tt.count(state=1) == 1, progress=interrupt)


def test_a_tolerance_stops_early():
    rng = np.random.default_rng(3)
    model = tt.Model.chain(rng.normal(size=(30, 3)), rng.normal(size=(3, 3)))
    where = (tt.count(state=1) <= 6) & (tt.count(state=0) <= 12)
    exact, rough = tt.relax(model, where=where), tt.relax(model, where=where, tolerance=2.0)
    assert rough.gap <= 2.0
    assert rough.iterations <= exact.iterations


MODEL = tt.Model.chain(np.zeros((4, 2)), np.eye(2))
ONES = tt.count(MODEL, state=1, name="ones")
FLIPS = tt.Statistic([((i, i + 1), [[0, 1], [1, 0]]) for i in range(3)], name="flips")


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (ONES >= 5, "no labelling satisfies 'ones >= 5': the largest value is 4"),
        (ONES + FLIPS <= -1, "no labelling satisfies 'ones [+] flips <= -1': the smallest value is 0"),
        ((ONES >= 3) & (ONES <= 2), "its comparisons leave no integer for a tally"),
        (3 * ONES == 4, "its comparisons leave no integer for a tally"),
        ((ONES == 4) & (FLIPS >= 1), "no labelling satisfies the constraint"),
        (ONES >= 10**400, "the largest value is 4"),
        (ONES - ONES >= 1, "no labelling satisfies '0 >= 1': the largest value is 0"),
    ],
)
def test_infeasible_where_it_is_proven(where, text):
    with pytest.raises(InfeasibleError, match=text):
        tt.relax(MODEL, where=where)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (ONES != 2, "'ones != 2' cannot be relaxed: only comparisons by ==, <= and >="),
        ((ONES == 2) | (ONES == 3), "cannot be relaxed"),
        (ONES.capped(2) >= 2, "statistic 'ones' is capped at 2"),
        (True, "got True for a constraint"),
    ],
)
def test_what_is_refused(where, text):
    with pytest.raises(ModelError, match=text):
        tt.relax(MODEL, where=where)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"iterations": 0}, "iterations must be at least 1, got 0"),
        ({"candidates": 1.5}, "candidates must be an integer, got 1.5"),
    ],
)
def test_limits_are_checked(options, text):
    with pytest.raises(ModelError, match=text):
        tt.relax(MODEL, where=ONES == 1, **options)


@pytest.mark.parametrize("where", [ONES <= 10**400, ONES >= -(10**400), ONES - ONES <= 0])
def test_constraints_that_say_nothing(where):
    found = tt.relax(MODEL, where=where)
    assert found.optimal
    assert found.solution.score == 3
    assert found.iterations == 1


def test_no_variables():
    nothing = tt.Model([], [((), 2.5)])
    constant = tt.Statistic([((), 3)], name="constant")
    assert tt.relax(nothing, where=constant == 3).solution.score == 2.5
    with pytest.raises(InfeasibleError, match="the largest value is 3"):
        tt.relax(nothing, where=constant >= 4)


def test_names_and_statistics_are_shown():
    named = tt.Model.chain(np.zeros((3, 2)), np.eye(2), states=["off", "on"])
    found = tt.relax(named, [tt.count(state="off", name="off")], where=tt.count(state="on") == 1)
    assert found.solution.tally._fields == ("off", "count_on")
    assert found.solution.tally == (2, 1)
    assert sorted(found.solution.labels) == ["off", "off", "on"]


@given(problem=problems(largest=6))
@settings(max_examples=100)
def test_rounding_covers_every_order_of_summation(problem):
    model, _ = problem
    everything = brute_force(model)
    for labelling, score in zip(everything.labellings[:20], everything.scores[:20], strict=True):
        if score > -np.inf:
            assert abs(model.score(labelling) - score) <= rounding(model.blocks)


def test_a_constraint_in_the_place_of_statistics_is_refused():
    with pytest.raises(ModelError, match="pass the constraint as where="):
        tt.relax(MODEL, ONES == 1, where=ONES == 1)


@given(problem=problems(largest=5, most=1, capped=False), state=st.integers(0, 2))
def test_fixed_states_are_those_of_a_restricted_model(problem, state):
    model, statistics = problem
    if not statistics or state >= model.cardinalities[0]:
        return
    where = statistics[0] >= 0
    try:
        wanted = tt.relax(model.restricted(fixed={0: state}), where=where)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            tt.relax(model, where=where, fixed={0: state})
        return
    found = tt.relax(model, where=where, fixed={0: state})
    assert (found.upper_bound, found.gap) == (wanted.upper_bound, wanted.gap)
    assert found.solution is None or found.solution.assignment[0] == state


@pytest.mark.parametrize("most", [60, 100, 140])
def test_labellings_at_the_end_of_a_range_are_found_among_ties(most):
    """At the best price all counts are tied, and plain passes find none or all of them."""
    model = tt.Model.chain(np.tile([0.0, 2.0], (200, 1)), np.zeros((2, 2)))
    ones = tt.count(model, state=1)
    for where, score in ((ones <= most, 2.0 * most), ((ones <= most) & (ones >= 10), 2.0 * most)):
        found = tt.relax(model, where=where)
        assert found.solution is not None and found.solution.score == score
        assert found.optimal and found.gap == 0.0


@pytest.mark.parametrize("scores", [0, 1])
@pytest.mark.parametrize("count", [1501, 1000])
def test_exact_counts_are_found_among_strongly_coupled_ties(scores, count):
    """Nearly equal labellings have nearly all counts or none, and no list of the best ones has another."""
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.integers(-scores, scores + 1, (3000, 2)).astype(float), 20 * np.eye(2))
    ones = tt.count(model, state=1)
    for more in (0, 2):
        where = (ones >= count) & (ones <= count + more)
        found = tt.relax(model, where=where)
        best = tt.solve(model, where=where).score
        assert found.solution is not None and count <= ones.tally(found.solution.assignment) <= count + more
        assert best - 20 <= found.solution.score <= best <= found.upper_bound


def test_an_order_without_steps_is_not_the_cheapest():
    """A sweep eliminates the hub before nearly all its neighbours, and is given up."""
    rng = np.random.default_rng(0)
    pairs = [((0, 2 * i + 1, 2 * i + 2), rng.standard_normal((2, 2, 2))) for i in range(50)]
    model = tt.Model([2] * 101, pairs)
    ones = tt.count(model, state=1)
    assert not skeleton(model, [ones], "sweep").feasible
    found = tt.relax(model, where=ones <= 20)
    assert found.optimal and found.iterations > 1
    assert found.solution.score == pytest.approx(tt.solve(model, where=ones <= 20).score, abs=1e-9)
