"""Labellings in order, best first, from the tables of an upward pass.

By score, a single search covers all tallies at once. By an objective ``H``, labellings with the same tally
are still ordered by score, because ``H`` is non-decreasing in it: there is one search per tally,
and they are merged by value.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import heapify, heappop, heappush
from inspect import GEN_CLOSED, getgeneratorstate
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import TallytreeError

_BATCH = 64  # the most labellings that are found ahead
T = TypeVar("T")

Batch = tuple[NDArray[np.float64], NDArray[np.int64], Any]
"""Scores, positions of root cells, and labellings or derivations."""


class Search(Protocol):
    """A search through the labellings or derivations of root cells, best score first."""

    def next(self, count: int) -> Batch:
        """Return some of the next ones; empty if there are no more."""


class Ranked(NamedTuple):
    """A labelling (or a derivation), its value and score, and the root cell it belongs to."""

    value: float
    score: float
    position: int
    assignment: Any


class Ranking(Iterator[T]):
    """An iterator that reports if it was interrupted by an error.

    A plain generator would just end, as if nothing were left.

    Examples
    --------
    >>> ranking = Ranking(1 // n for n in (1, 0, 2))
    >>> next(ranking)
    1
    >>> next(ranking)
    Traceback (most recent call last):
    ZeroDivisionError: integer division or modulo by zero
    >>> next(ranking)
    Traceback (most recent call last):
    tallytree.errors.TallytreeError: this iteration was interrupted by a ZeroDivisionError and cannot be
    continued; start a new one
    """

    def __init__(self, items: Generator[T, None, None]) -> None:
        self._items = items
        self._broken_by: str | None = None

    def __next__(self) -> T:
        """Return the next item."""
        if self._broken_by is not None:
            raise TallytreeError(
                f"this iteration was interrupted by a {self._broken_by} and cannot be "
                "continued; start a new one"
            )
        try:
            return next(self._items)
        except StopIteration:
            raise
        except BaseException as error:
            if getgeneratorstate(self._items) == GEN_CLOSED:  # otherwise another thread is running it
                self._broken_by = type(error).__name__
            raise


def batches(search: Search) -> Iterator[Batch]:
    """Iterate over batches of the results of a search.

    Batches grow, so that the first result comes at once and many results take few calls. They may be smaller
    if memory is short.
    """
    count = 1
    while len((found := search.next(count))[0]):
        yield found
        count = min(2 * count, _BATCH)


def drawn(search: Search) -> Iterator[Ranked]:
    """Iterate over the results of a search."""
    for scores, positions, assignments in batches(search):
        for score, position, assignment in zip(scores.tolist(), positions.tolist(), assignments, strict=True):
            yield Ranked(score, score, position, assignment.copy())


def by_objective(
    search: Callable[[int], Iterator[Ranked]],
    values: Sequence[float],
    evaluate: Callable[[int, float], float],
) -> Iterator[Ranked]:
    """Iterate over the labellings of some root cells in order of value, without those of value ``-inf``.

    `search`: yields the labellings of the cell at a position, in order of score. `values`: the value of the
    best labelling of each cell. `evaluate`: the value of a score at the cell of a position.
    """
    waiting = [(-value, position) for position, value in enumerate(values) if value > -np.inf]
    heapify(waiting)
    searches: dict[int, Iterator[Ranked]] = {}
    heads: dict[int, Ranked] = {}
    while waiting:
        negative, position = heappop(waiting)
        if position not in searches:  # first labelling from this cell
            searches[position] = search(position)
            heads[position] = next(searches[position])
        yield heads[position]._replace(value=-negative, position=position)
        further = next(searches[position], None)
        if further is not None and (value := evaluate(position, further.score)) > -np.inf:
            heads[position] = further
            heappush(waiting, (-value, position))
