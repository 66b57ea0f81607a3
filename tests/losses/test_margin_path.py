"""The optimum over a range of margins: convex, continuous, and the upper envelope of all lines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import generators

import tallytree as tt


@given(
    rng=generators(), count=st.integers(1, 12), low=st.sampled_from([0.0, 0.5, 2.0]), width=st.floats(0, 5)
)
def test_the_path_is_the_best_of_all_lines(rng, count, low, width):
    slopes, constants = rng.integers(-3, 6, count) / 2, rng.integers(-9, 9, count) / 4
    path = tt.losses.MarginPath(slopes, constants, low, low + width, lambda line, margin: line)
    margins = np.concatenate((np.linspace(low, low + width, 23), path.breakpoints))
    best = (slopes[:, None] * margins + constants[:, None]).max(axis=0)
    np.testing.assert_allclose(path.value(margins), best, atol=1e-12)
    lines = [path.at(margin) for margin in margins]
    np.testing.assert_allclose(slopes[lines] * margins + constants[lines], best, atol=1e-12)
    assert (np.diff(path.losses) > 0).all()
    assert (np.diff(path.breakpoints) >= 0).all()
    pieces = list(path)
    assert len(pieces) == len(path) == len(path.breakpoints) + 1
    assert pieces[0][0] == low and pieces[-1][1] == low + width


def test_an_endless_path_ends_on_the_largest_loss():
    model = tt.Model.chain([[0.0, 1], [0, 2], [0, 4]], np.zeros((2, 2)))
    path = tt.loss_augmented_path(model, tt.losses.HammingDistance([1, 1, 1]))
    assert path.high == np.inf
    assert path.losses.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert path.at(1e6).assignment.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (2.0, 1.0), (np.inf, np.inf), (np.nan, 1.0)])
def test_a_range_of_margins_makes_sense(low, high):
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match="margins must satisfy"):
        tt.loss_augmented_path(model, tt.losses.HammingDistance([1, 1]), low, high)


def test_a_margin_outside_the_range_is_refused():
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    path = tt.loss_augmented_path(model, tt.losses.HammingDistance([1, 1]), 1.0, 2.0)
    with pytest.raises(tt.ModelError, match="covers 1 to 2"):
        path.at(3.0)
