"""Inference for a batch of examples, as a value that another process can solve.

A task holds scores and truths, never weights or features; :meth:`Task.solved` returns labellings and losses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from tallytree.answers.solution import Solution
from tallytree.bulk.batch import solve_batch
from tallytree.bulk.chains import Chains, best_of_chains
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.loss_batch import most_violated
from tallytree.bulk.truth_tables import Search
from tallytree.errors import InfeasibleError, TallytreeError
from tallytree.learning.accepted import COUNT, check_all
from tallytree.learning.planes import Floats, Integers
from tallytree.losses import Loss
from tallytree.model.model import Model
from tallytree.statistics.constraints import And, Constraint
from tallytree.statistics.recipes import mismatches

Scaling = Literal["margin", "slack"]

Found = list[tuple[Any, float]]
"""Labellings, or trees, of an example and their losses, the most violated one first."""


@dataclass(frozen=True)
class TopTallies:
    """Several planes per pass: the best labelling of each of the best tallies.

    They come from one table or, for chunk losses on chains, from one search by bounds.
    """

    count: int = 4

    def __post_init__(self) -> None:
        check_all(self, count=COUNT)


@dataclass(frozen=True)
class Diverse:
    """The most violated plane, and those of diverse labellings with high scores.

    Attributes
    ----------
    count : int
        The number of planes.
    distance : int
        The minimum number of variables (or constituents) in which any two of the others differ.
    """

    count: int = 3
    distance: int = 2

    def __post_init__(self) -> None:
        check_all(self, count=COUNT, distance=COUNT)


Extra = TopTallies | Diverse | None


class Task(ABC):
    """Some examples at some weights."""

    def solved(self, scaling: Scaling, extra: Extra, threads: int | None) -> list[Found]:
        """Return labellings of each example and their losses, the most violated one first."""
        if isinstance(extra, TopTallies):
            return self._top(extra.count, scaling, threads)
        labellings = self._top(1, scaling, threads)
        if isinstance(extra, Diverse):
            others = self._diverse(extra.count - 1, extra.distance, threads)
            return [[*first, *more] for first, more in zip(labellings, others, strict=True)]
        return labellings

    @property
    def counted(self) -> int:
        """The number of prices per example in a search by bounds; 0 if there is no such search."""
        return 0

    def starting_at(self, prices: Floats) -> Self:
        """Return the task with initial prices for each example, which the searches update in place."""
        return self

    def pieces(self, size: int) -> list[Self]:
        """Split the task into pieces of at most this many examples."""
        return [self._part(first, first + size) for first in range(0, len(self), size)]

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of examples."""

    @abstractmethod
    def _part(self, first: int, last: int) -> Self:
        """Return the task of some examples."""

    @abstractmethod
    def _top(self, count: int, scaling: Scaling, threads: int | None) -> list[Found]:
        """Return the best labellings of the best tallies."""

    @abstractmethod
    def _diverse(self, count: int, distance: int, threads: int | None) -> list[Found]:
        """Return diverse labellings with high scores."""


@dataclass(frozen=True)
class ModelTask(Task):
    """Models of any shape, with one recipe for all of them, or a loss for each."""

    models: Sequence[Model]
    truths: Sequence[Integers]
    losses: Loss | Sequence[Loss]
    prices: Floats | None = None

    def __len__(self) -> int:
        return len(self.models)

    @property
    def counted(self) -> int:
        """How many statistics the loss has, if its tables serve all truths."""
        alike = {model.alike if isinstance(model, Model) else None for model in self.models}
        labels = alike.pop() if alike else None
        if alike or not labels or not isinstance(self.losses, Loss):
            return 0
        tables = truth_tables(self.losses, labels, self.models[0].states_of(0))
        return 0 if tables is None else len(tables.statistics)

    def starting_at(self, prices: Floats) -> ModelTask:
        """Return the task with prices."""
        return replace(self, prices=prices)

    def _part(self, first: int, last: int) -> ModelTask:
        losses = self.losses if isinstance(self.losses, Loss) else self.losses[first:last]
        prices = None if self.prices is None else self.prices[first:last]
        return ModelTask(self.models[first:last], self.truths[first:last], losses, prices)

    def _top(self, count: int, scaling: Scaling, threads: int | None) -> list[Found]:
        truths = self.truths if isinstance(self.losses, Loss) else None
        labellings = most_violated(self.models, self.losses, truths, scaling, count, threads, self.prices)
        return [[(one.assignment.reshape(-1), one.loss) for one in some] for some in labellings]

    def _diverse(self, count: int, distance: int, threads: int | None) -> list[Found]:
        others = _diverse_batch(self.models, count, distance, threads)
        bound = [loss.on(model) for model, loss in zip(self.models, self._bound(), strict=True)]
        return [
            [(one.assignment.reshape(-1), float(loss(one.assignment))) for one in some]
            for loss, some in zip(bound, others, strict=True)
        ]

    def _bound(self) -> Sequence[Loss]:
        if isinstance(self.losses, Loss):
            return [self.losses.against(truth) for truth in self.truths]
        return self.losses


@dataclass(frozen=True)
class ChainTask(Task):
    """Chains over one set of labels, with a loss whose tables serve all truths; no models are built."""

    chains: Chains
    truths: Sequence[Integers]
    loss: Loss
    prices: Floats | None = None

    def __len__(self) -> int:
        return len(self.truths)

    @property
    def counted(self) -> int:
        """How many statistics the loss has."""
        tables = truth_tables(self.loss, self.chains.emissions.shape[1], self.chains.names)
        return 0 if tables is None else len(tables.statistics)

    def starting_at(self, prices: Floats) -> ChainTask:
        """Return the task with prices."""
        return replace(self, prices=prices)

    def _part(self, first: int, last: int) -> ChainTask:
        prices = None if self.prices is None else self.prices[first:last]
        return ChainTask(self.chains.part(first, last), self.truths[first:last], self.loss, prices)

    def _top(self, count: int, scaling: Scaling, threads: int | None) -> list[Found]:
        search = Search("auto", self.prices)
        return best_of_chains(self.chains, self.loss, self.truths, scaling, count, threads, search)

    def _diverse(self, count: int, distance: int, threads: int | None) -> list[Found]:
        return ModelTask(self.chains.models(), self.truths, self.loss)._diverse(count, distance, threads)


def _diverse_batch(
    models: Sequence[Model], count: int, distance: int, threads: int | None
) -> list[list[Solution]]:
    """Return what :func:`diverse_k_best` returns for each model, in rounds for all of them."""
    lists: list[list[Solution]] = [[] for _ in models]
    away: list[list[Constraint]] = [[] for _ in models]
    left = list(range(len(models)))
    for rank in range(count):
        some = [models[i] for i in left]
        where = [And(tuple(away[i])) if rank > 1 else away[i][0] if rank else None for i in left]
        answers = solve_batch(some, where=where, threads=threads, errors="return")
        for i, answer in zip(left, answers, strict=True):
            if isinstance(answer, TallytreeError) and not isinstance(answer, InfeasibleError):
                raise answer
            if isinstance(answer, Solution):
                lists[i].append(answer)
                wrong = mismatches(models[i], answer.assignment, name=f"distance_{rank + 1}")
                away[i].append(wrong >= distance)
        left = [i for i in left if len(lists[i]) == rank + 1]
    return lists
