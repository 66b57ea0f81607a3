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


class Planes(NamedTuple):
    """The planes of an example, and their weights."""

    slopes: Slopes
    offsets: Floats  # (K,)
    gram: Floats  # (K, K): the inner products of the slopes
    alpha: Floats  # (K,): the weights


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


def with_plane(
    planes: Planes, indices: Integers, values: Floats, offset: float, workspace: Floats
) -> Planes | None:
    """Return the planes with one more, whose weight is 0; None if they have it already.

    `indices` and `values`: the entries of its slope, in ascending order. `workspace`: a vector as long as the
    weight vector, zero before and after.
    """
    slopes, offsets, gram, alpha = planes
    grown = native.grow_block(*slopes, offsets, gram, alpha, indices, values, offset, workspace)
    return None if grown is None else Planes(Slopes(*grown[:3]), *grown[3:])


def trimmed(planes: Planes, gradients: Floats, room: int) -> Planes:
    """Return at most ``room`` planes, with the same ``Σ_k α_k a_k``.

    Planes with weight 0 are dropped, those with the smallest gradients first. Then the two with the smallest
    weights are replaced by their mean, weighted by ``α``, until there is room.

    Examples
    --------
    >>> slopes = Slopes(np.array([0, 1]), np.array([1.0, 1.0]), np.array([1, 2, 2]))
    >>> planes = Planes(slopes, np.ones(3), np.diag([1.0, 1.0, 0.0]), np.array([3.0, 1.0, 0.0]))
    >>> left = trimmed(planes, np.zeros(3), 1)
    >>> left.slopes.values, left.gram, left.alpha
    (array([0.75, 0.25]), array([[0.625]]), array([4.]))
    """
    slopes, offsets, gram, alpha = planes
    left = native.trim_block(*slopes, offsets, gram, alpha, gradients, room)
    return Planes(Slopes(*left[:3]), *left[3:])
