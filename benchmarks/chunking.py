"""Chunking sentences with scores from counts: realistic models without training.

``score(y) = Σ_i log P(y_i | word, tag) + Σ_i log P(y_i | y_{i-1}) / P(y_i)``, with add-one smoothing, from
all sentences but the last 1,000 of ``conll2000/train.txt``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from common import DATA
from numpy.typing import NDArray

import tallytree as tt

CORPUS = DATA / "conll2000" / "train.txt"
Sentence = list[tuple[str, str, str]]


def sentences(path: Path = CORPUS) -> list[Sentence]:
    """Read (word, tag, chunk label) triples, sentence by sentence."""
    return list(_sentences(path.read_text().splitlines()))


def _sentences(lines: list[str]) -> Iterator[Sentence]:
    sentence: Sentence = []
    for line in [*lines, ""]:
        if line.strip():
            word, tag, label = line.split()
            sentence.append((word, tag, label))
        elif sentence:
            yield sentence
            sentence = []


class Scorer:
    """Scores of labels from counts."""

    def __init__(self, training: list[Sentence]) -> None:
        self.labels = sorted({label for sentence in training for _, _, label in sentence})
        self._numbers = {label: i for i, label in enumerate(self.labels)}
        self._emissions: dict[tuple[str, str], Counter[str]] = {}
        self._tags: dict[str, Counter[str]] = {}
        pairs: Counter[tuple[str, str]] = Counter()
        for sentence in training:
            for word, tag, label in sentence:
                self._emissions.setdefault((word, tag), Counter())[label] += 1
                self._tags.setdefault(tag, Counter())[label] += 1
            names = [label for _, _, label in sentence]
            pairs.update(pairwise(names))
        counts = np.ones((len(self.labels), len(self.labels)))
        for (a, b), number in pairs.items():
            counts[self._numbers[a], self._numbers[b]] += number
        given = counts / counts.sum(axis=1, keepdims=True)
        self._transitions = np.log(given) - np.log(counts.sum(axis=0) / counts.sum())

    def model(self, sentence: Sentence) -> tt.Model:
        """Return the chain of one sentence."""
        unary = np.array([self._scores(word, tag) for word, tag, _ in sentence])
        return tt.Model.chain(unary, self._transitions, states=self.labels)

    def _scores(self, word: str, tag: str) -> NDArray[np.float64]:
        back_off = self._tags.get(tag, Counter())
        seen = self._emissions.get((word, tag), Counter())
        smooth = np.array([back_off[label] for label in self.labels]) + 0.1
        own = np.array([seen[label] for label in self.labels])
        weights = own + 4 * smooth / smooth.sum()
        return np.asarray(np.log(weights / weights.sum()))


def corpus(size: int = 1000) -> tuple[list[tt.Model], list[list[str]]]:
    """Return the models and the truths of the last sentences."""
    everything = sentences()
    scorer = Scorer(everything[:-1000])
    chosen = everything[-size:]
    return [scorer.model(s) for s in chosen], [[label for _, _, label in s] for s in chosen]
