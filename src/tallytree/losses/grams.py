"""n-grams of sentences, and statistics that count them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.statistic import Statistic
from tallytree.transducers.encodings import alphabets_of, transduced
from tallytree.transducers.ngrams import Ngrams

Sentence = tuple[Hashable, ...]


def ngrams_of(sentence: Sentence, n: int) -> Counter[Sentence]:
    """Return the n-grams of a sentence, with how often each occurs.

    Examples
    --------
    >>> ngrams_of(tuple("abab"), 2)
    Counter({('a', 'b'): 2, ('b', 'a'): 1})
    """
    return Counter(sentence[i : i + n] for i in range(len(sentence) - n + 1))


def largest_counts(references: Sequence[Sentence], n: int) -> dict[Sentence, int]:
    """Return the n-grams of all references with their largest count in one, in order of appearance."""
    counts: dict[Sentence, int] = {}
    for reference in references:
        for gram, count in ngrams_of(reference, n).items():
            counts[gram] = max(count, counts.get(gram, 0))
    return counts


class Group(NamedTuple):
    """One statistic: how much the occurrences of some n-grams are worth together, perhaps capped."""

    name: str
    worth: Mapping[Sentence, int]
    cap: int | None


def clipped(counts: Mapping[Sentence, int]) -> list[Group]:
    """Count each n-gram for itself, as often as it may count."""
    return [Group("_".join(map(str, gram)), {gram: 1}, cap) for gram, cap in counts.items()]


def counted(model: Model, groups: Sequence[Group], end: Any, *, length: bool) -> Reduction:
    """Return a reduction that counts groups of n-grams, and the length of the sentence if asked to."""
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
    """Refuse what is no number of labels, at least one."""
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 1:
        raise ModelError(f"{name} is a whole number, at least 1, got {number!r}")
