"""The search by bounds over a model: the question in numbers, and the native search.

The compiled code (``native/bounds/``) takes the program of a plan, the tables of scores and counts, and a
:class:`Wanted`; plain passes, boxes and bands of tallies all happen there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.model.rounding import lowest_score, magnitude, rounding_bound
from tallytree.planning.orders import Check, Order, drafted
from tallytree.planning.search_price import program_for
from tallytree.statistics.statistic import Statistic

Found = native.BoundsOutcome
_NOTHING = np.zeros(0)
EVALUATION = 28.0
"""The units of work that take as long as evaluating a function at one tally."""
SCALINGS = {
    "none": native.LossScaling.NONE,
    "margin": native.LossScaling.MARGIN,
    "slack": native.LossScaling.SLACK,
}


class Wanted(NamedTuple):
    """What is maximised, over the tallies of a box.

    Attributes
    ----------
    low, high : sequence of int
        The ends of the box, for each statistic: tallies outside are irrelevant.
    scaling : {"none", "margin", "slack"}
        The score itself, ``margin·loss + score - truth``, or ``loss·(margin + score - truth)``.
    margin, truth : float
        The margin, and the score of the truth.
    quotient : pair of float arrays, optional
        The loss as a quotient of linear functions: for each the constant, then the coefficients.
    losses : float array, optional
        The loss of every tally of the box, nan if it is not allowed; for "none" any number.
    top : float
        Larger values are no better than this one: all tallies that reach it are found.
    """

    low: Sequence[int]
    high: Sequence[int]
    scaling: Literal["none", "margin", "slack"] = "none"
    margin: float = 1.0
    truth: float = 0.0
    quotient: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    losses: NDArray[np.float64] | None = None
    top: float = np.inf

    @property
    def tallies(self) -> int:
        """The number of tallies of the box."""
        return prod(max(b - a + 1, 0) for a, b in zip(self.low, self.high, strict=True))

    def native(self) -> native.Need:
        """Return the same in the form for the compiled code."""
        above, below = self.quotient or (_NOTHING, _NOTHING)
        losses = _NOTHING if self.losses is None else np.ascontiguousarray(self.losses, dtype=np.float64)
        low, high = (np.array(ends, dtype=np.int64) for ends in (self.low, self.high))
        kind = SCALINGS[self.scaling]
        return native.Need(
            kind, self.margin, self.truth, above, below, losses.reshape(-1), low, high, self.top
        )


class Search(NamedTuple):
    """A search for what is wanted: where it starts, and what it may take.

    Attributes
    ----------
    wanted : Wanted
        What is maximised.
    starts : sequence of labellings
        Known labellings.
    prices : float array, optional
        The initial prices.
    most_work : float
        In units of work: about a nanosecond each for models, operations of plain passes for sentences.
    memory_limit : float
        In bytes.
    """

    wanted: Wanted
    starts: Sequence[NDArray[np.int64]] = ()
    prices: NDArray[np.float64] | None = None
    most_work: float = np.inf
    memory_limit: float = np.inf

    def native(self) -> tuple[native.Need, list[NDArray[np.int64]], NDArray[np.float64] | None, float, float]:
        """Return the same in the form for the compiled code."""
        return self.wanted.native(), list(self.starts), self.prices, self.most_work, self.memory_limit


class Searcher(Protocol):
    """What can be searched by bounds: a model or a sentence, with the statistics that have prices."""

    @property
    def ends(self) -> Sequence[tuple[int, int]]:
        """The range of each statistic."""

    @property
    def lowest(self) -> float:
        """No score is lower, except ``-inf``."""

    @property
    def evaluation_work(self) -> float:
        """The work that takes as long as evaluating a function at one tally."""

    def __call__(self, asked: Search) -> Found | None:
        """Search for the best labelling; None if this is not supported, or does not fit in memory."""


class ModelSearcher(NamedTuple):
    """A model, with one to three uncapped statistics; `order` and `check` are as for a plan."""

    model: Model
    statistics: Sequence[Statistic]
    order: Order | None = None
    check: Check | None = None

    @property
    def ends(self) -> Sequence[tuple[int, int]]:
        """The range of each statistic."""
        return [s.extent for s in self.statistics]

    @property
    def lowest(self) -> float:
        """No score is lower, except ``-inf``."""
        return lowest_score(self.model.blocks)

    @property
    def evaluation_work(self) -> float:
        """The work that takes as long as evaluating a function at one tally."""
        return EVALUATION

    def __call__(self, asked: Search) -> Found | None:
        """Search for the best labelling; None if this is not supported, or does not fit in memory."""
        if self.order is None and drafted(self.model, self.statistics):
            draft = program_for(self.model, self.statistics, None, self.check, draft=True)
            if draft.bytes:  # a chain as it stands needs no more than its scopes
                found = self._search(asked, draft)
                if found is not None:
                    return found
        return self._search(asked, program_for(self.model, self.statistics, self.order, self.check))

    def _search(self, asked: Search, program: native.Skeleton) -> Found | None:
        return native.search_by_bounds(
            program,
            [block.tables for block in self.model.blocks],
            [block.tables for s in self.statistics for block in s.blocks],
            *asked.native(),
        )


Progress = Callable[[int, float, float, list[float], NDArray[np.int64] | None], object]
"""Called after each pass: passes, bound, half of what counts as rounding, prices, best labelling."""


class Stops(NamedTuple):
    """When a search for a bound stops.

    Attributes
    ----------
    passes : int
        The maximum number of plain passes; bands of tallies may take as long as these.
    gap : float
        Between the bound and the best score.
    bands : bool
        Whether to continue with bands of tallies once the prices are the best.
    """

    passes: int
    gap: float
    bands: bool


def bounded_score(
    model: Model,
    statistics: Sequence[Statistic],
    box: Wanted,
    program: native.Skeleton,
    stops: Stops,
    progress: Progress | None,
    memory_limit: float,
) -> Found | None:
    """Search for an upper bound on the score in a box of tallies; None as for :class:`ModelSearcher`.

    There may be any number of statistics. `program`: for these.
    """
    low, high = (np.array(ends, dtype=np.int64) for ends in (box.low, box.high))
    scores = [block.tables for block in model.blocks]
    counts = [block.tables for s in statistics for block in s.blocks]
    return native.relax_by_bounds(program, scores, counts, low, high, *stops, progress, memory_limit)


def lost_digits(model: Model, statistics: Sequence[Statistic], prices: Iterable[Sequence[float]]) -> float:
    """Return what sums of scores and counts may lose by rounding at any of some prices.

    The least that a factor counts is not priced.
    """
    largest = np.abs(list(prices)).max(axis=0)
    terms, reach = sum(map(len, model.blocks)), magnitude(model.blocks)
    for one, price in zip(statistics, largest.tolist(), strict=True):
        least, most = one.extent
        terms += sum(map(len, one.blocks))
        reach += price * (most - least)
    return float(rounding_bound(terms, reach))
