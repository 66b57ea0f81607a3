"""The oracle: the most violated planes of examples at given weights, found by exact inference.

For every example the oracle maximises ``Δ(y) + F(y) − F(truth)`` (margin scaling) or
``Δ(y)·(1 + F(y) − F(truth))`` (slack scaling) over all labellings. Because it is exact, the value of the
plane is the hinge loss itself, and a duality gap computed from it is a bound, not an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from time import perf_counter
from typing import Protocol, get_args

import numpy as np
from joblib import Parallel, delayed

from tallytree.learning.accepted import JOBS, one_of
from tallytree.learning.inference import Extra, Found, Scaling, Task
from tallytree.learning.planes import Floats, Plane, scaled_plane
from tallytree.learning.problem import Labelling, TrainingProblem

_PIECE = 64
"""Examples passed to a process at a time."""

_WORTH_PROCESSES = 5.0
"""Seconds of inference after which processes are used: starting them takes about as long, once."""

_MANY = 1024
"""Labellings whose features are computed at once: enough for speed, few enough for memory."""

SCALING = one_of(*get_args(Scaling))


class Oracle(Protocol):
    """What a solver needs to find planes. Any object with these members can be used."""

    dimension: int

    def __len__(self) -> int:
        """Return the number of examples."""

    def base(self, example: int) -> Plane:
        """Return the plane of the truth itself, whose slope is zero."""

    def planes(self, examples: Sequence[int], weights: Floats) -> list[list[Plane]]:
        """Return planes of each example, the most violated one first."""


class ExactOracle:
    """Exact loss-augmented inference for the examples of a problem.

    Parameters
    ----------
    problem : TrainingProblem
        The examples, their features and their loss.
    scaling : {"margin", "slack"}
        How the loss enters the hinge.
    extra : TopTallies or Diverse, optional
        The source of additional planes in each call; none by default.
    n_jobs : int, optional
        The number of processes for inference, through joblib and its current backend; by default native
        threads of this process. The answers are the same. Useful for long runs on many-core machines and
        clusters, with large batches: ``FrankWolfe(batch=512)``. Batches of up to 64 examples, and the first
        five seconds of inference, use threads.

    Attributes
    ----------
    calls : int
        The number of oracle calls so far, counted in examples.
    seconds : float
        The time spent in them.
    """

    def __init__(
        self,
        problem: TrainingProblem,
        scaling: Scaling = "margin",
        extra: Extra = None,
        n_jobs: int | None = None,
    ) -> None:
        SCALING.check("scaling", scaling)
        JOBS.check("n_jobs", n_jobs)
        self.problem, self.scaling, self.extra, self.n_jobs = problem, scaling, extra, n_jobs
        self.dimension = problem.dimension
        self.calls, self.seconds = 0, 0.0
        self._prices: Floats | None = None  # of each example

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self.problem)

    def base(self, example: int) -> Plane:
        """Return the plane of the truth: its loss, which is 0 if the loss compares with it."""
        nothing = np.zeros(0, dtype=np.int64)
        return Plane(nothing, nothing.astype(np.float64), self.problem.truth_loss(example))

    def planes(self, examples: Sequence[int], weights: Floats) -> list[list[Plane]]:
        """Return planes of each example, the most violated one first."""
        started = perf_counter()
        labellings = self._found(self.problem.task(examples, weights), examples)
        self.calls += len(labellings)
        self.seconds += perf_counter() - started
        labelled = [
            (example, *one) for example, some in zip(examples, labellings, strict=True) for one in some
        ]
        planes = (
            plane
            for first in range(0, len(labelled), _MANY)
            for plane in self._made(labelled[first : first + _MANY])
        )
        return [list(islice(planes, len(some))) for some in labellings]

    def _made(self, labelled: Sequence[tuple[int, Labelling, float]]) -> Iterator[Plane]:
        """Iterate over the planes of labellings with their losses."""
        differences = self.problem.differences([e for e, _, _ in labelled], [y for _, y, _ in labelled])
        for (example, y, cost), difference in zip(labelled, differences, strict=True):
            yield scaled_plane(difference, cost, self.scaling, self.problem.lead(example, y))

    def _found(self, task: Task, examples: Sequence[int]) -> list[Found]:
        """Solve on native threads, or in joblib's workers if that is likely to be faster."""
        if self.n_jobs in (None, 1) or len(examples) <= _PIECE or self.seconds < _WORTH_PROCESSES:
            return self._remembered(task, examples)
        answers = Parallel(n_jobs=self.n_jobs)(
            delayed(_solved)(piece, self.scaling, self.extra) for piece in task.pieces(_PIECE)
        )
        return [one for piece in answers for one in piece]

    def _remembered(self, task: Task, examples: Sequence[int]) -> list[Found]:
        """Solve starting from the prices of the previous call: weights have changed little since then."""
        if not task.counted:
            return task.solved(self.scaling, self.extra, None)
        if self._prices is None:
            self._prices = np.full((len(self), task.counted), np.nan)
        numbers = np.asarray(examples)
        prices = self._prices[numbers]
        labellings = task.starting_at(prices).solved(self.scaling, self.extra, None)
        self._prices[numbers] = prices
        return labellings


def _solved(task: Task, scaling: Scaling, extra: Extra) -> list[Found]:
    return task.solved(scaling, extra, 1)
