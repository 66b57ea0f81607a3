"""What the messages carry for a constraint: one statistic for a combination, and exact answers."""

from dataclasses import replace

import numpy as np
import pytest
from constraint_cases import OBJECTIVES, RELATIONS, check_against_enumeration, constraints
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.answers.nearest import nearest
from tallytree.planning.carried import carried_for
from tallytree.planning.options import PlanOptions
from tallytree.running.engine import engine_of
from tallytree.solving import ask
from tallytree.testing import brute_force


def chain(size=12):
    return tt.Model.chain(np.tile([0.0, 1.0], (size, 1)), np.zeros((2, 2)))


def counted(model):
    """Return three statistics: ones, changes between neighbours, and ones at even places."""
    size = len(model)
    changes = tt.Statistic([((i, i + 1), [[0, 1], [1, 0]]) for i in range(size - 1)], name="changes")
    even = tt.count(model, state=1, variables=range(0, size, 2), name="even")
    return tt.count(model, state=1, name="ones"), changes, even


# ---------------------------------------------------------------- combinations


@given(problem=problems(most=3, local=True), data=st.data())
@settings(max_examples=250)
def test_combinations_equal_enumeration(problem, data):
    """Comparisons along few directions, so that they share combinations, in either sign and any multiple."""
    model, statistics = problem
    if not statistics:
        return
    coefficients = st.lists(
        st.sampled_from([1, 1, -1, 2, -3]), min_size=len(statistics), max_size=len(statistics)
    )
    directions = data.draw(st.lists(coefficients, min_size=1, max_size=2))
    where = None
    for _ in range(data.draw(st.integers(1, 3))):
        terms = zip(data.draw(st.sampled_from(directions)), statistics, strict=True)
        multiple = data.draw(st.sampled_from([1, -1, 2]))
        left = sum(multiple * c * s for c, s in data.draw(st.permutations(list(terms))))
        relation = RELATIONS[data.draw(st.sampled_from(sorted(RELATIONS)))]
        part = relation(left, data.draw(st.integers(-6, 6)))
        where = part if where is None else data.draw(st.sampled_from([where & part, where | part]))
    seen = statistics[: data.draw(st.integers(0, 1))]
    objective = OBJECTIVES[data.draw(st.sampled_from(sorted(OBJECTIVES)))]
    check_against_enumeration(model, seen, objective, where)


@pytest.mark.parametrize(
    ("where", "names"),
    [
        (lambda a, b, c: a - 2 * b <= 3, ["ones - 2*changes"]),
        (lambda a, b, c: (a - 2 * b <= 3) & (6 * b - 3 * a <= 7), ["ones - 2*changes"]),
        (lambda a, b, c: (2 * a + 4 * b >= 3) | (b + 2 * c == 1), ["ones", "changes", "even"]),
        (lambda a, b, c: (a + b <= 9) & (c >= 2), ["ones + changes", "even"]),
        (lambda a, b, c: (a + b <= 9) & (a >= 2), ["ones", "changes"]),
        (lambda a, b, c: a + b + c.capped(2) <= 9, ["ones + changes", "even"]),
        (lambda a, b, c: a.capped(5) + b <= 9, ["ones", "changes"]),
        (lambda a, b, c: 2**39 * a + 2**42 * b <= 9, ["ones + 8*changes"]),
        (lambda a, b, c: 10**30 * a + b <= 9, ["ones", "changes"]),
    ],
)
def test_what_is_carried(where, names):
    model = chain()
    constraint = where(*counted(model))
    assert sorted(tt.plan(model, where=constraint).names) == sorted(names)
    check_against_enumeration(model, [], None, constraint)


def test_a_statistic_of_the_objective_stays_and_the_others_are_combined():
    model = chain()
    ones, changes, even = counted(model)
    where = ones + changes + 2 * even <= 9
    assert tt.plan(model, [ones], where=where).names == ("ones", "changes + 2*even")
    solution = tt.solve(model, [ones], lambda score, k: score - (k - 5) ** 2, where=where)
    assert solution.tally._fields == ("ones", "changes", "even")
    check_against_enumeration(model, [ones], lambda score, k: score - (k - 5) ** 2, where)


def test_a_combination_is_pruned_and_its_parts_are_reported():
    model = chain(40)
    ones, changes, _ = counted(model)
    where = (ones - changes >= 0) & (ones - changes <= 2)
    plan = tt.plan(model, where=where)
    assert plan.names == ("ones - changes",)
    assert plan.operations < tt.plan(model, [ones, changes]).operations / 20
    solution = tt.solve(model, where=where)
    assert solution.tally._fields == ("ones", "changes")
    assert solution.tally == (ones.tally(solution.assignment), changes.tally(solution.assignment))
    assert 0 <= solution.tally.ones - solution.tally.changes <= 2


def test_ranked_labellings_report_the_parts_too():
    model = chain(6)
    ones, changes, _ = counted(model)
    every = tt.k_best(model, where=ones - changes == 1)
    enumeration = brute_force(model, [ones, changes])
    assert len(every) == (enumeration.tallies @ [1, -1] == 1).sum()
    assert all(s.tally.ones - s.tally.changes == 1 for s in every)


