"""The program of a full table is chosen by the price of tables, which knows rows and the window."""

import numpy as np
import pytest

import tallytree as tt
from tallytree.kernels import native
from tallytree.planning import orders
from tallytree.planning.carried import tally_limits
from tallytree.planning.table_programs import table_programs


def cycle(size, states):
    rng = np.random.default_rng(size)
    pairs = [((v, (v + 1) % size), rng.standard_normal((states, states))) for v in range(size)]
    return tt.Model([states] * size, [*(((v,), rng.standard_normal(states)) for v in range(size)), *pairs])


def work(plan, program):
    counts = [block.tables for s in plan.statistics for block in s.blocks]
    _, tables, layout, _ = native.table_price(program, counts, *tally_limits(plan.statistics, plan.window))
    return tables + layout


@pytest.mark.parametrize("wanted", [3, 75, None])
def test_a_cycle_is_swept(wanted):
    """Joins of two pairs of variables have fewer operations, but thousands of rows."""
    model = cycle(150, 10)
    count = tt.count(model, state=1)
    plan = tt.plan(model, [count]) if wanted is None else tt.plan(model, where=count == wanted)
    cheapest, sweep = (orders.skeleton(model, plan.statistics, order) for order in (None, "sweep"))
    assert cheapest.cost < sweep.cost
    assert work(plan, plan.skeleton) <= work(plan, sweep) < work(plan, cheapest) / 2
    found = tt.solve(model, where=count == (wanted or 20), strategy="full")
    other = tt.solve(model, where=count == (wanted or 20), strategy="full", order=cheapest.order)
    assert found.tally == other.tally and found.score == pytest.approx(other.score, abs=1e-9)


def test_the_window_decides():
    """Without a constraint, halves of a long cycle are joined; with one, few tallies are left to sweep."""
    model = cycle(3000, 3)
    count = tt.count(model, state=1)
    joined, swept = tt.plan(model, [count]), tt.plan(model, where=count == 3)
    assert (swept.order == orders.skeleton(model, swept.statistics, "sweep").order).all()
    assert (joined.order == orders.skeleton(model, joined.statistics).order).all()
    assert not np.array_equal(joined.order, swept.order)


def test_the_one_with_fewer_operations_is_taken_if_only_it_fits():
    model = cycle(150, 10)
    count = tt.count(model, state=1)
    better, cheapest = table_programs(model, [count], {})
    sizes = [tt.plan(model, [count], order=program.order).peak_bytes for program in (better, cheapest)]
    assert tt.plan(model, [count], memory_limit=1.01 * max(sizes)).skeleton is better
    with pytest.raises(tt.BudgetError, match="the plan needs"):
        tt.plan(model, [count], memory_limit=0.01 * min(sizes))


@pytest.mark.parametrize("statistics", [0, 1])
def test_forests_and_plain_models_have_the_cheapest_program(statistics):
    forest = tt.Model.tree([-1, 0, 0, 1, 1, 2], np.zeros((6, 3)), np.zeros((6, 3, 3)))
    for model in (forest, cycle(40, 3)) if not statistics else (forest,):
        counts = [tt.count(model, state=1)][:statistics]
        assert table_programs(model, counts, {}) == [orders.skeleton(model, counts)]
