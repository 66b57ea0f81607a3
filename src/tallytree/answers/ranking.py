"""Labellings in order, best first, from the tables of an upward pass.

By score, one search goes through all tallies at once. By an objective ``H``, the order among labellings of
the same tally is still that of the score, because ``H`` does not decrease in it: one search for each tally,
merged by their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, ModelError
from tallytree.kernels import native
from tallytree.planning.plan import Plan
from tallytree.running.graphs import Messages

__all__ = ["Ranked", "by_objective", "by_score", "drawn"]

_BATCH = 64  # the most labellings that are found ahead


class Ranked(NamedTuple):
    """A labelling (or a derivation), its value and score, and which of the root cells it belongs to."""

    value: float
    score: float
    position: int
    assignment: Any


def by_score(messages: Messages, cells: NDArray[np.int64], plan: Plan) -> Iterator[Ranked]:
    """Go through the labellings of some root cells in order of score.

    Raises
    ------
    BudgetError
        The plan does not keep all tables.
    """
    plan.need_double("labellings in order")
    if not isinstance(messages, native.Run):
        raise ModelError("labellings in order come from the native executor; leave out backend=")
    try:
        return drawn(native.KBest(messages, cells))
    except native.BudgetExceededError:
        raise BudgetError(
            "labellings in order need every table, and this plan keeps only checkpoints "
            f"({plan.segments} segments); raise memory_limit="
        ) from None


def drawn(search: native.KBest | native.ChartKBest) -> Iterator[Ranked]:
    """Go through what a search finds, one by one."""
    count = 1  # in growing batches: the first comes at once, and many cost few calls
    while True:
        scores, positions, assignments = search.next(count)
        for score, position, assignment in zip(scores.tolist(), positions.tolist(), assignments, strict=True):
            yield Ranked(score, score, position, assignment.copy())
        if len(scores) < count:
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