def test_a_question_without_combinations_is_left_alone():
    model = chain()
    ones, changes, _ = counted(model)
    carried = carried_for((ones,), (ones <= 3) & (changes == 2))
    assert carried.statistics is carried.reported
    assert carried.window == {0: (None, 3), 1: (2, 2)}


# ---------------------------------------------------------------- nothing satisfies it


@pytest.mark.parametrize(
    ("where", "tallies"),
    [
        (lambda a, b: a >= 14, "(ones=12), (ones=11), (ones=10)"),
        (lambda a, b: a < 0, "(ones=0), (ones=1), (ones=2)"),
        (lambda a, b: (a == 2) & (b >= 6), "(ones=3, changes=6), (ones=2, changes=4), (ones=3, changes=5)"),
        (lambda a, b: a - b > 20, "(ones=12, changes=0), (ones=11, changes=1), (ones=10, changes=1)"),
        (
            lambda a, b: (a >= 20) | (b >= 12),
            "(ones=6, changes=11), (ones=5, changes=10), (ones=6, changes=10)",
        ),
        (lambda a, b: a >= 10**30, "(ones=12), (ones=11), (ones=10)"),
    ],
)
def test_the_nearest_tallies_are_named(where, tallies):
    model = chain()
    ones, changes, _ = counted(model)
    constraint = where(ones, changes)
    with pytest.raises(tt.InfeasibleError) as caught:
        tt.solve(model, [changes], where=constraint)
    assert str(caught.value) == (
        f"no labelling satisfies '{constraint}'; the nearest attainable tallies are {tallies}"
    )


def test_where_a_further_pass_is_too_large_the_ranges_are_named():
    model = chain(60)
    ones, changes, even = counted(model)
    with pytest.raises(tt.InfeasibleError, match="taken separately, ones ranges from 0 to 60, changes"):
        tt.solve(model, where=(ones >= 61) & (changes <= 3) & (even >= 1), memory_limit=2e5)


def test_what_else_can_be_infeasible():
    model = chain()
    ones, _, _ = counted(model)
    with pytest.raises(tt.InfeasibleError, match="it compares only numbers"):
        tt.solve(model, where=0 * ones >= 1)
    with pytest.raises(tt.InfeasibleError, match="the objective is -inf at every attainable tally"):
        tt.solve(model, [ones], lambda score, k: score - np.inf, where=ones >= 3)
    with pytest.raises(
        tt.InfeasibleError, match=r"'ones <= 0'; the nearest attainable tallies are \(ones=1\)"
    ):
        tt.solve(model, where=ones <= 0, fixed={3: 1})
    with pytest.raises(tt.InfeasibleError, match="every labelling is forbidden by a -inf factor"):
        tt.solve(tt.Model([2], [((0,), [-np.inf, -np.inf])]), where=tt.count(state=1) >= 0)


@given(problem=problems(largest=4, most=2), data=st.data())
@settings(max_examples=80)
def test_a_violation_is_zero_where_a_constraint_holds(problem, data):
    model, statistics = problem
    where = data.draw(constraints(statistics or [tt.count(model, state=0)]))
    labellings = brute_force(model).labellings
    values = {s: np.array([s.tally(y) for y in labellings]) for s in where.statistics}
    missed = np.broadcast_to(where.violation(values), len(labellings))
    holds = np.broadcast_to(where.holds(values), len(labellings))
    assert ((missed == 0) == holds).all()
    assert (missed >= 0).all()


# ---------------------------------------------------------------- the plan


def test_a_plan_says_how_many_tallies_a_constraint_rules_out():
    model = chain(60)
    ones, changes, _ = counted(model)
    whole, pruned = tt.plan(model, [ones]), tt.plan(model, [ones], where=ones <= 3)
    assert whole.pruned == 0
    assert pruned.pruned == whole.tables[:, 2].sum() - pruned.tables[:, 2].sum() > 0
    assert f"the constraint rules out {pruned.pruned:,} of {whole.tables[:, 2].sum():,} tallies" in str(
        pruned
    )
    assert "constraint" not in str(whole)
    tight = tt.plan(model, [ones, changes], where=(ones <= 3) & (changes <= 3), memory_limit=2e5)
    assert tight.pruned is None
    assert "the constraint makes it fit" in str(tight)


def test_a_pruned_plan_serves_no_profile():
    model = chain()
    ones, _, _ = counted(model)
    plan = tt.plan(model, [ones], where=ones <= 3)
    with pytest.raises(tt.ModelError, match="leaves out tallies that a constraint rules out"):
        tt.profile(model, [ones], plan=plan)


def test_the_table_of_a_single_statistic_is_planned_once_for_an_error(monkeypatch):
    rng = np.random.default_rng(0)
    grid = tt.Model.grid(rng.normal(size=(16, 16, 2)), np.eye(2), np.eye(2))
    query = ask(grid, where=tt.count(state=1, name="ones") == 400)
    planned = []
    engine = engine_of(grid)
    counting = replace(engine, plan=lambda *given: planned.append(given) or engine.plan(*given))
    monkeypatch.setattr("tallytree.answers.nearest.engine_of", lambda subject: counting)
    assert nearest(query, PlanOptions()) == "ones ranges from 0 to 256"
    assert [len(asked.carried) for asked, _ in planned] == [1, 0, 0]
