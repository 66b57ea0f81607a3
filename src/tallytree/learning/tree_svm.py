"""The estimator for parsing."""

from __future__ import annotations

import os

import numpy as np

from tallytree.learning.inference import Diverse, Scaling, TopTallies
from tallytree.learning.solver import Solver
from tallytree.learning.structured_svm import StructuredSVM
from tallytree.learning.tree_estimator import TreeEstimator
from tallytree.losses import Loss
from tallytree.parsing.binarise import Tail


class TreeSVM(TreeEstimator, StructuredSVM):
    """A structural SVM for constituency parsing.

    The grammar is estimated from the training trees. Its log-probabilities are part of the score, and
    weights are learned for rules, constituents and tags, from features of their context.

    Parameters
    ----------
    loss : Loss or str, optional
        The loss to train for, a recipe such as ``FBeta()`` or its name; by default
        :class:`tallytree.losses.SymmetricDifference`, the number of constituents that are wrong or missing,
        which is fast under margin scaling because it is folded into the scores. In a parameter grid, its
        parameters are ``loss__beta`` and so on.
    scaling, C, solver, extra, tolerance, max_passes, max_seconds
        As for :class:`SequenceSVM`.
    n_jobs, warm_start, checkpoint, verbose
        As for :class:`SequenceSVM`.
    horizontal, vertical, tail
        How trees are binarised; see :func:`tallytree.parsing.binarise`. More context makes the plain grammar
        better and inference slower.
    prior : float
        The weight of the grammar's log-probability in the score; 0 learns from scratch. The
        grammar overfits the trees that it was estimated from, so a value below 1 is better.
    smoothing, rare
        For the grammar's scores of words, see :class:`tallytree.parsing.CountedWords`.
    hashed : int, optional
        Hash attributes to this many columns instead of building a vocabulary.
    min_count : int
        Ignore attributes that occur less often than this on true constituents or words; cannot be combined
        with ``hashed``.

    Attributes
    ----------
    weights_ : array
        Side attributes by kinds, span attributes by labels, word attributes by tags, binary and unary rules;
        ``model_.parts(weights_)`` separates them.
    grammar_ : Grammar
        The plain grammar.
    classes_ : array
        The labels of constituents.
    primal_, dual_, gap_, history_, converged_, interrupted_
        As for :class:`SequenceSVM`.

    Examples
    --------
    >>> from tallytree.learning import TreeSVM
    >>> from tallytree.parsing import parse_tree
    >>> trees = [
    ...     parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))))"),
    ...     parse_tree("(S (NP (NN fish)) (VP (VB swim)))"),
    ... ]
    >>> svm = TreeSVM().fit(["fish eat fish", "fish swim"], trees)
    >>> svm.predict(["fish swim"])
    [Tree('(S (NP (NN fish)) (VP (VB swim)))')]
    """

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
