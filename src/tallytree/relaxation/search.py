"""The search for the smallest dual value, and for labellings that satisfy the constraint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import Claim, Proof
from tallytree.answers.profile import Profile
from tallytree.answers.solution import Solution
from tallytree.answers.tallies import tally_type, unique_names
from tallytree.errors import BudgetError, InfeasibleError
from tallytree.model.blocks import Block, evaluate
from tallytree.model.model import Model
from tallytree.model.rounding import lowest_score, rounding
from tallytree.planning.plan import Plan
from tallytree.relaxation.ranges import Floats, Range, flat, folded
from tallytree.statistics.statistic import Statistic


@dataclass(frozen=True, slots=True)
class Relaxation:
    """The result of a relaxation: an upper bound, and the best labelling found.

    Attributes
    ----------
    upper_bound : float
        No labelling that satisfies the constraint has a higher score. It includes an allowance for rounding,
        ``c·eps·Σ max|f|`` over all factors, including those of the multipliers.
    solution : Solution or None
        The best labelling found that satisfies the constraint.
    gap : float
        ``upper_bound - solution.score``; 0.0 if they differ only by the allowance, which proves the
        solution optimal; inf if there is no solution.
    multipliers : tuple of float
        The price per unit of each combination of statistics in the constraint, in order of first use:
        positive if the lower end of its range is active, negative if the upper end is.
    iterations : int
        The number of MAP problems solved.
    """

    upper_bound: float
    solution: Solution | None
    gap: float
    multipliers: tuple[float, ...]
    iterations: int

    @property
    def optimal(self) -> bool:
        """Whether the solution is proven to be optimal."""
        return self.gap == 0.0

    def explain(self) -> str:
        """Explain in a few lines what is proven, and how."""
        prices = ", ".join(f"{price:.6g}" for price in self.multipliers)
        bound = (
            f"no labelling that satisfies the constraint scores above {self.upper_bound:.10g}: the smallest "
            f"dual value of {self.iterations} MAP problems, at the prices ({prices})"
        )
        if self.solution is None:
            return f"bounded: {bound}\n  no labelling that satisfies it was found"
        if self.optimal:
            return f"optimal: {bound}\n  {self.solution!r} attains it"
        return f"bounded: {bound}\n  {self.solution!r} is at most {self.gap:.6g} below the best"


class Limits(NamedTuple):
    """When to stop: MAP problems, the gap, and labellings to examine."""

    iterations: int
    tolerance: float
    candidates: int


class Point(NamedTuple):
    """One evaluation of the dual: a labelling that attains it, and the excess of each combination there."""

    multipliers: Floats
    value: float
    allowance: float
    score: float
    excess: Floats
    tallies: tuple[int, ...]


class Search:
    """The best bound and the best labelling so far."""

    def __init__(
        self,
        model: Model,
        shown: tuple[Statistic, ...],
        ranges: tuple[Range, ...],
        plan: Plan,
        limits: Limits,
        progress: Callable[[Relaxation], object] | None,
    ) -> None:
        self.model, self.shown, self.ranges = model, shown, ranges
        self.plan, self.limits, self.progress = plan, limits, progress
        self.rounding = rounding(model.blocks)
        self.lowest = lowest_score(model.blocks)
        self.bound, self.allowance = inf, 0.0
        self.best: Point | None = None
        self.solution: Solution | None = None
        self.passes = 0

    def run(self) -> None:
        """Descend from the plain MAP labelling, then examine the labellings next in order."""
        first = self.evaluate(np.zeros(len(self.ranges)))
        if not self.exhausted():
            ends = self._attainable_ends()
            if len(self.ranges) == 1:
                self._chords(first, ends[0])
            else:
                self._subgradients(first, ends)
        if not self.finished():
            self._look_through()

    def known(self) -> Relaxation:
        """Return the current result."""
        gap = inf if self.solution is None else self.bound - self.solution.score
        closed = self.solution is not None and gap <= 2 * self.allowance
        multipliers = () if self.best is None else tuple(self.best.multipliers.tolist())
        return Relaxation(self.bound, self.solution, 0.0 if closed else gap, multipliers, self.passes)

    def answer(self) -> Relaxation:
        """Return the final result: a solution that meets the bound is optimal."""
        found = self.known()
        if found.solution is None or not found.optimal:
            return found
        bound = f"{found.upper_bound:.10g}, the smallest dual value"
        claim = f"no labelling that satisfies the constraint scores above {bound}"
        return replace(found, solution=found.solution.claiming(claim, optimal=True))

    def finished(self) -> bool:
        """Whether the gap is small enough."""
        return self.known().gap <= self.limits.tolerance

    def exhausted(self) -> bool:
        """Whether to stop solving MAP problems."""
        return self.passes >= self.limits.iterations or self.finished()

    def evaluate(self, multipliers: Floats) -> Point:
        """Compute ``D(λ)``, and record the bound and the labelling."""
        self.passes += 1
        offsets = [one.offset(m) for one, m in zip(self.ranges, multipliers.tolist(), strict=True)]
        priced = folded(self.model, self.model.blocks, self.ranges, multipliers)
        found = Profile.of(priced, (), self.plan).best()
        score, tallies = self._offer(found.assignment)
        point = Point(
            multipliers,
            found.score - sum(offsets),
            rounding(priced.blocks, *offsets),
            score,
            self._excess(tallies),
            tallies,
        )
        self._note_bound(point)
        if self.progress is not None:
            self.progress(self.known())
        return point

    def _note_bound(self, point: Point) -> None:
        if point.value + point.allowance < self.bound:
            self.bound, self.allowance, self.best = point.value + point.allowance, point.allowance, point
        if self.bound < self.lowest:
            raise InfeasibleError(
                f"no labelling satisfies the constraint: its score would be at most {self.bound:.6g}, but "
                "every labelling scores more"
            )

    def _excess(self, tallies: Sequence[int]) -> Floats:
        return np.array([one.excess(t) for one, t in zip(self.ranges, tallies, strict=True)])

    def _offer(self, assignment: NDArray[np.int64]) -> tuple[float, tuple[int, ...]]:
        """Keep a labelling if it satisfies the constraint and is the best so far; return its tallies."""
        score = float(evaluate(self.model.blocks, assignment))
        tallies = tuple(int(evaluate(one.statistic.blocks, assignment)) for one in self.ranges)
        if not self._excess(tallies).any() and (self.solution is None or score > self.solution.score):
            tally = tally_type(unique_names(tuple(s.name for s in self.shown)))
            numbers = tally(*(s.tally(assignment) for s in self.shown))
            proof = Proof(self.plan.price, score, Claim("it satisfies the constraint", optimal=False))
            self.solution = Solution(score, score, numbers, assignment, self.model, proof)
        return score, tallies

    # --- what can be attained at all

    def _attainable_ends(self) -> list[list[Line]]:
        """Find the labelling furthest beyond each end of each range, or prove that none reaches it."""
        level = tuple(map(flat, self.model.blocks))
        signs = [
            [sign for sign, end in ((1.0, one.low), (-1.0, one.high)) if np.isfinite(end)]
            for one in self.ranges
        ]
        return [[self._furthest(level, j, sign) for sign in each] for j, each in enumerate(signs)]

    def _furthest(self, level: Sequence[Block], number: int, sign: float) -> Line:
        self.passes += 1
        multipliers = np.zeros(len(self.ranges))
        multipliers[number] = sign
        priced = folded(self.model, level, self.ranges, multipliers)
        found = Profile.of(priced, (), self.plan).best()
        score, tallies = self._offer(found.assignment)
        one = self.ranges[number]
        end = one.low if sign > 0 else one.high
        if found.score + rounding(priced.blocks) < sign * end:
            relation, word = (">=", "most") if sign > 0 else ("<=", "least")
            raise InfeasibleError(
                f"no labelling satisfies '{one.statistic.name} {relation} {end:.0f}': it is at {word} "
                f"{tallies[number]}"
            )
        return Line(sign, score, tallies[number] - end)

    # --- one combination: the dual is a function of one number

    def _chords(self, first: Point, ends: Sequence[Line]) -> None:
        """Go to where the lines of two labellings cross, until no labelling is above the crossing.

        The labelling at λ = 0 falls short of the range on one side; the furthest one on the other side does
        not. Each step replaces one of the two, so that the minimum of the dual stays between them.
        """
        sign = -1.0 if first.excess[0] > 0 else 1.0
        inside = next(line for line in ends if line.sign == sign)
        outside = Line(sign, first.score, float(first.excess[0]))
        one = self.ranges[0]
        end = one.low if sign > 0 else one.high
        while not self.exhausted():
            crossing = (inside.score - outside.score) / (outside.slope - inside.slope)
            multiplier = sign * max(sign * crossing, 0.0)
            point = self.evaluate(np.array([multiplier]))
            reached = Line(sign, point.score, point.tallies[0] - end)
            if point.value <= inside.score + multiplier * inside.slope + point.allowance:
                return  # nothing is above the crossing: the dual is minimal here
            if sign * reached.slope >= 0:
                inside = reached
            else:
                outside = reached

    # --- several: subgradients towards a target

    def _subgradients(self, first: Point, ends: Sequence[Sequence[Line]]) -> None:
        """Step against the excess, as far as would reach a target if the dual were linear.

        The target is a level below the best bound, or the best score. A level that is not reached in a
        few steps is halved, and the search continues from the best multipliers.
        """
        widths = np.array([max([1.0, *(abs(line.slope) for line in each)]) for each in ends])
        lowest = np.array([-inf if np.isfinite(one.high) else 0.0 for one in self.ranges])
        highest = np.array([inf if np.isfinite(one.low) else 0.0 for one in self.ranges])
        level = max([abs(first.value - line.score) for each in ends for line in each]) or 1.0
        point, patience, missed = first, 3 + len(self.ranges), 0
        smallest = max(1e-6 * level, self.limits.tolerance / 8)
        while not self.exhausted() and level > smallest:
            slope = self._slope(point) / widths
            if not slope.any():
                return  # 0 is a subgradient: the dual is minimal here
            target = max(self.bound - level, -inf if self.solution is None else self.solution.score)
            step = max(point.value - target, 0.0) / float(slope @ slope)
            before = self.bound
            point = self.evaluate(np.clip(point.multipliers - step * slope / widths, lowest, highest))
            missed = 0 if self.bound < before - level / 4 else missed + 1
            if missed > patience and self.best is not None:
                point, level, missed = self.best, level / 2, 0

    def _slope(self, point: Point) -> Floats:
        """Return a subgradient: the distance of each combination from the active end of its range."""
        paid = [one.low if m > 0 else one.high for one, m in zip(self.ranges, point.multipliers, strict=True)]
        return np.where(point.multipliers == 0, point.excess, np.array(point.tallies) - np.array(paid))

    # --- the labellings next in order

    def _look_through(self) -> None:
        """Examine labellings in order of dual value: later ones cannot have a larger value."""
        if self.best is None or not self.plan.every_table or not self.limits.candidates:
            return
        point, allowance = self.best, self.best.allowance
        priced = folded(self.model, self.model.blocks, self.ranges, point.multipliers)
        profile = Profile.of(priced, (), self.plan)  # computed again, since no tables are kept
        start, ranking = float(profile.scores[0]), profile.ranked()
        left = -inf  # the dual value of the remaining labellings, -inf if there are none
        try:
            for found in islice(ranking, self.limits.candidates):
                left = point.value + (found.score - start)
                if self.solution is not None and left <= self.solution.score + allowance:
                    break
                self._offer(found.assignment)
            else:
                if next(ranking, None) is None:
                    left = -inf
        except BudgetError:  # not enough memory to continue
            if left == -inf:
                return
        self._narrow(left, allowance)

    def _narrow(self, left: float, allowance: float) -> None:
        score = -inf if self.solution is None else self.solution.score
        if max(score, left) == -inf:
            raise InfeasibleError("no labelling satisfies the constraint: all of them have been examined")
        bound = max(score + self.rounding, left + allowance)
        if bound < self.bound:
            self.bound, self.allowance = bound, max(self.rounding, allowance)


class Line(NamedTuple):
    """A labelling as a line in the dual of one multiplier: ``score + λ·slope``, on the side of ``sign``."""

    sign: float
    score: float
    slope: float
