"""Planes: the linear pieces of the hinge losses that training minimises.

The hinge loss of an example is the maximum of many linear functions of the weights, ``b − ⟨w, a⟩``, one for
each labelling ``y``. With ``δ = Ψ(x, truth) − Ψ(x, y)`` and the loss ``Δ(y)``, margin scaling has
``(a, b) = (δ, Δ)`` and slack scaling ``(Δ·δ, Δ)``. Slopes ``a`` are sparse; a mean of planes is one too.
If scores have a part that does not depend on the weights, and the truth is ``r`` ahead in it, ``b`` is
``Δ − r`` under margin scaling and ``Δ·(1 − r)`` under slack scaling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DENSE = 4
"""Up to this many positions per entry, scanning all positions is faster than sorting the entries."""

Features = tuple[Integers, Floats]
"""A sparse vector: indices, possibly repeated, and the values to be added up there."""


class Plane(NamedTuple):
    """One linear piece of a hinge loss, ``offset − ⟨w, a⟩``.

    Attributes
    ----------
    indices, values : arrays of shape (K,)
        The non-zero entries of ``a``, in ascending order and without repetitions.
    offset : float
        The value at ``w = 0``.
    """

    indices: Integers
    values: Floats
    offset: float

    def at(self, weights: Floats) -> float:
        """Return the value at some weights.

        Examples
        --------
        >>> plane = Plane(np.array([0, 3]), np.array([1.0, -2.0]), 0.5)
        >>> plane.at(np.array([1.0, 0.0, 0.0, 1.0]))
        1.5
        """
        return self.offset - dot(self.values, weights[self.indices])


def dot(first: Floats, second: Floats) -> float:
    """Return ``⟨a, b⟩``, added in the same order for any number of processors (unlike BLAS)."""
    return float(np.einsum("i,i->", first, second))


def collected(indices: ArrayLike, values: ArrayLike) -> Features:
    """Add up the values of equal indices; sort them, and drop zeros.

    Examples
    --------
    >>> collected([4, 1, 4, 2], [1.0, 2.0, 1.0, 0.0])
    (array([1, 4]), array([2., 2.]))
    """
    places, terms = np.asarray(indices, dtype=np.int64), np.asarray(values, dtype=np.float64)
    if len(places) and int(places.max()) < _DENSE * len(places):
        return _nonzero(np.bincount(places, weights=terms))
    found, ranks = np.unique(places, return_inverse=True)
    kept, sums = _nonzero(np.bincount(ranks, weights=terms, minlength=len(found)))
    return found[kept], sums


def _nonzero(sums: NDArray[Any]) -> Features:
    kept = np.flatnonzero(sums)
    return kept, sums[kept].astype(np.float64, copy=False)  # empty sums are integers


def scaled_plane(difference: Features, loss: float, scaling: str, lead: float = 0.0) -> Plane:
    """Return the plane of a labelling from ``Ψ(x, truth) − Ψ(x, y)``, its loss, and the truth's lead.

    The difference must have each index once, in ascending order.
    """
    indices, values = difference
    if scaling == "margin":
        return Plane(indices, values, loss - lead)
    if loss == 0.0:
        return Plane(indices[:0], values[:0], 0.0)
    return Plane(indices, loss * values, loss * (1.0 - lead))


def combined(planes: Sequence[Plane], factors: Sequence[float] | Floats) -> Plane:
    """Return the sum of planes times factors.

    Examples
    --------
    >>> first, second = (Plane(np.array([k]), np.array([1.0]), 1.0) for k in (0, 1))
    >>> combined([first, second], [0.5, 0.5])
    Plane(indices=array([0, 1]), values=array([0.5, 0.5]), offset=1.0)
    """
    parts = [(plane.indices, plane.values * factor) for plane, factor in zip(planes, factors, strict=True)]
    indices, values = collected(
        np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    )
    return Plane(
        indices, values, float(sum(p.offset * float(f) for p, f in zip(planes, factors, strict=True)))
    )
