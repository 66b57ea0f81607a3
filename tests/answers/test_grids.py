"""On grids, answers have the shape of the grid and agree with those of the same model without a shape."""

import pickle

import numpy as np
import pytest

import tallytree as tt
from tallytree import losses

RNG = np.random.default_rng(5)
GRID = tt.Model.grid(RNG.normal(size=(3, 4, 2)), RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2)))
FLAT = tt.Model.from_blocks(GRID.cardinalities, GRID.blocks)
AREA = tt.count(state=1, name="area")
TRUTH = RNG.integers(2, size=12)

QUESTIONS = {
    "solve": lambda model: [tt.solve(model, where=AREA == 5)],
    "bounds": lambda model: [tt.solve(model, where=AREA == 5, strategy="bounds")],
    "reference": lambda model: [tt.solve(model, where=AREA == 5, backend="reference")],
    "single": lambda model: [tt.solve(model, where=AREA == 5, precision="single")],
    "at": lambda model: [tt.profile(model, [AREA]).at(area=5)],
    "top": lambda model: tt.profile(model, [AREA]).top(3),
    "k_best": lambda model: tt.k_best(model, 3, where=AREA <= 5),
    "iter_best": lambda model: [next(tt.iter_best(model))],
    "diverse_k_best": lambda model: tt.diverse_k_best(model, 3, distance=4),
    "exclude": lambda model: [tt.exclude(model, tt.k_best(model, 2))],
    "exclude by statistics": lambda model: [tt.exclude(model, tt.k_best(model, 2), method="statistics")],
    "relax": lambda model: [tt.relax(model, where=AREA <= 5).solution],
    "solve_batch": lambda model: tt.solve_batch([model, model], where=AREA == 5),
    "a loss": lambda model: [tt.loss_augmented(model, losses.FBeta(TRUTH))],
    "a linear loss": lambda model: [tt.loss_augmented(model, losses.HammingLoss(TRUTH))],
    "losses": lambda model: tt.loss_augmented_batch([model], [losses.FBeta(TRUTH)]),
    "score_between": lambda model: [tt.score_between(model, 0.0, 1.0)],
    "fixed": lambda model: [tt.solve(model, fixed={0: 1})],
    "pickled": lambda model: [pickle.loads(pickle.dumps(tt.solve(model)))],
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_labellings_have_the_shape_of_the_grid(question):
    found, expected = question(GRID), question(FLAT)
    assert len(found) == len(expected) > 0
    for one, plain in zip(found, expected, strict=True):
        assert one.assignment.shape == one.labels.shape == (3, 4)
        assert one.assignment.ravel().tolist() == plain.assignment.tolist()
        assert one.score == plain.score == pytest.approx(GRID.score(one.assignment), rel=1e-12)
        assert tuple(one.tally) == tuple(plain.tally)
        assert AREA.on(GRID).tally(one.assignment) == one.assignment.sum()
        assert "<span" in one._repr_html_()


def test_samples_and_marginals_have_the_shape_of_the_grid():
    found, plain = tt.distribution(GRID, [AREA]), tt.distribution(FLAT, [AREA])
    drawn = found.sample(5, tally={"area": 7}, rng=0)
    assert drawn.shape == (5, 3, 4)
    assert drawn.sum(axis=(1, 2)).tolist() == [7] * 5
    assert drawn.reshape(5, 12).tolist() == plain.sample(5, tally=[7], rng=0).tolist()
    assert found.sample(rng=0).shape == (3, 4)
    assert found.sample(0, rng=0).shape == (0, 3, 4)
    for tally in (None, [7], {"area": 7}):
        marginals = found.marginals(tally)
        assert marginals.shape == (3, 4, 2)
        np.testing.assert_array_equal(marginals.reshape(12, 2), plain.marginals(tally))
    assert found.marginals({"area": 7})[..., 1].sum() == pytest.approx(7)


def test_max_marginals_have_the_shape_of_the_grid():
    found, plain = tt.profile(GRID, [AREA]), tt.profile(FLAT, [AREA])
    for tally in ({}, {"area": 3}):
        best = found.max_marginals(**tally)
        assert best.shape == (3, 4, 2)
        np.testing.assert_array_equal(best.reshape(12, 2), plain.max_marginals(**tally))


def test_what_differs_in_states_stays_a_list():
    model = tt.Model.from_blocks([2, 3], tt.Model([2, 3], [((0, 1), np.eye(3)[:2])]).blocks, shape=(1, 2))
    assert [len(one) for one in tt.distribution(model).marginals()] == [2, 3]
    assert tt.solve(model).assignment.shape == (1, 2)


def test_an_empty_grid_has_empty_answers():
    model = tt.Model.grid(np.zeros((0, 3, 2)), np.eye(2), np.eye(2))
    assert tt.solve(model).assignment.shape == (0, 3)
    assert tt.distribution(model).marginals().shape == (0, 3, 2)
    assert tt.distribution(model).sample(2, rng=0).shape == (2, 0, 3)


def test_the_checkers_know_grids():
    tt.testing.check_solution(tt.solve(GRID, [AREA]), GRID, [AREA])
    tt.testing.check_profile(tt.profile(GRID, [AREA]), GRID, [AREA])
    tt.testing.check_distribution(tt.distribution(GRID, [AREA]), GRID, [AREA])
    tt.testing.check_bounds(tt.solve(GRID, where=AREA == 5, strategy="bounds"))
