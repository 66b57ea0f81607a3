"""Statistics with a constant part: tallies are much smaller than what the variables count."""

import numpy as np
import pytest

import tallytree as tt
from tallytree.testing import check_bounds, score_tolerance

STATES = 3


def about_zero(state, length, weight, linked):
    """Count a state, and equal neighbours if `linked`; a weight for each variable, and minus their sum."""
    factors = [((v,), weight + (np.arange(STATES) == state)) for v in range(length)]
    if linked:
        factors += [((v, v + 1), np.eye(STATES, dtype=int)) for v in range(length - 1)]
    return tt.Statistic([*factors, ((), -weight * length)], name=f"s{state}")


def model_of(shape, length, rng):
    if shape == "chain":
        return tt.Model.chain(rng.normal(size=(length, STATES)), rng.normal(size=(STATES, STATES)))
    if shape == "tree":
        return tt.Model.tree(
            [-1, *((v - 1) // 2 for v in range(1, length))],
            rng.normal(size=(length, STATES)),
            rng.normal(size=(length, STATES, STATES)),
        )
    scopes = [(v, v + 1, v + 2) for v in range(length - 2)]
    return tt.Model([STATES] * length, [(scope, rng.normal(size=(STATES,) * 3)) for scope in scopes])


@pytest.mark.parametrize("shape", ["chain", "tree", "triples"])
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize(
    ("statistics", "weight"), [(3, 40_000), (2, 2**26), (1, 2**24), (3, -40_000), (2, -(2**26))]
)
def test_constants_do_not_change_answers(shape, linked, statistics, weight):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        length = 30
        model = model_of(shape, length, rng)
        counted = [
            about_zero(k, length, weight, linked and k == 0 and shape == "chain") for k in range(statistics)
        ]
        labelling = rng.integers(0, STATES, length)
        where = counted[0] == int(counted[0].tally(labelling))
        for statistic in counted[1:]:
            where &= statistic == int(statistic.tally(labelling))
        found = tt.solve(model, counted, where=where, strategy="bounds")
        full = tt.solve(model, counted, where=where, strategy="full")
        assert found.score == pytest.approx(full.score, abs=1e-9)
        assert found.tally == full.tally
        check_bounds(found)


@pytest.mark.parametrize("base", [2**16, 2**29])
@pytest.mark.parametrize("statistics", [1, 2])
@pytest.mark.parametrize("shape", ["chain", "tree"])
def test_constants_cost_no_digits(base, statistics, shape):
    """Labellings with the same tally differ by little; the best one is found nevertheless."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        length, noise = 10, 1e-8 * rng.normal(size=(10, STATES))
        model = model_of(shape, length, rng)
        blocks = [block.with_tables(np.round(block.tables)) for block in model.blocks]
        model = tt.Model.from_blocks(model.cardinalities, blocks)
        model = tt.Model.from_blocks(
            model.cardinalities,
            [*model.blocks, *tt.Model([STATES] * length, [((v,), noise[v]) for v in range(length)]).blocks],
        )
        counts = base + rng.integers(0, 2, (statistics, length, STATES))
        counted = [tt.node_statistic(one, name=f"s{p}").on(model) for p, one in enumerate(counts)]
        labelling = rng.integers(0, STATES, length)
        where = counted[0] == int(counted[0].tally(labelling))
        for statistic in counted[1:]:
            where &= statistic == int(statistic.tally(labelling))
        best = tt.solve(model, where=where, strategy="full").score
        close = score_tolerance(model)
        assert tt.solve(model, where=where, strategy="bounds").score == pytest.approx(best, abs=close, rel=0)
        (found,) = tt.solve_batch([model], where=where, strategy="bounds", threads=1)
        assert found.score == pytest.approx(best, abs=close, rel=0)
        relaxed = tt.relax(model, where=where)
        assert relaxed.upper_bound >= best - close


@pytest.mark.parametrize("strategy", ["auto", "bounds"])
def test_prices_that_leave_no_digits_for_scores_are_not_relied_on(strategy):
    """The largest tally alone is allowed, and others are one less, of millions."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        length = int(rng.integers(20, 60))
        scores = 10.0 ** rng.uniform(-3, 10, (length, 3)) * rng.choice([-1, 1], (length, 3))
        model = tt.Model.chain(scores, 10.0 ** rng.uniform(-3, 10, (3, 3)))
        most = 2**23 + np.array([0, 0, -1])
        counts = np.where(rng.random((length, 1)) < 0.3, most, rng.integers(0, 2**23, (length, 3)))
        counted = tt.node_statistic(counts, name="s").on(model)
        where = counted >= counted.extent[1]
        best = tt.solve(model, where=where, strategy="full").score
        found = tt.solve(model, where=where, strategy=strategy)
        assert found.score == pytest.approx(best, abs=score_tolerance(model), rel=0)
