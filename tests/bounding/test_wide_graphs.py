"""Searches over graphs with messages of thousands of states, compared with full tables."""

import numpy as np
import pytest

import tallytree as tt
from tallytree.testing import check_bounds


def wide_grid(rng, rows, columns, states, forbid):
    """Draw a grid; some pairs of states may be forbidden."""
    down = rng.normal(size=(rows - 1, columns, states, states))
    right = rng.normal(size=(rows, columns - 1, states, states))
    if forbid:
        down[rng.random(down.shape) < 0.02] = -np.inf
        right[rng.random(right.shape) < 0.02] = -np.inf
    return tt.Model.grid(rng.normal(size=(rows, columns, states)), down, right)


@pytest.mark.parametrize("forbid", [False, True])
@pytest.mark.parametrize(("rows", "columns", "states"), [(11, 12, 2), (7, 8, 3), (6, 7, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_grids(rows, columns, states, forbid, seed):
    rng = np.random.default_rng(seed)
    model = wide_grid(rng, rows, columns, states, forbid)
    pairs = rng.integers(0, 2, size=(len(model), states))
    where = (tt.count(model, state=1) == len(model) // states - seed) & (
        tt.node_statistic(pairs.reshape(rows, columns, states), name="b") >= len(model) // 2
    )
    found, table = (tt.solve(model, where=where, strategy=way) for way in ("bounds", "full"))
    assert type(found.certificate).__name__ == "BoundsCertificate"
    assert found.score == pytest.approx(table.score, abs=1e-9)
    assert where.on(model).holds({s: s.tally(found.assignment.ravel()) for s in where.on(model).statistics})
    check_bounds(found)


def test_a_wide_graph_with_factors_of_three_variables():
    rng = np.random.default_rng(5)
    size = 24
    scopes = [(i, (i + 5) % size, (i + 11) % size) for i in range(size)]
    model = tt.Model([2] * size, [(scope, rng.normal(size=(2, 2, 2))) for scope in scopes])
    ones = tt.count(model, state=1)
    for tally in (4, 12, 19):
        found, table = (tt.solve(model, where=ones == tally, strategy=way) for way in ("bounds", "full"))
        assert found.score == pytest.approx(table.score, abs=1e-9)
        check_bounds(found)


def test_a_band_that_is_too_small_does_not_grow_by_much():
    """All counts between two ends are far below the bound, and a band grows quickly with its budget."""
    rng = np.random.default_rng(0)
    model = tt.Model.grid(rng.normal(size=(6, 16, 2)), 4 * np.eye(2), 4 * np.eye(2))
    where = tt.count(model, state=1) == 24
    found, table = (tt.solve(model, where=where, strategy=way) for way in ("bounds", "full"))
    assert found.score == pytest.approx(table.score, abs=1e-9)
    assert found.certificate.cells < 30_000  # with twice the budget, 258,327
    check_bounds(found)


def test_rows_of_few_tallies_take_longer_than_their_operations():
    """A window leaves few tallies of a table, which has as many rows as before."""
    rng = np.random.default_rng(0)
    size, states = 300, 20
    alone = [((v,), rng.normal(size=states)) for v in range(size)]
    pairs = [((v, (v + 1) % size), 0.3 * np.eye(states)) for v in range(size)]
    model = tt.Model([states] * size, [*alone, *pairs])
    ones = tt.count(model, state=1)
    few, all_of_them = tt.plan(model, where=ones == 2).search, tt.plan(model, [ones]).search
    assert few.table_work / few.table_operations > 2 * all_of_them.table_work / all_of_them.table_operations


def test_tables_of_long_grids_have_the_price_of_their_own_order():
    """The best order for passes is not the one for tables: by that, tables would take seven times as long."""
    rng = np.random.default_rng(0)
    model = tt.Model.grid(rng.normal(size=(6, 160, 2)), 10 * np.eye(2), 10 * np.eye(2))
    price = tt.plan(model, where=tt.count(model, state=1) == 48).search
    assert price.table_operations < 2e7
    assert price.allowance() < 0.42 * 5e6
