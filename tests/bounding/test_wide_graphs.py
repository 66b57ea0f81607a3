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
