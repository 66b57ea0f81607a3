"""Adding and merging planes leaves the weight vector as it is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.running.dual_steps import Planes, Slopes, trimmed, with_plane

DIMENSION = 9


def plane_of(rng):
    indices = np.sort(rng.choice(DIMENSION, rng.integers(0, 6), replace=False)).astype(np.int64)
    return indices, rng.integers(-3, 4, len(indices)) / 2.0, float(rng.integers(0, 3))


def dense(planes):
    found = np.zeros((len(planes.offsets), DIMENSION))
    begin = 0
    for row, end in zip(found, planes.slopes.ends.tolist(), strict=True):
        row[planes.slopes.indices[begin:end]] = planes.slopes.values[begin:end]
        begin = end
    return found


@pytest.mark.sanitize
@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(0, 9), st.integers(1, 9))
def test_planes_are_added_once_and_merged_without_a_trace(seed, count, room):
    rng = np.random.default_rng(seed)
    nothing = Slopes(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(1, dtype=np.int64))
    planes, workspace = Planes(nothing, np.zeros(1), np.zeros((1, 1)), np.ones(1)), np.zeros(DIMENSION)
    for _ in range(count):
        more = plane_of(rng)
        grown = with_plane(planes, *more, workspace)
        planes = planes if grown is None else grown
        assert with_plane(planes, *more, workspace) is None and not workspace.any()
    alpha = rng.integers(0, 3, len(planes.offsets)) / 2.0
    planes = planes._replace(alpha=alpha)
    slopes = dense(planes)
    np.testing.assert_allclose(planes.gram, slopes @ slopes.T, atol=1e-12)
    left = trimmed(planes, rng.normal(size=len(alpha)), room)
    slopes_left = dense(left)
    assert len(left.offsets) == min(room, len(alpha))
    np.testing.assert_allclose(left.alpha @ slopes_left, alpha @ slopes, atol=1e-12)
    np.testing.assert_allclose(left.alpha @ left.offsets, alpha @ planes.offsets, atol=1e-12)
    np.testing.assert_allclose(left.gram, slopes_left @ slopes_left.T, atol=1e-12)
