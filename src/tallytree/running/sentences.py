"""The search for sentences: a chain as arrays, the words of its labels, and the native search over them.

The compiled code (``native/sequences/``) takes the scores of a chain, the references as numbers of words, and
the measure; passes with charges, boxes of tallies and cells all happen there.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.running.bounds import SCALINGS

Found = native.SequenceOutcome
Tables = tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]
Labels = tuple[Hashable, ...]

FEW_CELLS = 20_000
"""Cells of a box of tallies that is searched before it is split."""

_MOST_TALLIES = 8
_LONG = 255  # positions: with five or more tallies, each is stored in a byte
_MEASURES = {
    "bleu": native.SequenceMeasure.BLEU,
    "rouge-n": native.SequenceMeasure.ROUGE_N,
    "rouge-l": native.SequenceMeasure.ROUGE_L,
}


class Measured(NamedTuple):
    """The measure of sentences.

    Attributes
    ----------
    kind : {"bleu", "rouge-n", "rouge-l"}
    references : tuple of tuples of labels
    order : int
        The longest n-grams of BLEU; the n-grams of ROUGE-N.
    clip : bool
        Whether an n-gram counts at most as often as in a reference.
    beta : float
        The weight of recall relative to precision, for ROUGE-L.
    end : label, optional
        The label that ends a sentence.
    """

    kind: Literal["bleu", "rouge-n", "rouge-l"]
    references: tuple[Labels, ...]
    order: int = 1
    clip: bool = True
    beta: float = 1.0
    end: Any = None

    def searchable(self, length: int) -> bool:
        """Whether the search has room for its tallies."""
        tallies = {"bleu": self.order, "rouge-n": 1, "rouge-l": len(self.references)}[self.kind]
        return tallies <= (4 if length > _LONG else _MOST_TALLIES) and length < 2**14


class Searched(NamedTuple):
    """What is maximised, the starting points, and the limits.

    Attributes
    ----------
    scaling : {"margin", "slack"}
    margin, truth : float
        The margin, and the score of the truth.
    starts : sequence of labellings
        Known labellings.
    most_cells, memory_limit : float
    """

    scaling: Literal["margin", "slack"]
    margin: float
    truth: float
    starts: Sequence[NDArray[np.int64]]
    most_cells: float
    memory_limit: float


def chain_tables(model: Model) -> Tables | None:
    """Return the scores of each variable and each pair of neighbours; None if it is not a chain.

    A constant is added to the scores of the first variable. Tables shared by neighbours are one array.
    """
    sizes = model.cardinalities.tolist()
    unary = [np.zeros(n) for n in sizes]
    pair: list[NDArray[np.float64] | None] = [None] * (len(sizes) - 1)
    for block in model.blocks:
        if block.arity > 2 or not sizes:
            return None
        shared = block.tables if len(block.tables) == len(block) else [block.tables[0]] * len(block)
        for scope, table in zip(block.scopes.tolist(), shared, strict=True):
            if block.arity < 2:
                unary[scope[0] if scope else 0] += table
                continue
            first, second = scope
            if abs(first - second) != 1:
                return None
            known, turned = pair[min(scope)], table if first < second else np.ascontiguousarray(table.T)
            pair[min(scope)] = turned if known is None else known + turned
    none = {shape: np.zeros(shape) for shape in set(pairwise(sizes))}
    return unary, [
        none[sizes[t], sizes[t + 1]] if one is None else np.ascontiguousarray(one)
        for t, one in enumerate(pair)
    ]


def word_numbers(alphabets: Sequence[Labels]) -> dict[Hashable, int]:
    """Return the number of each word, in order of appearance."""
    numbers: dict[Hashable, int] = {}
    for labels in dict.fromkeys(alphabets):
        for label in labels:
            numbers.setdefault(label, len(numbers))
    return numbers


def sentence_problem(
    tables: Tables, alphabets: Sequence[Labels], measured: Measured
) -> native.SequenceProblem:
    """Prepare the sentences of a chain, whose labels are given, for searches."""
    distinct = {id(labels): labels for labels in alphabets}
    kind_of = {one: kind for kind, one in enumerate(distinct)}
    kinds = np.array([kind_of[id(labels)] for labels in alphabets], dtype=np.int32)
    numbers = word_numbers(tuple(distinct.values()))
    end = measured.end
    ends = [labels.index(end) if end is not None and end in labels else -1 for labels in distinct.values()]
    return native.SequenceProblem(
        *tables,
        [np.array([numbers[w] for w in labels], dtype=np.int32) for labels in distinct.values()],
        kinds,
        np.array(ends, dtype=np.int32)[kinds],
        [np.array([numbers.get(w, -1) for w in one], dtype=np.int32) for one in measured.references],
        _MEASURES[measured.kind],
        measured.order,
        measured.clip,
        measured.beta,
    )


def search(problem: native.SequenceProblem, searched: Searched) -> Found:
    """Search for the best sentence."""
    return problem.search(
        SCALINGS[searched.scaling],
        searched.margin,
        searched.truth,
        list(searched.starts),
        searched.most_cells,
        searched.memory_limit,
        FEW_CELLS,
    )
