"""The planes of an example, and its part of the dual.

Example ``i`` assigns weights ``α ≥ 0`` with ``Σ α = C`` to its planes, and the weight vector is
``w = Σ_i Σ_k α_ik a_ik``. With the gradients ``g_k = b_k − ⟨w, a_k⟩``, moving ``t`` from plane ``d`` to plane
``u`` changes the dual by ``t (g_u − g_d) − ½ t² ‖a_u − a_d‖²``: the best ``t`` is known in closed form, and
the inner products ``⟨a_k, a_l⟩`` give the gradients after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.learning.planes import Floats, Plane, dot
from tallytree.learning.solver import Arrays
from tallytree.running.dual_steps import (
    Slopes,
    StepRules,
    improve,
    inner_products,
    merged_slopes,
    some_slopes,
    with_slope,
)

_RULES = StepRules(steps=20, enough=0.1, rounding=1e-12)
"""A visit need not converge: other sets change the slopes anyway, and the next pass visits this one again."""

_NONE = np.zeros(0)


class WorkingSet:
    """The planes of one example and their weights.

    `planes`: at least one. `alpha`: their weights. `gram`: the inner products of the slopes, if
    known.
    """

    __slots__ = ("_slopes", "alpha", "gram", "offsets")

    def __init__(self, planes: Sequence[Plane], alpha: Floats, gram: Floats | None = None) -> None:
        self.alpha = np.array(alpha, dtype=np.float64)
        self._gather(planes)
        self.gram = np.array([[_inner(p, q) for q in planes] for p in planes]) if gram is None else gram

    def _gather(self, planes: Sequence[Plane]) -> None:
        self.offsets = np.array([plane.offset for plane in planes])
        self._slopes = Slopes(
            np.concatenate([plane.indices for plane in planes]),
            np.concatenate([plane.values for plane in planes]),
            np.cumsum([len(plane.indices) for plane in planes]),
        )

    @property
    def planes(self) -> list[Plane]:
        """The planes, as views."""
        indices, values, ends = self._slopes
        ranges = [slice(*bounds) for bounds in pairwise([0, *ends.tolist()])]
        return [
            Plane(indices[entries], values[entries], offset)
            for entries, offset in zip(ranges, self.offsets.tolist(), strict=True)
        ]

    def __len__(self) -> int:
        """Return the number of planes."""
        return len(self.offsets)

    def inner(self, vector: Floats) -> Floats:
        """Return ``⟨v, a_k⟩`` for each plane."""
        return inner_products(self._slopes, vector)

    def gradients(self, weights: Floats) -> Floats:
        """Return the value of each plane: the gradient of the dual by its weight."""
        difference: Floats = self.offsets - self.inner(weights)
        return difference

    def add(self, plane: Plane, workspace: Floats) -> None:
        """Add a plane with weight 0, unless it is present; the workspace is zero before and after."""
        grown = with_slope(self._slopes, self.offsets, plane.indices, plane.values, plane.offset, workspace)
        if grown is None:
            return
        slopes, products = grown
        size = len(self)
        gram = np.empty((size + 1, size + 1))
        gram[:size, :size] = self.gram
        gram[size, :size] = gram[:size, size] = products
        gram[size, size] = dot(plane.values, plane.values)
        alpha = np.concatenate((self.alpha, (0.0,)))
        offsets = np.concatenate((self.offsets, (plane.offset,)))
        self._take(slopes, offsets, gram, alpha)

    def _take(self, slopes: Slopes, offsets: Floats, gram: Floats, alpha: Floats) -> None:
        # all at once: Ctrl-C between them would leave a set that cannot be resumed from
        self._slopes, self.offsets, self.gram, self.alpha = slopes, offsets, gram, alpha

    def improve(self, weights: Floats, lag: Floats = _NONE, factor: float = 0.0) -> float:
        """Make pairwise steps, each with exact line search.

        `weights`: the weight vector, which is updated along with alpha. `lag` and `factor`: another vector,
        to which the change of the weights is added with a factor. Returns ``Σ_k α_k (max g − g_k)`` before
        the first step: the gap of this block on the stored planes.
        """
        return improve(self._slopes, self.offsets, self.gram, self.alpha, weights, _RULES, lag, factor)

    def add_to(self, weights: Floats) -> None:
        """Add the part of this example, ``Σ α_k a_k``, to a vector."""
        indices, values, ends = self._slopes
        np.add.at(weights, indices, values * np.repeat(self.alpha, np.diff(ends, prepend=0)))

    def trim(self, room: int, slopes: Floats) -> None:
        """Reduce the number of planes: drop idle ones, lowest value first, then merge the lightest."""
        excess = len(self) - room
        if excess <= 0:
            return
        idle = np.flatnonzero(self.alpha == 0.0)
        dropped = idle[np.argsort(slopes[idle], kind="stable")][:excess]
        if len(dropped):
            kept = np.ones(len(self), dtype=np.bool_)
            kept[dropped] = False
            slopes_kept = some_slopes(self._slopes, np.flatnonzero(kept))
            self._take(slopes_kept, self.offsets[kept], _square(self.gram, kept), self.alpha[kept])
        while len(self) > room:
            self._merge(*sorted(np.argsort(self.alpha, kind="stable")[:2].tolist()))

    def _merge(self, first: int, second: int) -> None:
        """Replace two planes by their mean, weighted by alpha: the weight vector does not change."""
        pair = [first, second]
        total = float(self.alpha[first] + self.alpha[second])
        shares = self.alpha[pair] / total
        slopes = merged_slopes(self._slopes, first, second, shares)
        offsets, gram, alpha = self.offsets.copy(), self.gram.copy(), self.alpha.copy()
        offsets[first] = offsets[first] * shares[0] + offsets[second] * shares[1]
        gram[first] = gram[:, first] = shares @ self.gram[pair]
        mean = slopes.values[slopes.ends[first - 1] if first else 0 : slopes.ends[first]]
        gram[first, first] = dot(mean, mean)
        alpha[first] = total
        kept = np.arange(len(self)) != second
        self._take(slopes, offsets[kept], _square(gram, kept), alpha[kept])


def _square(gram: Floats, kept: NDArray[np.bool_]) -> Floats:
    """Return some rows and the same columns."""
    return gram.compress(kept, 0).compress(kept, 1)


def _inner(first: Plane, second: Plane) -> float:
    if first is second:
        return dot(first.values, first.values)
    _, here, there = np.intersect1d(first.indices, second.indices, assume_unique=True, return_indices=True)
    return dot(first.values[here], second.values[there])


def packed(sets: Sequence[WorkingSet]) -> Arrays:
    """Return the arrays that hold some working sets."""
    planes = [plane for one in sets for plane in one.planes]
    return {
        "set_sizes": np.array([len(one) for one in sets], dtype=np.int64),
        "plane_sizes": np.array([len(plane.indices) for plane in planes], dtype=np.int64),
        "indices": np.concatenate([plane.indices for plane in planes]),
        "values": np.concatenate([plane.values for plane in planes]),
        "offsets": np.array([plane.offset for plane in planes], dtype=np.float64),
        "alpha": np.concatenate([one.alpha for one in sets]),
        "gram": np.concatenate([one.gram.ravel() for one in sets]),
    }


def unpacked(arrays: Arrays, sets: int, dimension: int) -> list[WorkingSet]:
    """Return the working sets in such arrays: this many, with planes of this many dimensions."""
    _check(arrays, sets, dimension)
    ends = np.cumsum(arrays["plane_sizes"])[:-1]
    parts = zip(
        np.split(arrays["indices"], ends),
        np.split(arrays["values"], ends),
        arrays["offsets"].tolist(),
        strict=True,
    )
    planes = [Plane(*part) for part in parts]
    found, first, square = [], 0, 0
    for size in arrays["set_sizes"].tolist():
        gram = arrays["gram"][square : square + size * size].reshape(size, size)
        last = first + size
        found.append(WorkingSet(planes[first:last], arrays["alpha"][first:last], gram.copy()))
        first, square = last, square + size * size
    return found


def _check(arrays: Arrays, sets: int, dimension: int) -> None:
    """Raise an error for inconsistent arrays."""
    of_sets, of_planes, indices = arrays["set_sizes"], arrays["plane_sizes"], arrays["indices"]
    planes, entries = len(of_planes), len(indices)
    right = (
        all(array.ndim == 1 and array.dtype == np.int64 for array in (of_sets, of_planes, indices))
        and len(of_sets) == sets
        and of_sets.min(initial=1) >= 1
        and of_planes.min(initial=0) >= 0
        and of_sets.sum() == planes
        and of_planes.sum() == entries
        and indices.min(initial=0) >= 0
        and indices.max(initial=0) < dimension
    )
    sizes = {"values": entries, "offsets": planes, "alpha": planes, "gram": int((of_sets**2).sum())}
    if not right or any(not is_floats(arrays[name], size) for name, size in sizes.items()):
        raise ValueError("the planes of the examples are inconsistent")


def is_floats(array: NDArray[Any], size: int) -> bool:
    """Return whether an array is one-dimensional, with this many finite doubles."""
    return array.dtype == np.float64 and array.shape == (size,) and bool(np.isfinite(array).all())
