"""Minimising an objective of probabilities: L-BFGS until little is left."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from threadpoolctl import threadpool_limits

from tallytree.learning.likelihoods import Objective
from tallytree.learning.penalties import Penalty
from tallytree.learning.planes import Floats
from tallytree.learning.progress import Progress, RunOptions, time_left
from tallytree.learning.solver import Arrays, taken
from tallytree.learning.training import Checkpoint

_MEMORY = 8
"""The steps that L-BFGS remembers."""


@dataclass
class State:
    """Where the descent stands: what a checkpoint keeps of it. Curvature is found anew."""

    weights: Floats

    def arrays(self) -> Arrays:
        """Return the state as arrays."""
        return {"weights": self.weights}

    def restore(self, arrays: Arrays) -> None:
        """Take up a state."""
        self.weights = taken(arrays, "weights", self.weights)


@dataclass
class Fitted:
    """What a descent has found.

    Attributes
    ----------
    weights : array
        The weights that are learned, at the smallest objective.
    primal, dual : float
        The objective with the penalty, and a lower bound on its optimum; 0 where it is not convex.
    gradient : float
        The length of the shortest subgradient there.
    history : list of Progress
        One entry for each step.
    converged, interrupted : bool
        Whether little enough is left; whether the user stopped the run.
    """

    run: State
    weights: Floats
    primal: float = np.inf
    dual: float = 0.0
    gradient: float = np.inf
    history: list[Progress] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False


def fit_weights(
    objective: Objective,
    penalty: Penalty,
    start: Floats,
    options: RunOptions,
    memory: Checkpoint | None = None,
) -> Fitted:
    """Minimise an objective with a penalty.

    Parameters
    ----------
    objective, penalty
        What to minimise the sum of.
    start : array
        The weights to start from.
    options : RunOptions
        When to stop: for convex objectives, at a certified relative gap of ``tolerance``; for others, where
        the gradient is no longer than ``tolerance · max(1, ‖w‖)``.
    memory : Checkpoint, optional
        Where to write the state to, and to read it from.
    """
    found = Fitted(State(start), start)
    if memory is not None:
        memory.restore(found)  # type: ignore[arg-type]
    if options.exhausted(found.history) or _reached(found, options, objective):
        found.converged = _reached(found, options, objective)
        return found
    descent = _Descent(objective, penalty, options, found, memory)
    try:
        with threadpool_limits(1, "blas"):  # long vectors, little work: threads would wait for each other
            descent.run()
    except KeyboardInterrupt:
        found.interrupted = True
    found.converged = _reached(found, options, objective)
    return found


def _reached(found: Fitted, options: RunOptions, objective: Objective) -> bool:
    if objective.convex:
        return options.reached(found.history)
    return found.gradient <= options.tolerance * max(1.0, float(np.linalg.norm(found.weights)))


class _Descent:
    """One call of SciPy's L-BFGS-B, watched step by step.

    With a penalty ``c1``, weights are differences of two vectors that are not negative, whose sum is what
    the penalty is of: then everything is smooth, within bounds.
    """

    def __init__(
        self,
        objective: Objective,
        penalty: Penalty,
        options: RunOptions,
        found: Fitted,
        memory: Checkpoint | None,
    ) -> None:
        self.objective, self.penalty, self.options = objective, penalty, options
        self.found, self.memory = found, memory
        self.splits = penalty.c1 > 0.0
        last = found.history[-1] if found.history else None
        self.calls = last.calls if last else 0
        self.began = perf_counter() - (last.seconds if last else 0.0)
        self.seen: tuple[Floats, float, Floats] | None = None

    def run(self) -> None:
        start = self.found.run.weights
        if self.splits:
            start = np.concatenate((np.maximum(start, 0.0), np.maximum(-start, 0.0)))
        before = len(self.found.history)
        with suppress(StopIteration):  # raised by the last note
            best = minimize(
                self._value,
                start,
                method="L-BFGS-B",
                jac=True,
                bounds=[(0.0, None)] * len(start) if self.splits else None,
                callback=self._note,
                options={"maxcor": _MEMORY, "maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0},
            )
            if len(self.found.history) == before:  # there was no step to be made
                self._note(best)

    def _weights(self, point: Floats) -> Floats:
        if not self.splits:
            return point
        plus, minus = np.split(point, 2)
        return plus - minus

    def _value(self, point: Floats) -> tuple[float, Floats]:
        weights = self._weights(point)
        value, gradient = self.objective(weights)
        self.calls += self.objective.examples
        self.seen = point.copy(), value, gradient
        smooth = gradient + 2.0 * self.penalty.c2 * weights
        value += self.penalty.c2 * float(weights @ weights)
        if not self.splits:
            return value, smooth
        c1 = self.penalty.c1
        return value + c1 * float(point.sum()), np.concatenate((smooth + c1, c1 - smooth))

    def _note(self, intermediate_result: OptimizeResult) -> None:
        """Take down a step, and say whether it is the last."""
        if self.seen is None or not np.array_equal(self.seen[0], intermediate_result.x):
            self._value(intermediate_result.x)
        assert self.seen is not None
        point, value, gradient = self.seen
        weights, found = self._weights(point).copy(), self.found
        primal = value + self.penalty.value(weights)
        excess = self.penalty.excess(weights, gradient, primal) if self.objective.convex else primal
        found.dual = max(found.dual, primal - excess)
        found.run.weights = weights
        if primal <= found.primal:
            found.weights, found.primal = weights, primal
            found.gradient = float(np.linalg.norm(self.penalty.subgradient(weights, gradient)))
        found.history.append(self._progress(value))
        if self.memory is not None:
            self.memory.write(found)  # type: ignore[arg-type]
        if self.options.callback is not None:
            self.options.callback(found.history[-1])
        if _reached(found, self.options, self.objective) or self.options.exhausted(found.history):
            raise StopIteration

    def _progress(self, value: float) -> Progress:
        found, seconds = self.found, perf_counter() - self.began
        mean = value / max(self.objective.examples, 1)
        number = len(found.history) + 1
        progress = Progress(number, found.primal, found.dual, True, mean, self.calls, seconds, None)
        return progress._replace(left=time_left([*found.history, progress], self.options))
