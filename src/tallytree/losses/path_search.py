"""The optimum for a range of margins by bounds: a search wherever two pieces could meet.

The optimum is convex and piecewise linear in the margin. Where the lines of two margins cross, a
search either finds nothing above the crossing, so that the pieces meet there, or a line in between.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np

from tallytree.answers.certificate import SAME_TALLY
from tallytree.bounding import BoundedTable, bounded
from tallytree.bounding.strategy import first_work
from tallytree.losses.path import MarginPath
from tallytree.losses.query import LossQuery
from tallytree.losses.scaling import Scaling, scaled
from tallytree.planning.options import Options
from tallytree.solving import best_of

_MOST_SEARCHES = 32
"""With more pieces than half of this, a full table is cheaper."""


class _Line(NamedTuple):
    loss: float
    constant: float
    found: Any

    def at(self, margin: float) -> float:
        return self.loss * margin + self.constant


class _GaveUpError(Exception):
    """A full table is the better choice."""


class _PathSearch:
    """Searches at single margins, with a counter."""

    def __init__(self, query: LossQuery[Any], scaling: Scaling, options: Options) -> None:
        self.query, self.scaling, self.options = query, scaling, options
        auto = options.strategy == "auto"
        self._work = first_work(query.query, options, query.question(scaling, 1.0))
        self._left = _MOST_SEARCHES if auto else inf
        self._known: BoundedTable | None = None

    def line(self, margin: float) -> _Line:
        """Return the best line at a margin."""
        self._left -= 1
        if self._work <= 0 or self._left < 0:
            raise _GaveUpError
        query, question = self.query, self.query.question(self.scaling, margin)
        if self._known is not None:
            question = self._known.continued(question)
        table = bounded(query.query, question, self.options, self._work)
        if table is None or not table.finished:
            raise _GaveUpError
        self._known = table
        if self.options.operation_limit is not None:
            self._work -= table.found.work
        best = best_of(table, query.objective(self.scaling, margin))
        solution = query.augmented(best, self.scaling, margin)
        ahead = solution.score - query.truth_score
        return _Line(solution.loss, float(scaled(self.scaling, solution.loss, ahead, 0.0)), solution)

    def lines(self, low: float, high: float) -> list[_Line]:
        """Return the lines of all pieces, and possibly some that touch them."""
        known = [self.line(low), self.line(high)]
        waiting = [(known[0], known[1], low, high)]
        while waiting:
            left, right, begin, end = waiting.pop()
            if not right.loss > left.loss:
                continue
            crossing = (left.constant - right.constant) / (right.loss - left.loss)
            if not begin < crossing < end:
                continue
            between = self.line(crossing)
            if between.at(crossing) <= left.at(crossing) + self._rounding(left, crossing):
                continue
            known.append(between)
            waiting += [(left, between, begin, crossing), (between, right, crossing, end)]
        return known

    def _rounding(self, line: _Line, margin: float) -> float:
        """Return the tolerance for being above a crossing."""
        return 8 * max(line.loss, 1.0) * self.query.rounding + 1e-12 * abs(line.at(margin))


def searched_path(
    query: LossQuery[Any], scaling: Scaling, low: float, high: float, options: Options
) -> MarginPath[Any] | None:
    """Return the path by bounds; None if that is not supported, or if a full table is cheaper."""
    if options.strategy == "full" or high == inf:
        return None
    try:
        lines = _PathSearch(query, scaling, options).lines(low, high)
    except _GaveUpError:
        return None
    losses, constants = (np.array([getattr(line, name) for line in lines]) for name in ("loss", "constant"))
    return MarginPath(losses, constants, low, high, partial(_at_margin, query, scaling, lines))


def _at_margin(query: LossQuery[Any], scaling: Scaling, lines: list[_Line], line: int, margin: float) -> Any:
    """Return the labelling of a line; a proof at another margin holds for its tally."""
    return query.augmented(lines[line].found.claiming(SAME_TALLY), scaling, margin)
