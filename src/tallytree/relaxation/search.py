"""The search by bounds, stopped early: a bound on the best score, and the best labelling that it has met.

The compiled search finds the prices with the least bound, and then the tallies that these leave. What it
does not settle is left to the labellings next in order at the best prices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice, product
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import Claim, Proof
from tallytree.answers.profile import Profile
from tallytree.answers.solution import Solution
from tallytree.answers.tallies import tally_type, unique_names
from tallytree.errors import BudgetError, InfeasibleError
from tallytree.model.blocks import evaluate
from tallytree.model.model import Model
from tallytree.model.rounding import rounding
from tallytree.planning.budget import readable_bytes
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan
from tallytree.planning.price import Price
from tallytree.planning.search_price import Program, pass_price, program_for
from tallytree.reductions.folding import flat
from tallytree.relaxation.crossing import crossings
from tallytree.relaxation.ranges import Range, coarse, folded
from tallytree.relaxation.result import Relaxation
from tallytree.running.bounds import Found, Stops, Wanted, bounded_score, lost_digits
from tallytree.statistics.statistic import Statistic

_APART = (1e-6, 1e-3, 1e-1)  # how much less than the best prices is paid for a labelling beyond the ranges
_USUAL = 64  # times the rounding of scores: with large prices more is lost, which does not count as equal


class Limits(NamedTuple):
    """When to stop: MAP problems, the gap, and labellings to examine."""

    iterations: int
    tolerance: float
    candidates: int


class Search:
    """The best bound and the best labelling so far."""

    def __init__(
        self,
        model: Model,
        shown: tuple[Statistic, ...],
        ranges: tuple[Range, ...],
        options: PlanOptions,
        limits: Limits,
        progress: Callable[[Relaxation], object] | None,
    ) -> None:
        self.model, self.shown, self.ranges = model, shown, ranges
        self.options, self.limits, self.progress = options, limits, progress
        self.coarse = tuple(map(coarse, ranges))
        self.sums = tuple(one.range.statistic for one in self.coarse)
        self.program = self._program()
        self.rounding = rounding(model.blocks)
        self.bound, self.allowance = inf, self.rounding
        self.multipliers = (0.0,) * len(ranges)
        self.solution: Solution | None = None
        self.passes = 0

    def run(self) -> None:
        """Search by bounds, then examine the labellings next in order."""
        for one in self.ranges:
            self._check_extent(one)
        found = self._by_bounds()
        if found is None:
            self._without_prices()
        elif not self._closed_by(found) and self.solution is None:
            self._check_ends(found.met)
            if found.impossible:
                raise InfeasibleError(self._no_labelling(found))
        if not self.finished() and self.limits.candidates:
            self._cross()
        if not self.finished():
            self._look_through()

    def known(self) -> Relaxation:
        """Return the current result."""
        gap = inf if self.solution is None else self.bound - self.solution.score
        closed = self.solution is not None and gap <= 2 * self.allowance
        return Relaxation(self.bound, self.solution, 0.0 if closed else gap, self.multipliers, self.passes)

    def answer(self) -> Relaxation:
        """Return the final result: a solution that meets the bound is optimal."""
        found = self.known()
        if found.solution is None or not found.optimal:
            return found
        reason = "proven by prices and the tallies that these do not rule out"
        claim = f"no labelling that satisfies the constraint scores above {found.upper_bound:.10g}: {reason}"
        return replace(found, solution=found.solution.claiming(claim, optimal=True))

    def finished(self) -> bool:
        """Whether the gap is small enough."""
        return self.known().gap <= self.limits.tolerance

    # --- the search by bounds

    def _program(self) -> Program:
        """Return a program for MAP problems with prices."""
        return program_for(self.model, self.sums, self.options.order, self.options.check_size)

    def _by_bounds(self) -> Found | None:
        """Run the compiled search; None if there is nothing to search."""
        if not len(self.model) or not self.program.feasible:
            return None
        stops = Stops(self.limits.iterations, self.limits.tolerance, self.limits.candidates > 0)
        room = self.options.limit - self.options.beside
        ends = [_ends(one.range) for one in self.coarse]
        box = Wanted([low for low, _ in ends], [high for _, high in ends])
        report = None if self.progress is None else self._report
        found = bounded_score(self.model, self.sums, box, self.program, stops, report, room)
        if found is None and self.price.peak_bytes > room:
            raise BudgetError(
                f"the plan needs up to about {readable_bytes(self.price.peak_bytes)} for the messages of a "
                f"MAP problem, but the limit is {readable_bytes(self.options.limit)}; raise memory_limit="
            )
        return found

    def _report(
        self,
        passes: int,
        bound: float,
        slack: float,
        prices: Sequence[float],
        labelling: NDArray[np.int64] | None,
    ) -> None:
        """Record what is known after a pass, and report it."""
        self.passes, self.multipliers = passes, self._per_tally(prices)
        self.bound, self.allowance = bound + self.rounding, slack + self.rounding
        if labelling is not None:
            self._offer(labelling)
        if self.progress is not None:
            self.progress(self.known())

    def _closed_by(self, found: Found) -> bool:
        """Record what a search has found; return whether it has proven a labelling to be the best."""
        self.passes, self.multipliers = len(found.passes), self._per_tally(found.prices)
        self.bound, self.allowance = found.bound + self.rounding, found.slack + self.rounding
        score = -inf
        if len(found.scores):
            score = self._offer(found.labelling(int(found.scores.argmax())))
        if found.finished and score > -inf:
            used = [found.prices, *(prices for prices, *_ in found.proven)]
            each = [one.statistic for one in self.ranges]
            lost = lost_digits(self.model, each, map(self._per_tally, used))
            self.bound, self.allowance = score + lost, min(lost, _USUAL * self.rounding)
        return found.finished and self.solution is not None and self.solution.score >= score

    def _per_tally(self, prices: Sequence[float]) -> tuple[float, ...]:
        """Return the prices of tallies, from those of their units."""
        return tuple(price / one.unit + 0.0 for price, one in zip(prices, self.coarse, strict=True))

    def _no_labelling(self, found: Found) -> str:
        least = min((most for _, most in found.passes), default=inf)
        if found.bound == -inf or least == -inf:
            return "no labelling satisfies the constraint: all tallies not ruled out by prices were examined"
        return (
            f"no labelling satisfies the constraint: its score would be at most {self.bound:.6g}, but every "
            "labelling scores more"
        )

    @cached_property
    def price(self) -> Price:
        """The cost of one pass."""
        return pass_price(self.program)

    def _offer(self, assignment: NDArray[np.int64]) -> float:
        """Keep a labelling if it satisfies the constraint and is the best so far; return its score."""
        score = float(evaluate(self.model.blocks, assignment))
        if self._holds(assignment) and (self.solution is None or score > self.solution.score):
            tally = tally_type(unique_names(tuple(s.name for s in self.shown)))
            numbers = tally(*(s.tally(assignment) for s in self.shown))
            proof = Proof(self.price, score, Claim("it satisfies the constraint", optimal=False))
            self.solution = Solution(score, score, numbers, assignment, self.model, proof)
        return score

    def _holds(self, assignment: NDArray[np.int64]) -> bool:
        """Whether a labelling satisfies the constraint."""
        return all(_within(one, sign, assignment) for one in self.ranges for sign in (1, -1))

    # --- what can be attained at all

    def _check_extent(self, one: Range) -> None:
        """Raise an error if a range is beyond what the entries of its tables add up to."""
        least, most = one.statistic.extent
        if one.low > most:
            self._check_end(one, 1.0)
        if one.high < least:
            self._check_end(one, -1.0)

    def _check_ends(self, met: Sequence[tuple[int, int]]) -> None:
        """Raise an error if no labelling reaches one of the ranges, whatever its score.

        `met`: the least and the largest tallies that labellings are known to have.
        """
        for one, (searched, _), (least, most) in zip(self.ranges, self.coarse, met, strict=True):
            if most < searched.low:
                self._check_end(one, 1.0)
            if least > searched.high:
                self._check_end(one, -1.0)

    def _check_end(self, one: Range, sign: float) -> None:
        level = tuple(map(flat, self.model.blocks))
        priced = folded(self.model, level, self.ranges, [sign * (one is other) for other in self.ranges])
        found = Profile.of(priced, (), self.plan).best()
        self._offer(found.assignment)
        end = one.low if sign > 0 else one.high
        if found.score + rounding(priced.blocks) < sign * end:
            relation, word = (">=", "largest") if sign > 0 else ("<=", "smallest")
            raise InfeasibleError(
                f"no labelling satisfies '{one.statistic.name} {relation} {end:.0f}': the {word} "
                f"value is {one.statistic.tally(found.assignment)}"
            )

    # --- the labellings next in order

    @cached_property
    def plan(self) -> Plan:
        """A plan for MAP problems whose tables are kept."""
        priced = folded(self.model, self.model.blocks, self.ranges, None)
        copies = sum(block.tables.nbytes for block in priced.blocks)
        return Plan(priced, (), self.options._replace(beside=2 * copies))

    def _fits(self) -> bool:
        """Whether there is enough memory for that plan."""
        try:
            return self.plan is not None
        except BudgetError:
            return False

    def _without_prices(self) -> None:
        """Bound the score by that of the best labelling, where no prices can be had."""
        found = Profile.of(folded(self.model, self.model.blocks, self.ranges, None), (), self.plan).best()
        self.passes, self.bound = 1, found.score + self.rounding
        self._offer(found.assignment)

    def _cross(self) -> None:
        """Examine labellings between one that satisfies the constraint and one that does not."""
        if not self._fits():
            return
        if self.solution is None:
            self._cross_ends()
        if self.solution is None or not any(self.multipliers):
            return
        for apart in _APART:
            found = self._best_at([(1 - apart) * price for price in self.multipliers])
            if not self._holds(found):
                break
            self._offer(found)
        else:
            return
        for between in crossings(self.solution.assignment, found, self.program.order, self._holds):
            self._offer(between)

    def _cross_ends(self) -> None:
        """Examine labellings just inside of each end of each range, next to ones beyond it."""
        for at, sign, apart in product(range(len(self.ranges)), (1, -1), _APART):
            step = sign * apart * (abs(self.multipliers[at]) or 1.0)
            lower, higher = list(self.multipliers), list(self.multipliers)
            lower[at], higher[at] = lower[at] - step, higher[at] + step
            inside, outside = self._best_at(lower), self._best_at(higher)
            within = partial(_within, self.ranges[at], sign)
            if within(inside) and not within(outside):
                for between in crossings(inside, outside, self.program.order, within):
                    self._offer(between)

    def _best_at(self, prices: Sequence[float]) -> NDArray[np.int64]:
        """Return the best labelling at some prices."""
        priced = folded(self.model, self.model.blocks, self.ranges, prices)
        return Profile.of(priced, (), self.plan).best().assignment

    def _look_through(self) -> None:
        """Examine labellings in order of dual value: later ones cannot have a larger value."""
        if not self.limits.candidates:
            return
        offsets = [_offset(one, price) for one, price in zip(self.ranges, self.multipliers, strict=True)]
        priced = folded(self.model, self.model.blocks, self.ranges, self.multipliers)
        allowance = rounding(priced.blocks, *offsets)
        alike = min(allowance, _USUAL * self.rounding)
        left = -inf  # the dual value of the remaining labellings, -inf if there are none
        try:
            if not self.plan.every_table:
                return
            ranking = Profile.of(priced, (), self.plan).ranked()
            for found in islice(ranking, self.limits.candidates):
                left = found.score - sum(offsets)
                if self.solution is not None and left + allowance <= self.solution.score + 2 * alike:
                    break
                self._offer(found.assignment)
            else:
                if next(ranking, None) is None:
                    left = -inf
        except BudgetError:  # not enough memory to continue
            if left == -inf:
                return
        self._narrow(left + allowance, alike)

    def _narrow(self, left: float, alike: float) -> None:
        """Record a bound on the remaining labellings."""
        score = -inf if self.solution is None else self.solution.score
        if max(score, left) == -inf:
            raise InfeasibleError("no labelling satisfies the constraint: all of them have been examined")
        bound = max(score + self.rounding, left)
        if bound < self.bound:
            self.bound, self.allowance = bound, max(self.rounding, alike)


def _ends(one: Range) -> tuple[int, int]:
    """Return the tallies of a range that the tables of its statistic allow."""
    least, most = one.statistic.extent
    return int(max(one.low, least)), int(min(one.high, most))


def _within(one: Range, sign: int, assignment: NDArray[np.int64]) -> bool:
    """Whether a labelling is not beyond the upper end of a range, or the lower end if `sign` is -1."""
    tally = int(evaluate(one.statistic.blocks, assignment))
    return tally <= one.high if sign > 0 else tally >= one.low


def _offset(one: Range, price: float) -> float:
    """Return the least that a tally of a range pays at a price."""
    return min(price * end for end in _ends(one))
