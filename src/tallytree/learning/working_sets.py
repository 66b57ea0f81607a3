"""The planes that an example holds, and its part of the dual.

Example ``i`` gives its planes weights ``α ≥ 0`` with ``Σ α = C``, and the weight vector is
``w = Σ_i Σ_k α_ik a_ik``. With the gradients ``g_k = b_k − ⟨w, a_k⟩``, moving ``t`` from plane ``d`` to plane
``u`` changes the dual by ``t (g_u − g_d) − ½ t² ‖a_u − a_d‖²``: the best ``t`` is known in closed form, and
the inner products ``⟨a_k, a_l⟩`` tell the gradients after it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.learning.planes import Floats, Plane, combined, dot

__all__ = ["WorkingSet"]

_STEPS = 20
"""Pairwise steps of one visit at most: a set is visited again in the next pass."""

_ENOUGH = 0.1
"""A visit may leave this part of the slope that it found: other blocks change it again anyway."""

_ROUNDING = 1e-12
"""Slopes below this, compared with the offsets, are rounding."""


class WorkingSet:
    """The planes of one example and their weights.

    Parameters
    ----------
    planes : sequence of Plane
        At least one.
    alpha : array of shape (K,)
        Their weights.
    gram : array of shape (K, K), optional
        The inner products of the slopes, where they are known.
    """

    __slots__ = ("_indices", "_owners", "_values", "alpha", "gram", "offsets", "planes")

    def __init__(self, planes: Sequence[Plane], alpha: Floats, gram: Floats | None = None) -> None:
        self.planes = list(planes)
        self.alpha = np.array(alpha, dtype=np.float64)
        self._gather()
        if gram is None:
            gram = np.array([[_inner(p, q) for q in self.planes] for p in self.planes])
        self.gram = gram

    def _gather(self) -> None:
        self.offsets = np.array([plane.offset for plane in self.planes])
        self._indices = np.concatenate([plane.indices for plane in self.planes])
        self._values = np.concatenate([plane.values for plane in self.planes])
        sizes = [len(plane.indices) for plane in self.planes]
        self._owners = np.repeat(np.arange(len(sizes)), sizes)
        ends = np.cumsum(sizes).tolist()
        self.planes = [  # views, so that each entry is kept once
            Plane(self._indices[end - size : end], self._values[end - size : end], plane.offset)
            for plane, size, end in zip(self.planes, sizes, ends, strict=True)
        ]

    def __len__(self) -> int:
        """Return the number of planes."""
        return len(self.planes)

    def inner(self, vector: Floats) -> Floats:
        """Return ``⟨v, a_k⟩`` for each plane."""
        products = self._values * vector[self._indices]
        return np.bincount(self._owners, products, len(self.planes)).astype(np.float64, copy=False)

    def gradients(self, weights: Floats) -> Floats:
        """Return the value of each plane: the gradient of the dual by its weight."""
        difference: Floats = self.offsets - self.inner(weights)
        return difference

    def add(self, plane: Plane, workspace: Floats) -> None:
        """Take in a plane with weight 0, unless it is there; the workspace is zero before and after."""
        if any(_equal(plane, other) for other in self.planes):
            return
        workspace[plane.indices] = plane.values
        products = self.inner(workspace)
        workspace[plane.indices] = 0.0
        size = len(self.planes)
        gram = np.empty((size + 1, size + 1))
        gram[:size, :size] = self.gram
        gram[size, :size] = gram[:size, size] = products
        gram[size, size] = _inner(plane, plane)
        self.gram = gram
        self.planes.append(plane)
        self.alpha = np.append(self.alpha, 0.0)
        self._gather()

    def improve(self, weights: Floats) -> tuple[float, Floats]:
        """Make pairwise steps, each with exact line search.

        Returns
        -------
        gap : float
            ``Σ_k α_k (max g − g_k)`` before the first step: the gap of this block on the planes at hand.
        change : array
            What was added to alpha. The weight vector is left as it is: :meth:`apply` changes it.
        """
        slopes, alpha = self.gradients(weights).tolist(), self.alpha.tolist()
        highest = max(slopes)
        gap = sum(share * (highest - slope) for share, slope in zip(alpha, slopes, strict=True))
        least = _ROUNDING * (1.0 + float(np.abs(self.offsets).max()))
        places = range(len(alpha))
        for _ in range(_STEPS):
            up = max(places, key=slopes.__getitem__)
            down = min((k for k in places if alpha[k] > 0.0), key=slopes.__getitem__)
            slope = slopes[up] - slopes[down]
            if slope <= least:
                break
            least = max(least, _ENOUGH * slope)  # from the first one, the largest, on
            above, below = self.gram[up].tolist(), self.gram[down].tolist()
            curvature = above[up] - 2.0 * above[down] + below[down]
            step = min(alpha[down], slope / curvature) if curvature > 0.0 else alpha[down]
            alpha[up] += step
            alpha[down] -= step
            slopes = [g - step * (a - b) for g, a, b in zip(slopes, above, below, strict=True)]
        before, self.alpha = self.alpha, np.array(alpha)
        return gap, self.alpha - before

    def apply(self, change: Floats, *targets: tuple[Floats, float]) -> None:
        """Add ``factor · Σ change_k a_k`` to each of the given vectors, in place."""
        if not change.any():
            return
        entries = self._values * change[self._owners]
        for vector, factor in targets:
            np.add.at(vector, self._indices, entries if factor == 1.0 else factor * entries)

    def trim(self, room: int, slopes: Floats) -> None:
        """Make do with a number of planes: drop idle ones, lowest value first, then merge the lightest."""
        excess = len(self) - room
        if excess <= 0:
            return
        idle = np.flatnonzero(self.alpha == 0.0)
        dropped = idle[np.argsort(slopes[idle], kind="stable")][:excess]
        if len(dropped):
            self._keep(np.setdiff1d(np.arange(len(self)), dropped))
        while len(self) > room:
            self._merge(*np.sort(np.argsort(self.alpha, kind="stable")[:2]).tolist())

    def _keep(self, kept: np.ndarray) -> None:
        self.planes = [self.planes[k] for k in kept.tolist()]
        self.alpha, self.gram = self.alpha[kept], self.gram[np.ix_(kept, kept)]
        self._gather()

    def _merge(self, first: int, second: int) -> None:
        """Replace two planes by their mean, weighted by alpha: the weight vector stays what it is."""
        total = float(self.alpha[first] + self.alpha[second])
        shares = np.array([self.alpha[first], self.alpha[second]]) / total
        self.planes[first] = combined([self.planes[first], self.planes[second]], shares)
        row = shares @ self.gram[[first, second]]
        self.gram[first] = self.gram[:, first] = row
        self.gram[first, first] = _inner(self.planes[first], self.planes[first])
        self.alpha[first] = total
        self._keep(np.delete(np.arange(len(self)), second))


def _inner(first: Plane, second: Plane) -> float:
    if first is second:
        return dot(first.values, first.values)
    _, here, there = np.intersect1d(first.indices, second.indices, assume_unique=True, return_indices=True)
    return dot(first.values[here], second.values[there])


def _equal(first: Plane, second: Plane) -> bool:
    return (
        first.offset == second.offset
        and len(first.indices) == len(second.indices)
        and np.array_equal(first.indices, second.indices)
        and np.array_equal(first.values, second.values)
    )
