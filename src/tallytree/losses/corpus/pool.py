"""Many profiles together, and the concave bound on their join."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.model.rounding import rounding_bound

# --- points that no vector of multipliers can choose --------------------------------------------------------
# These lie on or below a chord of others. ``max_l (μ(l) + λ·l)`` is always attained at a vertex of the upper
# hull of the points ``(l, μ(l))``. A point is not a vertex if it lies on or below the chord of two others on
# the same line, so few points remain after checking the lines of a few directions. Not all of them are
# vertices, but all vertices are among them.

_MOST_PASSES = 64


def without_chords(
    parts: NDArray[np.int64], tallies: NDArray[np.int64], scores: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the rows above all chords that are checked, in order.

    `parts` (T,): the part of each row; rows of different parts are independent.
    `tallies` (T, P). `scores` (T,).

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
    """Check the lines of one direction."""
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


Choice = NDArray[np.int64]
"""One row of the pool for each part: a tally of each."""


class Support(NamedTuple):
    """The bound of a vector of multipliers: every tally L of the whole scores at most ``total - λ·L``.

    ``choice`` attains that at its own tally.
    """

    multipliers: NDArray[np.float64]
    total: float
    choice: Choice
    tally: NDArray[np.int64]
    score: float


class Pool:
    """The tallies and scores of all parts, concatenated.

    `tallies`: the attainable tallies of each part, at least one. `scores`: the best score of each.
    """

    def __init__(self, tallies: Sequence[NDArray[np.int64]], scores: Sequence[NDArray[np.float64]]) -> None:
        sizes = np.array([len(part) for part in scores])
        self.starts: NDArray[np.int64] = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
        self.part: NDArray[np.int64] = np.repeat(np.arange(len(sizes)), sizes)
        self.tallies: NDArray[np.int64] = np.concatenate(tallies)
        self.scores: NDArray[np.float64] = np.concatenate(scores)
        self.low: NDArray[np.int64] = np.minimum.reduceat(self.tallies, self.starts).sum(axis=0)
        self.high: NDArray[np.int64] = np.maximum.reduceat(self.tallies, self.starts).sum(axis=0)
        least, most = (f.reduceat(self.scores, self.starts) for f in (np.minimum, np.maximum))
        self.steepest = float((most - least).max(initial=0.0)) + 1.0  # larger than any slope of a profile
        self._vertices = without_chords(self.part, self.tallies, self.scores)
        self._vertex_tallies = self.tallies[self._vertices].astype(np.float64)
        self._vertex_scores = self.scores[self._vertices]
        self._vertex_part = self.part[self._vertices]
        self._vertex_starts = np.searchsorted(self._vertex_part, np.arange(len(sizes)))
        self.rounding = float(rounding_bound(2 * len(sizes), np.abs([least, most]).sum()))

    @staticmethod
    def bytes_for(rows: int, columns: int) -> int:
        """Return the size of a pool of this many rows: its arrays, and those used to find hulls."""
        return rows * (40 + 8 * columns) + rows * (100 + 56 * columns)

    def support(self, multipliers: NDArray[np.float64]) -> Support:
        """Maximise ``score + λ·tally`` in each part; the first of equal rows."""
        values = self._vertex_scores + self._vertex_tallies @ multipliers
        best = np.maximum.reduceat(values, self._vertex_starts)
        at_best = np.flatnonzero(values == best[self._vertex_part])
        first = np.searchsorted(self._vertex_part[at_best], np.arange(len(self.starts)))
        choice = self._vertices[at_best[first]]
        tally = self.tallies[choice].sum(axis=0)
        return Support(multipliers, float(best.sum()), choice, tally, float(self.scores[choice].sum()))

    def slack(self, support: Support) -> NDArray[np.float64]:
        """Return how far each row is below the best of its part under the multipliers."""
        values = self.scores + self.tallies @ support.multipliers
        return np.asarray(values[support.choice][self.part] - values)
