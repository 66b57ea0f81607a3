"""Minimising a probabilistic objective by L-BFGS."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from threadpoolctl import threadpool_limits

from tallytree.learning.checkpoints import Checkpoint
from tallytree.learning.likelihoods import Objective
from tallytree.learning.penalties import Penalty
from tallytree.learning.planes import Floats
from tallytree.learning.progress import Progress, RunOptions, time_left
from tallytree.learning.solver import Arrays, taken

_MEMORY = 8
"""The number of past steps that L-BFGS stores."""


@dataclass
class State:
    """The state of the descent in a checkpoint, without curvature, which is estimated again."""

    weights: Floats

    def arrays(self) -> Arrays:
        """Return the state as arrays."""
        return {"weights": self.weights}

    def restore(self, arrays: Arrays) -> None:
        """Restore a state."""
        self.weights = taken(arrays, "weights", self.weights)


@dataclass
class Fitted:
    """The result of a descent.

    Attributes
    ----------
    weights : array
        The learned weights, at the smallest objective.
    primal, dual : float
        The objective with the penalty, and a lower bound on its optimum; 0 if it is not convex.
    gradient : float
        The norm of the shortest subgradient there.
    history : list of Progress
        One entry for each step.
    converged, interrupted : bool
        Whether the tolerance was reached; whether the user stopped the run.
    before : float
        The seconds in the history that earlier runs took, if this one resumed from a checkpoint.
    """

    run: State
    weights: Floats
    primal: float = np.inf
    dual: float = 0.0
    gradient: float = np.inf
    history: list[Progress] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    before: float = 0.0  # seconds of earlier runs


def fit_weights(
    objective: Objective,
    penalty: Penalty,
    start: Floats,
    options: RunOptions,
    memory: Checkpoint | None = None,
    spent: float = 0.0,
) -> Fitted:
    """Minimise an objective with a penalty.

    Parameters
    ----------
    objective, penalty
        Their sum is minimised.
    start : array
        The initial weights.
    options : RunOptions
        When to stop: for convex objectives, at a certified relative gap of ``tolerance``; for others, when
        the norm of the gradient is at most ``tolerance · max(1, ‖w‖)``.
    memory : Checkpoint, optional
        The file to write the state to, and to read it from.
    spent : float
        The seconds already spent on the initial weights; they count towards the time limit.
    """
    result = Fitted(State(start), start)
    if memory is not None:
        memory.restore(result)  # type: ignore[arg-type]
    if result.history:
        result.before = result.history[-1].seconds
        options = options.resumed_at(result.before)
    if options.exhausted(result.history) or options.reached(result.history):
        result.gradient = _norm_in(result)
        result.converged = options.reached(result.history)
        return result
    descent = _Descent(objective, penalty, options, result, memory, spent)
    try:
        with threadpool_limits(1, "blas"):  # long vectors, little work: more threads would only wait
            descent.run()
    except KeyboardInterrupt:
        result.interrupted = True
    result.converged = options.reached(result.history)
    return result


def _length(weights: Floats) -> float:
    """Return what the norm of the gradient is divided by."""
    return max(1.0, float(np.linalg.norm(weights)))


def _norm_in(found: Fitted) -> float:
    """Return the norm of the gradient in the history of a run."""
    relative = found.history[-1].gradient if found.history else None
    return found.gradient if relative is None else relative * _length(found.weights)


class _Descent:
    """One call of SciPy's L-BFGS-B, monitored step by step.

    With a penalty ``c1``, weights are differences of two non-negative vectors, and the penalty is on their
    sum: then everything is smooth, within bounds.
    """

    def __init__(
        self,
        objective: Objective,
        penalty: Penalty,
        options: RunOptions,
        found: Fitted,
        memory: Checkpoint | None,
        spent: float,
    ) -> None:
        self.objective, self.penalty, self.options = objective, penalty, options
        self.found, self.memory = found, memory
        self.splits = penalty.c1 > 0.0
        last = found.history[-1] if found.history else None
        self.calls = last.calls if last else 0
        self.began = perf_counter() - (last.seconds if last else 0.0) - spent
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
            if len(self.found.history) == before:  # no step was possible
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
        """Record a step, and return whether it is the last."""
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
        if self.options.reached(found.history) or self.options.exhausted(found.history):
            raise StopIteration

    def _progress(self, value: float) -> Progress:
        found, seconds = self.found, perf_counter() - self.began
        mean = value / max(self.objective.examples, 1)
        number = len(found.history) + 1
        gradient = None if self.objective.convex else found.gradient / _length(found.weights)
        progress = Progress(number, found.primal, found.dual, True, mean, self.calls, seconds, None, gradient)
        return progress._replace(left=time_left([*found.history, progress], self.options))
