"""Problems too large to enumerate: every use case compared with a mixed-integer program."""

import numpy as np
import pytest
from milp import IntegerProgram

import tallytree as tt

TOLERANCE = 1e-6  # HiGHS' own, on sums of a few hundred scores


def chain(rng):
    return tt.Model.chain(rng.normal(size=(120, 3)), rng.normal(size=(119, 3, 3)))


def tree(rng):
    parents = [-1, *(int(rng.integers(v)) for v in range(1, 150))]
    return tt.Model.tree(parents, rng.normal(size=(150, 3)), rng.normal(size=(150, 3, 3)))


def grid(rng):
    shape = (5, 14)
    return tt.Model.grid(
        rng.normal(size=(*shape, 2)),
        0.5 * rng.normal(size=(4, 14, 2, 2)),
        0.5 * rng.normal(size=(5, 13, 2, 2)),
    )


def cycle(rng):
    size = 60
    pairs = [((i, (i + 1) % size), rng.normal(size=(3, 3))) for i in range(size)]
    return tt.Model([3] * size, [*(((i,), rng.normal(size=3)) for i in range(size)), *pairs])


@pytest.fixture(params=[chain, tree, grid, cycle], ids=lambda make: make.__name__)
def model(request):
    return request.param(np.random.default_rng(7))


def best(model, narrow):
    """Return a best labelling of the program of a model, after it has been narrowed."""
    program = IntegerProgram(model)
    narrow(program)
    return program.solve()


def same_score(model, found, labelling):
    assert labelling is not None
    assert found.score == pytest.approx(model.score(labelling), abs=TOLERANCE)


def test_a_fixed_count(model):
    ones = tt.count(model, state=1)
    target = len(model) // 4
    found = tt.solve(model, where=ones == target)
    labelling = best(model, lambda p: p.between(ones, target, target))
    same_score(model, found, labelling)
    assert found.tally == (target,) == (int((found.assignment == 1).sum()),)


def test_a_combination_of_counts_and_changes(model):
    ones = tt.count(model, state=1, name="ones")
    pairs = [tuple(scope) for block in model.blocks if block.arity == 2 for scope in block.scopes.tolist()]
    n = int(model.cardinalities[0])
    changes = tt.Statistic([(pair, ~np.eye(n, dtype=bool)) for pair in pairs[:12]], name="changes")
    found = tt.solve(model, where=(ones - 2 * changes == 3) & (ones <= 30))

    def constraint(p):
        p.between(tt.Statistic.combination(ones - 2 * changes), 3, 3)
        p.between(ones, -np.inf, 30)

    same_score(model, found, best(model, constraint))
    assert found.tally.ones - 2 * found.tally.changes == 3


def test_fixed_and_allowed_states(model):
    found = tt.solve(model, fixed={3: 1, 20: 0}, allowed={7: [1]}, where=tt.count(state=0) >= 25)

    def constraint(p):
        for v, a in ((3, 1), (20, 0), (7, 1)):
            p.fix(v, a)
        p.between(tt.count(model, state=0), 25, np.inf)

    same_score(model, found, best(model, constraint))


def test_excluding_the_best_ones(model):
    outputs = [s.assignment for s in tt.k_best(model, 4)]
    labelling = best(model, lambda p: [p.apart(y, 1) for y in outputs])
    for method in ("ranking", "statistics"):
        same_score(model, tt.exclude(model, outputs, method=method), labelling)


def test_the_k_best_under_a_constraint(model):
    ones = tt.count(model, state=1)
    target = len(model) // 3
    program = IntegerProgram(model)
    program.between(ones, target, target)
    for found in tt.k_best(model, 3, where=ones == target):
        labelling = program.solve()
        same_score(model, found, labelling)
        program.apart(labelling, 1)


def test_diverse_labellings(model):
    first, second, third = tt.diverse_k_best(model, 3, distance=[9, 6])
    same_score(model, first, IntegerProgram(model).solve())
    same_score(model, second, best(model, lambda p: p.apart(first.assignment, 9)))
    labelling = best(model, lambda p: [p.apart(s.assignment, 6) for s in (first, second)])
    same_score(model, third, labelling)


def test_a_range_of_scores(model):
    blocks = [block.with_tables(np.round(2 * block.tables)) for block in model.blocks]
    rounded = tt.Model.from_blocks(model.cardinalities, blocks)
    high = round(0.6 * tt.solve(rounded).score)
    found = tt.score_between(rounded, high - 5, high)
    assert found.gap == 0
    labelling = best(rounded, lambda p: p.score_between(high - 5, high))
    same_score(rounded, found, labelling)


def test_the_bound_of_a_relaxation_is_not_below_the_optimum(model):
    ones, zeros = tt.count(model, state=1, name="ones"), tt.count(model, state=0, name="zeros")
    a, b = len(model) // 3, len(model) // 2
    where = (ones >= a) & (zeros <= b) if model.cardinalities[0] > 2 else ones == a
    found = tt.relax(model, where=where)

    def constraint(p):
        p.between(ones, a, np.inf if model.cardinalities[0] > 2 else a)
        if model.cardinalities[0] > 2:
            p.between(zeros, -np.inf, b)

    labelling = best(model, constraint)
    optimum = model.score(labelling)
    assert found.upper_bound >= optimum - TOLERANCE
    assert found.solution is None or found.solution.score <= optimum + TOLERANCE
    if found.optimal:
        same_score(model, found.solution, labelling)


def test_nothing_to_find():
    model = chain(np.random.default_rng(0))
    ones = tt.count(model, state=1)
    assert best(model, lambda p: p.between(ones, 121, 200)) is None
    with pytest.raises(tt.InfeasibleError):
        tt.solve(model, where=ones >= 121)
