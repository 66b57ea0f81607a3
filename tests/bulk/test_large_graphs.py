"""Large trees and grids in batches are searched one by one and agree with full tables."""

import numpy as np
import pytest

import tallytree as tt
from tallytree.bounding import BoundsCertificate
from tallytree.bulk.large_graphs import is_chain
from tallytree.testing import check_bounds


def tree(rng, size, states=3):
    parents = np.array([-1, *(int(rng.integers(max(0, i - 4), i)) for i in range(1, size))])
    return tt.Model.tree(parents, rng.normal(size=(size, states)), rng.normal(size=(size, states, states)))


def grid(rng, rows, columns, states=2):
    pair = rng.normal(size=(states, states))
    return tt.Model.grid(rng.normal(size=(rows, columns, states)), pair, pair)


def test_which_models_are_chains():
    rng = np.random.default_rng(0)
    assert is_chain(tt.Model.chain(np.zeros((4, 2)), np.zeros((2, 2))))
    assert is_chain(tt.Model([2, 3], [((0,), [0.0, 1.0])]))
    assert not is_chain(tree(rng, 9)) and not is_chain(grid(rng, 2, 3))
    assert not is_chain(tt.Model([2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)))]))


@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_large_and_small_ones_in_one_batch(scaling):
    rng = np.random.default_rng(1)
    models = [tree(rng, 10), tree(rng, 200), grid(rng, 2, 3), grid(rng, 5, 20), tree(rng, 210)]
    truths = [rng.integers(0, model.cardinalities[0], model.shape) for model in models]
    recipe = tt.losses.FBeta(background=0)
    found = {
        way: tt.loss_augmented_batch(models, recipe, scaling, truths=truths, strategy=way)
        for way in ("full", "auto", "bounds")
    }
    for full, auto, bounds in zip(found["full"], found["auto"], found["bounds"], strict=True):
        for one in (auto, bounds):
            assert one.value == pytest.approx(full.value, rel=1e-12) and one.tally == full.tally
            assert one.value == pytest.approx(
                one.loss + one.score - one.truth_score
                if scaling == "margin"
                else one.loss * (1 + one.score - one.truth_score)
            )
    searched = [isinstance(one.certificate, BoundsCertificate) for one in found["auto"]]
    assert searched == [False, True, False, True, True]
    assert not any(isinstance(one.certificate, BoundsCertificate) for one in found["full"])
    check_bounds(found["auto"][3])


def test_constraints_and_errors_of_large_ones():
    rng = np.random.default_rng(2)
    models = [tree(rng, 150), tree(rng, 150)]
    truths = [rng.integers(0, 3, 150) for _ in models]
    recipe, few = tt.losses.FBeta(background=0), tt.count(state=1) <= 20
    auto = tt.loss_augmented_batch(models, recipe, truths=truths, where=few)
    for model, truth, found in zip(models, truths, auto, strict=True):
        alone = tt.loss_augmented(model, recipe.against(truth), where=few)
        assert (found.value, found.tally) == (alone.value, alone.tally)
        assert found.assignment.tolist().count(1) <= 20
        check_bounds(found)
    never = [few, tt.count(state=1) >= 999]
    found = tt.loss_augmented_batch(models, recipe, truths=truths, where=never, errors="return")
    assert found[0].value == auto[0].value and isinstance(found[1], tt.InfeasibleError)
