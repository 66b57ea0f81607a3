"""Labellings in order, best first, from the tables of an upward pass.

By score, one search goes through all tallies at once. By an objective ``H``, the order among labellings of
the same tally is still that of the score, because ``H`` does not decrease in it: one search for each tally,
merged by their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranked", "Search", "by_objective", "drawn"]

_BATCH = 64  # the most labellings that are found ahead


class Search(Protocol):
    """A search through what root cells stand for, best score first."""

    def next(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.int64], Any]:
        """Return some of the next ones, none if there are no more.

        Their scores, the positions of their root cells, and labellings or derivations.
        """


class Ranked(NamedTuple):
    """A labelling (or a derivation), its value and score, and which of the root cells it belongs to."""

    value: float
    score: float
    position: int
    assignment: Any


def drawn(search: Search) -> Iterator[Ranked]:
    """Go through what a search finds, one by one."""
    count = 1  # in growing batches: the first comes at once, and many cost few calls
    while True:
        scores, positions, assignments = search.next(count)
        for score, position, assignment in zip(scores.tolist(), positions.tolist(), assignments, strict=True):
            yield Ranked(score, score, position, assignment.copy())
        if not len(scores):  # fewer may come where memory is short
            return
        count = min(2 * count, _BATCH)


def by_objective(
    search: Callable[[int], Iterator[Ranked]],
    values: Sequence[float],
    evaluate: Callable[[int, float], float],
) -> Iterator[Ranked]:
    """Go through the labellings of some root cells in order of value; those of value ``-inf`` are left out.

    Parameters
    ----------
    search
        Gives the labellings of the cell at a position, in order of score.
    values
        For each cell the value of its best labelling.
    evaluate
        The value of a score at the cell of a position.
    """
    waiting = [(-value, position) for position, value in enumerate(values) if value > -np.inf]
    heapify(waiting)
    searches: dict[int, Iterator[Ranked]] = {}
    found: dict[int, Ranked] = {}
    while waiting:
        negative, position = heappop(waiting)
        if position not in searches:  # its turn has come for the first time
            searches[position] = search(position)
            found[position] = next(searches[position])
        yield found[position]._replace(value=-negative, position=position)
        further = next(searches[position], None)
        if further is not None and (value := evaluate(position, further.score)) > -np.inf:
            found[position] = further
            heappush(waiting, (-value, position))
