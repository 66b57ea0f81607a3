"""Objectives given as functions: what a value requires, found by evaluating them.

``need(l)``, the smallest score with which the tally ``l`` reaches a value, is found by bisection, since an
objective is non-decreasing in the score. The labelling whose score exceeds ``need`` by most is searched for
as with a loss of ``-need``, and its value replaces the previous one, as in Newton's method. In the end all
tallies that reach the best value are searched for, and compared by the objective itself. Required scores
are rounded down, and a tally is dropped only if a pass shows that it cannot reach the value,
so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.objective import Objective, evaluate_objective
from tallytree.errors import ObjectiveError
from tallytree.running.bounds import Found, Searcher, Wanted

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Ask = Callable[[Wanted, list[NDArray[np.int64]], Floats | None], Found | None]
"""Runs a search, starting from known labellings and prices."""

_ROUNDS = 12
_COARSE, _FINE = 6, 30
"""Number of bisection steps: while a better value may exist, and in the end."""
_CALL = 900
"""A call of a function takes as long as evaluating it at so many tallies."""
_PASS = 1 / 8
"""The cost of the bound of one tally from one pass, in evaluations."""


class Tallies(NamedTuple):
    """All tallies of a box, one per row, the last statistic varying fastest.

    Attributes
    ----------
    sums : (S, P) int64 array
        Uncapped.
    seen : (S, P) int64 array
        As seen by objectives and constraints (capped).
    allowed : (S,) bool array
        Whether the constraint allows them.
    """

    sums: NDArray[np.int64]
    seen: NDArray[np.int64]
    allowed: NDArray[np.bool_]


class UnknownError(Exception):
    """A full table is needed: the function takes too long, or is undefined where no labelling may be."""


class ObjectiveSearch:
    """The search for the best value of a function of the score and the tallies.

    Parameters
    ----------
    objective : callable
        ``H(score, *tallies)``.
    names : tuple of str
        The names of the statistics that it reads, which come first.
    box : Wanted
        The tallies that may be optimal.
    tallies : Tallies
        All of them.
    searcher : Searcher
        What is searched.
    most_work : float
        The work of evaluating the function after which a full table is needed.

    Attributes
    ----------
    value : float
        The best value found.
    work : float
        The work of evaluating the function, in search operations.
    """

    def __init__(
        self,
        objective: Objective,
        names: tuple[str, ...],
        box: Wanted,
        tallies: Tallies,
        searcher: Searcher,
        most_work: float = inf,
    ) -> None:
        self.objective, self.names, self.box = objective, names, box
        self.lowest = searcher.lowest  # of all labellings, or below
        self._each, self._most_work = searcher.evaluation_work, most_work
        self.tallies, self.read = tallies, tallies.seen[:, : len(names)].T
        self.alive = tallies.allowed.copy()
        self.highest = np.full(len(self.alive), inf)  # bounds on the score for each tally, from all passes
        self.value, self.work = -inf, self._each * len(self.alive)  # that many tallies were made
        self._start: list[NDArray[np.int64]] = []
        self._prices: Floats | None = None

    def run(self, ask: Ask) -> Found | None:
        """Return all tallies that have the best value, and perhaps some worse ones; None if not possible.

        If it is unfinished, it reached a limit; `value` and `bound` are known then.
        """
        try:
            found = ask(self._first(), [], None)
            for number in range(_ROUNDS):
                if found is None or not found.finished:
                    return found
                before = self.value
                self._learn(found)
                if number == 0:
                    self._spot_check()
                if not self.alive.any() or (number and not self.value > before):
                    break
                found = ask(self._wanted(_COARSE), self._start, self._prices)
            if self.value == -inf or not self.alive.any():
                return None
            return ask(self._wanted(_FINE)._replace(top=0.0), self._start, self._prices)
        except UnknownError:
            return None

    def bound(self, found: Found) -> float:
        """Return an upper bound on all values."""
        try:
            self._learn(found)
            rows = np.flatnonzero(self.alive & (self.highest < inf))
            return max(self.value, float(self._at(self.highest[rows], rows).max(initial=-inf)))
        except UnknownError:
            return inf

    # --- what is known --------------------------------------------------------------------------------------

    def _first(self) -> Wanted:
        losses = np.where(self.tallies.allowed, 0.0, np.nan)
        return self.box if self.tallies.allowed.all() else self.box._replace(losses=losses)

    def _learn(self, found: Found) -> None:
        """Record the labellings that a search has found, and the bounds from its passes."""
        alive = np.flatnonzero(self.alive)
        self._bound(alive, found)
        self._meet(found)
        self.alive[alive] = self._reached(self.highest[alive], alive)
        if found.proven:
            self._prices = np.array(found.proven[-1][0])

    def _bound(self, rows: Rows, found: Found) -> None:
        """Lower the bounds of these tallies to those from the passes of a search."""
        sums, highest = self.tallies.sums[rows].astype(np.float64), self.highest[rows]
        for prices, most in found.passes:
            self._count(_PASS * len(rows))
            paid = sums @ np.array(prices)
            slack = 1e-9 * (abs(most) + float(np.abs(paid).max(initial=0.0)) + abs(self.lowest))
            np.minimum(highest, most + slack - paid, out=highest)
        self.highest[rows] = highest

    def _meet(self, found: Found) -> None:
        shape = [b - a + 1 for a, b in zip(self.box.low, self.box.high, strict=True)]
        offsets = found.tallies - np.array(self.box.low)
        rows = np.ravel_multi_index(tuple(offsets.T), shape).astype(np.int64)
        some = np.flatnonzero(self.tallies.allowed[rows])
        values = self._at(found.scores[some], rows[some])
        if len(values) and values.max() > self.value:
            best = int(values.argmax())
            self.value, self._start = float(values[best]), [found.labelling(int(some[best]))]

    # --- what is needed -------------------------------------------------------------------------------------

    def _wanted(self, halvings: int) -> Wanted:
        """Ask for the score that exceeds the required score by most."""
        losses = np.full(len(self.alive), np.nan)
        rows = np.flatnonzero(self.alive)
        losses[rows] = -self._needed(rows, halvings)
        return self.box._replace(scaling="margin", losses=losses)

    def _needed(self, rows: Rows, halvings: int) -> Floats:
        """Return a score for each row that does not reach the value, or the lowest score of all."""
        high = self.highest[rows]
        low: Floats = np.minimum(self.lowest, high)
        left = np.flatnonzero(~self._reached(low, rows))
        for scores in self._guesses(low, high, rows, left):
            self._halve(low, high, rows, left, scores)
        for _ in range(halvings):
            left = left[high[left] - low[left] > 1e-13 * (1 + np.abs(high[left]))]
            if not len(left):
                break
            self._halve(low, high, rows, left, low[left] + (high[left] - low[left]) / 2)
        return low

    def _guesses(self, low: Floats, high: Floats, rows: Rows, left: Rows) -> list[Floats]:
        """Return scores slightly to each side of where a straight line reaches the value."""
        if self.value == -inf or not len(left):
            return []
        below, above = (self._at(ends[left], rows[left]) for ends in (low, high))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            share = (self.value - below) / (above - below)
        share = np.where(np.isfinite(share), np.clip(share, 0, 1), 0.5)
        ends = low[left], high[left]
        at = ends[0] + share * (ends[1] - ends[0])
        little = 1e-11 * (1 + np.abs(ends[0]) + np.abs(ends[1]))
        return [np.clip(at + side * little, *ends) for side in (-1, 1)]

    def _halve(self, low: Floats, high: Floats, rows: Rows, left: Rows, scores: Floats) -> None:
        """Move one end of the remaining interval to these scores, if they lie inside."""
        reached = self._reached(scores, rows[left])
        high[left] = np.where(reached, np.minimum(high[left], scores), high[left])
        low[left] = np.where(reached, low[left], np.maximum(low[left], scores))

    # --- the function ---------------------------------------------------------------------------------------

    def _reached(self, scores: Floats, rows: Rows) -> NDArray[np.bool_]:
        values = self._at(scores, rows)
        return values > -inf if self.value == -inf else values >= self.value

    def _at(self, scores: Floats, rows: Rows) -> Floats:
        """Evaluate the objective, possibly where there is no labelling."""
        if not len(rows):
            return np.zeros(0)
        self._count(len(rows))
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self.objective(scores, *(column[rows] for column in self.read)))
                values = np.broadcast_to(values.astype(np.float64), scores.shape)
        except Exception as error:  # anything that a function may raise outside its domain
            raise UnknownError from error
        if np.isnan(values).any():
            raise UnknownError
        return values

    def _count(self, evaluations: float) -> None:
        self.work += self._each * (_CALL + evaluations)
        if self.work > self._most_work:
            raise UnknownError

    def _spot_check(self) -> None:
        """Check a few rows against the contract of objectives; errors are reported by full tables."""
        rows = np.flatnonzero(self.tallies.allowed)
        rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), 32)).astype(np.int64)]
        scores = self.lowest + np.linspace(0, 1, len(rows)) * np.maximum(self.highest[rows] - self.lowest, 0)
        try:
            evaluate_objective(self.objective, scores, self.read.T[rows], self.names)
        except (ObjectiveError, ArithmeticError, ValueError, TypeError) as error:
            raise UnknownError from error
