"""Lagrangian relaxation: an upper bound, and often the optimum, from plain MAP inference alone.

The constraints are ranges of integer combinations of statistics, ``b_j <= A_j(y) <= c_j``. With a multiplier
``λ_j`` for each, every labelling ``y`` that satisfies them has

    F(y) <= F(y) + Σ_j λ_j·A_j(y) - Σ_j min(λ_j·b_j, λ_j·c_j)

and the maximum of the right-hand side over *all* labellings, the dual ``D(λ)``, is plain MAP on a model with
further factors ``λ_j·a_j``: no tallies are carried, however many constraints there are. ``D`` is convex and
piecewise linear, its least value is the bound. The labellings met on the way may satisfy the constraints;
those next in order at the best ``λ`` close the gap, because one of dual value below a score that has been
attained cannot be better than it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import gcd, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.core.blocks import Block, evaluate, read_only
from tallytree.core.elimination import Order
from tallytree.core.expressions import And, Comparison, Constraint, Linear, as_constraint
from tallytree.core.model import Model
from tallytree.core.plan import Plan, bind
from tallytree.core.profile import Profile
from tallytree.core.rounding import rounding
from tallytree.core.solution import Solution, tally_type, unique_names
from tallytree.core.statistics import Recipe, Statistic, read_by
from tallytree.errors import InfeasibleError, ModelError

__all__ = ["Relaxation", "relax"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """What a relaxation knows: how good the best labelling is at most, and the best one it has met.

    Attributes
    ----------
    upper_bound : float
        No labelling that satisfies the constraint has a higher score. It includes an allowance for rounding,
        ``c·eps·Σ max|f|`` over all factors, those of the multipliers among them.
    solution : Solution or None
        The best labelling met that satisfies the constraint.
    gap : float
        ``upper_bound - solution.score``; 0.0 where they differ by the allowance alone, which proves the
        solution optimal; inf where there is no solution.
    multipliers : tuple of float
        For each combination of statistics in the constraint, in order of first use, what the dual pays per
        unit: positive where a lower end of its range binds, negative where an upper end does.
    iterations : int
        How many MAP problems were solved.
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


def relax(
    model: Model,
    where: Constraint,
    statistics: Iterable[Statistic | Recipe] = (),
    *,
    iterations: int = 200,
    tolerance: float = 0.0,
    candidates: int = 200,
    order: Order | None = None,
    memory_limit: float | None = None,
    progress: Callable[[Relaxation], object] | None = None,
) -> Relaxation:
    """Bound the best score under linear constraints, without carrying tallies.

    Parameters
    ----------
    model : Model
        The factor graph.
    where : Constraint
        Comparisons by ``==``, ``<=``, ``>=`` of uncapped statistics or their combinations, joined by ``&``.
    statistics : iterable of Statistic or Recipe
        What the solution's tally shows, before the statistics of the constraint.
    iterations : int
        The most MAP problems to solve; those that look for the ends of ranges come on top.
    tolerance : float
        Stop once the gap is no larger than this.
    candidates : int
        How many labellings to look through in order at the best multipliers.
    order, memory_limit
        As for :func:`plan`; the plan is made once.
    progress : callable, optional
        Called with what is known after each iteration.

    Raises
    ------
    InfeasibleError
        It is proven that no labelling satisfies the constraint.
    ModelError
        The constraint is no conjunction of linear comparisons of uncapped statistics.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> found = tt.relax(model, tt.count(state=1) <= 2)
    >>> found.solution.assignment, found.gap, found.multipliers
    (array([0, 1, 1]), 0.0, (-1.0,))
    """
    constraint = as_constraint(where).on(model)
    shown = bind(model, statistics)
    hidden = tuple(s for s in read_by(constraint) if s not in shown)
    ranges = _ranges(constraint)
    limits = _Limits(_whole(iterations, "iterations", 1), tolerance, _whole(candidates, "candidates", 0))
    plan = Plan(_folded(model, model.blocks, ranges, None), (), order=order, memory_limit=memory_limit)
    search = _Search(model, (*shown, *hidden), ranges, plan, limits, progress)
    search.run()
    return search.known()


