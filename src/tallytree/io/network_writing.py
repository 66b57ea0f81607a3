"""Writing problems as cost function networks: integer costs, and knapsacks for constraints.

The largest score ``m_t`` is subtracted from every table; the rest, ``m_t - f``, is a non-negative cost.
With ``scale = 10**decimals``, a labelling of score ``F`` costs ``scale · (Σ m_t - F)`` up to rounding.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.io.factors import each_factor
from tallytree.io.problems import ProblemFile
from tallytree.model.model import Model
from tallytree.statistics.constraints import And, Constraint
from tallytree.statistics.linear import Comparison
from tallytree.statistics.statistic import Statistic, read_by
from tallytree.values import counted

LARGEST_COST = (2**63 - 1) // 18
"""The largest cost of toulbar2, in 64 bits."""

MOST_DECIMALS = 15
_EXACT = 2**53  # up to here doubles represent all integers: costs are read back as they were written
_ROUNDED = 1e-14  # the rounding of sums of scores, relative to their size
_NOISE = 2e-15  # how far a score may be from its decimals, relative to its size


class CostScale(NamedTuple):
    """How costs convert to scores: ``score = offset - cost / scale``."""

    offset: float
    scale: float

    def score(self, cost: float) -> float:
        """Convert a cost back to a score."""
        return self.offset - cost / self.scale


class Knapsack(NamedTuple):
    """``Σ weight · [y_variable = value] >= capacity`` over (variable, value, weight).

    `name`: the statistic that the weights, or the negated weights, are equal to; None if there is none.
    """

    triples: list[tuple[int, int, int]]
    capacity: int
    name: str | None = None

    @property
    def variables(self) -> list[int]:
        """The scope."""
        return sorted({variable for variable, _, _ in self.triples})


class IntegerNetwork(NamedTuple):
    """A problem with integer costs; an entry of ``top`` forbids."""

    cardinalities: list[int]
    top: int
    tables: list[tuple[tuple[int, ...], NDArray[np.int64]]]
    knapsacks: list[Knapsack]
    scale: CostScale
    decimals: int


def integer_network(problem: ProblemFile, decimals: int | None) -> IntegerNetwork:
    """Convert scores to costs with this many decimals; by default as many as needed, at most fifteen."""
    if problem.objective is not None:
        raise ModelError(
            f"a cost function network can only maximise the score, but this problem has the objective "
            f"'{problem.objective.text}'; write a problem file instead"
        )
    highs, exact = [], []
    for scope, table in each_factor(problem.model):
        high = float(table.max(initial=-np.inf))
        high = 0.0 if high == -np.inf else high
        highs.append(high)
        exact.append((scope, high - table))
    if decimals is None:
        decimals = _decimals_of(problem.model, _total(exact))
    if not 0 <= decimals <= MOST_DECIMALS:
        raise ModelError(f"decimals must be 0 to {MOST_DECIMALS}, got {decimals}")
    scale = 10.0**decimals
    costs = [(scope, np.rint(table * scale)) for scope, table in exact]
    top = _bound(costs)
    if top > LARGEST_COST:
        raise ModelError(
            f"the costs add up to {_total(costs):.3g}, too large for 64 bits; use fewer decimals"
        )
    _warn_about_rounding(exact, costs, decimals)
    tables = [(scope, _integers(table, top)) for scope, table in costs]
    constraint = problem.constraint
    knapsacks = [] if constraint is None else _knapsacks(constraint)
    if any(not knapsack.triples and knapsack.capacity > 0 for knapsack in knapsacks):
        tables.append(((), np.array(top)))  # cannot be satisfied
    sizes = problem.model.cardinalities.tolist()
    knapsacks = [_of_one_sign(knapsack, sizes) for knapsack in knapsacks if knapsack.triples]
    return IntegerNetwork(sizes, top, tables, knapsacks, CostScale(float(sum(highs)), scale), decimals)


_Tables = list[tuple[tuple[int, ...], NDArray[np.float64]]]


def _total(tables: _Tables) -> float:
    """Return the largest sum of finite costs, one from each table."""
    return sum(_largest(table) for _, table in tables)


def _largest(table: NDArray[np.float64]) -> float:
    return float(np.max(table, where=np.isfinite(table), initial=0.0))


def _bound(costs: _Tables) -> int:
    """Return a cost above those of all labellings, also when they are added up in doubles."""
    total = sum(int(_largest(table)) for _, table in costs)
    return total + 1 + (total >> 32)


def _integers(table: NDArray[np.float64], top: int) -> NDArray[np.int64]:
    """Return costs as integers, and ``top``, which a double might not hold, for those that forbid."""
    forbidden = np.isinf(table)
    return np.where(forbidden, np.int64(top), np.where(forbidden, 0.0, table).astype(np.int64))


def _decimals_of(model: Model, total: float) -> int:
    """Return the smallest number of decimals at which nothing is rounded, or as many as doubles can hold."""
    scores = np.concatenate([block.tables.ravel() for block in model.blocks] or [np.zeros(1)])
    scores = scores[np.isfinite(scores)]
    for decimals in range(MOST_DECIMALS):
        scaled = scores * 10.0**decimals
        if (np.abs(scaled - np.rint(scaled)) <= _NOISE * np.abs(scaled)).all():
            return decimals
        if total * 10.0 ** (decimals + 1) >= _EXACT:
            return decimals
    return MOST_DECIMALS


def _warn_about_rounding(exact: _Tables, costs: _Tables, decimals: int) -> None:
    """Warn if costs differ from the scores by more than sums of scores are rounded anyway."""
    scale, worst = 10.0**decimals, 0.0
    for (_, table), (_, rounded) in zip(exact, costs, strict=True):
        finite = np.isfinite(table)
        worst = max(worst, float(np.abs(table[finite] - rounded[finite] / scale).max(initial=0.0)))
    if worst > _ROUNDED * _total(exact):
        warnings.warn(
            f"scores are rounded to {counted(decimals, 'decimal')}, by up to {worst:.2g} each; the best "
            "labelling of the file may be another one if scores are that close",
            stacklevel=4,
        )


def _knapsacks(constraint: Constraint) -> list[Knapsack]:
    if isinstance(constraint, And):
        return [knapsack for part in constraint.parts for knapsack in _knapsacks(part)]
    if isinstance(constraint, Comparison) and constraint.relation != "!=":
        return _knapsacks_of(constraint)
    raise ModelError(
        f"a cost function network cannot express '{constraint}'; only comparisons with <=, >= and == joined "
        "by `and` can be written"
    )


def _knapsacks_of(comparison: Comparison) -> list[Knapsack]:
    read_by(comparison)
    combined = Statistic.combination(comparison.left)
    constant, triples = 0, []
    for block in combined.blocks:
        tables = np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:]))
        if block.arity > 1:
            raise ModelError(
                f"'{comparison}' counts over {block.arity} variables at a time, which a cost function "
                "network cannot express; only statistics of single variables can be written"
            )
        if block.arity == 0:
            constant += int(tables.sum())
        else:
            triples += [
                (int(block.scopes[k, 0]), a, int(tables[k, a])) for k, a in np.argwhere(tables).tolist()
            ]
    bound = comparison.bound - constant
    weights, negated = _merged(triples, 1), _merged(triples, -1)
    plain = constant == 0 and all(weight > 0 for _, _, weight in weights)  # as a reader restores it
    name = comparison.terms[0][0].name if plain and [c for _, c in comparison.terms] == [1] else None
    knapsacks = []
    if comparison.relation in (">=", "=="):
        knapsacks.append(Knapsack(weights, bound, name))
    if comparison.relation in ("<=", "=="):
        knapsacks.append(Knapsack(negated, -bound, name))
    return knapsacks


def _of_one_sign(knapsack: Knapsack, sizes: list[int]) -> Knapsack:
    """Return an equal knapsack without negative weights, if it has weights of both signs.

    toulbar2 1.4 finds wrong solutions for these. Each variable has one value, so that the least of its
    weights can be subtracted from all of them and from the capacity.
    """
    weights = {(variable, value): weight for variable, value, weight in knapsack.triples}
    if min(weights.values()) >= 0 or max(weights.values()) <= 0:
        return knapsack
    triples, capacity = [], knapsack.capacity
    for variable in knapsack.variables:
        values = [weights.get((variable, value), 0) for value in range(sizes[variable])]
        capacity -= min(values)
        triples += [
            (variable, a, weight - min(values)) for a, weight in enumerate(values) if weight > min(values)
        ]
    return Knapsack(triples, capacity)


def _merged(triples: list[tuple[int, int, int]], sign: int) -> list[tuple[int, int, int]]:
    """Add up the weights of each (variable, value)."""
    weights: dict[tuple[int, int], int] = {}
    for variable, value, weight in triples:
        weights[variable, value] = weights.get((variable, value), 0) + sign * weight
    return [(variable, value, weight) for (variable, value), weight in sorted(weights.items()) if weight]
