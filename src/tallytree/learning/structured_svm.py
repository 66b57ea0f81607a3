"""Shared by the SVMs: the parameters of max-margin training."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from tallytree.errors import ModelError
from tallytree.learning.inference import Diverse, Scaling, TopTallies
from tallytree.learning.oracle import ExactOracle
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.progress import shown_passes
from tallytree.learning.solver import Solver
from tallytree.learning.structured_estimator import StructuredEstimator, noting_interrupts
from tallytree.learning.training import Trained, train
from tallytree.losses import Loss


class StructuredSVM(StructuredEstimator):
    """Base class of the SVMs; use one of its subclasses."""

    scaling: Scaling
    C: float
    solver: Solver | None
    extra: TopTallies | Diverse | None

    def __init__(
        self,
        loss: Loss | str | None = None,
        *,
        scaling: Scaling = "margin",
        C: float = 1.0,
        solver: Solver | None = None,
        extra: TopTallies | Diverse | None = None,
        tolerance: float = 0.01,
        max_passes: int = 100,
        max_seconds: float = np.inf,
        n_jobs: int | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        verbose: bool = False,
    ) -> None:
        self._keep(locals())

    @noting_interrupts
    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Learn weights from labelled examples.

        Parameters
        ----------
        X : sequence of examples
        y : sequence of labellings
            Labels are strings, or integers from 0.

        Raises
        ------
        KeyboardInterrupt
            Ctrl-C also stops the caller, such as a grid search. The estimator keeps the best weights so far.
        """
        self._check_examples(X, y)
        known = getattr(self, "_trained", None) if self.warm_start else None
        X = self._read(X)
        if known is None:
            self._learn(X, y)
        problem = self._problem(X, self._truths(X, y), self._recipe())
        if known is not None:
            self._check_same(problem, known)
        oracle = ExactOracle(problem, self.scaling, self.extra, self.n_jobs)
        with shown_passes(self.verbose) as show:
            trained = train(oracle, self.solver, C=self.C, start=known, options=self._run_options(show))
        self._note(trained)
        self._raise_interrupt()
        return self

    def _check_same(self, problem: TrainingProblem, known: Trained) -> None:
        if known.oracle.problem.fingerprint() != problem.fingerprint():
            raise ModelError(
                "warm_start continues from the planes of the last fit, but the examples or the loss have "
                "changed; set warm_start=False"
            )

    def _note(self, trained: Trained) -> None:
        self._trained = trained
        self.weights_ = trained.weights
        self.history_ = trained.history
        self.primal_, self.dual_ = trained.primal, trained.dual
        self.converged_, self.interrupted_ = trained.converged, trained.interrupted
        self.classes_ = self.labels_.classes
        if not trained.converged and not trained.interrupted:
            self._warn(f"a relative gap of {_last_gap(trained)}", "Raise max_passes, lower C")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_trained"}


def _last_gap(trained: Trained) -> str:
    if trained.primal == np.inf:
        return "unknown size"
    return f"{max(trained.gap, 0.0) / max(trained.primal, sys.float_info.min):.3g}"