class _Limits(NamedTuple):
    iterations: int
    tolerance: float
    candidates: int


def _whole(value: object, noun: str, least: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"{noun} must be an integer, got {value!r}") from None
    if number < least:
        raise ModelError(f"{noun} must be at least {least}, got {number}")
    return number


# --- the constraint as ranges -------------------------------------------------------------------------------


class _Range(NamedTuple):
    """``low <= A(y) <= high``; an end may be infinite."""

    statistic: Statistic
    low: float
    high: float

    def excess(self, tally: int) -> float:
        """Say how far a tally lies above the range; negative below it, 0 inside."""
        return max(tally - self.high, 0.0) + min(tally - self.low, 0.0)

    def offset(self, multiplier: float) -> float:
        """Compute ``min(λ·b, λ·c)``; -inf where an end that the multiplier needs is missing."""
        return 0.0 if multiplier == 0 else multiplier * (self.low if multiplier > 0 else self.high)


def _ranges(constraint: Constraint) -> tuple[_Range, ...]:
    """Put the comparisons of the same combination together, divided by what its coefficients share."""
    ends: dict[tuple[object, ...], tuple[Linear, float, float]] = {}
    for comparison in _comparisons(constraint):
        shared = gcd(*(c for _, c in comparison.terms)) or 1
        left = Linear((term, c // shared) for term, c in comparison.terms)
        _, low, high = ends.get(left.terms, (left, -inf, inf))
        if comparison.relation in (">=", "=="):
            low = max(low, -(-comparison.bound // shared))
        if comparison.relation in ("<=", "=="):
            high = min(high, comparison.bound // shared)
        ends[left.terms] = (left, low, high)
    if any(low > high for _, low, high in ends.values()):
        raise InfeasibleError(
            f"no labelling satisfies '{constraint}': two of its comparisons exclude each other"
        )
    return tuple(_Range(Statistic.combination(left), low, high) for left, low, high in ends.values())


def _comparisons(constraint: Constraint) -> Iterator[Comparison]:
    if isinstance(constraint, And):
        for part in constraint.parts:
            yield from _comparisons(part)
    elif isinstance(constraint, Comparison) and constraint.relation != "!=":
        yield constraint
    else:
        raise ModelError(
            f"'{constraint}' cannot be relaxed: a relaxation takes comparisons by ==, <= and >= joined by &; "
            "relax each alternative of | on its own and take the largest bound (a != b is two of them, "
            "a <= b - 1 and a >= b + 1), or use tallytree.solve, which takes any constraint"
        )


# --- the model with multipliers folded in -------------------------------------------------------------------


def _folded(
    model: Model, blocks: Sequence[Block], ranges: Sequence[_Range], multipliers: Floats | None
) -> Model:
    """Add the factors ``λ_j·a_j``; the shape is the same for all multipliers."""
    paid = [0.0] * len(ranges) if multipliers is None else multipliers.tolist()
    further = [
        Block(block.scopes, read_only(block.tables * float(multiplier)), block.key)
        for one, multiplier in zip(ranges, paid, strict=True)
        for block in one.statistic.blocks
    ]
    return Model.from_blocks(model.cardinalities, (*blocks, *further))


def _flat(block: Block) -> Block:
    """Keep what is forbidden, and give everything else the score 0."""
    return block.with_tables(read_only(np.where(np.isneginf(block.tables), -inf, 0.0)))


def _least(block: Block) -> float:
    """Sum the least scores of the tables."""
    tables = np.where(np.isneginf(block.tables), inf, block.tables).reshape(len(block.tables), -1)
    return float(tables.min(axis=1).sum()) * (len(block) if len(tables) == 1 else 1)


# --- the search ---------------------------------------------------------------------------------------------


class _Point(NamedTuple):
    """One evaluation of the dual: a labelling that attains it, and the excess of each combination there."""

    multipliers: Floats
    profile: Profile
    value: float
    allowance: float
    score: float
    excess: Floats
    tallies: tuple[int, ...]


class _Search:
    """The best bound and the best labelling so far."""

    def __init__(
        self,
        model: Model,
        shown: tuple[Statistic, ...],
        ranges: tuple[_Range, ...],
        plan: Plan,
        limits: _Limits,
        progress: Callable[[Relaxation], object] | None,
    ) -> None:
        self.model, self.shown, self.ranges = model, shown, ranges
        self.plan, self.limits, self.progress = plan, limits, progress
        self.rounding = rounding(model.blocks)
        self.lowest = sum(map(_least, model.blocks)) - self.rounding  # no labelling scores less
        self.bound, self.allowance = inf, 0.0
        self.best: _Point | None = None
        self.solution: Solution | None = None
        self.passes = 0

    def run(self) -> None:
        """Descend from the plain MAP labelling, then look through the labellings next in order."""
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
        """Return what is known now."""
        gap = inf if self.solution is None else self.bound - self.solution.score
        closed = self.solution is not None and gap <= 2 * self.allowance
        multipliers = () if self.best is None else tuple(self.best.multipliers.tolist())
        return Relaxation(self.bound, self.solution, 0.0 if closed else gap, multipliers, self.passes)

    def finished(self) -> bool:
        """Say whether the gap is small enough."""
        return self.known().gap <= self.limits.tolerance

    def exhausted(self) -> bool:
        """Say whether no further MAP problem may or need be solved."""
        return self.passes >= self.limits.iterations or self.finished()

    def evaluate(self, multipliers: Floats) -> _Point:
        """Compute ``D(λ)``, and note the bound and the labelling."""
        self.passes += 1
        offsets = [one.offset(m) for one, m in zip(self.ranges, multipliers.tolist(), strict=True)]
        folded = _folded(self.model, self.model.blocks, self.ranges, multipliers)
        profile = Profile(folded, (), self.plan)
        found = profile.best()
        score, tallies = self._offer(found.assignment)
        point = _Point(
            multipliers,
            profile,
            found.score - sum(offsets),
            rounding(folded.blocks, *offsets),
            score,
            self._excess(tallies),
            tallies,
        )
        self._note_bound(point)
        if self.progress is not None:
            self.progress(self.known())
        return point

    def _note_bound(self, point: _Point) -> None:
        if point.value + point.allowance < self.bound:
            self.bound, self.allowance, self.best = point.value + point.allowance, point.allowance, point
        if self.bound < self.lowest:
            raise InfeasibleError(
                f"no labelling satisfies the constraint: its score would be at most {self.bound:.6g}, and no "
                "labelling scores so little"
            )

    def _excess(self, tallies: Sequence[int]) -> Floats:
        return np.array([one.excess(t) for one, t in zip(self.ranges, tallies, strict=True)])

    def _offer(self, assignment: NDArray[np.int64]) -> tuple[float, tuple[int, ...]]:
        """Keep a labelling if it satisfies the constraint and is the best so far; return its numbers."""
        score = float(evaluate(self.model.blocks, assignment))
        tallies = tuple(int(evaluate(one.statistic.blocks, assignment)) for one in self.ranges)
        if not self._excess(tallies).any() and (self.solution is None or score > self.solution.score):
            tally = tally_type(unique_names(tuple(s.name for s in self.shown)))
            numbers = tally(*(s.tally(assignment) for s in self.shown))
            self.solution = Solution(score, score, numbers, assignment, self.model)
        return score, tallies

    # --- what can be attained at all

    def _attainable_ends(self) -> list[list[_Line]]:
        """Find the labelling furthest beyond each end of each range, or prove that none reaches it."""
        flat = tuple(map(_flat, self.model.blocks))
        signs = [
            [sign for sign, end in ((1.0, one.low), (-1.0, one.high)) if np.isfinite(end)]
            for one in self.ranges
        ]
        return [[self._furthest(flat, j, sign) for sign in each] for j, each in enumerate(signs)]

    def _furthest(self, flat: Sequence[Block], number: int, sign: float) -> _Line:
        self.passes += 1
        multipliers = np.zeros(len(self.ranges))
        multipliers[number] = sign
        folded = _folded(self.model, flat, self.ranges, multipliers)
        found = Profile(folded, (), self.plan).best()
        score, tallies = self._offer(found.assignment)
        one = self.ranges[number]
        end = one.low if sign > 0 else one.high
        if found.score + rounding(folded.blocks) < sign * end:
            relation, word = (">=", "most") if sign > 0 else ("<=", "least")
            raise InfeasibleError(
                f"no labelling satisfies '{one.statistic.name} {relation} {end:.0f}': it is at {word} "
                f"{tallies[number]}"
            )
        return _Line(sign, score, tallies[number] - end)

    # --- one combination: the dual is a function of one number

    def _chords(self, first: _Point, ends: Sequence[_Line]) -> None:
        """Go to where the lines of two labellings cross, until no labelling lies above the crossing.

        The labelling at λ = 0 falls short of the range on one side; the furthest one on the other side does
        not. Each step replaces one of the two, so that the least value of the dual stays between them.
        """
        sign = -1.0 if first.excess[0] > 0 else 1.0
        inside = next(line for line in ends if line.sign == sign)
        outside = _Line(sign, first.score, float(first.excess[0]))
        one = self.ranges[0]
        end = one.low if sign > 0 else one.high
        while not self.exhausted():
            crossing = (inside.score - outside.score) / (outside.slope - inside.slope)
            multiplier = sign * max(sign * crossing, 0.0)
            point = self.evaluate(np.array([multiplier]))
            reached = _Line(sign, point.score, point.tallies[0] - end)
            if point.value <= inside.score + multiplier * inside.slope + point.allowance:
                return  # nothing lies above the crossing: the dual is least here
            if sign * reached.slope >= 0:
                inside = reached
            else:
                outside = reached

    # --- several: subgradients towards a target

    def _subgradients(self, first: _Point, ends: Sequence[Sequence[_Line]]) -> None:
        """Step against the excess, as far as would reach a target if the dual were linear.

        The target lies a level below the best bound, or at the best score. A level that is not reached in a
        few steps is halved, and the search goes on from the best multipliers.
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
                return  # 0 is a subgradient: the dual is least here
            target = max(self.bound - level, -inf if self.solution is None else self.solution.score)
            step = max(point.value - target, 0.0) / float(slope @ slope)
            before = self.bound
            point = self.evaluate(np.clip(point.multipliers - step * slope / widths, lowest, highest))
            missed = 0 if self.bound < before - level / 4 else missed + 1
            if missed > patience and self.best is not None:
                point, level, missed = self.best, level / 2, 0

    def _slope(self, point: _Point) -> Floats:
        """Return a subgradient: how far each combination is from the end of its range that is paid for."""
        paid = [one.low if m > 0 else one.high for one, m in zip(self.ranges, point.multipliers, strict=True)]
        return np.where(point.multipliers == 0, point.excess, np.array(point.tallies) - np.array(paid))

    # --- the labellings next in order

    def _look_through(self) -> None:
        """Take labellings in order of dual value: what has not come yet is worth no more than the last."""
        if self.best is None or self.plan.segments > 1 or not self.limits.candidates:
            return
        point, allowance = self.best, self.best.allowance
        start, ranking = point.profile.scores[0], point.profile.ranked()
        left = -inf  # the dual value of what has not been seen, -inf if there is nothing
        for found in islice(ranking, self.limits.candidates):
            left = point.value + (found.score - start)
            if self.solution is not None and left <= self.solution.score + allowance:
                break
            self._offer(found.assignment)
        else:
            if next(ranking, None) is None:
                left = -inf
        self._narrow(left, allowance)

    def _narrow(self, left: float, allowance: float) -> None:
        score = -inf if self.solution is None else self.solution.score
        if max(score, left) == -inf:
            raise InfeasibleError("no labelling satisfies the constraint: all of them have been looked at")
        bound = max(score + self.rounding, left + allowance)
        if bound < self.bound:
            self.bound, self.allowance = bound, max(self.rounding, allowance)


class _Line(NamedTuple):
    """A labelling as the dual of one multiplier sees it: ``score + λ·slope``, on the side of ``sign``."""

    sign: float
    score: float
    slope: float
