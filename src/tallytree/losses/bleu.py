"""BLEU, the precision of n-grams: ``BP · exp(mean over k of log p_k)``.

``p_k`` is the fraction of the sentence's k-grams that the references have, and BP penalises short sentences:
``exp(1 - r/c)`` if the length c is below r, the length of the closest reference (the shorter one of two). A
k-gram counts at most as often as in the reference that has it most often. This **clipping** makes full
tables exponential in the number of distinct k-grams; :func:`tallytree.loss_augmented` searches by bounds
instead. Without clipping, a k-gram of a reference counts wherever it occurs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.losses.base import Values
from tallytree.losses.sequences import (
    Group,
    Sentence,
    SequenceLoss,
    checked_order,
    clipped,
    counted,
    group_counts,
    largest_counts,
    ngrams_of,
)
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.running.sentences import Measured


@dataclass(frozen=True)
class Bleu(SequenceLoss):
    """One minus BLEU of a single sentence, without smoothing.

    If for some k up to ``max_order`` the sentence has no k-gram, or none that is in a reference, the loss is
    1; if the sentence and its closest reference are both empty, it is 0. Finding the optimum over all
    sentences of 40 words takes milliseconds; profiles, paths and constraints need full tables,
    which are feasible up to about ten words.

    Parameters
    ----------
    truth : sequence of labels, or of such sequences
        The references.
    max_order : int
        The length of the longest n-grams.
    clip : bool
        Whether an n-gram counts at most as often as in one reference. Without clipping, tables have few
        tallies, however long the references are.
    end : str or int, optional
        The label that ends a sentence; without it, every sentence is as long as the chain.

    Examples
    --------
    >>> import tallytree as tt
    >>> loss = tt.losses.Bleu("the cat sat on the mat".split(), max_order=2)
    >>> loss("the cat sat on the mat".split()), round(loss("the cat sat on a mat".split()), 6)
    (0.0, 0.292893)
    """

    max_order: int = 4
    clip: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_order(self.max_order, "max_order")

    @property
    def remedy(self) -> str:
        """How to make it cheaper."""
        return "clip=False counts all n-grams of one length together, which is cheap" if self.clip else ""

    def __call__(self, y: Any) -> float:
        """Compute the loss of a labelling by definition."""
        sentence, references = self.sentence(y), self.references
        length = len(sentence)
        closest = min((abs(len(one) - length), len(one)) for one in references)[1]
        if not length:
            return float(closest > 0)
        mean = 0.0
        for n in range(1, self.max_order + 1):
            found, right, known = ngrams_of(sentence, n), 0, [ngrams_of(one, n) for one in references]
            for gram, count in found.items():
                most = max(grams[gram] for grams in known)
                right += min(count, most) if self.clip else count * (most > 0)
            if not right:
                return 1.0
            mean += math.log(right / found.total()) / self.max_order
        return max(0.0, 1.0 - math.exp(mean + min(0.0, 1 - closest / length)))

    @cached_property
    def _counts(self) -> list[dict[Sentence, int]]:
        """The n-grams of the references for each order, and how often each may count."""
        return [largest_counts(self.references, n) for n in range(1, self.max_order + 1)]

    def measured(self) -> Measured:
        """Return the references and the orders."""
        return Measured("bleu", self.references, self.max_order, self.clip, end=self.end)

    def _groups(self) -> list[Group]:
        if self.clip:
            return [group for counts in self._counts for group in clipped(counts)]
        return [Group(f"right{n}", dict.fromkeys(c, 1), None) for n, c in enumerate(self._counts, 1)]

    def counts(self, y: Any) -> list[tuple[str, int]]:
        """Return what :meth:`reduce` counts, for one labelling."""
        sentence = self.sentence(y)
        return [*group_counts(self._groups(), sentence), ("length", len(sentence))]

    def reduce(self, model: Model) -> Reduction:
        """Count every n-gram as often as it may count, or those of each order together; and the length."""
        loss = self.on(model)
        return counted(model, loss._groups(), loss.end, length=True)

    def value(self, *tallies: ArrayLike) -> Values:
        """Compute the loss from the counts of the n-grams, or of each order, and the length."""
        *counts, length = np.broadcast_arrays(*(np.asarray(tally, dtype=np.int64) for tally in tallies))
        ends = np.cumsum([len(one) if self.clip else 1 for one in self._counts]).tolist()
        good, mean = length > 0, np.zeros(length.shape)
        for n, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            right = np.sum(counts[start:end], axis=0, dtype=np.int64) + np.zeros_like(length)
            good &= right > 0
            mean += np.log(np.maximum(right, 1) / np.maximum(length - n, 1)) / self.max_order
        closest = _closest([len(one) for one in self.references], length)
        loss = 1.0 - np.exp(mean + np.minimum(0.0, 1 - closest / np.maximum(length, 1)))
        nothing = (length == 0) & (closest == 0)
        return np.maximum(np.where(good, loss, np.where(nothing, 0.0, 1.0)), 0.0)


def _closest(lengths: list[int], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the closest of some lengths to each; of two, the shorter one."""
    ordered = np.array(sorted(lengths))
    return np.asarray(ordered[np.abs(ordered - length[..., np.newaxis]).argmin(axis=-1)])
