"""The estimator for sequences."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from tallytree.learning.inference import Diverse, Scaling, TopTallies
from tallytree.learning.sequence_estimator import SequenceEstimator
from tallytree.learning.solver import Solver
from tallytree.learning.structured_svm import StructuredSVM
from tallytree.learning.templates import WindowFeatures
from tallytree.losses import Loss

_OF_CRFS = ("expected_loss", "log_loss", "predict_chunks", "predict_marginals")


class SequenceSVM(SequenceEstimator, StructuredSVM):
    """A structural SVM for sequences: tagging, chunking, segmentation.

    Parameters
    ----------
    loss : Loss or str, optional
        The loss to train for, such as ``FBeta(background="O")``, or a name such as ``"f1"``; by default the
        Hamming distance. In a parameter grid, its parameters are ``loss__beta`` and so on.
    scaling : {"margin", "slack"}
        How the loss enters the hinge.
    C : float
        The weight of the sum of hinge losses relative to ``½‖w‖²``: the inverse regularisation strength.
    solver : Solver, optional
        :class:`FrankWolfe` by default.
    extra : TopTallies or Diverse, optional
        Additional planes from each oracle call.
    tolerance : float
        Stop at this certified relative gap.
    max_passes, max_seconds
        The maximum number of passes over the data, at least 1; the time limit in seconds. A pass that has
        begun is finished. Passes before resuming from a checkpoint count, time does not.
    n_jobs : int, optional
        The number of processes for inference during training, through joblib and its current backend; the
        weights are the same. Processes take seconds to start and need large batches, so this is useful for
        training that takes minutes, with ``FrankWolfe(batch=512)``. Batches of up to 64 examples, and the
        first five seconds of inference, use native threads, as all do by default.
    warm_start : bool
        Continue from the last fit on the same examples; C, the tolerance and the passes may change. Labels
        and features stay as they were.
    checkpoint : path, optional
        A file for the state of the fit, written after each pass; an interrupted fit resumes from it.
    verbose : bool
        Report every pass on standard error.
    hashed : int, optional
        Hash strings to this many columns instead of building a vocabulary.
    min_count : int
        Ignore attributes that occur less often than this; cannot be combined with ``hashed``.
    features : WindowFeatures, optional
        Computes string features from rows of columns: examples are then sentences as returned by
        :func:`tallytree.io.read_conll`, and a saved estimator includes the templates.

    Attributes
    ----------
    weights_ : array
        Features by labels, then labels by labels; see ``emissions_`` and ``transitions_``.
    classes_ : array
        The labels.
    primal_, dual_, gap_ : float
        The objective, a lower bound on its optimum, and their difference.
    history_ : list of Progress
        One entry for each pass.
    converged_, interrupted_ : bool
        Whether the gap is within the tolerance; whether Ctrl-C stopped the fit.

    Examples
    --------
    >>> from tallytree.learning import SequenceSVM
    >>> X = [[["the"], ["cat"], ["sat"]], [["a"], ["dog"]]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> svm = SequenceSVM(C=10.0).fit(X, y)
    >>> svm.predict([[["a"], ["cat"]]])
    [array(['D', 'N'], dtype=object)]
    """

    hashed: int | None
    min_count: int
    features: WindowFeatures | None

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
        hashed: int | None = None,
        min_count: int = 1,
        features: WindowFeatures | None = None,
    ) -> None:
        self._keep(locals())

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            kind = "SequenceSVM"
            if name in _OF_CRFS:
                reason = "its scores are not probabilities"
                raise AttributeError(f"{kind} has no {name}: {reason}; use SequenceCRF")
            return super().__getattr__(name)
