"""The oracle: the most violated planes of examples at given weights, found by exact inference.

For every example the oracle maximises ``Δ(y) + F(y) − F(truth)`` (margin scaling) or
``Δ(y)·(1 + F(y) − F(truth))`` (slack scaling) over all labellings. Because it is exact, the value of the
plane is the hinge loss itself, and a duality gap computed from it is a bound, not an estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Literal, Protocol

import numpy as np
from joblib import Parallel, delayed

from tallytree.core.model import Model
from tallytree.errors import ModelError
from tallytree.kbest import diverse_k_best
from tallytree.learning.planes import Floats, Integers, Plane, scaled_plane
from tallytree.learning.problem import Problem
from tallytree.losses import Loss
from tallytree.losses.augmented import LossProfile
from tallytree.losses.batch import loss_augmented_batch

__all__ = ["Diverse", "ExactOracle", "Oracle", "Scaling", "TopTallies"]

Scaling = Literal["margin", "slack"]

Found = list[tuple[Integers, float]]
"""Labellings of an example and their losses, the most violated one first."""

_PIECE = 64
"""The examples that a process is given at a time."""


class Oracle(Protocol):
    """What a solver asks for planes. Anything with these members will do."""

    dimension: int

    def __len__(self) -> int:
        """Return the number of examples."""

    def base(self, example: int) -> Plane:
        """Return the plane of the truth itself, which has no slope."""

    def planes(self, examples: Sequence[int], weights: Floats) -> list[list[Plane]]:
        """Return planes of each example, the most violated one first."""


@dataclass(frozen=True)
class TopTallies:
    """Several planes of one pass: the best labelling of each of the best tallies.

    They cost no further message passing, only a decode each.
    """

    count: int = 4


@dataclass(frozen=True)
class Diverse:
    """The most violated plane, and those of labellings of high score that are far from each other.

    Attributes
    ----------
    count : int
        The number of planes.
    distance : int
        How many variables differ, at least, between any two of the others.
    """

    count: int = 3
    distance: int = 2


class ExactOracle:
    """Exact loss-augmented inference for the examples of a problem.

    Parameters
    ----------
    problem : Problem
        The examples, their features and their loss.
    scaling : {"margin", "slack"}
        How the loss enters the hinge.
    extra : TopTallies or Diverse, optional
        Where further planes of each call come from; by default there is one.
    n_jobs : int, optional
        The processes that inference is spread over, by joblib and its current backend; by default native
        threads of this one. The answers are the same. It pays for whole machines, and where batches are
        large: ``FrankWolfe(batch=512)``.

    Attributes
    ----------
    calls : int
        The number of examples asked for so far.
    seconds : float
        The time that it took.
    """

    def __init__(
        self,
        problem: Problem,
        scaling: Scaling = "margin",
        extra: TopTallies | Diverse | None = None,
        n_jobs: int | None = None,
    ) -> None:
        if scaling not in ("margin", "slack"):
            raise ModelError(f"scaling must be 'margin' or 'slack', got {scaling!r}")
        self.problem, self.scaling, self.extra, self.n_jobs = problem, scaling, extra, n_jobs
        self.dimension = problem.dimension
        self.calls, self.seconds = 0, 0.0
        self._zero = np.zeros(self.dimension)

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.problem)

    def base(self, example: int) -> Plane:
        """Return the plane of the truth: its loss, which is 0 where the loss compares with it."""
        nothing = np.zeros(0, dtype=np.int64)
        model = self.problem.model(example, self._zero)
        loss = self.problem.loss_of(example).on(model)(self.problem.truth(example))
        return Plane(nothing, nothing.astype(np.float64), float(loss))

    def planes(self, examples: Sequence[int], weights: Floats) -> list[list[Plane]]:
        """Return planes of each example, the most violated one first."""
        started = perf_counter()
        models = self.problem.models(examples, weights)
        found = self._found(models, [self.problem.truth(example) for example in examples], examples)
        self.calls += len(found)
        self.seconds += perf_counter() - started
        return [
            [scaled_plane(self.problem.difference(example, y), cost, self.scaling) for y, cost in one]
            for example, one in zip(examples, found, strict=True)
        ]

    def _found(self, models: list[Model], truths: list[Integers], examples: Sequence[int]) -> list[Found]:
        """Solve on native threads, or in joblib's workers, which get models and give labellings."""
        losses = self._losses(examples)
        if self.n_jobs in (None, 1):
            return _solved(models, truths, losses, self.scaling, self.extra, None)
        pieces = Parallel(n_jobs=self.n_jobs)(
            delayed(_solved)(
                models[i : i + _PIECE],
                truths[i : i + _PIECE],
                losses if isinstance(losses, Loss) else losses[i : i + _PIECE],
                self.scaling,
                self.extra,
                1,
            )
            for i in range(0, len(models), _PIECE)
        )
        return [one for piece in pieces for one in piece]

    def _losses(self, examples: Sequence[int]) -> Loss | list[Loss]:
        """Return the recipe where it serves all examples: it is bound in bulk; else a loss for each."""
        if type(self.problem).loss_of is Problem.loss_of:
            return self.problem.loss
        return [self.problem.loss_of(example) for example in examples]


def _solved(
    models: Sequence[Model],
    truths: Sequence[Integers],
    losses: Loss | Sequence[Loss],
    scaling: Scaling,
    extra: TopTallies | Diverse | None,
    threads: int | None,
) -> list[Found]:
    """Return labellings of each model and their losses, the most violated one first."""
    if isinstance(extra, TopTallies):
        return [_top(*pair, scaling, extra) for pair in zip(models, _bound(losses, truths), strict=True)]
    unbound = truths if isinstance(losses, Loss) else None
    best = loss_augmented_batch(models, losses, scaling, truths=unbound, threads=threads)
    found: list[Found] = [[(one.assignment, one.loss)] for one in best]
    if isinstance(extra, Diverse):
        others = [_others(*pair, extra) for pair in zip(models, _bound(losses, truths), strict=True)]
        return [[*first, *more] for first, more in zip(found, others, strict=True)]
    return found


def _bound(losses: Loss | Sequence[Loss], truths: Sequence[Integers]) -> Sequence[Loss]:
    return [losses.against(truth) for truth in truths] if isinstance(losses, Loss) else losses


def _top(model: Model, loss: Loss, scaling: Scaling, extra: TopTallies) -> Found:
    return [(one.assignment, one.loss) for one in LossProfile(model, loss).top(extra.count, scaling)]


def _others(model: Model, loss: Loss, extra: Diverse) -> Found:
    bound = loss.on(model)
    others = diverse_k_best(model, extra.count - 1, extra.distance)
    return [(one.assignment, float(bound(one.assignment))) for one in others]
