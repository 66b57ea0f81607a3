"""The definitions, and all labellings of a small model."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallytree.errors import InfeasibleError
from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.statistics.constraints import Constraint, local_part
from tallytree.statistics.statistic import Recipe, Statistic, read_by

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Factor = tuple[tuple[int, ...], npt.NDArray[Any]]

LABELLING_LIMIT = 1_000_000
"""The largest number of labellings that `brute_force` enumerates."""


def factors_of(blocks: Iterable[Block]) -> Iterator[Factor]:
    """Yield the (scope, table) pairs of some blocks.

    Examples
    --------
    >>> [scope for scope, table in factors_of(Model.chain(np.zeros((2, 3)), np.zeros((3, 3))).blocks)]
    [(0,), (1,), (0, 1)]
    """
    for block in blocks:
        tables = np.broadcast_to(block.tables, (len(block.scopes), *block.tables.shape[1:]))
        for scope, table in zip(block.scopes.tolist(), tables, strict=True):
            yield tuple(scope), np.asarray(table)


def score_of(model: Model, labellings: npt.ArrayLike) -> Floats:
    """Return ``F(y)`` for each row ``y`` of `labellings`."""
    return _sum_at(factors_of(model.blocks), np.atleast_2d(labellings), np.float64)


def tally_of(statistic: Statistic, labellings: npt.ArrayLike) -> Integers:
    """Return ``G(y)``, capped if the statistic is, for each row ``y`` of `labellings`."""
    total = _sum_at(factors_of(statistic.blocks), np.atleast_2d(labellings), np.int64)
    return total if statistic.cap is None else np.minimum(total, statistic.cap)


def _sum_at(
    factors: Iterable[Factor], labellings: npt.NDArray[Any], dtype: type[np.generic]
) -> npt.NDArray[Any]:
    total = np.zeros(len(labellings), dtype=dtype)
    for scope, table in factors:
        total += table[tuple(labellings[:, variable] for variable in scope)]
    return total


def score_tolerance(model: Model) -> float:
    """Return how far two sums of the same scores may differ: ``64 · eps · Σ max |f|``."""
    largest = [
        np.abs(table, where=table > -np.inf, out=np.zeros_like(table)).max()
        for _, table in factors_of(model.blocks)
    ]
    return 64 * float(np.finfo(np.float64).eps) * (1.0 + float(sum(largest)))


# ---------------------------------------------------------------- enumeration


class Best(NamedTuple):
    """A labelling with its score, tally and value."""

    value: float
    score: float
    tally: tuple[int, ...]
    assignment: Integers


@dataclass(frozen=True, eq=False)
class Enumeration:
    """All labellings of a model, with their scores and tallies.

    Attributes
    ----------
    model, statistics
        The problem.
    labellings
        ``(L, M)``, one labelling per row, in lexicographic order.
    scores
        ``(L,)``; ``-inf`` for labellings that the model forbids.
    tallies
        ``(L, P)``.
    """

    model: Model
    statistics: tuple[Statistic, ...]
    labellings: Integers
    scores: Floats
    tallies: Integers

    @cached_property
    def _possible(self) -> npt.NDArray[np.bool_]:
        return self.scores > -np.inf

    @cached_property
    def _groups(self) -> tuple[Integers, Integers]:
        """The attainable tallies, and for each possible labelling the position of its tally."""
        tallies = self.tallies[self._possible]
        # A constant first column, because np.unique needs at least one.
        keyed = np.column_stack([np.zeros(len(tallies), dtype=np.int64), tallies])
        unique, inverse = np.unique(keyed, axis=0, return_inverse=True)
        return unique[:, 1:], inverse.reshape(-1)

    def profile(self) -> tuple[Integers, Floats]:
        """Return the attainable tallies ``(S, P)``, sorted, and the best score ``(S,)`` of each.

        A tally is attainable if some labelling with a score above ``-inf`` has it.
        """
        tallies, group = self._groups
        best = np.full(len(tallies), -np.inf)
        np.maximum.at(best, group, self.scores[self._possible])
        return tallies, best

    def log_partitions(self) -> Floats:
        """Return ``log Σ exp F(y)`` over the labellings of each attainable tally."""
        _, group = self._groups
        _, best = self.profile()
        scaled = np.bincount(group, np.exp(self.scores[self._possible] - best[group]), minlength=len(best))
        return np.asarray(best + np.log(scaled))

    def log_partition(self) -> float:
        """Return ``log Σ exp F(y)`` over all labellings."""
        best = self.scores.max()
        return float(best + np.log(np.exp(self.scores - best).sum())) if best > -np.inf else -math.inf

    def probabilities(self) -> Floats:
        """Return the probability of each attainable tally if ``p(y)`` is proportional to ``exp F(y)``."""
        return np.asarray(np.exp(self.log_partitions() - self.log_partition()))

    def counts(self) -> tuple[int, ...]:
        """Return the number of labellings with a score above ``-inf`` for each attainable tally."""
        tallies, group = self._groups
        return tuple(np.bincount(group, minlength=len(tallies)).tolist())

    def marginals(self, tally: Sequence[int] | None = None) -> list[Floats]:
        """Return each variable's distribution over its states, optionally given a tally."""
        chosen = self._possible
        if tally is not None:
            chosen = chosen & np.all(self.tallies == np.asarray(tally, dtype=np.int64), axis=1)
        if not chosen.any():
            raise InfeasibleError(f"no labelling has a score above -inf and the tally {tally}")
        scores, labellings = self.scores[chosen], self.labellings[chosen]
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        cardinalities = self.model.cardinalities.tolist()
        counted = (np.bincount(labellings[:, v], weights, minlength=n) for v, n in enumerate(cardinalities))
        return [probabilities.astype(np.float64) for probabilities in counted]

    def best(self, objective: Callable[..., Any] | None = None, where: Constraint | None = None) -> Best:
        """Return the labelling with the largest ``H(F(y), G(y))``; ties go to the first tally.

        Parameters
        ----------
        objective
            ``H``, elementwise on the arrays ``score, tally_1, ..., tally_P``. The default is the score.
        where
            A constraint that the labelling must satisfy.
        """
        rows = np.flatnonzero(self._possible)
        if where is not None:
            rows = rows[_satisfied(where.on(self.model), self.model, self.labellings[rows])]
        if not len(rows):
            raise InfeasibleError("no labelling has a score above -inf and satisfies the constraint")
        if self.statistics:
            rows = rows[np.lexsort(self.tallies[rows].T[::-1])]
        scores = self.scores[rows]
        values = scores if objective is None else objective(scores, *self.tallies[rows].T)
        values = np.broadcast_to(values, scores.shape)
        first = int(np.argmax(values))
        row = rows[first]
        return Best(
            float(values[first]),
            float(self.scores[row]),
            tuple(self.tallies[row].tolist()),
            self.labellings[row],
        )


