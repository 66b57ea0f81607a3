"""All solvers find the optimum of the quadratic program with a constraint for every labelling."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

import itertools

from learning_problems import LOSSES, check_planes, graphs, objective, optimum, sequences

from tallytree.learning import (
    CuttingPlanes,
    Diverse,
    ExactOracle,
    FrankWolfe,
    Plane,
    Subgradient,
    TopTallies,
    train,
)

SOLVERS = {
    "frank-wolfe": (FrankWolfe(batch=2), {}),
    "averaged": (FrankWolfe(averaging=True), {}),
    "top tallies": (FrankWolfe(), {"extra": TopTallies(3)}),
    "diverse": (FrankWolfe(), {"extra": Diverse(3, distance=1)}),
    "one slack": (CuttingPlanes("one"), {}),
    "one slack, top tallies": (CuttingPlanes("one"), {"extra": TopTallies(3)}),
    "each slack": (CuttingPlanes("each"), {}),
}
ROUNDING = 1e-6  # of the reference, which is an interior point


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_gap_bounds_the_distance_to_the_optimum(solver, loss, scaling):
    settings, options = SOLVERS[solver]
    problem = sequences(3, LOSSES[loss])
    best = optimum(problem, 0.5, scaling)
    found = train(problem, settings, C=0.5, scaling=scaling, tolerance=1e-3, max_passes=400, **options)
    assert found.converged
    assert found.gap <= 1e-3 * found.primal
    assert found.primal == pytest.approx(objective(problem, found.weights, 0.5, scaling), rel=1e-9)
    assert found.dual <= best * (1 + ROUNDING)
    assert found.primal >= best * (1 - ROUNDING)


@pytest.mark.parametrize(
    "solver",
    [FrankWolfe(room=1), FrankWolfe(room=3), Subgradient(), Subgradient(averaging=False, batch=3)],
    ids=repr,
)
@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_slow_solvers_bracket_the_optimum_all_the_way(solver, scaling):
    problem = sequences(5, LOSSES["f1"])
    best = optimum(problem, 0.2, scaling)
    found = train(problem, solver, C=0.2, scaling=scaling, tolerance=0.05, max_passes=200)
    assert found.converged
    certified = [entry for entry in found.history if entry.certified]
    assert certified
    for entry in certified:
        assert entry.dual <= best * (1 + ROUNDING)
        assert entry.primal >= best * (1 - ROUNDING)


@pytest.mark.parametrize("solver", [FrankWolfe(), CuttingPlanes("each"), CuttingPlanes("one")])
@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_graphs_too(solver, scaling):
    problem = graphs(1, LOSSES["f1"])
    best = optimum(problem, 1.0, scaling)
    found = train(problem, solver, C=1.0, scaling=scaling, tolerance=1e-3, max_passes=400)
    assert found.dual - ROUNDING <= best <= found.primal + ROUNDING
    assert found.converged


@pytest.mark.parametrize(
    "solver", [FrankWolfe(), FrankWolfe(averaging=True), CuttingPlanes("one"), Subgradient()]
)
def test_bounds_hold_in_every_pass(solver):
    problem = sequences(8, LOSSES["hamming"])
    best = optimum(problem, 0.3, "margin")
    seen = []
    train(problem, solver, C=0.3, tolerance=0.0, max_passes=12, callback=seen.append)
    assert len(seen) == 12
    assert all(entry.dual <= best * (1 + ROUNDING) for entry in seen)
    assert all(a.dual <= b.dual for a, b in itertools.pairwise(seen))
    assert seen[-1].certified


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("extra", [None, TopTallies(4), Diverse(3, distance=2)])
def test_the_first_plane_is_the_highest_and_all_are_planes(scaling, extra):
    problem = sequences(11, LOSSES["f1"])
    weights = np.random.default_rng(0).normal(size=problem.dimension)
    check_planes(problem, ExactOracle(problem, scaling, extra), weights, scaling)


def test_several_planes_save_oracle_calls():
    problem = sequences(2, LOSSES["f1"], examples=12, longest=5)
    plain, several = (
        train(problem, CuttingPlanes("each"), C=1.0, tolerance=1e-4, extra=extra)
        for extra in (None, TopTallies(5))
    )
    assert several.converged and plain.converged
    assert several.history[-1].calls < plain.history[-1].calls


def test_room_for_one_plane_is_the_textbook_step():
    problem = sequences(4, LOSSES["hamming"], examples=1)
    C = 0.7
    oracle = ExactOracle(problem)
    weights, offset = np.zeros(problem.dimension), 0.0
    for _ in range(5):
        (plane,) = oracle.planes([0], weights)[0]
        target = np.bincount(plane.indices, weights=C * plane.values, minlength=problem.dimension)
        way = weights - target
        # Lacoste-Julien et al., algorithm 2, line 6, with λ = 1 in terms of w = Σ α a
        step = (weights @ way - offset + C * plane.offset) / (way @ way)
        step = min(max(step, 0.0), 1.0)
        weights, offset = weights - step * way, (1 - step) * offset + step * C * plane.offset
    run = FrankWolfe(room=1, cached_passes=0).start(oracle, C)
    for number in range(5):
        run.advance(number, False)
    np.testing.assert_allclose(run.weights, weights, atol=1e-12)


def test_a_plane_is_worth_its_offset_at_zero():
    plane = Plane(np.array([1]), np.array([2.0]), 0.5)
    assert plane.at(np.zeros(2)) == 0.5
    assert plane.at(np.array([0.0, 1.0])) == -1.5
