"""Steps in the dual of a structural SVM, among the planes of one example.

A plane ``k`` has a sparse slope ``a_k`` and an offset ``b_k``. With weights ``α_k`` of the planes and the
weight vector ``w``, to which the example contributes ``Σ_k α_k a_k``, the gradient of the dual by ``α_k`` is
``g_k = b_k − ⟨w, a_k⟩``. A step moves weight from one plane to another, as far as the dual increases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels import native

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Slopes(NamedTuple):
    """The slopes of some planes, concatenated."""

    # (E,): the non-zero entries
    indices: Integers
    values: Floats
    ends: Integers  # (K,): where the entries of each plane end


class StepRules(NamedTuple):
    """When to stop."""

    steps: int  # the maximum number of steps of a call
    enough: float  # the fraction of the first slope that may remain
    rounding: float  # slopes below this, relative to the offsets, count as zero


def inner_products(slopes: Slopes, vector: Floats) -> Floats:
    """Return ``⟨v, a_k⟩`` for each plane.

    Examples
    --------
    >>> slopes = Slopes(np.array([0, 2, 1]), np.array([1.0, 2.0, 3.0]), np.array([2, 3]))
    >>> inner_products(slopes, np.array([1.0, 10.0, 100.0]))
    array([201.,  30.])
    """
    return native.block_inner(slopes.indices, slopes.values, slopes.ends, vector)


def improve(
    slopes: Slopes,
    offsets: Floats,
    gram: Floats,
    alpha: Floats,
    weights: Floats,
    rules: StepRules,
    lag: Floats,
    factor: float,
) -> float:
    """Make pairwise steps, each with exact line search.

    `slopes` and `offsets`: the K planes. `gram`: the inner products of the slopes. `alpha` and `weights`: the
    weights of the planes and the weight vector; updated in place. `rules`: when to stop. `lag` and `factor`:
    another vector, to which the change of the weight vector is added in place with a factor; empty for none.
    Returns ``Σ_k α_k (max g − g_k)`` before the first step: how far these planes are from their optimum.

    Examples
    --------
    Two planes ``1 − w`` and ``0``; initially, all weight is on the second.

    >>> slopes = Slopes(np.array([0]), np.array([1.0]), np.array([1, 1]))
    >>> alpha, weights = np.array([0.0, 2.0]), np.zeros(1)
    >>> gram = np.array([[1.0, 0.0], [0.0, 0.0]])
    >>> offsets = np.array([1.0, 0.0])
    >>> improve(slopes, offsets, gram, alpha, weights, StepRules(9, 0.0, 1e-12), np.zeros(0), 0.0)
    2.0
    >>> alpha, weights
    (array([1., 1.]), array([1.]))
    """
    return native.improve_block(*slopes, offsets, gram, alpha, weights, lag, factor, *rules)


def with_slope(
    slopes: Slopes, offsets: Floats, indices: Integers, values: Floats, offset: float, workspace: Floats
) -> tuple[Slopes, Floats] | None:
    """Return the slopes with that of one more plane, and its inner products with the others.

    `slopes` and `offsets`: the K planes. `indices` and `values`: the entries of the new slope, in ascending
    order. `workspace`: a vector as long as the weight vector, zero before and after. Returns None if one of
    the planes is the same.
    """
    grown = native.grow_block(*slopes, offsets, indices, values, offset, workspace)
    return None if grown is None else (Slopes(*grown[0]), grown[1])


def some_slopes(slopes: Slopes, kept: Integers) -> Slopes:
    """Return some of the slopes, by number."""
    return Slopes(*native.take_slopes(*slopes, kept))


def merged_slopes(slopes: Slopes, first: int, second: int, shares: Floats) -> Slopes:
    """Return the slopes without the second of two, and with a combination of both in place of the first.

    Examples
    --------
    >>> slopes = Slopes(np.array([0, 1, 2]), np.array([1.0, 1.0, 5.0]), np.array([1, 2, 3]))
    >>> merged_slopes(slopes, 0, 1, np.array([0.75, 0.25]))
    Slopes(indices=array([0, 1, 2]), values=array([0.75, 0.25, 5.  ]), ends=array([2, 3]))
    """
    return Slopes(*native.merge_slopes(*slopes, first, second, *shares.tolist()))
