"""Shared by the SVMs: the parameters of max-margin training."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from tallytree.errors import ModelError
from tallytree.learning.decoding import Decoder, ExpectedFBeta, MaxExpected
from tallytree.learning.inference import Diverse, Scaling, TopTallies
from tallytree.learning.oracle import ExactOracle
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.progress import shown_passes
from tallytree.learning.solver import Solver
from tallytree.learning.structured_estimator import StructuredEstimator
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
            Ctrl-C also stops the caller, such as a grid search. After the first pass, the estimator has the
            best weights so far; before, it stays as it was.
        """
        return self._settle(X, y)

    def _fit(self, X: Sequence[Any], y: Sequence[Any]) -> Trained:
        X, y = self._some_paired(X, y)
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
        return trained

    def _check_same(self, problem: TrainingProblem, known: Trained) -> None:
        if known.oracle.problem.fingerprint() != problem.fingerprint():
            raise ModelError(
                "warm_start continues from the planes of the last fit, but the examples or the loss have "
                "changed; set warm_start=False"
            )

    def _note(self, trained: Trained) -> None:
        self._trained, self._before = trained, trained.before
        self.weights_ = trained.weights
        self.history_ = trained.history
        self.primal_, self.dual_ = trained.primal, trained.dual
        self.converged_, self.interrupted_ = trained.converged, trained.interrupted
        self.classes_ = self.labels_.classes

    def _shortfall(self) -> tuple[str, str]:
        gap = max(self.gap_, 0.0) / max(self.primal_, sys.float_info.min)
        size = "unknown size" if self.primal_ == np.inf else f"{gap:.3g}"
        return f"a relative gap of {size}", "lower C"

    def _check_scale(self, decoder: Decoder) -> None:
        if isinstance(decoder, (ExpectedFBeta, MaxExpected)) and decoder.scale is None:
            warnings.warn(
                f"the scores of {type(self).__name__} are not log-probabilities, so expected measures can be "
                f"far off; choose {type(decoder).__name__}(scale=...) on held-out data, or train a CRF",
                UserWarning,
                stacklevel=3,
            )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_trained"}