def _satisfied(constraint: Constraint, model: Model, labellings: Integers) -> npt.NDArray[np.bool_]:
    satisfied = np.ones(len(labellings), dtype=np.bool_)
    for part in constraint.reducing:
        satisfied &= [part.satisfied(model, labelling) for labelling in labellings]
    local = local_part(constraint)
    if local is None:
        return satisfied
    tallies = {statistic: tally_of(statistic, labellings) for statistic in read_by(local)}
    return np.asarray(satisfied & local.holds(tallies))


def brute_force(model: Model, statistics: Sequence[Statistic | Recipe] = ()) -> Enumeration:
    """Score every labelling of a small model.

    Examples
    --------
    >>> coins = Model([2, 2], [((0,), [0.0, 2.0]), ((1,), [0.0, 1.0])])
    >>> heads = Statistic([((0,), [0, 1]), ((1,), [0, 1])], name="heads")
    >>> tallies, scores = brute_force(coins, [heads]).profile()
    >>> tallies.ravel().tolist(), scores.tolist()
    ([0, 1, 2], [0.0, 2.0, 3.0])
    """
    cardinalities = tuple(model.cardinalities.tolist())
    total = math.prod(cardinalities)
    if total > LABELLING_LIMIT:
        raise ValueError(f"{total} labellings are too many to enumerate; the limit is {LABELLING_LIMIT}")
    labellings = np.indices(cardinalities, dtype=np.int64).reshape(len(cardinalities), total).T
    bound = tuple(statistic.on(model) for statistic in statistics)
    tallies = np.zeros((total, len(bound)), dtype=np.int64)
    for p, statistic in enumerate(bound):
        tallies[:, p] = tally_of(statistic, labellings)
    return Enumeration(model, bound, labellings, score_of(model, labellings), tallies)
