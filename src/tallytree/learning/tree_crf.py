"""The CRF for parsing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from tallytree.errors import ModelError
from tallytree.learning.likelihoods import Objective, ObjectiveKind
from tallytree.learning.planes import Floats
from tallytree.learning.structured_crf import StructuredCRF
from tallytree.learning.tree_estimator import TreeEstimator
from tallytree.learning.trees import TreeProblem
from tallytree.learning.weighting import ClassWeight
from tallytree.losses import Loss
from tallytree.parsing.binarise import Tail
from tallytree.planning.budget import thread_count


class TreeObjective(Objective):
    """An objective for trees, summed over sentences.

    Parameters
    ----------
    problem : TreeProblem
        The trees.
    kind, importance, threads, margin
        As for :class:`SequenceObjective`.
    """

    def __init__(
        self,
        problem: TreeProblem,
        kind: ObjectiveKind,
        importance: Floats,
        threads: int | None = None,
        margin: float = 1.0,
    ) -> None:
        self.kind, self.threads, self._problem, self._margin = kind, threads, problem, margin
        self.examples, self.dimension = len(problem), problem.dimension
        self._importance = np.asarray(importance, dtype=np.float64)
        self._observed, self._fixed = np.zeros(self.dimension), 0.0
        for example, weight in enumerate(self._importance if kind != "risk" else ()):
            truth = problem.truth(example)
            indices, values = problem.features(example, truth)
            np.add.at(self._observed, indices, weight * values)
            self._fixed += weight * problem.offset(example, truth)

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the value at some weights, and the gradient."""

        def one(example: int) -> Any:
            if self.kind == "likelihood":
                return self._problem.log_partition(example, weights)
            return self._problem.tallied(example, weights, objective)

        objective = _risk if self.kind == "risk" else partial(_softmax_margin, self._margin)
        value, gradient = -self._fixed - float(weights @ self._observed), -self._observed
        with ThreadPoolExecutor(thread_count(self.threads)) as pool:  # charts are summed without the GIL
            found = pool.map(one, range(self.examples))  # in order, whichever finishes first
            for importance, (part, (indices, values)) in zip(self._importance, found, strict=True):
                value += importance * part
                np.add.at(gradient, indices, importance * values)
        return float(value), gradient


def _softmax_margin(margin: float, log_sums: Floats, losses: Floats) -> tuple[float, Floats]:
    log_sum = float(np.logaddexp.reduce(log_sums + margin * losses))
    return log_sum, np.exp(log_sums + margin * losses - log_sum)


def _risk(log_sums: Floats, losses: Floats) -> tuple[float, Floats]:
    shares = np.exp(log_sums - np.logaddexp.reduce(log_sums))
    mean = float(shares @ losses)
    return mean, shares * (losses - mean)


class TreeCRF(TreeEstimator, StructuredCRF):
    """A probabilistic grammar with features: a conditional random field over the trees of a sentence.

    The grammar is estimated from the training trees, and weights are learned on top of its log-probabilities,
    as for :class:`TreeSVM`. ``predict(X, decode=MaxBrackets())`` returns the trees with the largest
    expected number of correct constituents.

    Parameters
    ----------
    loss : Loss or str, optional
        A loss of trees, for the objectives that use one; by default the number of wrong constituents. Any
        loss that can be counted in a chart is supported: F-measures, precision, recall, crossing brackets.
    objective : {"likelihood", "softmax-margin", "risk"}
        As for :class:`SequenceCRF`. Charts with tallies take several times as long as charts without.
    c1, c2, tolerance, max_passes, max_seconds, n_jobs, warm_start, checkpoint, verbose, margin
        As for :class:`SequenceCRF`. There are no class weights.
    horizontal, vertical, tail, prior, smoothing, rare, hashed, min_count
        As for :class:`TreeSVM`.

    Examples
    --------
    >>> from tallytree.learning import TreeCRF
    >>> from tallytree.parsing import parse_tree
    >>> trees = [
    ...     parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))))"),
    ...     parse_tree("(S (NP (NN fish)) (VP (VB swim)))"),
    ... ]
    >>> crf = TreeCRF().fit(["fish eat fish", "fish swim"], trees)
    >>> crf.predict(["fish swim"])
    [Tree('(S (NP (NN fish)) (VP (VB swim)))')]
    """

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
        horizontal: int | None = 0,
        vertical: int = 1,
        tail: Tail = "pair",
        prior: float = 0.3,
        smoothing: float = 1.0,
        rare: int = 5,
        hashed: int | None = None,
        min_count: int = 1,
    ) -> None:
        self._keep(locals())

    def _objective(self, problem: Any, kind: ObjectiveKind, importance: Floats) -> TreeObjective:
        return TreeObjective(problem, kind, importance, self._threads, self.margin)

    def _importance(self, truths: list[Any], sample_weight: ArrayLike | None) -> Floats:
        if self.class_weight is not None:
            raise ModelError("trees have no classes to weight; remove class_weight=")
        return super()._importance(truths, sample_weight)

    def log_loss(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Return the mean of ``−log p(y | x)`` over sentences; smaller is better."""
        check_is_fitted(self, "weights_")
        X, y = self._some_paired(X, y)
        problem = self._problem(X, self._truths(X, y), self._recipe())
        objective = TreeObjective(problem, "likelihood", np.ones(len(X)), self._threads)
        return objective(self.weights_)[0] / len(X)
