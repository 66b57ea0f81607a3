"""A training run: its options, together or one by one, and the path over values of C."""

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from dataclasses import FrozenInstanceError

from learning_problems import LOSSES, optimum, sequences

import tallytree as tt
from tallytree.learning import (
    CuttingPlanes,
    FrankWolfe,
    RunOptions,
    Subgradient,
    regularisation_path,
    train,
)

ROUNDING = 1e-6  # of the reference, which is an interior point


def test_options_as_a_value_and_as_keywords_are_the_same(tmp_path):
    problem, seen = sequences(1, LOSSES["f1"]), []
    options = RunOptions(tolerance=0.0, max_passes=3, checkpoint=tmp_path / "a.npz", callback=seen.append)
    whole = train(problem, options=options)
    alone = train(problem, tolerance=0.0, max_passes=3)
    assert whole.weights.tobytes() == alone.weights.tobytes()
    assert [progress.number for progress in seen] == [1, 2, 3]
    assert (tmp_path / "a.npz").exists()


def test_a_keyword_changes_one_field_of_the_options():
    problem = sequences(1, LOSSES["f1"])
    options = RunOptions(tolerance=0.0, max_passes=3)
    assert len(train(problem, options=options, max_passes=2).history) == 2
    assert options.max_passes == 3
    with pytest.raises(FrozenInstanceError):
        options.max_passes = 2
    for _, found in regularisation_path(problem, [0.1, 0.3], options=options):
        assert len(found.history) == 3


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'tolerence'"):
        train(sequences(1, LOSSES["f1"]), tolerence=0.1)


def test_time_that_is_used_up_ends_a_run():
    found = train(sequences(1, LOSSES["f1"]), tolerance=0.0, max_seconds=0.0)
    assert len(found.history) == 1


@pytest.mark.parametrize("solver", [FrankWolfe(), CuttingPlanes("each"), CuttingPlanes("one")])
def test_a_path_starts_where_the_last_optimum_was(solver):
    problem = sequences(7, LOSSES["hamming"])
    values = [0.1, 0.2, 0.4]
    along = dict(regularisation_path(problem, values, solver, tolerance=1e-3, max_passes=300))
    for C in values:
        best = optimum(problem, C, "margin")
        assert along[C].converged
        assert along[C].dual <= best * (1 + ROUNDING)
        assert along[C].primal <= best * (1 + 1e-3 + ROUNDING)
    alone = train(problem, solver, C=0.4, tolerance=1e-3, max_passes=300)
    assert along[0.4].history[-1].calls <= alone.history[-1].calls


def test_a_subgradient_path_keeps_its_bound():
    problem = sequences(7, LOSSES["hamming"])
    for C, found in regularisation_path(problem, [0.1, 0.3], Subgradient(), tolerance=0.1, max_passes=100):
        assert found.dual <= optimum(problem, C, "margin") * (1 + ROUNDING)


def test_what_is_no_parameter_is_refused():
    problem = sequences(0, LOSSES["hamming"])
    with pytest.raises(tt.ModelError, match="C must be a positive number, got 0"):
        train(problem, C=0)
    with pytest.raises(tt.ModelError, match="scaling must be 'margin' or 'slack', got 'both'"):
        train(problem, scaling="both")
    with pytest.raises(tt.ModelError, match="slacks must be 'one' or 'each', got 'n'"):
        train(problem, CuttingPlanes("n"))
