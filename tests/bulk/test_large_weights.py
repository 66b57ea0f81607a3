"""Batches with a constraint on statistics of large weights: few tallies, far apart."""

import numpy as np
import pytest

import tallytree as tt


def weighted(rng, length, weight, name):
    return tt.Statistic([((v,), weight * rng.integers(0, 2, 2)) for v in range(length)], name=name)


@pytest.mark.parametrize("strategy", ["auto", "full", "bounds"])
@pytest.mark.parametrize(
    ("statistics", "weight", "length"), [(3, 100, 30), (2, 1000, 60), (1, 2**29, 200), (2, 2**20, 10)]
)
def test_what_no_labelling_reaches_is_infeasible_at_once(strategy, statistics, weight, length):
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(length, 2)), rng.normal(size=(2, 2)))
    counted = [weighted(rng, length, weight, f"s{p}") for p in range(statistics)]
    where = counted[0] == weight * (length // 3) + 1
    for statistic in counted[1:]:
        where &= statistic == weight * (length // 3)
    (found,) = tt.solve_batch([model], where=where, strategy=strategy, threads=1, errors="return")
    assert isinstance(found, tt.InfeasibleError)


def test_weights_of_a_few_variables_whose_sums_are_all_different():
    length, weight = 10, 2**20
    model = tt.Model.chain([[0.1 * v, 1] for v in range(length)], np.zeros((2, 2)))
    a = tt.Statistic([((v,), [0, weight]) for v in range(length)], name="a")
    parts = [((v,), [weight * (v % 2), weight * (v % 3 == 0)]) for v in range(length)]
    b = tt.Statistic(parts, name="b")
    for more, kind in ((1, tt.InfeasibleError), (0, tt.Solution)):
        where = (a == 3 * weight) & (b == 3 * weight + more)
        (found,) = tt.solve_batch([model], where=where, threads=1, errors="return")
        assert isinstance(found, kind) or (not more and found.score == tt.solve(model, where=where).score)


@pytest.mark.parametrize("strategy", ["auto", "full", "bounds"])
def test_a_window_of_nothing_is_not_listed(strategy):
    """Next to a statistic with nearly a thousand million tallies."""
    model = tt.Model.chain(np.zeros((2, 5)), np.zeros((5, 5)))
    a = tt.Statistic([((1,), [3, -2, 400_000_000, -4, -400_000_000])], name="a")
    b = tt.Statistic([((), 5)], name="b")
    where = ((a == 3) | (b >= 5)) & (b >= 6)
    (found,) = tt.solve_batch([model], where=where, strategy=strategy, threads=1, errors="return")
    assert isinstance(found, tt.InfeasibleError)
