"""The CRF for sequences."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from tallytree.bulk.chunk_tables import summable_tables
from tallytree.bulk.expectations import sum_chains
from tallytree.bulk.least_loss import expected_losses, likely_nodes
from tallytree.errors import ModelError
from tallytree.learning.accepted import PROBABILITY
from tallytree.learning.descent import Fitted
from tallytree.learning.examples import brief, check_lengths, listed, of_each
from tallytree.learning.fingerprints import fingerprint_of
from tallytree.learning.likelihoods import CountedObjective, Objective, ObjectiveKind, SequenceObjective
from tallytree.learning.planes import Floats
from tallytree.learning.sequence_estimator import SequenceEstimator
from tallytree.learning.structured_crf import StructuredCRF
from tallytree.learning.templates import WindowFeatures
from tallytree.learning.weighting import ClassWeight, counts_of
from tallytree.losses import ChunkFBeta, Loss, as_loss
from tallytree.transducers.chunks import Scheme, tag_of


class LikelyChunk(NamedTuple):
    """A chunk, and the probability that it is present with this type and these ends."""

    type: str
    first: int
    last: int
    probability: float


class SequenceCRF(SequenceEstimator, StructuredCRF):
    """A conditional random field for sequences: tagging, chunking, segmentation, with probabilities.

    Parameters
    ----------
    loss : Loss or str, optional
        For objectives with a loss: a recipe, ``ChunkFBeta()``, or its name, ``"chunk-f1"``; by default
        the Hamming distance. In a parameter grid, its parameters are ``loss__beta`` and so on.
    objective : {"likelihood", "softmax-margin", "risk"}
        What is minimised, summed over the examples: ``−log p(y*)``; the same with the loss of each
        labelling added to its score; or the expected loss, which is not convex and is initialised from the
        likelihood.
    c1, c2 : float
        The penalty ``c1 ‖w‖₁ + c2 ‖w‖²``, as in crfsuite. With ``c1``, many weights are 0.
    class_weight : mapping, "balanced" or None
        Weights of labels; the weight of a sequence is the mean over its positions.
    tolerance : float
        Stop at this certified relative gap; for the expected loss, when the norm of the gradient is at most
        this times ``max(1, ‖w‖)``.
    max_passes, max_seconds
        The maximum number of L-BFGS steps; the time limit. A step that has begun is finished. Objectives that
        take far longer than the likelihood start from its weights: finding these is part of the time limit,
        and takes at most as many steps again.
    n_jobs : int, optional
        The number of threads, by default the number of processors. The weights do not depend on it.
    warm_start : bool
        Start from the weights of the last fit, with its labels and features.
    checkpoint : path, optional
        A file for the weights, written after each step; an interrupted fit resumes from it.
    verbose : bool
        Report every step on standard error.
    margin : float
        The factor of the loss in a softmax margin. A large one with small penalties trains similarly to an
        SVM; choose both by cross-validation.
    all_possible_states : bool
        Whether features have weights for labels they never occur with in the examples, as in crfsuite.
    hashed, min_count, features
        As for :class:`SequenceSVM`.

    Attributes
    ----------
    weights_ : array
        Features by labels, then labels by labels; see ``emissions_`` and ``transitions_``.
    classes_ : array
        The labels.
    primal_, dual_, gap_ : float
        The objective, a lower bound on its optimum, and their difference.
    gradient_norm_ : float
        The norm of the shortest subgradient of the objective.
    history_ : list of Progress
        One entry for each step.
    converged_, interrupted_ : bool
        Whether training reached the tolerance; whether Ctrl-C stopped the fit.

    Examples
    --------
    >>> from tallytree.learning import SequenceCRF
    >>> X = [[["the"], ["cat"], ["sat"]], [["a"], ["dog"]]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> crf = SequenceCRF(c2=0.01).fit(X, y)
    >>> crf.predict([[["a"], ["cat"]]])
    [array(['D', 'N'], dtype=object)]
    >>> crf.predict_marginals([[["a"], ["cat"]]])[0].round(2)
    array([[0.97, 0.02, 0.01],
           [0.01, 0.96, 0.03]])
    """

    all_possible_states: bool

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
        all_possible_states: bool = False,
        hashed: int | None = None,
        min_count: int = 1,
        features: WindowFeatures | None = None,
    ) -> None:
        self._keep(locals())

    _counted: tuple[Sequence[Any], Sequence[Mapping[Any, Any]]] | None = None

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: ArrayLike | None = None,
        *,
        counted: tuple[Sequence[Any], Sequence[Mapping[Any, Any]]] | None = None,
    ) -> Self:
        """Learn weights from labelled examples, and optionally from others with known label counts.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`GraphCRF.fit`.
        counted : (examples, counts), optional
            Further examples, and for each a mapping of labels to their counts: ``{"B-PER": 3}``,
            or ``{"B-PER": (2, 4)}`` for a range. They contribute ``−log p(counts)``, which is not convex:
            training starts from the labelled examples.

        Examples
        --------
        >>> crf = SequenceCRF(c2=0.01)
        >>> crf = crf.fit([[["a"], ["b"]]], [["x", "y"]], counted=([[["c"], ["c"]]], [{"y": 2}]))
        >>> crf.predict([[["c"]]])
        [array(['y'], dtype=object)]
        """
        return self._settle(X, y, sample_weight, counted)

    def _fit(  # type: ignore[override]
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: ArrayLike | None,
        counted: tuple[Sequence[Any], Sequence[Mapping[Any, Any]]] | None,
    ) -> Fitted:
        if counted is not None:
            if not isinstance(counted, (tuple, list)) or len(counted) != 2:
                raise ModelError(f"counted must be a pair (examples, counts), got {brief(counted)}")
            counts = listed(counted[1], "counts must be a sequence of mappings")
            self._counted = self._read(self._listed(counted[0])), counts
        result = super()._fit(X, y, sample_weight)
        self.__dict__.pop("_counted", None)
        return result

    def _learn_features(self, X: Sequence[Any]) -> None:
        super()._learn_features([*X, *(() if self._counted is None else self._counted[0])])

    def _objective(self, problem: Any, kind: ObjectiveKind, importance: Floats) -> Objective:
        labelled = self._labelled(problem, kind, importance)
        if self._counted is None:
            return labelled
        X, counts = self._counted
        rows = list(of_each(X, self.encoder_.rows, "counted example"))
        return CountedObjective(labelled, rows, counts_of(counts, rows, self.labels_))

    def _more_settings(self) -> dict[str, object]:
        return {} if self._counted is None else {"counted examples": fingerprint_of(repr(self._counted))}

    def _first_objective(self, problem: Any, importance: Floats) -> Objective:
        return self._labelled(problem, "likelihood", importance)

    def _labelled(self, problem: Any, kind: ObjectiveKind, importance: Floats) -> SequenceObjective:
        if kind != "likelihood":
            summable_tables(problem.loss, problem.labels, problem.states)
        every = self.all_possible_states or self._counted is not None
        return SequenceObjective(problem, kind, importance, every, self._threads, self.margin)

    def predict_marginals(self, X: Sequence[Any]) -> list[Floats]:
        """Return the probability of each label at each position.

        Returns
        -------
        list of arrays of shape (positions, labels)
            Columns are in the order of ``classes_``.
        """
        check_is_fitted(self, "weights_")
        X = self._listed(X)
        if not X:
            return []
        chains = self._chains(X)
        sums = sum_chains(chains, threads=self._threads)
        return np.split(sums.labels, np.cumsum(chains.lengths)[:-1])

    def predict_chunks(
        self, X: Sequence[Any], *, scheme: Scheme = "BIO", background: str = "O", least: float = 0.01
    ) -> list[list[LikelyChunk]]:
        """Return the chunks that are likely to be present, with the probability of type and ends.

        Parameters
        ----------
        X : sequence of examples
        scheme, background
            How labels encode chunks, as for :class:`tallytree.losses.ChunkFBeta`.
        least : float
            The probability that chunks must exceed.

        Examples
        --------
        >>> crf = SequenceCRF(c2=0.01).fit([[["a"], ["b"], ["c"]]], [["B-NP", "I-NP", "O"]])
        >>> [(one.type, one.first, one.last) for one in crf.predict_chunks([[["a"], ["b"]]], least=0.5)[0]]
        [('NP', 0, 1)]
        """
        check_is_fitted(self, "weights_")
        X = self._listed(X)
        if not X:
            return []
        PROBABILITY.check("least", least)
        if self.labels_.names is None:
            raise ModelError("the labels are numbers, but chunks need names such as 'B-NP'")
        loss = ChunkFBeta(scheme=scheme, background=background)
        tags = [tag_of(name, scheme, background) for name in self.labels_.names]
        kinds = sorted({tag.type for tag in tags if tag.type is not None})
        chunks: list[list[LikelyChunk]] = [[] for _ in X]
        likely = likely_nodes(self._chains(X), loss, least, self._threads)
        for chain, first, last, kind, probability in likely.tolist():
            chunks[chain].append(LikelyChunk(kinds[kind], first, last, probability))
        return chunks

    def expected_loss(self, X: Sequence[Any], y: Sequence[Any], loss: Loss | str | None = None) -> Floats:
        """Return the expected loss of predictions, according to the model's own probabilities.

        Parameters
        ----------
        X : sequence of examples
        y : sequence of labellings
            The predictions.
        loss : Loss or str, optional
            The loss of the fit by default; ``1 - crf.expected_loss(X, crf.predict(X), "chunk-f1")`` gives
            expected F-measures.

        Returns
        -------
        array
            One exact number for each example.
        """
        check_is_fitted(self, "weights_")
        X, y = self._some_paired(X, y)
        chains, labels = self._chains(X), self._truths(X, y)
        check_lengths(chains.lengths, labels)
        chosen = self._recipe() if loss is None else as_loss(loss)
        return expected_losses(chains, chosen, np.concatenate(labels), self._threads)

    def log_loss(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Return the mean of ``−log p(y | x)`` over examples; smaller is better."""
        check_is_fitted(self, "weights_")
        X, y = self._some_paired(X, y)
        chains, truths = self._chains(X), self._truths(X, y)
        check_lengths(chains.lengths, truths)
        sums = sum_chains(chains, threads=self._threads)
        return float(np.mean(sums.values - chains.scores(np.concatenate(truths))))
