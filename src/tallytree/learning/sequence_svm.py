"""The estimator for sequences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from tallytree.answers.tally_table import Where
from tallytree.bulk.chains import Chains, best_of_chains
from tallytree.errors import ModelError
from tallytree.learning.attributes import Encoder, Vocabulary, encoder_of
from tallytree.learning.decoding import BestDecoder, Decoder
from tallytree.learning.estimator import StructuredSVM
from tallytree.learning.inference import Diverse, Scaling, TopTallies
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.sequences import SequenceProblem, chains
from tallytree.learning.solver import Solver
from tallytree.learning.templates import WindowFeatures
from tallytree.losses import Loss
from tallytree.model.model import Model


class SequenceSVM(StructuredSVM):
    """A structural SVM for sequences: tagging, chunking, segmentation.

    Parameters
    ----------
    loss : Loss or str, optional
        What to train for, ``FBeta(background="O")`` or a name such as ``"f1"``; by default the Hamming
        distance. In grids, its parameters are ``loss__beta`` and so on.
    scaling : {"margin", "slack"}
        How the loss enters the hinge.
    C : float
        How much the hinge losses, added up over the examples, count against ``½‖w‖²``.
    solver : Solver, optional
        :class:`FrankWolfe` by default.
    extra : TopTallies or Diverse, optional
        Further planes of each oracle call.
    tolerance : float
        Stop at this certified relative gap.
    max_passes, max_seconds
        Stop after as many passes over the data, or after the first that ends later than that.
    n_jobs : int, optional
        Processes for inference while training, through joblib and its current backend; the weights are the
        same. It pays with large batches, as in ``FrankWolfe(batch=512)``.
    warm_start : bool
        Go on from the last fit, on the same examples; C, the tolerance and the passes may be others.
    checkpoint : path, optional
        A file that keeps the state of a fit after each pass; a fit that was killed goes on from it.
    verbose : bool
        Report every pass on standard error.
    hashed : int, optional
        Map strings to as many columns by a hash, instead of keeping a vocabulary.
    min_count : int
        How often an attribute must come to be in the vocabulary.
    features : WindowFeatures, optional
        Makes strings of rows of columns: examples are then sentences as :func:`tallytree.io.read_conll` gives
        them, and a saved estimator knows what to read.

    Attributes
    ----------
    weights_ : array
        Of features by labels, then of labels by labels; see ``emissions_`` and ``transitions_``.
    classes_ : array
        The labels.
    primal_, dual_, gap_ : float
        The objective, a lower bound on its optimum, and their difference.
    history_ : list of Progress
        One entry for each pass.
    converged_, interrupted_ : bool
        Whether the gap is within the tolerance; whether Ctrl-C ended the fit.

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

    encoder_: Encoder

    @property
    def emissions_(self) -> np.ndarray:
        """The weights of features by labels."""
        return self.weights_[: self.encoder_.size * self.labels_.count].reshape(-1, self.labels_.count)

    @property
    def transitions_(self) -> np.ndarray:
        """The weights of a label followed by another."""
        return self.weights_[-(self.labels_.count**2) :].reshape(self.labels_.count, self.labels_.count)

    def _learn_features(self, X: Sequence[Any]) -> None:
        self.encoder_ = encoder_of(self._read(X), self.hashed, self.min_count)

    def _read(self, X: Sequence[Any]) -> Sequence[Any]:
        return X if self.features is None else [self.features(sentence) for sentence in X]

    def _check_fit(self) -> None:
        super()._check_fit()
        wanted = self.labels_.count * (self.encoder_.size + self.labels_.count)
        if not isinstance(self.encoder_, Encoder) or len(self.weights_) != wanted:
            raise ModelError(
                f"there are {len(self.weights_)} weights, and its features and labels need {wanted}"
            )

    def _problem(self, X: Sequence[Any], truths: list[Any], loss: Loss) -> TrainingProblem:
        rows = [self.encoder_.rows(positions) for positions in self._read(X)]
        for number, (matrix, truth) in enumerate(zip(rows, truths, strict=True)):
            if matrix.shape[0] != len(truth):
                raise ModelError(
                    f"example {number} has {matrix.shape[0]} positions and {len(truth)} labels; each "
                    "position needs one"
                )
        return SequenceProblem(rows, truths, self.labels_.count, loss, self.labels_.names)

    def _predicted(self, X: Sequence[Any], decoder: Decoder, where: Where) -> list[Any]:
        if type(decoder) is not BestDecoder or where is not None or not len(X):
            return super()._predicted(X, decoder, where)
        best = [labels for ((labels, _),) in best_of_chains(self._chains(X))]
        return best if self.labels_.names is None else [self.labels_.classes[labels] for labels in best]

    def _models(self, X: Sequence[Any]) -> list[Model]:
        return self._chains(X).models() if len(X) else []

    def _chains(self, X: Sequence[Any]) -> Chains:
        return chains(*self._stacked(X), self.weights_, self.labels_.count, self.labels_.names)

    def _stacked(self, X: Sequence[Any]) -> tuple[sparse.csr_matrix, list[int]]:
        """Return the features of all positions of several examples, and the lengths of the examples."""
        if self.features is not None and isinstance(self.encoder_, Vocabulary):
            names = self.features.numbered(X)
            if names is not None:
                return self.encoder_.numbered_rows(names), [len(sentence) for sentence in X]
        return self.encoder_.stacked(self._read(X))
