"""Labellings in order, outside a set and far from each other, compared with enumeration."""

import pickle
from functools import partial
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import little
from ranked_labellings import satisfying
from strategies import problems

import tallytree as tt
from tallytree.testing import check_solution, score_tolerance, tally_of

LAYOUTS = ["rows", "cells"]


def check_ranking(found, model, statistics, where=None, k=None):
    """Check that these are the k best: scores in order, no repeats, no gaps, every tally right."""
    labellings, scores = satisfying(model, where)
    tolerance = score_tolerance(model)
    np.testing.assert_allclose([s.score for s in found], scores[:k], rtol=0, atol=tolerance)
    keys = {s.assignment.tobytes() for s in found}
    assert len(keys) == len(found)
    assert keys <= {y.tobytes() for y in labellings}
    for solution in found:
        check_solution(solution, model, statistics)


@st.composite
def constrained(draw, **options):
    """Draw a problem and a constraint on its statistics, of any of several forms."""
    model, statistics = draw(problems(**options))
    bound = st.integers(-3, 4)
    if not statistics:
        return model, statistics, None
    a, b = statistics[0], statistics[-1]
    forms = [
        a >= draw(bound),
        a <= draw(bound),
        a == draw(bound),
        a != draw(bound),
        (a >= draw(bound)) & (b <= draw(bound)),
        (a >= draw(bound)) | (b == draw(bound)),
        a - 2 * b <= draw(bound),
    ]
    return model, statistics, draw(st.sampled_from(forms))


@pytest.mark.parametrize("tallies", LAYOUTS)
@given(problem=problems(largest=5, feasible=False))
@settings(max_examples=300)
def test_all_labellings_come_once_and_in_order(tallies, problem):
    model, statistics = problem
    check_ranking(tt.k_best(model, None, statistics, layout=tallies), model, statistics)


@pytest.mark.parametrize("tallies", LAYOUTS)
@given(problem=constrained(largest=5), shown=st.integers(0, 3), k=st.integers(0, 12))
@settings(max_examples=300)
def test_those_that_satisfy_a_constraint(tallies, problem, shown, k):
    model, statistics, where = problem
    found = tt.k_best(model, k, statistics[:shown], where=where, layout=tallies)
    hidden = [] if where is None else [s for s in where.statistics if s not in statistics[:shown]]
    check_ranking(found, model, [*statistics[:shown], *hidden], where, k)


