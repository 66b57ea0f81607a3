"""Scores of whole corpora, micro-averaged: true and false positives are added up over all examples."""

from __future__ import annotations

from collections.abc import Iterable
from operator import eq
from typing import Any, NamedTuple

from tallytree.errors import ModelError
from tallytree.learning.examples import listed, of_each
from tallytree.losses import (
    FBeta,
    HammingDistance,
    HammingLoss,
    IntersectionOverUnion,
    Loss,
    ZeroOne,
    as_loss,
)


class CorpusScore(NamedTuple):
    """Precision, recall and F over a corpus."""

    precision: float
    recall: float
    f: float


def accuracy(truths: Iterable[Any], predictions: Iterable[Any]) -> float:
    """Return the fraction of positions that are correct.

    Examples
    --------
    >>> accuracy([["B", "O"], ["O"]], [["B", "B"], ["O"]])
    0.6666666666666666
    """

    def compared(pair: tuple[Any, Any]) -> tuple[int, int]:
        y, z = map(_flat, pair)
        if len(y) != len(z):
            raise ModelError(f"the truth has {len(y)} labels, the prediction has {len(z)}")
        return sum(map(bool, map(eq, y, z))), len(y)

    each = list(of_each(_paired(truths, predictions), compared))
    return sum(right for right, _ in each) / max(sum(size for _, size in each), 1)


def corpus_f(
    truths: Iterable[Any], predictions: Iterable[Any], loss: FBeta | str | None = None
) -> CorpusScore:
    """Return precision, recall and F of the nodes of a corpus.

    Parameters
    ----------
    truths, predictions : iterables of labellings
        The true and the predicted labellings.
    loss : FBeta or str, optional
        Defines what is counted, and β: positions for ``FBeta(background="O")`` or ``"f1"``, the default;
        chunks for ``ChunkFBeta()`` or ``"chunk-f1"``.

    Examples
    --------
    >>> corpus_f([["B", "O", "O"]], [["B", "B", "O"]])
    CorpusScore(precision=0.5, recall=1.0, f=0.6666666666666666)
    >>> corpus_f([["B-NP", "I-NP", "O"]], [["B-NP", "I-NP", "O"]], "chunk-f1").f
    1.0
    """
    recipe = as_loss("f1" if loss is None else loss)
    if not isinstance(recipe, FBeta):
        raise ModelError(
            f"corpus_f needs an F-measure, such as 'f1' or 'chunk-f1', got {loss!r}; for other losses, use "
            "corpus_score"
        )
    beta = recipe.beta

    def counted(pair: tuple[Any, Any]) -> tuple[int, int, int]:
        bound = recipe.against(list(_flat(pair[0])))
        nodes = bound.nodes(list(_flat(pair[1])))
        return (nodes & bound.gold).total(), nodes.total(), bound.gold.total()

    each = list(of_each(_paired(truths, predictions), counted))
    right, found, wanted = map(sum, zip(*each, strict=True)) if each else (0, 0, 0)
    square = beta**2
    return CorpusScore(
        right / found if found else float(not wanted),
        right / wanted if wanted else float(not found),
        min((1 + square) * right / (square * wanted + found), 1.0) if found or wanted else 1.0,
    )


def corpus_score(truths: Iterable[Any], predictions: Iterable[Any], loss: Loss | str) -> float:
    """Return the score of predictions that corresponds to a loss: larger is better, and 1 is perfect.

    Parameters
    ----------
    truths, predictions : iterables of labellings
        The true and the predicted labellings.
    loss : Loss or str
        A loss, or its name, as for :func:`tallytree.losses.as_loss`. F and IoU are micro-averaged over the
        corpus. A Hamming loss gives the fraction of correct positions, ``ZeroOne`` the fraction of examples
        without an error. Any other loss gives 1 minus its mean.

    Examples
    --------
    >>> from tallytree.losses import ChunkFBeta
    >>> truths, found = [["B-NP", "I-NP", "O"], ["O"]], [["B-NP", "O", "O"], ["O"]]
    >>> corpus_score(truths, found, ChunkFBeta()), corpus_score(truths, found, "zero-one")
    (0.0, 0.5)
    """
    loss = as_loss(loss)
    pairs = [(_flat(y), _flat(z)) for y, z in _paired(truths, predictions)]
    right, found = [list(y) for y, _ in pairs], [list(z) for _, z in pairs]
    if isinstance(loss, FBeta):
        return corpus_f(right, found, loss).f
    if isinstance(loss, IntersectionOverUnion):
        return _overlap(right, found, loss)
    if isinstance(loss, (HammingDistance, HammingLoss)):
        return accuracy(right, found)
    if isinstance(loss, ZeroOne):
        return sum(y == z for y, z in zip(right, found, strict=True)) / max(len(pairs), 1)
    losses = [loss.against(y)(z) for y, z in zip(right, found, strict=True)]
    return 1.0 - sum(losses) / max(len(losses), 1)


def _overlap(truths: Iterable[Any], predictions: Iterable[Any], recipe: IntersectionOverUnion) -> float:
    both = either = 0
    for truth, prediction in zip(truths, predictions, strict=True):
        bound = recipe.against(truth)
        nodes = bound.nodes(prediction)
        both += (nodes & bound.gold).total()
        either += (nodes | bound.gold).total()
    return both / either if either else 1.0


class Scorer:
    """Scores an estimator by a loss; use it as ``scoring=`` in scikit-learn.

    Parameters
    ----------
    loss : Loss or str
        As for :func:`corpus_score`.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from tallytree.learning import SequenceSVM, chunk_f1_scorer
    >>> search = GridSearchCV(SequenceSVM("chunk-f1"), {"C": [0.1, 1.0]}, scoring=chunk_f1_scorer)
    """

    def __init__(self, loss: Loss | str) -> None:
        self.loss = as_loss(loss)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score of an estimator's predictions."""
        return corpus_score(y, estimator.predict(X), self.loss)

    def __repr__(self) -> str:
        return f"Scorer({self.loss!r})"


accuracy_scorer = Scorer("hamming")
"""The fraction of labels that are correct."""

token_f1_scorer = Scorer("f1")
"""F1 of the positions that are not ``"O"``, over the corpus."""

chunk_f1_scorer = Scorer("chunk-f1")
"""F1 of whole chunks over the corpus, as in seqeval."""


def _paired(truths: Iterable[Any], predictions: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return each truth with its prediction."""
    right = listed(truths, "truths must be a sequence of labellings")
    predicted = listed(predictions, "predictions must be a sequence of labellings")
    if len(right) != len(predicted):
        raise ModelError(
            f"there are {len(right)} truths but {len(predicted)} predictions; each truth needs one"
        )
    return list(zip(right, predicted, strict=True))


def _flat(labelling: Any) -> Any:
    return labelling.reshape(-1).tolist() if hasattr(labelling, "reshape") else labelling
