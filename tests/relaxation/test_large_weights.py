"""Weights beyond the 32 bits of a search: prices are found in units of many tallies."""

from itertools import product

import numpy as np
import pytest

import tallytree as tt


def knapsack(seed, size, largest):
    rng = np.random.default_rng(seed)
    model = tt.Model.chain(rng.normal(size=(size, 2)), rng.normal(size=(2, 2)))
    load = tt.node_statistic(rng.integers(-largest // 4, largest, size=(size, 2)), name="load")
    return model, load


@pytest.mark.parametrize("largest", [10**9, 10**10, 2**39])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_and_labellings_hold(seed, largest):
    model, load = knapsack(seed, 8, largest)
    labellings = [np.array(y) for y in product(range(2), repeat=8)]
    tallies = np.array([load.tally(y) for y in labellings])
    scores = np.array([model.score(y) for y in labellings])
    middle = int(np.sort(tallies)[seed * 30])
    for where, allowed in (
        (load <= middle, tallies <= middle),
        (load >= middle, tallies >= middle),
        ((load >= middle) & (load <= middle + largest), (tallies >= middle) & (tallies <= middle + largest)),
        (load == middle, tallies == middle),
    ):
        best = scores[allowed].max()
        for candidates in (0, 300):
            found = tt.relax(model, where=where, candidates=candidates)
            assert found.upper_bound >= best - 1e-9
            if found.solution is not None:
                assert found.solution.score <= best + 1e-9
            if found.optimal or candidates:
                assert found.solution is not None
                assert found.solution.score == pytest.approx(best, abs=1e-9)


def test_prices_tighten_the_bound():
    model, load = knapsack(0, 200, 2**39)
    least, most = load.extent
    found = tt.relax(model, where=load <= (3 * least + most) // 4)
    assert found.solution is not None
    assert found.upper_bound < tt.solve(model).score
    assert found.gap < 0.01 * abs(found.upper_bound)
    assert found.multipliers[0] < 0
    small = tt.node_statistic(np.asarray(load.blocks[0].tables) >> 20, name="load")
    again = tt.relax(model, where=small <= ((3 * least + most) // 4) >> 20)
    assert found.multipliers[0] * 2**20 == pytest.approx(again.multipliers[0], rel=0.05)


def test_what_no_labelling_reaches_is_an_error():
    model, load = knapsack(1, 40, 2**39)
    least, most = load.extent
    for where in (load <= least - 1, load >= most + 1):
        with pytest.raises(tt.InfeasibleError, match="no labelling satisfies 'load"):
            tt.relax(model, where=where)
