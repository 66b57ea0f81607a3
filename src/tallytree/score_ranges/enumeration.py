"""Enumeration of all labellings of a small model, in long rows: about ten million per second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from tallytree.model.model import Model
from tallytree.score_ranges.window import Window

MOST_LABELLINGS = 2**24
"""The maximum number of labellings to enumerate: a few seconds."""

_ROW = 2**16  # minimum number of labellings that are scored together

Factor = tuple[tuple[int, ...], NDArray[np.float64]]


def labelling_count(model: Model) -> int:
    """Return the number of labellings, including forbidden ones."""
    count: int = prod(model.cardinalities.tolist())
    return count


def best_by_enumeration(model: Model, window: Window) -> dict[int, int] | None:
    """Return the states of the best labelling in a window of scores; None if there is none.

    The last variables form a row, whose scores are computed at once for each labelling of the others.
    """
    sizes: list[int] = model.cardinalities.tolist()
    first = _first_of_row(sizes)
    shape = tuple(sizes[first:])
    within = [f for f in _factors(model) if all(v >= first for v in f[0])]
    across = [f for f in _factors(model) if any(v < first for v in f[0])]
    alone = _added(np.zeros(shape), within, (), first)
    best, found = -np.inf, None
    for others in product(*map(range, sizes[:first])):
        scores = _added(alone.copy(), across, others, first)
        inside = np.where((scores >= window.least) & (scores <= window.most), scores, -np.inf)
        place = int(inside.argmax())
        if inside.flat[place] > best:
            best = float(inside.flat[place])
            found = dict(enumerate((*others, *map(int, np.unravel_index(place, shape)))))
    return found


def _first_of_row(sizes: Sequence[int]) -> int:
    """Return the first of the variables that form a row."""
    first, cells = len(sizes), 1
    while first and cells < _ROW and len(sizes) - first < _MOST_AXES:
        first -= 1
        cells *= sizes[first]
    return first


_MOST_AXES = 32  # of an array, with room to spare


def _factors(model: Model) -> Iterator[Factor]:
    for block in model.blocks:
        shared = len(block.tables) == 1
        for number, scope in enumerate(block.scopes.tolist()):
            yield tuple(scope), block.tables[0 if shared else number]


def _added(
    scores: NDArray[np.float64], factors: Sequence[Factor], others: Sequence[int], first: int
) -> NDArray[np.float64]:
    """Add factors to the scores of a row, given the states of the variables before it."""
    for scope, table in factors:
        taken = table[tuple(others[v] if v < first else slice(None) for v in scope)]
        own = [v - first for v in scope if v >= first]
        shape = [1] * scores.ndim
        for axis, size in zip(own, taken.shape, strict=True):
            shape[axis] = size
        scores += taken.transpose(np.argsort(own, kind="stable")).reshape(shape)
    return scores
