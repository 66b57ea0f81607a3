"""A question as required scores: the lowest score with which each tally reaches a value.

A question is about a query, whose objective is the score, alone or combined with a loss. It is expressed
over a box of tallies (:class:`tallytree.running.bounds.Wanted`): the ranges of the statistics, cut to the
window that the constraint allows. Anything that a window cannot express, and losses that are not quotients of
linear functions, become a table over the box, if it has few enough tallies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.objective import Objective
from tallytree.bounding.alternatives import boxes
from tallytree.bounding.objectives import Tallies
from tallytree.kernels.limits import NO_LIMIT, SEARCH_SHARE
from tallytree.planning.query import Query
from tallytree.planning.search_price import SearchPrice
from tallytree.running.bounds import EVALUATION, Wanted
from tallytree.statistics.statistic import Statistic

MOST_TALLIES = 1 << 22
"""The largest table over a box."""

_EVALUATED = 6  # times that a search evaluates a function for each tally of the box, if bounds help
_LISTED = 60.0  # units of work for each tally of a box that is listed
_FUNCTION = 6e5  # units of work to ask for the searches for a function
_TALLY_BYTES = 160  # per tally of a box, besides the tally itself
_FEW_SEARCHES = 3  # usual number for the best value of a function
_SEARCHES = 16  # a function is searched if its table takes as long as so many searches are expected to take

Line = tuple[float, tuple[float, ...]]
Ends = Sequence[tuple[int, int]]


class Question(NamedTuple):
    """What is maximised: the score, alone or combined with a loss.

    Prices are for uncapped sums; the effect of caps goes into the table.

    Attributes
    ----------
    scaling : {"none", "margin", "slack"}
        How the loss and the score are combined.
    margin, truth_score : float
    loss : callable, optional
        The loss of the tallies that the query reads, elementwise.
    quotient : (line, line), optional
        The same as a quotient of linear functions.
    start : labelling, optional
        A known labelling, such as the truth.
    prices : float array, optional
        The prices to start from.
    objective : callable, optional
        ``H(score, *tallies)``, instead of the above.
    row_operations : float
        The cost of the objective for one tally, in operations.
    offset : float
        The difference of value and score, for the report at a limit: a score may contain the loss.
    """

    scaling: Literal["none", "margin", "slack"] = "none"
    margin: float = 1.0
    truth_score: float = 0.0
    loss: Callable[..., NDArray[np.float64]] | None = None
    quotient: tuple[Line, Line] | None = None
    start: NDArray[np.int64] | None = None
    prices: NDArray[np.float64] | None = None
    objective: Objective | None = None
    row_operations: float = 0.0
    offset: float = 0.0

    @property
    def searches(self) -> int:
        """The number of searches that it takes, usually."""
        return 1 if self.objective is None else _FEW_SEARCHES

    def wanted(
        self, query: Query[Any], room: float = inf, ends: Ends | None = None
    ) -> tuple[tuple[Any, ...], Wanted] | None:
        """Return the statistics to count, uncapped, and what is wanted; None if bounds cannot answer it.

        A table over the box must fit into this many bytes. `ends`: the range of each counted statistic, if
        the statistics do not know it.
        """
        known = self._hull(query, ends)
        if known is None:
            return None
        windowed, (counted, asked) = query.windowed, known
        most = min(MOST_TALLIES, room / (_TALLY_BYTES + 24 * len(counted)))
        if self.objective is not None:
            return (counted, asked) if asked.tallies <= min(most, MOST_TALLIES / 4) else None
        if windowed and self.scaling == "none":
            return counted, asked
        if windowed and (pair := self._straight(asked, query)):
            return counted, asked._replace(quotient=pair)
        if asked.tallies > most:
            return None
        return counted, asked._replace(losses=self._table(asked, query))

    def alternatives(
        self, query: Query[Any], ends: Ends | None = None
    ) -> tuple[tuple[Any, ...], Wanted, list[Wanted]] | None:
        """Return the same if the constraint allows several boxes: the hull of them, and each box."""
        known = self._hull(query, ends) if self.objective is None and not query.windowed else None
        if known is None or query.remaining is None:
            return None
        counted, hull = known
        if self.scaling != "none":
            pair = self._straight(hull, query)
            if pair is None:
                return None
            hull = hull._replace(quotient=pair)
        left = boxes(query.remaining, query.carried, hull)
        return (counted, hull, left) if left else None

    def _hull(self, query: Query[Any], ends: Ends | None) -> tuple[tuple[Any, ...], Wanted] | None:
        """Return the statistics to count, and the box that the window leaves of their ranges."""
        low, high = _box(ends or [s.extent for s in query.counted], query)
        asked = Wanted(low, high, self.scaling, self.margin, self.truth_score)
        return (query.counted, asked) if asked.tallies else None

    def _straight(
        self, asked: Wanted, query: Query[Statistic]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return the loss as a quotient, if it is one in uncapped statistics."""
        if self.quotient is None or any(s.cap is not None for s in query.read):
            return None
        return self._quotient(asked, len(query.read))

    def least_table(self, query: Query[Statistic], price: SearchPrice) -> float:
        """Return the time of a table, in units of work, from which on a search is tried for this question.

        A function takes several searches, and is evaluated several times for every tally of the box. For
        functions with plateaus, it is fifty times: such a search ends at its limit.
        """
        asked = None if self.objective is None else self.wanted(query)
        if asked is None:
            return 0.0
        evaluations = EVALUATION * _EVALUATED * asked[1].tallies
        return max(evaluations / SEARCH_SHARE, _SEARCHES * price.work)

    def listing_work(self, query: Query[Statistic]) -> float:
        """Return the work of listing all tallies of the box: what a window and a quotient cannot express.

        For a function, the work of its searches besides evaluations, which are counted when they are made.
        """
        if self.objective is not None:
            return _FUNCTION
        known = self._hull(query, None)
        if known is None or (query.windowed and self.scaling == "none"):
            return 0.0
        if query.windowed and self._straight(known[1], query):
            return 0.0
        return _LISTED * min(known[1].tallies, MOST_TALLIES)

    def _quotient(self, asked: Wanted, read: int) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return both lines over all statistics; None if a few tallies show that the loss is different."""
        assert self.quotient is not None and self.loss is not None
        none = (0.0,) * (len(asked.low) - read)
        above, below = (np.array([constant, *slope, *none]) for constant, slope in self.quotient)
        few = [
            np.linspace(a, b, 3).round().astype(np.int64) for a, b in zip(asked.low, asked.high, strict=True)
        ]
        tallies = [column.ravel() for column in np.meshgrid(*few, indexing="ij")]
        lines = [
            line[0] + sum(c * t for c, t in zip(line[1:], tallies, strict=True)) for line in (above, below)
        ]
        if not (np.all(lines[1] > 0) and np.all(lines[0] >= 0)):
            return None
        known = np.broadcast_to(self.loss(*tallies[:read]), lines[0].shape)
        return (above, below) if np.allclose(lines[0] / lines[1], known, rtol=1e-9, atol=1e-12) else None

    def _table(self, asked: Wanted, query: Query[Statistic]) -> NDArray[np.float64]:
        tallies = all_tallies(asked, query)
        losses = np.zeros(asked.tallies)
        if self.loss is not None:
            losses[:] = self.loss(*tallies.seen.T[: len(query.read)])
        losses[~tallies.allowed] = np.nan
        return losses

    def values(
        self, scores: NDArray[np.float64], tallies: NDArray[np.int64], read: int
    ) -> NDArray[np.float64]:
        """Return the maximised value, for scores and tallies."""
        columns = tallies.T[:read]
        if self.objective is not None:
            return np.asarray(self.objective(scores, *columns), dtype=np.float64)
        if self.scaling == "none" or self.loss is None:
            return scores
        losses, above = self.loss(*columns), scores - self.truth_score
        return np.asarray(
            self.margin * losses + above if self.scaling == "margin" else losses * (self.margin + above)
        )


def all_tallies(asked: Wanted, query: Query[Statistic]) -> Tallies:
    """Return all tallies of a box, as objectives see them."""
    return as_seen(tallies_of(asked), query)


def tallies_of(box: Wanted) -> NDArray[np.int64]:
    """Return all tallies of a box, in lexicographic order."""
    axes = np.indices([b - a + 1 for a, b in zip(box.low, box.high, strict=True)])
    return np.stack([axis.reshape(-1) + a for axis, a in zip(axes, box.low, strict=True)], axis=1)


def as_seen(sums: NDArray[np.int64], query: Query[Statistic]) -> Tallies:
    """Return uncapped sums as objectives see them, and whether the constraint allows them."""
    caps = [NO_LIMIT if s.cap is None else s.cap for s in query.carried]
    seen = np.minimum(sums, np.array(caps, dtype=np.int64))
    allowed = np.ones(len(sums), dtype=bool)
    if not query.windowed and query.remaining is not None:
        columns: dict[Any, Any] = dict(zip(query.carried, seen.T, strict=True))
        allowed[:] = query.remaining.holds(columns)
    return Tallies(sums, seen, allowed)


def _box(ends: Ends, query: Query[Any]) -> tuple[list[int], list[int]]:
    """Return the range of each statistic, cut to the window; a range that ends at a cap is open.

    A window that starts above the cap is empty, whatever the uncapped sum is.
    """
    low, high = [], []
    for number, ((least, most), carried) in enumerate(zip(ends, query.carried, strict=True)):
        above, below = query.window.get(number, (None, None))
        beyond = carried.cap is not None and above is not None and above > carried.cap
        low.append(most + 1 if beyond else least if above is None else max(least, above))
        open_end = below is None or (carried.cap is not None and below >= carried.cap)
        high.append(most if open_end or below is None else min(most, below))
    return low, high
