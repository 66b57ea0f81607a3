"""Shared by the CRFs: the parameters of probabilistic training."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tallytree.errors import ModelError
from tallytree.learning.checkpoints import Checkpoint
from tallytree.learning.descent import Fitted, State, fit_weights
from tallytree.learning.fingerprints import fingerprint_of
from tallytree.learning.likelihoods import Objective, ObjectiveKind
from tallytree.learning.penalties import Penalty
from tallytree.learning.planes import Floats
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.progress import RunOptions, StartingPass, shown_passes
from tallytree.learning.structured_estimator import StructuredEstimator
from tallytree.learning.weighting import ClassWeight, importance_of
from tallytree.losses import Loss


class StructuredCRF(StructuredEstimator):
    """Base class of the CRFs; use one of its subclasses."""

    objective: ObjectiveKind
    c1: float
    c2: float
    class_weight: ClassWeight
    margin: float

    def __init__(
        self,
        loss: Loss | str | None = None,
        *,
        objective: ObjectiveKind = "likelihood",
        c1: float = 0.0,
        c2: float = 1.0,
        class_weight: ClassWeight = None,
        tolerance: float = 0.01,
        max_passes: int = 500,
        max_seconds: float = np.inf,
        n_jobs: int | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        verbose: bool = False,
        margin: float = 1.0,
    ) -> None:
        self._keep(locals())

    gradient_norm_: float

    def _first_objective(self, problem: Any, importance: Floats) -> Objective:
        """Return the objective to minimise first if the given one is not convex, or takes far longer."""
        return self._objective(problem, "likelihood", importance)

    @property
    def _threads(self) -> int | None:
        """The number of threads for ``n_jobs``; all if it is negative."""
        return None if self.n_jobs is None or self.n_jobs < 0 else int(self.n_jobs)

    @abstractmethod
    def _objective(self, problem: Any, kind: ObjectiveKind, importance: Floats) -> Objective:
        """Return the objective to minimise, without the penalty."""

    def fit(self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None) -> Self:
        """Learn weights from labelled examples.

        Parameters
        ----------
        X : sequence of examples
        y : sequence of labellings
            Labels are strings, or integers from 0.
        sample_weight : array, optional
            A non-negative weight for each example.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C also stops the caller, such as a grid search. After the first pass, the estimator has the
            best weights so far; before, it stays as it was.
        """
        return self._settle(X, y, sample_weight)

    def _fit(self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None) -> Fitted:
        X, y = self._some_paired(X, y)
        kind, penalty = self.objective, Penalty(self.c1, self.c2)
        self._check_settings(kind)
        going_on = self.warm_start and hasattr(self, "weights_")
        X = self._read(X)
        if not going_on:
            self._learn(X, y)
        truths = self._truths(X, y)
        importance = self._importance(truths, sample_weight)
        problem = self._problem(X, truths, self._recipe())
        objective = self._objective(problem, kind, importance)
        with shown_passes(self.verbose) as show:
            options, began = self._run_options(show), perf_counter()
            memory = self._memory(problem, kind, importance)
            if going_on:
                start = self._last_weights(objective, problem)
            elif memory is not None and memory.path.exists():  # which has the weights
                start = np.zeros(objective.dimension)
            else:
                first = self._start(objective, penalty, problem, importance, options)
                if first.interrupted:  # the weights of the likelihood are the best so far
                    return self._note(first, objective)
                start = first.weights
            result = fit_weights(objective, penalty, start, options, memory, perf_counter() - began)
        return self._note(result, objective)

    def _check_settings(self, kind: ObjectiveKind) -> None:
        """Raise an error for settings that the objective does not use."""
        if kind == "likelihood" and self.loss is not None:
            raise ModelError(
                "the likelihood has no loss; remove loss=, or use objective='risk' or 'softmax-margin'"
            )
        if kind != "softmax-margin" and self.margin != 1.0:
            raise ModelError(
                f"margin={self.margin!r} is for objective='softmax-margin', got {kind!r}; remove margin="
            )

    def _importance(self, truths: list[Any], sample_weight: ArrayLike | None) -> Floats:
        """Return the weight of each example."""
        return importance_of(truths, self.labels_, self.class_weight, sample_weight)

    def _last_weights(self, objective: Objective, problem: Any) -> Floats:
        """Return the weights of the last fit."""
        if len(self.weights_) != problem.dimension:
            raise ModelError(
                f"warm_start continues from {len(self.weights_)} weights, but these examples need "
                f"{problem.dimension}; set warm_start=False"
            )
        return objective.gathered(self.weights_)

    def _start(
        self, objective: Objective, penalty: Penalty, problem: Any, importance: Floats, options: RunOptions
    ) -> Fitted:
        """Return the initial weights: those of the likelihood for tables of tallies, or 0."""
        start = np.zeros(objective.dimension)
        if objective.convex and not objective.tallied:
            return Fitted(State(start), start)
        likelihood = self._first_objective(problem, importance)
        show = options.callback
        rough = replace(
            options,
            tolerance=max(options.tolerance, 0.01),
            checkpoint=None,
            callback=None if show is None else lambda progress: show(StartingPass.of(progress)),
        )
        return fit_weights(likelihood, penalty, start, rough)

    def _memory(self, problem: TrainingProblem, kind: ObjectiveKind, importance: Floats) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        settings: dict[str, object] = {
            "objective": kind,
            "c1": self.c1,
            "c2": self.c2,
            **({} if self.margin == 1.0 else {"margin": self.margin}),
            "weights of examples": fingerprint_of(importance),
            **self._more_settings(),
        }
        return Checkpoint(self.checkpoint, settings, problem)

    def _more_settings(self) -> dict[str, object]:
        """Return further settings that a checkpoint must agree with."""
        return {}

    def _note(self, found: Fitted, objective: Objective) -> Fitted:
        self.weights_ = objective.spread(found.weights)
        self.history_ = found.history
        self.primal_, self.dual_ = found.primal, found.dual
        self.gradient_norm_, self._before = found.gradient, found.before
        self.converged_, self.interrupted_ = found.converged, found.interrupted
        self.classes_ = self.labels_.classes
        return found

    def _shortfall(self) -> tuple[str, str]:
        if not self.history_:
            return "its starting point", "raise c2"
        last = self.history_[-1]
        if last.gradient is None:
            return f"a relative gap of {last.relative_gap:.3g}", "raise c2"
        return f"a relative gradient norm of {last.gradient:.3g}", ""
