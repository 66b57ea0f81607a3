"""Points that no vector of multipliers can choose: those on or below a chord of others.

``max_l (μ(l) + λ·l)`` is always attained at a vertex of the upper hull of the points ``(l, μ(l))``. A point
is no vertex if it lies on or below the chord of two others on the same line, so few points are left after
looking along the lines of a few directions. Not all of them are vertices, but all vertices are among them.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

_MOST_PASSES = 64


def without_chords(
    parts: NDArray[np.int64], tallies: NDArray[np.int64], scores: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the rows that lie above all chords looked at, in order.

    Parameters
    ----------
    parts : (T,) integer array
        Which part each row belongs to; rows of different parts have nothing to do with each other.
    tallies : (T, P) integer array
    scores : (T,) array

    Examples
    --------
    >>> tallies = np.array([[0], [1], [2], [4]])
    >>> without_chords(np.zeros(4, dtype=int), tallies, np.array([0.0, 1.0, 5.0, 6.0])).tolist()
    [0, 2, 3]
    """
    rows = np.arange(len(parts))
    for direction in _directions(tallies.shape[1]):
        rows = rows[_above(parts[rows], tallies[rows], scores[rows], direction)]
    return rows


def _directions(size: int) -> list[NDArray[np.int64]]:
    """Return the axes, and the two diagonals of every pair of them."""
    axes = list(np.eye(size, dtype=np.int64))
    diagonals = [axes[p] + sign * axes[q] for p, q in combinations(range(size), 2) for sign in (1, -1)]
    return axes + diagonals


def _above(
    parts: NDArray[np.int64],
    tallies: NDArray[np.int64],
    scores: NDArray[np.float64],
    direction: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Look along the lines of one direction."""
    axis = int(np.flatnonzero(direction)[0])
    place = tallies[:, axis]
    feet = tallies - place[:, None] * direction  # where the line of a point meets ``l_axis = 0``
    order = np.lexsort((place, *feet.T, parts))
    place, height = place[order].astype(np.float64), scores[order]
    line = np.column_stack((parts, feet))[order]
    for _ in range(_MOST_PASSES):
        same = (line[1:] == line[:-1]).all(axis=1)
        inner = np.flatnonzero(same[1:] & same[:-1]) + 1
        before, after = inner - 1, inner + 1
        share = (place[inner] - place[before]) / (place[after] - place[before])
        chord = height[before] + share * (height[after] - height[before])
        keep = np.ones(len(order), dtype=bool)
        keep[inner] = height[inner] > chord
        if keep.all():
            break
        order, place, height, line = order[keep], place[keep], height[keep], line[keep]
    return np.sort(order)
