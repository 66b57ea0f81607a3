"""Losses of whole sentences, which are compared with references as a whole rather than label by label.

A labelling of a chain is a sentence over a vocabulary. With an **end label** it may be shorter than the
chain: the sentence is everything before the first end label, and only end labels follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.losses.base import Bounds, Loss, flat
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.running.sentences import Measured
from tallytree.statistics.statistic import Statistic
from tallytree.transducers.encodings import alphabets_of, transduced
from tallytree.transducers.ngrams import Ngrams

Sentence = tuple[Hashable, ...]


def ngrams_of(sentence: Sentence, n: int) -> Counter[Sentence]:
    """Return the n-grams of a sentence with their counts.

    Examples
    --------
    >>> ngrams_of(tuple("abab"), 2)
    Counter({('a', 'b'): 2, ('b', 'a'): 1})
    """
    return Counter(sentence[i : i + n] for i in range(len(sentence) - n + 1))


def largest_counts(references: Sequence[Sentence], n: int) -> dict[Sentence, int]:
    """Return the n-grams of all references with their largest count in one of them, in order."""
    counts: dict[Sentence, int] = {}
    for reference in references:
        for gram, count in ngrams_of(reference, n).items():
            counts[gram] = max(count, counts.get(gram, 0))
    return counts


class Group(NamedTuple):
    """One statistic: the total value of the occurrences of some n-grams, possibly capped."""

    name: str
    worth: Mapping[Sentence, int]
    cap: int | None


def clipped(counts: Mapping[Sentence, int]) -> list[Group]:
    """Count each n-gram separately, as often as it may count."""
    return [Group("_".join(map(str, gram)), {gram: 1}, cap) for gram, cap in counts.items()]


def group_counts(groups: Sequence[Group], sentence: Sentence) -> list[tuple[str, int]]:
    """Return the counts of groups in a sentence, by name."""
    counts = {n: ngrams_of(sentence, n) for n in {len(gram) for group in groups for gram in group.worth}}
    sums = [sum(one * counts[len(gram)][gram] for gram, one in group.worth.items()) for group in groups]
    return [
        (group.name, total if group.cap is None else min(total, group.cap))
        for group, total in zip(groups, sums, strict=True)
    ]


def counted(model: Model, groups: Sequence[Group], end: Any, *, length: bool) -> Reduction:
    """Return a reduction that counts groups of n-grams, and optionally the length of the sentence."""
    worth: dict[Sentence, list[int]] = {}
    for i, group in enumerate(groups):
        for gram, one in group.worth.items():
            worth.setdefault(gram, [0] * len(groups))[i] = one
    machine = Ngrams(
        tuple((gram, tuple(row)) for gram, row in worth.items()), tuple(group.name for group in groups), end
    )
    reduction = transduced(Reduction.identity(model), machine)
    statistics = [s.capped(group.cap) for s, group in zip(reduction.statistics, groups, strict=True)]
    if length:
        statistics.append(reduction.pull(_length(model, end)))
    return reduction.with_statistics(statistics)


def _length(model: Model, end: Any) -> Statistic:
    tables = (
        np.array([int(end is None or label != end) for label in labels]) for labels in alphabets_of(model)
    )
    return Statistic([((v,), table) for v, table in enumerate(tables)], name="length")


def checked_order(number: object, name: str) -> None:
    """Raise an error unless a number is a positive integer."""
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 1:
        raise ModelError(f"{name} must be an integer of at least 1, got {number!r}")


@dataclass(frozen=True)
class SequenceLoss(Loss):
    """A loss of sentences relative to one or more references; for chains.

    Parameters
    ----------
    truth : sequence of labels, or of such sequences
        The references, of any length.
    end : str or int, optional
        The label that ends a sentence; without it, every sentence is as long as the chain.
    """

    end: Any = field(default=None, kw_only=True)
    _model: Model | None = field(default=None, init=False, repr=False, compare=False)

    def on(self, model: Model) -> Self:
        """Return the same loss with labels as numbers of a model; raise an error if it does not fit."""
        if self._model is model:
            return self
        if self.end is not None and len(model) and (model.state_codes(self.end) < 0).any():
            raise ModelError(f"every variable must have the end label {self.end!r}, but some do not")
        names = model.states_of(0) if len(model) else None
        references = (tuple(_spoken(word, names) for word in one) for one in self.references)
        bound = replace(self, truth=tuple(references), end=_spoken(self.end, names))
        object.__setattr__(bound, "_model", model)
        return bound

    @cached_property
    def references(self) -> tuple[Sentence, ...]:
        """The references, without end labels."""
        truth = self._required()
        if not isinstance(truth, tuple):
            raise ModelError(f"references must be sequences of labels, such as text.split(); got {truth!r}")
        several = [isinstance(one, tuple) for one in truth]
        if any(several) and not all(several):
            raise ModelError(
                "references must be one sequence of labels or several; got a mixture of labels and sequences"
            )
        return tuple(map(self._cut, truth if any(several) else (truth,)))

    def _cut(self, labels: Iterable[Hashable]) -> Sentence:
        """Return everything before the first end label."""
        sentence = tuple(labels)
        ends = self.end is not None and self.end in sentence
        return sentence[: sentence.index(self.end)] if ends else sentence

    def sentence(self, y: Any) -> Sentence:
        """Return the sentence of a labelling: everything before the first end label."""
        if self._model is not None:
            return self._cut(flat(self._model.labels(y)))
        labels = flat(y)
        if _mixed([*labels, *(word for one in self.references for word in one)]):
            raise ModelError(
                "the references and the labelling cannot be compared: one has names where the other "
                "has numbers; use loss.on(model), which handles both"
            )
        return self._cut(labels)

    def anchor(self, model: Model) -> NDArray[np.int64]:
        """Return the first reference, padded with end labels."""
        loss = self.on(model)
        first, size = loss.references[0], len(model)
        if len(first) > size or (len(first) < size and self.end is None):
            raise ModelError(
                f"the first reference has {len(first)} labels, but the model has {size} variables, so it has "
                "no score; pass the labelling to compare with as truth=, or an end label to pad it with"
            )
        try:
            return model.encode([*first, *[loss.end] * (size - len(first))])
        except ModelError as error:
            raise ModelError(
                f"the first reference is not a labelling of this model; pass one as truth=: {error}"
            ) from None

    def measured(self) -> Measured | None:
        """Return the measure for a search without machines; None if not supported."""
        return None

    def counts(self, y: Any) -> list[tuple[str, int]]:
        """Return what :meth:`reduce` counts, for one labelling; for losses with a measure."""
        raise NotImplementedError

    @property
    def bounds(self) -> Bounds:
        """From 0 to 1."""
        return 0.0, 1.0


def _mixed(labels: Iterable[Hashable]) -> bool:
    return len({isinstance(label, str) for label in labels}) > 1


def _spoken(word: Any, names: tuple[str, ...] | None) -> Any:
    """Return a word as the model writes it: by name if it has names."""
    return names[word] if names is not None and isinstance(word, int) and 0 <= word < len(names) else word
