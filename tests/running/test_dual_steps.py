"""Adding and merging planes, compared with dense arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.running.dual_steps import Slopes, merged_slopes, some_slopes, with_slope

DIMENSION = 9


def plane_of(rng):
    indices = np.sort(rng.choice(DIMENSION, rng.integers(0, 6), replace=False)).astype(np.int64)
    return indices, rng.integers(-3, 4, len(indices)) / 2.0, float(rng.integers(0, 3))


def dense(slopes):
    found, begin = np.zeros((len(slopes.ends), DIMENSION)), 0
    for row, end in zip(found, slopes.ends.tolist(), strict=True):
        row[slopes.indices[begin:end]] = slopes.values[begin:end]
        begin = end
    return found


@pytest.mark.sanitize
@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 9))
def test_planes_are_added_once_taken_and_merged(seed, count):
    rng = np.random.default_rng(seed)
    slopes = Slopes(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(1, dtype=np.int64))
    offsets, workspace = np.zeros(1), np.zeros(DIMENSION)
    for _ in range(count):
        more = plane_of(rng)
        grown = with_slope(slopes, offsets, *more, workspace)
        if grown is not None:
            before, (slopes, products) = dense(slopes), grown
            offsets = np.append(offsets, more[2])
            np.testing.assert_allclose(products, before @ dense(slopes)[-1], atol=1e-12)
        assert with_slope(slopes, offsets, *more, workspace) is None and not workspace.any()
    whole, size = dense(slopes), len(offsets)
    kept = np.flatnonzero(rng.integers(0, 2, size))
    assert (dense(some_slopes(slopes, kept)) == whole[kept]).all()
    if size > 1:
        first, second = np.sort(rng.choice(size, 2, replace=False)).tolist()
        shares = rng.random(2)
        merged = merged_slopes(slopes, first, second, shares)
        whole[first] = whole[first] * shares[0] + whole[second] * shares[1]
        assert (dense(merged) == np.delete(whole, second, axis=0)).all()
