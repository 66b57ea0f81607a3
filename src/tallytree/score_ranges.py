"""The best labelling whose score lies in a range, ``max { F(y) : low <= F(y) <= high }``.

An upper limit on the score is not monotone in the score, so no objective can express it. Three ways, in order
of their price:

1. the best labelling of all, if its score is in the range;
2. the labellings in order, best first, until one is in the range;
3. the score on a lattice. With a resolution ``r``, every entry of a factor is ``m_t + r·k + e``: the least
   entry of its table, an integer multiple of ``r``, and what rounding leaves. The integers are the tables of
   a statistic ``K``, and

       F(y) = Σ_t m_t + r·K(y) + E(y),    E_low <= E(y) <= E_high,

   the ends being the sums of the least and of the largest ``e`` of each table. A range of scores is a range
   of tallies, widened by ``E_low`` and ``E_high``. Where the entries are decimals, ``E`` is nothing but
   rounding, and the answer is exact.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import ceil, floor, inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.core.blocks import LARGEST_INTEGER, Block, read_only
from tallytree.core.model import Model
from tallytree.core.plan import Mode, Plan
from tallytree.core.profile import Profile, Where
from tallytree.core.rounding import rounding
from tallytree.core.solution import Solution, tally_type
from tallytree.core.statistics import Statistic
from tallytree.errors import BudgetError, InfeasibleError, ModelError

__all__ = ["BoundedSolution", "score_between"]

_DECIMALS = 6  # the most digits behind the point that are taken for a lattice
_ORDERS = ("sweep", "natural", None)
_MODES: tuple[Mode, ...] = ("rows", "cells")
_TALLIES = 4096  # how fine a resolution to offer: about so many tallies in all


class BoundedSolution(Solution):
    """A labelling, and an upper bound on what any labelling of its kind can score.

    Attributes
    ----------
    upper_bound : float
        No labelling in the range scores more; the score itself where the labelling is proven to be the best.
    gap : float
        ``upper_bound - score``; 0.0 where the labelling is the best.
    """

    __slots__ = ("upper_bound",)

    upper_bound: float

    def __init__(self, solution: Solution, upper_bound: float) -> None:
        score = solution.score
        super().__init__(score, score, tally_type(())(), np.array(solution.assignment), solution.model)
        object.__setattr__(self, "upper_bound", max(upper_bound, score))

    @property
    def gap(self) -> float:
        """How much better the best labelling can be at most."""
        return self.upper_bound - self.score

    def __reduce__(self) -> tuple[Any, ...]:
        plain = Solution(self.score, self.score, self.tally, np.array(self.assignment), self.model)
        return BoundedSolution, (plain, self.upper_bound)

    def __repr__(self) -> str:
        return f"BoundedSolution(score={self.score:.6g}, upper_bound={self.upper_bound:.6g})"


def score_between(
    model: Model,
    low: float,
    high: float,
    *,
    resolution: float | None = None,
    labellings: int = 1000,
    memory_limit: float | None = None,
) -> BoundedSolution:
    """Find the best labelling whose score lies in a closed range.

    Parameters
    ----------
    model : Model
        The factor graph.
    low, high : float
        The ends of the range. A score that differs from an end by rounding alone counts as inside.
    resolution : float, optional
        Round the entries of the factors to multiples of this, each counted from the least entry of its table.
        By default the coarsest decimal resolution at which nothing is rounded, if there is one.
    labellings : int
        How many labellings to look through in order before a lattice is used, and once more among the
        tallies of a lattice that the upper end of the range cuts.
    memory_limit : float, optional
        As for :func:`plan`.

    Returns
    -------
    BoundedSolution
        It lies in the range, whatever the resolution. Its ``gap`` is 0.0 where it is the best; otherwise its
        ``upper_bound`` is ``high``, and the best is either this one or within ``E_high - E_low`` of ``high``.

    Raises
    ------
    InfeasibleError
        It is proven that no labelling has a score in the range.
    BudgetError
        Neither found nor ruled out: there are too many labellings above the range and too many tallies, or
        the resolution is too coarse. The text offers a resolution.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1.5], [0, 2.25], [0, 4]]), np.zeros((2, 2)))
    >>> tt.score_between(model, 2, 5)
    BoundedSolution(score=4, upper_bound=4)
    >>> tt.score_between(model, 4.5, 5)
    Traceback (most recent call last):
    tallytree.errors.InfeasibleError: no labelling has a score from 4.5 to 5: ...
    """
    window = _Window(low, high, rounding(model.blocks))
    search = _Search(model, window, _counted(labellings), memory_limit)
    if resolution is not None:
        return search.plain() or search.on_lattice(_Lattice(model, _checked(resolution)))
    return search.plain() or search.in_order() or search.on_lattice(_decimal(model))


def _counted(labellings: object) -> int:
    try:
        number = operator.index(labellings)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"labellings must be an integer, got {labellings!r}") from None
    if number < 0:
        raise ModelError(f"labellings must be at least 0, got {number}")
    return number


def _checked(resolution: float) -> float:
    if not (isfinite(resolution) and resolution > 0):
        raise ModelError(f"a resolution is a positive number, got {resolution!r}")
    return float(resolution)


class _Window:
    """A closed range of scores, up to rounding."""

    def __init__(self, low: float, high: float, allowance: float) -> None:
        if not low <= high:  # nan is not
            raise ModelError(f"a range of scores goes from low to high, low <= high; got {low} and {high}")
        self.low, self.high = float(low), float(high)
        self.least, self.most = self.low - allowance, self.high + allowance
        self.beyond = self.most + 2 * allowance  # where not even rounding reaches the window

    def infeasible(self, reason: str) -> InfeasibleError:
        """Say that nothing lies in the window, and why."""
        return InfeasibleError(f"no labelling has a score from {self.low:.10g} to {self.high:.10g}: {reason}")


# --- the search ---------------------------------------------------------------------------------------------


class _Search:
    """The ways to find the best labelling in a window, cheapest first; None where one does not get there."""

    def __init__(self, model: Model, window: _Window, labellings: int, memory_limit: float | None) -> None:
        self.model, self.window = model, window
        self.labellings, self.limit = labellings, memory_limit
        self.unconstrained = Profile(model, (), Plan(model, (), memory_limit=memory_limit))
        self.best = self.unconstrained.best()
        self.worst = 0.0 - Profile(_negated(model), (), self.unconstrained.plan).best().score

    def plain(self) -> BoundedSolution | None:
        """Take the best of all, or prove that all scores lie on one side of the window."""
        if self.best.score < self.window.least:
            raise self.window.infeasible(f"the best of all is {self.best.score:.10g}")
        if self.worst > self.window.most:
            raise self.window.infeasible(f"the least of all is {self.worst:.10g}")
        return BoundedSolution(self.best, self.best.score) if self.best.score <= self.window.most else None

    def in_order(self) -> BoundedSolution | None:
        """Go down from the best labelling until one is in the window, or below it."""
        found, _ = self._below(self.unconstrained)
        if found is not None and found.score < self.window.least:
            raise self.window.infeasible(f"the best below it is {found.score:.10g}")
        return None if found is None else BoundedSolution(found, found.score)

    def _below(self, profile: Profile, where: Where = None) -> tuple[Solution | None, bool]:
        """Return the best labelling that is not above the window, and whether that is settled."""
        if profile.plan.segments > 1:  # labellings in order need all tables
            return None, False
        ranking = profile.ranked(where=where)
        for solution in islice(ranking, self.labellings):
            if solution.score <= self.window.most:
                return solution, True
        return None, next(ranking, None) is None

    def on_lattice(self, lattice: _Lattice | None) -> BoundedSolution:
        """Take the best of the tallies that end in the window, then look into those that it cuts.

        A tally whose best score lies in the window has no better labelling there, and one whose best score
        lies below has none at all. Only where it lies above must further labellings be looked at.
        """
        if lattice is None:
            raise self._beyond("the factors lie on no decimal lattice")
        profile = self._profile(lattice)
        scores, tallies = profile.scores, profile.tallies[:, 0]
        inside = np.flatnonzero((scores >= self.window.least) & (scores <= self.window.most))
        cut = tallies[(scores > self.window.most) & (lattice.least_scores(tallies) <= self.window.beyond)]
        found = [profile.at(int(tallies[inside[scores[inside].argmax()]]))] if len(inside) else []
        settled = True
        if len(cut):
            further, settled = self._below(profile, lattice.statistic >= int(cut.min()))
            found += [further] if further is not None and further.score >= self.window.least else []
        return self._best_of(found, settled, lattice)

    def _best_of(self, found: Sequence[Solution], settled: bool, lattice: _Lattice) -> BoundedSolution:
        if found:
            best = max(found, key=lambda solution: solution.score)
            return BoundedSolution(best, best.score if settled else self.window.high)
        if settled:
            raise self.window.infeasible("every tally of the lattice lies outside")
        raise self._beyond(f"the resolution {lattice.resolution:.3g} is too coarse to tell")

    def _profile(self, lattice: _Lattice) -> Profile:
        """Compute the best score of every tally that a score in the window can have."""
        return Profile(self.model, (lattice.statistic,), self._plan(lattice))

    def _plan(self, lattice: _Lattice) -> Plan:
        """Return the cheapest plan of a few.

        Tallies by the thousand make joins dear: an order that has none may be a hundred times cheaper than
        one that is best for counts. Listing the reachable tallies takes long, and is the last resort.
        """
        for mode in _MODES:
            plans = [plan for order in _ORDERS if (plan := self._attempt(lattice, order, mode)) is not None]
            if plans:
                return min(plans, key=lambda plan: plan.operations)
        raise self._beyond(
            f"a lattice of resolution {lattice.resolution:.3g} is too fine for the memory limit"
        )

    def _attempt(self, lattice: _Lattice, order: str | None, mode: Mode) -> Plan | None:
        window = {0: lattice.tallies(self.window)}
        try:
            return Plan(
                self.model,
                (lattice.statistic,),
                order=order,
                memory_limit=self.limit,
                tallies=mode,
                window=window,
            )
        except BudgetError:
            return None

    def _beyond(self, reason: str) -> BudgetError:
        offered = (self.best.score - self.worst) / _TALLIES
        return BudgetError(
            f"no labelling with a score from {self.window.low:.10g} to {self.window.high:.10g} was found, "
            f"and none is ruled out: {reason}. Look through more labellings in order (labellings=, "
            f"{self.labellings} now), or give a resolution, such as resolution={offered:.0e}"
        )


def _negated(model: Model) -> Model:
    """Turn the signs of all scores; what is forbidden stays so."""
    turned = [np.where(np.isneginf(block.tables), -inf, -block.tables) for block in model.blocks]
    blocks = [block.with_tables(read_only(t)) for block, t in zip(model.blocks, turned, strict=True)]
    return Model.from_blocks(model.cardinalities, blocks)


# --- the score as a statistic -------------------------------------------------------------------------------


class _Lattice:
    """``F(y) = base + resolution·K(y) + E(y)`` with ``least_error <= E(y) <= largest_error``.

    Raises
    ------
    BudgetError
        The integers are too large.
    """

    def __init__(self, model: Model, resolution: float) -> None:
        self.resolution = resolution
        self.base = self.least_error = self.largest_error = 0.0
        blocks = [self._rounded(block) for block in model.blocks]
        self.statistic = Statistic.from_blocks(blocks, "score", None, model.cardinalities)

    def _rounded(self, block: Block) -> Block:
        least, above = _least_moved_out(block)
        times = len(block) if len(above) == 1 else 1
        steps = np.rint(above / self.resolution)
        if steps.max(initial=0) >= LARGEST_INTEGER:
            raise BudgetError(
                f"a score is {steps.max():.3g} times the resolution {self.resolution:.3g}; give a coarser one"
            )
        errors = (above - steps * self.resolution).reshape(len(above), -1)
        self.base += times * float(least.sum())
        self.least_error += times * float(errors.min(axis=1).sum())
        self.largest_error += times * float(errors.max(axis=1).sum())
        return block.with_tables(read_only(steps.astype(np.int64)))

    def least_scores(self, tallies: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return a score for each tally that no labelling of it falls below."""
        return self.resolution * tallies.astype(np.float64) + (self.base + self.least_error)

    def tallies(self, window: _Window) -> tuple[int | None, int | None]:
        """Return the tallies that scores in a window can have, and perhaps one more on each side."""
        low = (window.least - self.base - self.largest_error) / self.resolution
        high = (window.most - self.base - self.least_error) / self.resolution
        return _end(floor, low), _end(ceil, high)


