"""Inverses as sums of powers, by Gauss's quadrature.

``1 / (c + k) = ∫ x^(c + k - 1) dx`` on [0, 1], and Gauss's quadrature for the weight ``x^(c - 1)`` has
numbers between 0 and 1 and positive weights with ``Σ w x^k = 1 / (c + k)``: exactly for ``k`` less than twice
their number, and nearly so for many more.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, floor, log2, sqrt

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Powers = tuple[Numbers, Numbers]
"""Numbers x, and their weights w."""

ACCURACY = 1e-13
"""The maximum relative error of 1 / (c + k), besides rounding."""


def _gauss(count: int, power: float) -> Powers:
    """Return the numbers and weights of Gauss's quadrature of ``x^power f(x)`` on [0, 1] (Golub, Welsch)."""
    k = np.arange(1, count)
    even = 2 * k + power
    diagonal = np.concatenate(([power / (power + 2)], power**2 / (even * (even + 2))))
    first = [4 * (1 + power) / ((2 + power) ** 2 * (3 + power))]
    k, even = k[1:], even[1:]
    rest = 4 * (k * (k + power)) ** 2 / (even**2 * (even + 1) * (even - 1))
    beside = np.sqrt(np.concatenate((first, rest)))[: count - 1]
    places, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return (1 + places) / 2, vectors[0] ** 2 / (power + 1)


def _is_accurate(count: int, offset: float, most: int) -> bool:
    """Whether so many numbers are enough; rounding an x matters as often as it is multiplied."""
    x, w = _gauss(count, offset - 1)
    powers = np.arange(most + 1)
    found = (w * x ** powers[:, np.newaxis]).sum(axis=1) * (offset + powers)
    return bool(np.abs(found - 1).max() <= ACCURACY + most * np.finfo(float).eps)


@lru_cache(maxsize=4096)
def _enough(offset: float, most: int) -> int:
    """Return how many numbers are enough for inverses from an offset on: fewer are for larger ones."""
    exact = most // 2 + 1  # there is no error but rounding
    low, high = 1, min(exact, ceil(3.5 * sqrt(most)) + 3)
    while high < exact and not _is_accurate(high, offset, most):
        low, high = high + 1, min(exact, 2 * high)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_accurate(middle, offset, most) else (middle + 1, high)
    return low


@lru_cache(maxsize=4096)
def inverses(offset: float, most: int) -> Powers:
    """Return few numbers with ``Σ w x^k = 1 / (offset + k)`` for k from 0 to `most`.

    Examples
    --------
    >>> x, w = inverses(2.0, 4)
    >>> [round(float((w * x**k).sum()), 6) for k in range(5)]
    [0.5, 0.333333, 0.25, 0.2, 0.166667]
    """
    return _gauss(_enough(2.0 ** floor(log2(offset)), most), offset - 1)
