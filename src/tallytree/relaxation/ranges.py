"""A constraint as ranges of integer combinations, and a model with a price on each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, inf
from typing import NamedTuple

from tallytree.errors import InfeasibleError, ModelError
from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.planning.carried import within_limits
from tallytree.planning.search_price import LARGEST_WEIGHT
from tallytree.reductions.folding import weighted
from tallytree.statistics.constraints import And, Constraint
from tallytree.statistics.linear import Comparison, Linear
from tallytree.statistics.statistic import Statistic
from tallytree.values import read_only


class Range(NamedTuple):
    """``low <= A(y) <= high``; an end may be infinite."""

    statistic: Statistic
    low: float
    high: float


class Coarse(NamedTuple):
    """A range in units of many tallies; all labellings in the original range are in this one."""

    range: Range
    unit: int


def coarse(one: Range) -> Coarse:
    """Return a range whose weights a search has numbers for: the same, or in units of a power of two.

    The n parts of a sum ``A`` are rounded down, so ``A/unit - n < Σ floor(a/unit) <= A/unit``.
    """
    unit = 1
    while one.statistic.largest_entry // unit >= LARGEST_WEIGHT:
        unit *= 2
    if unit == 1:
        return Coarse(one, 1)
    blocks = [block.with_tables(read_only(block.tables // unit)) for block in one.statistic.blocks]
    parts = sum(len(block) for block in blocks)
    low = one.low if one.low == -inf else one.low // unit - parts + 1
    high = one.high if one.high == inf else one.high // unit
    return Coarse(Range(Statistic.from_blocks(blocks, one.statistic.name), low, high), unit)


def ranges_of(constraint: Constraint) -> tuple[Range, ...]:
    """Merge comparisons of the same combination, divided by their common factors."""
    ends: dict[tuple[object, ...], tuple[Linear, float, float]] = {}
    for comparison in _comparisons(constraint):
        shared = gcd(*(c for _, c in comparison.terms)) or 1
        left = Linear((term, c // shared) for term, c in comparison.terms)
        _, low, high = ends.get(left.terms, (left, -inf, inf))
        if comparison.relation in (">=", "=="):
            low = max(low, within_limits(-(-comparison.bound // shared)))
        if comparison.relation in ("<=", "=="):
            high = min(high, within_limits(comparison.bound // shared))
        ends[left.terms] = (left, low, high)
    if any(low > high for _, low, high in ends.values()):
        raise InfeasibleError(
            f"no labelling satisfies '{constraint}': its comparisons leave no integer for a tally"
        )
    return tuple(Range(Statistic.combination(left), low, high) for left, low, high in ends.values())


def _comparisons(constraint: Constraint) -> Iterator[Comparison]:
    if isinstance(constraint, And):
        for part in constraint.parts:
            yield from _comparisons(part)
    elif isinstance(constraint, Comparison) and constraint.relation != "!=":
        yield constraint
    else:
        raise ModelError(
            f"'{constraint}' cannot be relaxed: only comparisons by ==, <= and >= joined by & are supported; "
            "relax each alternative of | separately and take the largest bound (a != b is two of them, "
            "a <= b - 1 and a >= b + 1), or use tallytree.solve, which supports any constraint"
        )


# --- the model with multipliers folded in -------------------------------------------------------------------


def folded(
    model: Model, blocks: Sequence[Block], ranges: Sequence[Range], multipliers: Sequence[float] | None
) -> Model:
    """Add the factors ``λ_j·a_j``; the shape is the same for all multipliers."""
    paid = [0.0] * len(ranges) if multipliers is None else multipliers
    further = weighted((one.statistic, price) for one, price in zip(ranges, paid, strict=True))
    return Model.from_blocks(model.cardinalities, (*blocks, *further))
