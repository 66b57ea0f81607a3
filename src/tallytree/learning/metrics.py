"""Scores of whole corpora: true and false positives added up over all examples, as shared tasks do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tallytree.losses import FBeta


class CorpusScore(NamedTuple):
    """Precision, recall and F over a corpus."""

    precision: float
    recall: float
    f: float


def accuracy(truths: Iterable[Any], predictions: Iterable[Any]) -> float:
    """Return the part of positions that are right.

    Examples
    --------
    >>> accuracy([["B", "O"], ["O"]], [["B", "B"], ["O"]])
    0.6666666666666666
    """
    pairs = [
        (a, b)
        for y, z in zip(truths, predictions, strict=True)
        for a, b in zip(_flat(y), _flat(z), strict=True)
    ]
    return sum(bool(a == b) for a, b in pairs) / max(len(pairs), 1)


def corpus_f(truths: Iterable[Any], predictions: Iterable[Any], loss: FBeta | None = None) -> CorpusScore:
    """Return precision, recall and F of the nodes of a corpus.

    Parameters
    ----------
    truths, predictions : iterables of labellings
        What is right, and what was predicted.
    loss : FBeta, optional
        Says what nodes are, and what β is: ``FBeta(background="O")``, the default, counts positions.

    Examples
    --------
    >>> corpus_f([["B", "O", "O"]], [["B", "B", "O"]])
    CorpusScore(precision=0.5, recall=1.0, f=0.6666666666666666)
    """
    recipe = FBeta(background="O") if loss is None else loss
    right = found = wanted = 0
    for truth, prediction in zip(truths, predictions, strict=True):
        bound = recipe.against(list(_flat(truth)))
        nodes = bound.nodes(list(_flat(prediction)))
        right += (nodes & bound.gold).total()
        found += nodes.total()
        wanted += bound.gold.total()
    square = recipe.beta**2
    return CorpusScore(
        right / found if found else float(not wanted),
        right / wanted if wanted else float(not found),
        (1 + square) * right / (square * wanted + found) if found or wanted else 1.0,
    )


def _flat(labelling: Any) -> Any:
    return labelling.reshape(-1).tolist() if hasattr(labelling, "reshape") else labelling