def _end(whole: Callable[[float], int], number: float) -> int | None:
    """Return the next integer outwards; None where there is no limit that matters."""
    return whole(number) if abs(number) < 2.0**62 else None


def _least_moved_out(block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split each table into its least score and what is above it; what is forbidden counts as the least."""
    forbidden = np.isneginf(block.tables)
    rows = np.where(forbidden, inf, block.tables).reshape(len(block.tables), -1)
    least = rows.min(axis=1)
    least[np.isinf(least)] = 0.0
    lowest = least.reshape(-1, *(1,) * block.arity)
    return least, np.where(forbidden, 0.0, block.tables - lowest)


def _decimal(model: Model) -> _Lattice | None:
    """Return the coarsest decimal lattice at which nothing is rounded but the last bits; None if none is."""
    split = [_least_moved_out(block)[1] for block in model.blocks]
    above = np.concatenate([np.zeros(1), *(table.reshape(-1) for table in split)])
    bits = 4 * float(np.finfo(np.float64).eps) * max(float(_largest(model.blocks)), 1.0)
    for digits in range(_DECIMALS + 1):
        scaled = above * 10.0**digits
        steps = np.rint(scaled)
        if steps.max() < LARGEST_INTEGER and (np.abs(scaled - steps) <= 1e-9 + bits * 10.0**digits).all():
            shared = max(int(np.gcd.reduce(steps.astype(np.int64))), 1)
            return _Lattice(model, shared / 10.0**digits)
    return None


def _largest(blocks: Iterable[Block]) -> float:
    sizes = (np.abs(np.where(np.isneginf(b.tables), 0.0, b.tables)) for b in blocks)
    return max((float(size.max(initial=0.0)) for size in sizes), default=0.0)
