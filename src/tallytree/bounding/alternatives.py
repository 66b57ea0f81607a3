"""Constraints that allow several boxes of tallies: each box is searched, and the best result is the answer.

A table over the hull of the boxes gives the same answer, if it is not too large.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.running.bounds import Found, Wanted
from tallytree.statistics.constraints import And, Constraint, Or
from tallytree.statistics.linear import Comparison

_MOST = 32  # boxes

Range = tuple[float, float]
Box = dict[int, Range]


def boxes(constraint: Constraint, carried: Sequence[Any], hull: Wanted) -> list[Wanted] | None:
    """Return boxes of uncapped sums that hold exactly the tallies of a constraint; None if it has no boxes.

    Parameters
    ----------
    constraint : Constraint
        Expressed in the statistics.
    carried : sequence of Statistic
    hull : Wanted
        A box that contains them all.

    Examples
    --------
    >>> import tallytree as tt
    >>> ones = tt.count(tt.Model([2] * 9), state=1)
    >>> [(one.low, one.high) for one in boxes((ones == 2) | (ones >= 7), [ones], Wanted([0], [9]))]
    [([2], [2]), ([7], [9])]
    """
    found = _boxes(constraint, {statistic: p for p, statistic in enumerate(carried)})
    if found is None or len(found) > _MOST:
        return None
    made = [_within(hull, box) for box in found]
    return [one for one in made if one.tallies]


def _boxes(constraint: Constraint, numbers: dict[Any, int]) -> list[Box] | None:
    if isinstance(constraint, Comparison):
        return _ranges(constraint, numbers)
    if not isinstance(constraint, (And, Or)):
        return None
    parts = [_boxes(part, numbers) for part in constraint.parts]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if isinstance(constraint, Or):
        return [box for part in known for box in part]
    if np.prod([float(len(part)) for part in known]) > _MOST:
        return None
    return [_meet(each) for each in product(*known)]


def _meet(parts: Sequence[Box]) -> Box:
    met: Box = {}
    for part in parts:
        for p, (low, high) in part.items():
            least, most = met.get(p, (-np.inf, np.inf))
            met[p] = max(least, low), min(most, high)
    return met


def _ranges(comparison: Comparison, numbers: dict[Any, int]) -> list[Box] | None:
    """Return the ranges of one statistic that satisfy a comparison; open above where a cap hides the sum."""
    if len(comparison.terms) != 1:
        return None
    statistic: Any
    ((statistic, factor),) = comparison.terms
    if statistic not in numbers or factor < 1:
        return None
    below, above = comparison.bound // factor, -(-comparison.bound // factor)
    nothing = (np.inf, -np.inf)
    equal = (below, below) if below == above else nothing
    less = below if below < above else below - 1  # strictly
    ranges: dict[str, list[Range]] = {
        "<=": [(-np.inf, below)],
        ">=": [(above, np.inf)],
        "==": [equal],
        "!=": [(-np.inf, less), (less + 1 + (below == above), np.inf)],
    }
    return [{numbers[statistic]: _uncapped(one, statistic.cap)} for one in ranges[comparison.relation]]


def _uncapped(ends: Range, cap: int | None) -> Range:
    """Return the sums whose capped tally is in a range."""
    low, high = ends
    if cap is None:
        return ends
    return (np.inf, -np.inf) if low > cap else (low, np.inf if high >= cap else high)


def _within(hull: Wanted, box: Box) -> Wanted:
    low, high = list(hull.low), list(hull.high)
    for p, (least, most) in box.items():
        low[p] = int(min(max(low[p], least), high[p] + 1))
        high[p] = int(max(min(high[p], most), low[p] - 1))
    return hull._replace(low=low, high=high)


class Several:
    """The combined results of searching several boxes."""

    def __init__(self, found: Sequence[Found]) -> None:
        self._found = found
        self._starts = [0, *accumulate(len(one.scores) for one in found)]
        self.value = max(one.value for one in found)
        self.finished = all(one.finished or one.bound < self.value for one in found)
        self.impossible = all(one.impossible for one in found)
        self.ended = any(one.ended for one in found)
        self.bound = max(one.bound for one in found)
        self.cells = sum(one.cells for one in found)
        self.work = sum(one.work for one in found)
        self.tallies: NDArray[np.int64] = np.concatenate([one.tallies for one in found])
        self.scores: NDArray[np.float64] = np.concatenate([one.scores for one in found])
        self.proven = [part for one in found for part in one.proven]
        self.passes = [one_pass for one in found for one_pass in one.passes]

    def labelling(self, row: int) -> NDArray[np.int64]:
        """Return the labelling of a row."""
        number = bisect_right(self._starts, row) - 1
        return self._found[number].labelling(row - self._starts[number])
