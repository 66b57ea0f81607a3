"""Concave rows are joined by merging their differences: identical, bit for bit, to trying all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.kernels import native


def all_pairs(a, b):
    out = np.full(a.size + b.size - 1, -np.inf)
    for i, x in enumerate(a):
        np.maximum(out[i : i + b.size], x + b, out=out[i : i + b.size])
    return out


def joined(a, b):
    return native.join(a[None, None], b[None, None])[0, 0]


def from_differences(rng, size, values):
    return np.cumsum(np.sort(values(rng, size))[::-1])


def bent(row, at, size):
    row[at] += size
    return row


ROWS = {
    "smooth": lambda rng, n: from_differences(rng, n, lambda r, k: r.normal(size=k)),
    "whole numbers, many ties": lambda rng, n: from_differences(
        rng, n, lambda r, k: r.integers(-3, 4, k) * 1.0
    ),
    "tenths, ties that rounding breaks": lambda rng, n: from_differences(
        rng, n, lambda r, k: r.integers(-9, 10, k) / 10
    ),
    "differences below the last place": lambda rng, n: (
        1e6 - np.linspace(-1, 1, n) ** 2 * rng.choice([1e-8, 1e-9])
    ),
    "straight": lambda rng, n: np.arange(n) * rng.choice([0.1, 0.0, -0.5]),
    "one dent": lambda rng, n: bent(from_differences(rng, n, lambda r, k: r.normal(size=k)), n // 2, -1e-3),
    "huge": lambda rng, n: from_differences(rng, n, lambda r, k: r.normal(size=k)) * 1e304,
    "anything": lambda rng, n: rng.normal(size=n),
}


@given(
    kinds=st.tuples(st.sampled_from(sorted(ROWS)), st.sampled_from(sorted(ROWS))),
    sizes=st.tuples(st.integers(310, 420), st.integers(310, 700)),
    nothing=st.tuples(*[st.integers(0, 12)] * 4),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=80)
def test_joins_equal_all_pairs(kinds, sizes, nothing, seed):
    rng = np.random.default_rng(seed)
    a, b = (ROWS[kind](rng, size) for kind, size in zip(kinds, sizes, strict=True))
    a[: nothing[0]] = a[a.size - nothing[1] :] = -np.inf
    b[: nothing[2]] = b[b.size - nothing[3] :] = -np.inf
    np.testing.assert_array_equal(joined(a, b), all_pairs(a, b))
    np.testing.assert_array_equal(joined(b, a), all_pairs(a, b))


@pytest.mark.parametrize("gap", ["first", "last", "all", "inside"])
def test_rows_with_nothing_in_them(gap):
    a, b = (-((np.arange(n) - 100.0) ** 2) for n in (400, 500))
    a[{"first": slice(399), "last": slice(1, None), "all": slice(None), "inside": slice(7, 9)}[gap]] = -np.inf
    np.testing.assert_array_equal(joined(a, b), all_pairs(a, b))


def test_independent_variables_are_sorted():
    """Without factors between variables, the best labelling with k ones has the k largest gains."""
    rng = np.random.default_rng(3)
    unary = rng.normal(size=(1500, 2))
    model, gains = tt.Model([2] * 1500, [((v,), row) for v, row in enumerate(unary)]), np.diff(unary)[:, 0]
    ones = tt.count(model, state=1)
    best = unary[:, 0].sum() + np.concatenate([[0], np.cumsum(np.sort(gains)[::-1])])
    profile = tt.profile(model, [ones])
    np.testing.assert_allclose(profile.scores, best, rtol=1e-12)
    chosen = set(np.argsort(-gains)[:700].tolist())
    assert set(np.flatnonzero(profile.at(700).assignment)) == chosen
    assert set(np.flatnonzero(tt.solve(model, where=ones == 700).assignment)) == chosen
    few = tt.profile(model, [tt.count(model, state=1, cap=400)])
    np.testing.assert_allclose(few.scores, [*best[:400], best[400:].max()], rtol=1e-12)