@given(problem=problems(largest=5, most=2), order=st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_every_elimination_order_gives_the_same_ranking(problem, order):
    model, statistics = problem
    variables = list(range(len(model)))
    order.shuffle(variables)
    check_ranking(tt.k_best(model, None, statistics, order=variables), model, statistics)


@given(problem=problems(largest=6))
@settings(max_examples=100)
def test_the_first_is_the_one_that_solve_finds(problem):
    model, statistics = problem
    first, solved = next(tt.iter_best(model, statistics)), tt.solve(model, statistics)
    assert first.assignment.tolist() == solved.assignment.tolist()
    assert (first.value, first.score, first.tally) == (solved.value, solved.score, solved.tally)


@given(problem=problems(largest=5), k=st.integers(1, 30))
@settings(max_examples=60)
def test_ties_come_in_the_same_order_every_time(problem, k):
    model, statistics = problem
    once, again = tt.k_best(model, k, statistics), islice(tt.iter_best(model, statistics), k)
    assert [s.assignment.tolist() for s in once] == [s.assignment.tolist() for s in again]


@pytest.mark.parametrize("tallies", LAYOUTS)
@given(problem=constrained(largest=5, most=2), k=st.one_of(st.none(), st.integers(0, 12)))
@settings(max_examples=200)
def test_order_of_an_objective(tallies, problem, k):
    model, statistics, where = problem
    labellings, scores = satisfying(model, where)
    values = pulled(scores, *(tally_of(s, labellings) for s in statistics))
    wanted = np.sort(values[values > -np.inf])[::-1][:k]
    found = tt.k_best(model, k, statistics, pulled, where=where, layout=tallies)
    np.testing.assert_allclose([s.value for s in found], wanted, rtol=0, atol=4 * score_tolerance(model))
    assert len({s.assignment.tobytes() for s in found}) == len(found)
    for solution in found:
        check_solution(solution, model, statistics)
        assert solution.value == pytest.approx(float(pulled(solution.score, *solution.tally)), abs=1e-9)


def test_an_objective_does_not_get_what_only_the_constraint_reads():
    model = tt.Model.chain(np.array([[0.0, 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    ones, last = tt.count(model, state=1), tt.count(model, state=1, variables=[2], name="last")
    found = tt.k_best(model, 2, [ones], lambda score, k: score - 3 * k, where=last == 0)
    assert [s.value for s in found] == [0.0, -1.0]
    with pytest.raises(tt.ObjectiveError, match="decreases in the score"):
        tt.iter_best(model, [ones], lambda score, k: -score)


def test_ties_go_to_the_first_tally():
    model = tt.Model([2, 2], [((), 1.0)])
    found = tt.k_best(model, None, [tt.count(state=1, name="ones")])
    assert [s.tally.ones for s in found] == [0, 1, 1, 2]


def test_small_models():
    assert [s.assignment.tolist() for s in tt.k_best(tt.Model([], [((), 2.0)]), 3)] == [[]]
    assert [s.score for s in tt.k_best(tt.Model([1], [((0,), [4.0])]), 3)] == [4.0]
    assert [s.score for s in tt.k_best(tt.Model([3], []))] == [0.0, 0.0, 0.0]
    assert tt.k_best(tt.Model([2], [((0,), [0.0, 1.0])]), 0) == []
    assert tt.k_best(tt.Model([2], [((0,), [-np.inf, -np.inf])]), 5) == []
    assert tt.k_best(tt.Model([2], [((), -np.inf)]), 5) == []
    assert tt.k_best(tt.Model([2, 2], []), 5, where=tt.count(state=1) >= 3) == []


def test_lists_of_none():
    """Lists may be empty, whatever is asked of them; negative numbers and fractions are errors."""
    model = tt.Model.chain(np.zeros((3, 2)), np.eye(2))
    rules = {("N", "N", "N"): -1.0}
    forest = tt.parsing.Forest(tt.parsing.Grammar(rules, {}, {"N": {"a": 0.0}}, root="N"), "a a a")
    ones = tt.count(model, state=1, name="ones")
    assert tt.k_best(model, 0) == tt.k_best(model, 0, where=ones == 2) == tt.diverse_k_best(model, 0, 1) == []
    assert tt.k_best(model, 0, [ones], "score - ones", strategy="full") == []
    assert tt.parsing.k_best(forest, 0) == tt.parsing.diverse_k_best(forest, 0, 1) == []
    for ask in (
        partial(tt.k_best, model),
        partial(tt.diverse_k_best, model, distance=1),
        partial(tt.parsing.k_best, forest),
        partial(tt.parsing.diverse_k_best, forest, distance=1),
    ):
        with pytest.raises(tt.ModelError, match="k must be at least 0, got -1"):
            ask(k=-1)
        with pytest.raises(tt.ModelError, match=r"k must be an integer, got 1\.5"):
            ask(k=1.5)


@pytest.mark.parametrize("tallies", LAYOUTS)
def test_long_chains_agree_with_exclusion(tallies):
    rng = np.random.default_rng(3)
    model = tt.Model.chain(rng.integers(-3, 4, size=(60, 3)).astype(float), rng.normal(size=(3, 3)).round(1))
    ones = tt.count(model, state=1, cap=25)
    found = tt.k_best(model, 40, [ones], where=ones >= 20, layout=tallies)
    assert len({s.assignment.tobytes() for s in found}) == 40
    assert all(a.score >= b.score - 1e-9 for a, b in pairwise(found))
    outside = tt.exclude(model, found[:-1], [ones], where=ones >= 20, method="statistics")
    assert outside.score == pytest.approx(found[-1].score, abs=1e-9)


def test_lists_are_as_long_as_they_can_be():
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(2000, 3)), rng.normal(size=(3, 3)))
    found = tt.k_best(model, 300)
    scores = [s.score for s in found]
    assert len({s.assignment.tobytes() for s in found}) == 300
    np.testing.assert_allclose(scores, sorted(scores, reverse=True), atol=score_tolerance(model))


def test_profiles_rank_after_pickling_and_from_two_readers():
    model = tt.Model.chain(np.array([[0.0, 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    ones = tt.count(model, state=1)
    profile = pickle.loads(pickle.dumps(tt.profile(model, [ones])))
    first, second = profile.ranked(), profile.ranked(where=ones == 1)
    assert [next(first).score, next(second).score, next(first).score] == [7.0, 4.0, 6.0]
    assert profile.best().score == 7.0
    del profile
    assert [s.score for s in second] == [2.0, 1.0]


def test_what_cannot_be_ranked_is_refused():
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(60, 4)), rng.normal(size=(4, 4)))
    ones = tt.count(model, state=1)
    limit = little(tt.plan(model, [ones]), 0.5)
    with pytest.raises(tt.BudgetError, match=r"need every table.*segments.*raise memory_limit="):
        tt.k_best(model, 2, [ones], memory_limit=limit)
    with pytest.raises(tt.ModelError, match="native executor"):
        tt.profile(tt.Model([2], []), backend="reference").ranked()
    with pytest.raises(tt.ModelError, match="k must be at least 0, got -1"):
        tt.k_best(model, -1)
    with pytest.raises(tt.ModelError, match=r"k must be an integer, got 2\.5"):
        tt.k_best(model, 2.5)
    with pytest.raises(tt.ModelError, match="a constraint compares statistics"):
        tt.iter_best(model, where=3)  # at once, not when the first is asked for


# ---------------------------------------------------------------- outside a set


def best_outside(model, outputs, statistics, objective, where):
    labellings, scores = satisfying(model, where)
    unwanted = {np.asarray(y).tobytes() for y in outputs}
    keep = np.array([y.tobytes() not in unwanted for y in labellings], dtype=bool)
    values = scores[keep]
    if objective is not None:
        values = objective(values, *(tally_of(s, labellings[keep]) for s in statistics))
    return None if not len(values) else float(np.max(values))


def check_exclusion(solution, model, outputs, statistics, wanted):
    assert solution.assignment.tobytes() not in {np.asarray(y).tobytes() for y in outputs}
    assert abs(solution.value - wanted) <= 4 * score_tolerance(model)
    check_solution(solution, model, statistics)


@given(problem=constrained(largest=4), count=st.integers(0, 12), seed=st.integers(0, 99))
@settings(max_examples=200)
def test_exclude_both_ways(problem, count, seed):
    model, statistics, where = problem
    rng = np.random.default_rng(seed)
    outputs = [s.assignment for s in tt.k_best(model, count)] + list(
        rng.integers(model.cardinalities, size=(3, len(model)))
    )
    wanted = best_outside(model, outputs, statistics, None, where)
    for method in ("ranking", "statistics", None):
        if wanted is None:
            with pytest.raises(tt.InfeasibleError, match="is left outside the"):
                tt.exclude(model, outputs, statistics, where=where, method=method)
        else:
            found = tt.exclude(model, outputs, statistics, where=where, method=method)
            check_exclusion(found, model, outputs, statistics, wanted)


def pulled(score, *tallies):
    """An objective that draws tallies to 1, and refuses some."""
    value = score - sum(3 * np.abs(t - 1) for t in tallies)
    return np.where(tallies[0] == 2, -np.inf, value) if tallies else value


@given(problem=problems(largest=4, most=2), count=st.integers(0, 8))
@settings(max_examples=150)
def test_exclude_with_an_objective(problem, count):
    model, statistics = problem
    outputs = tt.k_best(model, count)
    unwanted = [s.assignment for s in outputs]
    wanted = best_outside(model, unwanted, statistics, pulled, None)
    for method in ("ranking", "statistics"):
        if wanted is None or wanted == -np.inf:
            with pytest.raises(tt.InfeasibleError, match="or the objective is -inf"):
                tt.exclude(model, outputs, statistics, pulled, method=method)
        else:
            found = tt.exclude(model, [*outputs, *outputs], statistics, pulled, method=method)
            check_exclusion(found, model, unwanted, statistics, wanted)


def test_exclusion_takes_names_and_grids():
    chain = tt.Model.chain(np.array([[0.0, 1], [0, 2]]), np.zeros((2, 2)), states=["no", "yes"])
    assert tt.exclude(chain, [["yes", "yes"]]).labels.tolist() == ["no", "yes"]
    grid = tt.Model.grid(np.arange(8.0).reshape(2, 2, 2), np.zeros((2, 2)), np.zeros((2, 2)))
    best = tt.solve(grid)
    for method in ("ranking", "statistics"):
        assert tt.exclude(grid, [best.labels], method=method).score == best.score - 1


def test_many_exclusions_share_few_tallies():
    rng = np.random.default_rng(1)
    model = tt.Model.chain(rng.normal(size=(50, 3)), rng.normal(size=(3, 3)))
    outputs = tt.k_best(model, 81)
    near = [tt.mismatches(model, s.assignment, cap=1) for s in outputs[:80]]
    assert tt.plan(model, near).tallies <= 81
    found = tt.exclude(model, outputs[:80], method="statistics")
    assert found.assignment.tolist() == outputs[80].assignment.tolist()
    assert tuple(found.tally) == ()


def test_wrong_exclusions_are_refused():
    model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match="method must be 'ranking' or 'statistics', got 'guess'"):
        tt.exclude(model, [], method="guess")
    with pytest.raises(tt.ModelError):
        tt.exclude(model, [[0, 1]])
    with pytest.raises(tt.InfeasibleError, match="no labelling is left outside the 0 excluded ones"):
        tt.exclude(tt.Model([1], [((0,), [-np.inf])]), [])
