"""The sum of ``exp F`` over everything with a tally, and what follows from it: probabilities, draws of rows.

What a distribution over labellings and one over trees have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.tallies import row_of, tally_type, whole_numbers
from tallytree.errors import InfeasibleError, ModelError
from tallytree.values import read_only

_ROUNDED = 1e-9  # as far as sums of probabilities are from 1 where scores are of an ordinary size


def generator_of(rng: Any) -> np.random.Generator:
    """Return the source of randomness that a user gave: a generator, a seed, or None for any.

    Examples
    --------
    >>> generator_of(0).integers(10)
    np.int64(8)
    >>> generator_of("x")
    Traceback (most recent call last):
    tallytree.errors.ModelError: rng is a numpy.random.Generator, a seed (a whole number from 0) or None,
    got 'x'
    """
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ModelError(
            f"rng is a numpy.random.Generator, a seed (a whole number from 0) or None, got {rng!r}"
        ) from None


def draws(size: Any) -> int:
    """Return how many draws a size asks for: one without it."""
    if size is not None and not (isinstance(size, (int, np.integer)) and size >= 0):
        raise ModelError(f"size is the number of draws, a whole number from 0, or None for one; got {size!r}")
    return 1 if size is None else int(size)


def normalised(logs: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return probabilities from their logarithms, less that of their sum.

    Where the numbers are large, rounding of the sum scales all of them alike, and they are divided by what
    they add up to.

    Examples
    --------
    >>> normalised(np.array([1e16, 1e16]), 1e16)
    array([0.5, 0.5])
    """
    probabilities: NDArray[np.float64] = np.exp(logs - total)
    scale = float(probabilities.sum())
    return probabilities if abs(scale - 1) < _ROUNDED or not 0 < scale < math.inf else probabilities / scale


class TallyProbabilities:
    """The exact distribution of a tally under ``p(y) ∝ exp(F(y))``."""

    tallies: NDArray[np.int64]  # (S, P): the attainable tallies in lexicographic order
    log_partitions: NDArray[np.float64]  # (S,): ``log Σ exp F(y)`` over all ``y`` with each
    _names: tuple[str, ...]
    _offset: float = 0.0  # what all scores have in common and was left out of the pass
    _relative: NDArray[np.float64] | None = None  # the log-partitions without it

    _noun: ClassVar[str] = "labelling"

    @cached_property
    def log_partition(self) -> float:
        """``log Σ exp F(y)`` over everything."""
        return self._offset + self._relative_partition

    @property
    def _relative_logs(self) -> NDArray[np.float64]:
        return self.log_partitions if self._relative is None else self._relative

    @cached_property
    def _relative_partition(self) -> float:
        largest = float(self._relative_logs.max())
        return largest + math.log(float(np.exp(self._relative_logs - largest).sum()))

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """The probability of each tally."""
        return read_only(normalised(self._relative_logs, self._relative_partition))

    def _row(self, tally: Iterable[int]) -> int:
        given = list(tally)
        if len(given) != len(self._names):
            raise ModelError(f"a tally has one integer for each of ({', '.join(self._names)}), got {given}")
        wanted = whole_numbers(given)
        row = row_of(self.tallies, wanted)
        if row is None:
            named = tally_type(self._names)(*wanted)
            raise InfeasibleError(f"no {self._noun} has the {named}; see .tallies for those that occur")
        return row

    def _drawn_rows(
        self, count: int, tally: Iterable[int] | None, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw rows of ``tallies``; without chance where the tally is given."""
        if tally is not None:
            return np.full(count, self._row(tally), dtype=np.int64)
        shares = self.probabilities / self.probabilities.sum()  # exactly 1, rounding apart
        return generator.choice(len(shares), size=count, p=shares).astype(np.int64)
