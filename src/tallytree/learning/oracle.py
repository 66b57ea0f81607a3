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
from tallytree.losses.augmented import LossProfile, loss_augmented

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
        The processes that inference is spread over, by joblib and its current backend; the answers are the
        same. It pays where batches are large: ``FrankWolfe(batch=512)``.

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
        self._losses: list[Loss | None] = [None] * len(problem)
        self._zero = np.zeros(self.dimension)

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.problem)

    def base(self, example: int) -> Plane:
        """Return the plane of the truth: its loss, which is 0 where the loss compares with it."""
        nothing = np.zeros(0, dtype=np.int64)
        loss = self._loss(example)(self.problem.truth(example))
        return Plane(nothing, nothing.astype(np.float64), float(loss))

    def planes(self, examples: Sequence[int], weights: Floats) -> list[list[Plane]]:
        """Return planes of each example, the most violated one first."""
        started = perf_counter()
        models = self.problem.models(examples, weights)
        losses = [self._loss(*pair) for pair in zip(examples, models, strict=True)]
        found = self._found(models, losses)
        self.calls += len(found)
        self.seconds += perf_counter() - started
        return [
            [scaled_plane(self.problem.difference(example, y), cost, self.scaling) for y, cost in one]
            for example, one in zip(examples, found, strict=True)
        ]

    def _found(self, models: list[Model], losses: list[Loss]) -> list[Found]:
        """Solve in this process, or in those of joblib's backend. They get models and give labellings."""
        if self.n_jobs in (None, 1):
            return _solved(models, losses, self.scaling, self.extra)
        cuts = range(0, len(models), _PIECE)
        pieces = Parallel(n_jobs=self.n_jobs)(
            delayed(_solved)(models[i : i + _PIECE], losses[i : i + _PIECE], self.scaling, self.extra)
            for i in cuts
        )
        return [one for piece in pieces for one in piece]

    def _loss(self, example: int, model: Model | None = None) -> Loss:
        known = self._losses[example]
        if known is None:
            model = self.problem.model(example, self._zero) if model is None else model
            known = self._losses[example] = self.problem.loss_of(example).on(model)
        return known


def _solved(
    models: Sequence[Model], losses: Sequence[Loss], scaling: Scaling, extra: TopTallies | Diverse | None
) -> list[Found]:
    return [_solutions(model, loss, scaling, extra) for model, loss in zip(models, losses, strict=True)]


def _solutions(model: Model, loss: Loss, scaling: Scaling, extra: TopTallies | Diverse | None) -> Found:
    """Return labellings and their losses, the most violated one first."""
    if isinstance(extra, TopTallies):
        top = LossProfile(model, loss).top(extra.count, scaling)
        return [(one.assignment, one.loss) for one in top]
    best = loss_augmented(model, loss, scaling)
    found = [(best.assignment, best.loss)]
    if isinstance(extra, Diverse):
        others = diverse_k_best(model, extra.count - 1, extra.distance)
        found += [(one.assignment, float(loss(one.assignment))) for one in others]
    return found
