"""Branch and bound over boxes of tallies.

A box is bounded by the largest loss in it combined with the largest score that the concave bound allows in
it. The box with the largest bound is examined first: a new vector of multipliers lowers its bound, or it is
split, or, if it is small, its tallies are joined exactly. The search ends when no box can be optimal.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError
from tallytree.losses.corpus.join import Joined, TooManyError, join
from tallytree.losses.corpus.pool import Choice, Pool, Support
from tallytree.losses.scaling import Scaling, needed, scaled
from tallytree.planning.budget import Budget, readable_bytes

# --- minimising a convex function of a few variables --------------------------------------------------------
# The ellipsoid method, and bisection in one dimension. Every step evaluates the function at the centre of an
# ellipsoid that contains the minimum, and keeps the half that the subgradient points to. Slow for
# many variables, simple and robust for one or two.

Vector = NDArray[np.float64]


def minimise(
    function: Callable[[Vector], tuple[float, Vector]],
    centre: Vector,
    radius: float,
    tolerance: float,
    most: int = 400,
) -> None:
    """Evaluate a convex function at points that close in on its minimum within a ball.

    `function`: returns the value at a point, and a subgradient. `centre` and `radius`: the ball to search.
    `tolerance`: stop when no point can be lower than the last one by more than this. `most`: the maximum
    number of evaluations.

    Examples
    --------
    >>> seen = []
    >>> def distance(x):
    ...     seen.append(float(abs(x - 2.0).sum()))
    ...     return seen[-1], np.sign(x - 2.0)
    >>> minimise(distance, np.zeros(1), 8.0, 1e-6)
    >>> min(seen) < 1e-5
    True
    """
    point, shape = np.array(centre, dtype=np.float64), np.eye(len(centre)) * radius**2
    for _ in range(most):
        _, gradient = function(point)
        reach = sqrt(max(float(gradient @ shape @ gradient), 0.0))
        if reach <= tolerance:
            return
        step = shape @ gradient / reach
        point, shape = _halved(point, shape, step)


def _halved(point: Vector, shape: NDArray[np.float64], step: Vector) -> tuple[Vector, NDArray[np.float64]]:
    """Return the smallest ellipsoid around the half opposite to the step."""
    n = len(point)
    if n == 1:
        return point - step / 2, shape / 4
    smaller = n * n / (n * n - 1) * (shape - 2 / (n + 1) * np.outer(step, step))
    return point - step / (n + 1), (smaller + smaller.T) / 2


Integers = NDArray[np.int64]
Progress = Callable[[str], None]

_SMALL_BOX = 4096  # tallies that are examined one by one
_MOST_STATES = 2_000_000


@dataclass(frozen=True)
class Question:
    """What is maximised: a loss of the summed tally, combined with the score relative to that of the truth.

    ``loss`` is elementwise over (S, P) tallies; ``largest_loss`` bounds it over a box from below to above.
    """

    scaling: Scaling
    margin: float
    truth_score: float
    loss: Callable[[Integers], NDArray[np.float64]]
    largest_loss: Callable[[Integers, Integers], float]

    def value(self, scores: NDArray[np.float64], tallies: Integers) -> NDArray[np.float64]:
        """Evaluate the objective."""
        return scaled(self.scaling, self.loss(tallies), scores - self.truth_score, self.margin)

    def bound(self, score: float, low: Integers, high: Integers) -> float:
        """Bound the objective over a box whose scores are bounded."""
        difference = score - self.truth_score
        worst = self.largest_loss(low, high)
        if self.scaling == "slack" and self.margin + difference < 0:
            return 0.0  # the smallest loss would be best, and no loss is negative
        return float(scaled(self.scaling, worst, difference, self.margin))

    def needed(self, value: float, tallies: Integers) -> NDArray[np.float64]:
        """Return the scores that a value requires."""
        return needed(self.scaling, self.loss(tallies), value, self.margin) + self.truth_score


@dataclass
class Report:
    """How the search went."""

    tallies: int = 0  # number of tallies in the whole range
    boxes: int = 0  # number of boxes examined
    multipliers: int = 0  # number of vectors of multipliers in the bound
    joined: int = 0  # number of tallies that survived the bound and were joined
    states: int = 0  # the largest number of partial tallies during a join
    cells: int = 0  # number of tallies of partial labellings examined, if nothing was joined

    def __str__(self) -> str:
        if self.cells:
            return (
                f"{self.joined:,} of {self.tallies:,} tallies survived the bound, after {self.multipliers:,} "
                f"plain passes and {self.cells:,} cells"
            )
        return (
            f"{self.joined:,} of {self.tallies:,} tallies survived the bound, after {self.boxes:,} boxes and "
            f"{self.multipliers:,} multipliers; the joins held at most {self.states:,} partial tallies"
        )


class _Box(NamedTuple):
    low: Integers
    high: Integers

    @property
    def cells(self) -> int:
        return int(np.prod((self.high - self.low + 1).astype(object)))

    def halves(self) -> tuple[_Box, _Box]:
        axis = int((self.high - self.low).argmax())
        middle = int((self.low[axis] + self.high[axis]) // 2)
        below, above = self.high.copy(), self.low.copy()
        below[axis], above[axis] = middle, middle + 1
        return _Box(self.low, below), _Box(above, self.high)

    def tallies(self) -> Integers:
        axes = [np.arange(a, b + 1) for a, b in zip(self.low, self.high, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


@dataclass
class _Bounds:
    """All vectors of multipliers so far: their totals bound every score."""

    multipliers: list[NDArray[np.float64]] = field(default_factory=list)
    totals: list[float] = field(default_factory=list)

    def add(self, support: Support) -> None:
        self.multipliers.append(support.multipliers)
        self.totals.append(support.total)

    def over(self, box: _Box) -> float:
        """Bound the scores in a box."""
        slopes = np.array(self.multipliers)
        least = np.minimum(slopes * box.low, slopes * box.high).sum(axis=1)
        return float((np.array(self.totals) - least).min())

    def at(self, tallies: Integers) -> NDArray[np.float64]:
        """Bound the score of each tally."""
        slopes, totals = np.array(self.multipliers), np.array(self.totals)
        best = np.full(len(tallies), np.inf)
        for slope, total in zip(slopes, totals, strict=True):
            np.minimum(best, total - tallies @ slope, out=best)
        return best


class _Search:
    def __init__(self, pool: Pool, question: Question, progress: Progress | None, budget: Budget) -> None:
        self.pool, self.question = pool, question
        self.progress, self.budget = progress, budget
        self.bounds = _Bounds()
        self.best, self.choice = -np.inf, np.zeros(0, dtype=np.int64)
        self.report = Report()
        self._boxes: list[tuple[float, int, _Box]] = []
        self._numbers = count()

    def run(self) -> Choice:
        whole = _Box(self.pool.low, self.pool.high)
        self.report.tallies = whole.cells
        self.bounds.add(self._evaluate(np.zeros(len(whole.low))))
        self._push(whole)
        while self._boxes:
            bound, _, box = heapq.heappop(self._boxes)
            if -bound <= self.best + self._tolerance:
                break
            self.report.boxes += 1
            self._tell(-bound)
            if not self._lowered(box, -bound):
                self._settle(box)
        self.report.multipliers = len(self.bounds.totals)
        return self.choice

    @property
    def _tolerance(self) -> float:
        """Tolerance for values that differ only by rounding."""
        return self.pool.rounding * self._steepest

    @property
    def _steepest(self) -> float:
        """The largest derivative of the value with respect to the score."""
        if self.question.scaling == "margin":
            return 1.0
        return max(self.question.largest_loss(self.pool.low, self.pool.high), 1.0)

    def _evaluate(self, multipliers: NDArray[np.float64]) -> Support:
        """Bound all scores by multipliers; the choice that attains the bound may be a new best."""
        support = self.pool.support(multipliers)
        self._offer(support.choice, support.score, support.tally)
        return support

    def _offer(self, choice: Choice, score: float, tally: Integers) -> None:
        value = float(self.question.value(np.array([score]), tally[None])[0])
        if value > self.best:
            self.best, self.choice = value, choice

    def offer(self, choice: Choice) -> None:
        """Record a choice if it is better than the best so far."""
        self._offer(choice, float(self.pool.scores[choice].sum()), self.pool.tallies[choice].sum(axis=0))

    def _bound(self, box: _Box) -> float:
        return self.question.bound(self.bounds.over(box), box.low, box.high)

    def _push(self, box: _Box) -> None:
        bound = self._bound(box)
        if bound > self.best + self._tolerance:
            heapq.heappush(self._boxes, (-bound, next(self._numbers), box))

    def _lowered(self, box: _Box, bound: float) -> bool:
        """Look for multipliers that lower the bound of a box; put it back if there are any."""
        known = self._bound(box)
        if known < bound - self._tolerance:  # multipliers found since it was added
            self._push(box)
            return True
        self._tighten(box, (bound - self.best) / self._steepest)
        if self._bound(box) < bound - max(self._tolerance, 0.1 * (bound - self.best)):
            self._push(box)
            return True
        return False

    def _tighten(self, box: _Box, gap: float) -> Support:
        """Find the multipliers that minimise the bound on the scores of a box, up to a part of the gap."""
        supports: list[tuple[float, Support]] = []

        def bound(multipliers: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            support = self._evaluate(multipliers)
            corner = np.where(multipliers >= 0, box.low, box.high)
            supports.append((support.total - float(multipliers @ corner), support))
            return supports[-1][0], (support.tally - corner).astype(np.float64)

        minimise(bound, np.zeros(len(box.low)), self._radius, max(self.pool.rounding, 0.02 * gap))
        _, best = min(supports, key=lambda pair: pair[0])
        self.bounds.add(best)
        return best

    @property
    def _radius(self) -> float:
        return self.pool.steepest * float(np.sqrt(len(self.pool.low)))

    def _settle(self, box: _Box) -> None:
        """Join the tallies of a small box, or split a large one."""
        if box.cells <= _SMALL_BOX:
            try:
                self._join(box)
                return
            except TooManyError:
                if box.cells == 1:
                    raise self._stuck(box) from None
        for half in box.halves():
            self._push(half)

    def _join(self, box: _Box) -> None:
        tallies = box.tallies()
        upper = self.bounds.at(tallies)
        values = self.question.value(upper, tallies)
        alive = values > self.best + self._tolerance
        if not alive.any():
            return
        tallies, upper = tallies[alive], upper[alive]
        top = tallies[int(values[alive].argmax())]
        gap = float(values.max()) - self.best
        support = self._tighten(_Box(top, top), gap / self._steepest)
        needed = self.question.needed(self.best, tallies)
        budget = float((support.total - tallies @ support.multipliers - needed).max())
        slack = self.pool.slack(support)
        low, high = tallies.min(axis=0), tallies.max(axis=0)
        limits = budget + self.pool.rounding, low, high, _MOST_STATES, self.budget.room
        joined = join(self.pool, support, slack, *limits)
        self.report.joined += len(tallies)
        self.report.states = max(self.report.states, joined.most)
        self._take_best(joined, support)

    def _take_best(self, joined: Joined, support: Support) -> None:
        if not len(joined.slack):
            return
        scores = support.total - joined.tallies @ support.multipliers - joined.slack
        values = self.question.value(scores, joined.tallies)
        self.offer(joined.choice(int(values.argmax())))

    def _tell(self, bound: float) -> None:
        if self.progress is not None:
            self.progress(f"value {self.best:.9g}, bound {bound:.9g}, {len(self._boxes)} boxes left")

    def _stuck(self, box: _Box) -> BudgetError:
        return BudgetError(
            f"the tally {tuple(box.low.tolist())} may have the value {self._bound(box):.9g}, the best so far "
            f"is {self.best:.9g}, and deciding takes a join of more than {_MOST_STATES:,} partial tallies, "
            f"or of more than the remaining {readable_bytes(self.budget.room)}; split the corpus, use "
            "fewer models, or raise memory_limit="
        )


def search(
    pool: Pool, question: Question, first: Choice, progress: Progress | None, budget: Budget
) -> tuple[Choice, Report]:
    """Find the choice of one row per part with the largest value, starting from a known choice."""
    work = _Search(pool, question, progress, budget)
    work.offer(first)
    return work.run(), work.report
