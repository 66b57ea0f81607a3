"""ROUGE-N, the recall of n-grams, and ROUGE-L, the F-measure of the longest common subsequence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallytree.errors import BudgetError
from tallytree.losses.base import Values, checked_beta
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
from tallytree.transducers.encodings import transduced
from tallytree.transducers.subsequences import Subsequences


@dataclass(frozen=True)
class RougeN(SequenceLoss):
    """One minus ROUGE-N: ``1 - Σ_S Σ_k min(count(k, S), count(k, y)) / Σ_S Σ_k count(k, S)``.

    The sums are over the references S and their n-grams k; 0 if the references have no n-grams. Finding the
    optimum over all sentences of 40 words takes milliseconds; full tables are feasible up to about fifteen.

    Parameters
    ----------
    truth : sequence of labels, or of such sequences
        The references.
    n : int
        The length of the n-grams.
    clip : bool
        Whether an n-gram counts at most as often as in the reference. Without clipping, ``count(k, y)``
        replaces the minimum, and the total is capped: one tally, however
        long the references are.
    end : str or int, optional
        The label that ends a sentence; without it, every sentence is as long as the chain.

    Examples
    --------
    >>> import tallytree as tt
    >>> loss = tt.losses.RougeN("the cat sat on the mat".split(), n=2)
    >>> loss("the cat on the mat".split())
    0.4
    """

    n: int = 2
    clip: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_order(self.n, "n")

    @property
    def remedy(self) -> str:
        """How to make it cheaper."""
        return "clip=False counts all n-grams together, which is cheap" if self.clip else ""

    def __call__(self, y: Any) -> float:
        """Compute the loss of a labelling by definition."""
        found, right, whole = ngrams_of(self.sentence(y), self.n), 0, 0
        for reference in self.references:
            grams = ngrams_of(reference, self.n)
            whole += grams.total()
            right += (grams & found).total() if self.clip else sum(found[gram] for gram in grams)
        return max(0.0, 1.0 - right / whole) if whole else 0.0

    @cached_property
    def _grams(self) -> list[Counter[Sentence]]:
        return [ngrams_of(reference, self.n) for reference in self.references]

    def measured(self) -> Measured:
        """Return the references and the length of the n-grams."""
        return Measured("rouge-n", self.references, self.n, self.clip, end=self.end)

    def _groups(self) -> list[Group]:
        counts = largest_counts(self.references, self.n)
        if self.clip:
            return clipped(counts)
        return [Group("right", {gram: sum(gram in grams for grams in self._grams) for gram in counts}, None)]

    def counts(self, y: Any) -> list[tuple[str, int]]:
        """Return what :meth:`reduce` counts, for one labelling."""
        return group_counts(self._groups(), self.sentence(y))

    def reduce(self, model: Model) -> Reduction:
        """Count every n-gram as often as it may count; without clipping, all of them together."""
        loss = self.on(model)
        return counted(model, loss._groups(), loss.end, length=False)

    def value(self, *tallies: ArrayLike) -> Values:
        """Compute the loss from the counts of the n-grams, or of all of them together."""
        counts = [np.asarray(tally, dtype=np.int64) for tally in tallies]
        whole = sum(grams.total() for grams in self._grams)
        if not whole:
            return np.zeros(np.broadcast_shapes(*(count.shape for count in counts)))
        right: Any = counts[0]
        if self.clip:
            known = largest_counts(self.references, self.n)
            right = sum(
                np.minimum(count, grams[gram])
                for count, gram in zip(counts, known, strict=True)
                for grams in self._grams
            )
        return np.asarray(np.maximum(1.0 - right / whole, 0.0))


@dataclass(frozen=True)
class RougeL(SequenceLoss):
    """One minus ROUGE-L: the mean over the references S of ``(1 + β²)·P·R / (R + β²·P)``.

    With L the length of the longest common subsequence of the sentence y and S, the precision P is ``L/|y|``
    and the recall R is ``L/|S|``. The measure is 0 if the two have nothing in common, but 1 if both
    are empty. Finding the optimum over all sentences of 40 words takes milliseconds; full tables
    are feasible up to about ten.

    Parameters
    ----------
    truth : sequence of labels, or of such sequences
        The references.
    beta : float
        The weight of recall relative to precision; positive.
    end : str or int, optional
        The label that ends a sentence; without it, every sentence is as long as the chain.

    Examples
    --------
    >>> import tallytree as tt
    >>> loss = tt.losses.RougeL("the cat sat on the mat".split())
    >>> round(loss("the cat on a mat".split()), 6)
    0.272727
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beta", checked_beta(self.beta))

    def __call__(self, y: Any) -> float:
        """Compute the loss of a labelling by definition."""
        sentence, total = self.sentence(y), 0.0
        for reference in self.references:
            common = _longest_common(sentence, reference)
            if common:
                precision, recall = common / len(sentence), common / len(reference)
                weight = self.beta**2
                total += (1 + weight) * precision * recall / (recall + weight * precision)
            elif not sentence and not reference:
                total += 1.0
        return max(0.0, 1.0 - total / len(self.references))

    def measured(self) -> Measured:
        """Return the references and the weight of recall."""
        return Measured("rouge-l", self.references, beta=float(self.beta), end=self.end)

    def counts(self, y: Any) -> list[tuple[str, int]]:
        """Return what :meth:`reduce` counts, for one labelling."""
        sentence = self.sentence(y)
        common = [(f"lcs{i}", _longest_common(sentence, one)) for i, one in enumerate(self.references)]
        return [*common, ("length", len(sentence))]

    def reduce(self, model: Model) -> Reduction:
        """Compute the lengths of longest common subsequences with a machine, and the length."""
        loss = self.on(model)
        try:
            return transduced(Reduction.identity(model), Subsequences(loss.references, loss.end))
        except BudgetError as error:
            raise BudgetError(
                f"{error}. Their number is exponential in the length of the references: use shorter ones, "
                "or RougeN(clip=False)"
            ) from None

    def value(self, *tallies: ArrayLike) -> Values:
        """Compute the loss from the lengths of the common subsequences, and the length of the sentence."""
        *common, length = (np.asarray(tally, dtype=np.int64) for tally in tallies)
        weight, total = self.beta**2, np.zeros(length.shape)
        for lcs, reference in zip(common, self.references, strict=True):
            # P = L/|y| and R = L/|S| leave (1 + β²)·L / (|y| + β²·|S|)
            whole = length + weight * len(reference)
            total = total + np.where(whole > 0, (1 + weight) * lcs / np.where(whole > 0, whole, 1), 1.0)
        return np.maximum(1.0 - total / len(self.references), 0.0)


def _longest_common(a: Sentence, b: Sentence) -> int:
    """Return the length of the longest common subsequence, by the recursion over prefixes."""
    row = [0] * (len(b) + 1)
    for one in a:
        before = row
        row = [0]
        for j, other in enumerate(b):
            row.append(before[j] + 1 if one == other else max(before[j + 1], row[j]))
    return row[-1]
