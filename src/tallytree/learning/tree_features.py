"""Features of trees: the context of constituents, and of words with their tags.

The attributes of a span have three parts: those of its start, of its end, and of both
together, so that only the last are made for each of the ``n(n+1)/2`` spans. Those of one side have a weight
for every kind of node (a label, or a symbol with more information), those of both a weight for every label.
Words have attributes as in taggers, with a weight for every tag. Besides the words themselves, attributes
use the most likely tag of each word on its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tallytree.learning.attributes import Encoder, Hashed, Vocabulary
from tallytree.learning.planes import Floats, Integers
from tallytree.learning.templates import TAGGING, templated, word_parts
from tallytree.learning.tree_grammar import TreebankGrammar
from tallytree.parsing import Tree
from tallytree.planning.charts import span_numbers, spans

Attributes = list[list[str]]

_LENGTHS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30)
_WHOLE = 4
"""Up to this many words, the tags of a span form one attribute."""


class Sentence(NamedTuple):
    """A sentence as numbers."""

    words: tuple[str, ...]
    base: Floats  # [word][symbol]: log-probabilities of words given symbols
    # attributes of spans that start at each word, then of those that end at each word
    sides: sparse.csr_matrix
    spans: sparse.csr_matrix  # attributes of spans, in chart order
    tagged: sparse.csr_matrix  # attributes of the words


def _padded(row: Sequence[str]) -> list[str]:
    return ["<s>", *row, "</s>", "</s>"]


def side_attributes(words: Sequence[str], tags: Sequence[str]) -> Attributes:
    """Return the attributes of the starts of spans at each word, then those of the ends.

    Examples
    --------
    >>> for row in side_attributes(["the", "fish"], ["DT", "NN"]):
    ...     print(row[:3])
    ['first=the', 'first tag=DT', 'before=<s>']
    ['first=fish', 'first tag=NN', 'before=the']
    ['last=the', 'last tag=DT', 'after=fish']
    ['last=fish', 'last tag=NN', 'after=</s>']
    """
    w, t = _padded(words), _padded(tags)
    begins = [
        [
            f"first={w[i]}",
            f"first tag={t[i]}",
            f"before={w[i - 1]}",
            f"before tag={t[i - 1]}",
            f"at begin={t[i - 1]}|{t[i]}",
            f"first two={t[i]}|{t[i + 1]}",
        ]
        for i in range(1, len(words) + 1)
    ]
    ends = [
        [
            f"last={w[i]}",
            f"last tag={t[i]}",
            f"after={w[i + 1]}",
            f"after tag={t[i + 1]}",
            f"at end={t[i]}|{t[i + 1]}",
            f"last two={t[i - 1]}|{t[i]}",
        ]
        for i in range(1, len(words) + 1)
    ]
    return [*begins, *ends]


def span_attributes(tags: Sequence[str]) -> Attributes:
    """Return the attributes of both sides of each span, in chart order.

    Examples
    --------
    >>> for row in span_attributes(["DT", "NN"]):
    ...     print(row[:3])
    ['length=1', 'tags=DT|DT', 'around=<s>|NN']
    ['length=1', 'tags=NN|NN', 'around=DT|</s>']
    ['length=2', 'tags=DT|NN', 'around=<s>|</s>']
    """
    t = _padded(tags)
    starts, ends = (side.tolist() for side in spans(len(tags)))
    return [_both(t, start + 1, end) for start, end in zip(starts, ends, strict=True)]


def _both(t: list[str], first: int, last: int) -> list[str]:
    length = last - first + 1
    size = max(bin for bin in _LENGTHS if bin <= length)
    attributes = [
        f"length={size}",
        f"tags={t[first]}|{t[last]}",
        f"around={t[first - 1]}|{t[last + 1]}",
        f"borders={t[first - 1]}|{t[first]}|{t[last]}|{t[last + 1]}",
        f"length, first={size}|{t[first]}",
        f"length, last={size}|{t[last]}",
    ]
    if length <= _WHOLE:
        attributes.append("all=" + "|".join(t[first : last + 1]))
    return attributes


def _word_attributes(words: Sequence[str], tags: Sequence[str]) -> Attributes:
    rows = templated(list(zip(words, tags, strict=True)), (*TAGGING, ((1, -1),), ((1, 1),)))
    return [[*row, *word_parts(word)] for row, word in zip(rows, words, strict=True)]


@dataclass(frozen=True)
class TreeFeatures:
    """The attributes of spans and words that have weights.

    Attributes
    ----------
    sides, spans, words : Encoder
        Vocabularies, or hashing.
    """

    sides: Encoder
    spans: Encoder
    words: Encoder

    @classmethod
    def of(
        cls,
        trees: Iterable[Tree],
        counted: TreebankGrammar,
        *,
        hashed: int | None = None,
        min_count: int = 1,
    ) -> TreeFeatures:
        """Learn vocabularies from constituents and words of trees; or hash to a number of columns each."""
        if hashed is not None:
            return cls(Hashed(int(hashed)), Hashed(int(hashed)), Hashed(int(hashed)))
        sides, spans, words = zip(*(_seen(tree, counted) for tree in trees), strict=True)
        return cls(*(Vocabulary.of(part, min_count) for part in (sides, spans, words)))

    def sentence(self, words: Sequence[str], counted: TreebankGrammar) -> Sentence:
        """Return a sentence as numbers."""
        tags = counted.likely_tags(words)
        return Sentence(
            tuple(words),
            counted.word_scores(words),
            self.sides.rows(side_attributes(words, tags)),
            self.spans.rows(span_attributes(tags)),
            self.words.rows(_word_attributes(words, tags)),
        )


def _seen(tree: Tree, counted: TreebankGrammar) -> tuple[Attributes, Attributes, Attributes]:
    """Return the attributes of the nodes of a tree, of one side and of both, and of its words."""
    words, tags = tree.words, counted.likely_tags(tree.words)
    kinds, starts, ends = counted.derivation(tree).nodes.T
    labelled = kinds < len(counted.grammar.labels)
    sides, both = side_attributes(words, tags), span_attributes(tags)
    return (
        [sides[row] for row in side_rows(len(words), starts, ends).ravel().tolist()],
        [both[row] for row in span_rows(len(words), starts, ends)[labelled].tolist()],
        _word_attributes(words, tags),
    )


def side_rows(words: int, starts: Integers, ends: Integers) -> Integers:
    """Return the two rows of :attr:`Sentence.sides` for each of some spans."""
    return np.stack((starts, words + ends - 1), axis=1)


def span_rows(words: int, starts: Integers, ends: Integers) -> Integers:
    """Return the row of :attr:`Sentence.spans` for each of some spans."""
    return span_numbers(words, starts, ends - starts)
