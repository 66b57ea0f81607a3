"""Shared by sequence estimators: features of positions, and predictions in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any

import numpy as np

from tallytree.answers.tally_table import Where
from tallytree.bulk.chains import Chains, best_labels, best_of_chains
from tallytree.bulk.expectations import SparseRows
from tallytree.bulk.jobs import Errors
from tallytree.errors import ModelError
from tallytree.learning.attributes import Encoder, Vocabulary, encoder_of
from tallytree.learning.decoding import BestDecoder, Decoder, ExpectedFBeta, MaxExpected
from tallytree.learning.examples import brief, check_each, check_lengths, of_each
from tallytree.learning.planes import Integers
from tallytree.learning.sequences import SequenceProblem, chains
from tallytree.learning.structured_estimator import StructuredEstimator
from tallytree.learning.templates import WindowFeatures
from tallytree.losses import ChunkFBeta, Loss
from tallytree.model.model import Model
from tallytree.transducers.chunks import tag_of


def _check_positions(example: Any) -> None:
    if isinstance(example, (str, bytes, Mapping)) or not isinstance(example, Sized):
        kind = "the string " if isinstance(example, str) else ""
        single = "; pass a list of examples, also for a single one" if isinstance(example, Mapping) else ""
        raise ModelError(f"an example must be a sequence of positions, got {kind}{brief(example)}{single}")


def _check_orientation(X: Sequence[Any], y: Sequence[Any]) -> None:
    """Raise an error for arrays that have positions as columns."""
    shapes = [example.shape for example in X if isinstance(example, np.ndarray) and example.ndim == 2]
    lengths = [len(truth) for truth in y if isinstance(truth, Sized)]
    if len(shapes) != len(lengths) or [rows for rows, _ in shapes] == lengths:
        return
    if [columns for _, columns in shapes] == lengths:
        raise ModelError(
            f"example 0 has the shape {shapes[0]} for {lengths[0]} labels; an array has a row for each "
            "position, so transpose them: [x.T for x in X]"
        )


_OF_CRFSUITE = {
    "predict_single": "predict([x])[0]",
    "predict_marginals_single": "predict_marginals([x])[0]",
    "state_features_": "emissions_",
    "transition_features_": "transitions_",
}
"""Attributes in sklearn-crfsuite, and what they are here."""

_IN_BATCHES = (BestDecoder, ExpectedFBeta, MaxExpected)
"""Decoders that predict many sequences at once."""


class SequenceEstimator(StructuredEstimator):
    """Base class of the sequence estimators; use one of its subclasses."""

    hashed: int | None
    min_count: int
    features: WindowFeatures | None

    encoder_: Encoder

    if not TYPE_CHECKING:  # type checkers see no attributes that are not declared

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if name in _OF_CRFSUITE:
                raise AttributeError(
                    f"{kind} has no {name}, as in sklearn-crfsuite; use {_OF_CRFSUITE[name]}"
                )
            raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def emissions_(self) -> np.ndarray:
        """The weights of features for labels."""
        return self.weights_[: self.encoder_.size * self.labels_.count].reshape(-1, self.labels_.count)

    @property
    def transitions_(self) -> np.ndarray:
        """The weights of pairs of labels."""
        return self.weights_[-(self.labels_.count**2) :].reshape(self.labels_.count, self.labels_.count)

    def _learn(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        _check_orientation(X, y)
        super()._learn(X, y)

    def _learn_features(self, X: Sequence[Any]) -> None:
        self.encoder_ = encoder_of(X, self.hashed, self.min_count)

    def _listed(self, X: Iterable[Any]) -> list[Any]:
        examples = super()._listed(X)
        if not set(map(type, examples)) <= {list, tuple}:
            examples = [one.to_numpy() if hasattr(one, "to_numpy") else one for one in examples]  # of pandas
            check_each(examples, _check_positions)
        return examples

    def _read(self, X: Sequence[Any]) -> Sequence[Any]:
        return X if self.features is None else list(of_each(X, self.features))

    def _check_fit(self) -> None:
        super()._check_fit()
        wanted = self.labels_.count * (self.encoder_.size + self.labels_.count)
        if not isinstance(self.encoder_, Encoder) or len(self.weights_) != wanted:
            raise ModelError(
                f"there are {len(self.weights_)} weights, but its features and labels need {wanted}"
            )

    def _problem(self, X: Sequence[Any], truths: list[Any], loss: Loss) -> SequenceProblem:
        rows, lengths = self.encoder_.stacked(X, self._threads)
        check_lengths(lengths, truths)
        self.labels_.check_loss(loss)
        if isinstance(loss, ChunkFBeta):
            self._check_tags(truths, loss)
        matrix = rows.matrix(self.encoder_.size)
        return SequenceProblem.of_rows(matrix, lengths, truths, self.labels_.count, loss, self.labels_.names)

    def _check_tags(self, truths: list[Any], loss: ChunkFBeta) -> None:
        """Raise an error for the first example with a label that is not part of the loss's scheme."""
        names, known = self.labels_.classes.tolist(), set[int]()

        def read(truth: Integers) -> None:
            for label in set(truth.tolist()) - known:
                tag_of(names[label], loss.scheme, loss.background)
                known.add(label)

        check_each(truths, read)

    def _predicted(self, X: Sequence[Any], decoder: Decoder, where: Where, errors: Errors) -> list[Any]:
        if where is not None or not len(X) or type(decoder) not in _IN_BATCHES:
            return super()._predicted(X, decoder, where, errors)
        if isinstance(decoder, (ExpectedFBeta, MaxExpected)):
            return self._named(decoder.numbered(self._chains(X), self._threads))
        chains = self._chains(X)
        numbers = best_labels(chains, self._threads)
        if numbers is None:
            return self._named([labels for ((labels, _),) in best_of_chains(chains, threads=self._threads)])
        labels = numbers if self.labels_.names is None else self.labels_.classes[numbers]
        ends = np.cumsum(chains.lengths).tolist()
        return [labels[end - length : end] for end, length in zip(ends, chains.lengths, strict=True)]

    def _named(self, labellings: list[Integers]) -> list[Any]:
        return labellings if self.labels_.names is None else [self.labels_.classes[one] for one in labellings]

    def _models(self, X: Sequence[Any]) -> list[Model]:
        return self._chains(X).models() if len(X) else []

    def _chains(self, X: Sequence[Any]) -> Chains:
        rows, lengths = self._stacked(X)
        return chains(rows, lengths, self.weights_, self.labels_.count, self.labels_.names, self._threads)

    def _stacked(self, X: Sequence[Any]) -> tuple[SparseRows, list[int]]:
        """Return the features of all positions of several examples, and the lengths of the examples."""
        if self.features is not None and isinstance(self.encoder_, Vocabulary):
            names = self.features.numbered(X)
            if names is not None:
                return self.encoder_.numbered_rows(names), [len(sentence) for sentence in X]
        return self.encoder_.stacked(self._read(X), self._threads)
