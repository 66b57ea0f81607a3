"""The tally under the Gibbs distribution ``p(y) ∝ exp(F(y))``: the same plan over other algebras.

Over log-sum-exp the last table is ``log Σ { exp F(y) : G(y) = l }`` for every tally ``l``; the downward pass
gives marginals, and a downward walk that samples instead of maximising gives exact samples. Over the integers
it is the exact number of labellings with each tally: the pass is run modulo sufficiently many primes, and the
residues are combined by the Chinese remainder theorem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree import html
from tallytree.answers.root_table import GraphTable, RootTable
from tallytree.answers.tallies import Tally
from tallytree.errors import InfeasibleError, ModelError
from tallytree.model.model import Model
from tallytree.model.rounding import levelled
from tallytree.running.graphs import (
    LOG_SUM_EXP,
    GraphMessages,
    differentiated,
    pass_downward,
    pass_upward,
    residues,
    sampled,
)
from tallytree.values import read_only

_ROUNDED = 1e-9  # how far sums of probabilities are from 1 for scores of ordinary size


def generator_of(rng: Any) -> np.random.Generator:
    """Return the random generator for a generator, a seed, or None (unseeded).

    Examples
    --------
    >>> generator_of(0).integers(10)
    np.int64(8)
    >>> generator_of("x")
    Traceback (most recent call last):
    tallytree.errors.ModelError: rng must be a numpy.random.Generator, a non-negative integer seed or None,
    got 'x'
    """
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ModelError(
            f"rng must be a numpy.random.Generator, a non-negative integer seed or None, got {rng!r}"
        ) from None


def draws(size: Any) -> int:
    """Return the number of draws for a size: one for None."""
    if size is not None and not (isinstance(size, (int, np.integer)) and size >= 0):
        raise ModelError(f"size must be a non-negative integer, or None for a single draw; got {size!r}")
    return 1 if size is None else int(size)


def normalised(logs: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return probabilities from log-weights and the logarithm of their sum.

    For large numbers, rounding of the sum scales all probabilities alike, so they are divided by their
    own sum.

    Examples
    --------
    >>> normalised(np.array([1e16, 1e16]), 1e16)
    array([0.5, 0.5])
    """
    probabilities: NDArray[np.float64] = np.exp(logs - total)
    scale = float(probabilities.sum())
    return probabilities if abs(scale - 1) < _ROUNDED or not 0 < scale < math.inf else probabilities / scale


class TallyProbabilities(RootTable):
    """The exact distribution of a tally under ``p(y) ∝ exp(F(y))``."""

    log_partitions: NDArray[np.float64]  # (S,): ``log Σ exp F(y)`` over all ``y`` with each
    _offset: float = 0.0  # part of the score common to all labellings, left out of the pass
    _relative: NDArray[np.float64] | None = None  # the log-partitions without the offset
    _none_left: ClassVar[str]

    def _fill(self, values: NDArray[np.float64]) -> None:
        if not len(values):
            raise InfeasibleError(f"{self._none_left}, so the distribution is not defined")
        self._relative = values if self._offset else None
        self.log_partitions = read_only(values + self._offset) if self._offset else values

    @cached_property
    def log_partition(self) -> float:
        """``log Σ exp F(y)`` over all labellings."""
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

    def _repr_html_(self) -> str:
        """Show the distribution in a notebook: bars for a single statistic, and the most probable tallies."""
        return html.ranking("Distribution", self._names, self.tallies, self.probabilities, "probability")

    def _drawn_rows(
        self, count: int, tally: Tally | None, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        """Draw rows of ``tallies``; deterministic if the tally is given."""
        if tally is not None:
            return np.full(count, self._row((tally,), {}), dtype=np.int64)
        shares = self.probabilities / self.probabilities.sum()  # sums to exactly 1
        return generator.choice(len(shares), size=count, p=shares).astype(np.int64)


class Distribution(GraphTable, TallyProbabilities):
    """The exact distribution of the tally, as returned by :func:`distribution`.

    Attributes
    ----------
    tallies : (S, P) int64 array
        The attainable tallies in lexicographic order.
    log_partitions : (S,) float64 array
        ``log Σ exp F(y)`` over the labellings with each tally.
    """

    _none_left = "every labelling is forbidden by a -inf factor of the model or by fixed= or allowed="

    def _run(self) -> GraphMessages:
        model, self._offset = self._level
        return pass_upward(self.plan, model, self._options, LOG_SUM_EXP)

    @cached_property
    def _level(self) -> tuple[Model, float]:
        """The model without the score common to all its labellings, and that score."""
        return levelled(self.model)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The exact number of allowed labellings with each tally.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.zeros((100, 3)), np.zeros((3, 3)))
        >>> sum(tt.distribution(model, [tt.count(state=1)]).counts) == 3**100
        True
        """
        bits = sum(math.log2(n) for n in self.reduction.original.cardinalities.tolist())
        primes = list(islice(_primes(), 1 + int(bits / 30.9)))
        found = residues(self.plan, self.model, self._native_cells(), primes, self._options.threads)
        return tuple(_remainders(primes, [r.tolist() for r in found]))

    def _native_cells(self) -> NDArray[np.int64]:
        # the reference backend numbers its root cells differently
        if self._options.backend == "native":
            return self._cells
        return pass_upward(self.plan, self.model).root()[0]

    def marginals(self, tally: Tally | None = None) -> list[NDArray[np.float64]] | NDArray[np.float64]:
        """Return the probability of each state of each variable, optionally given a tally.

        The tally is given in order, by name as a mapping, or as an integer if there is one statistic. Returns
        a list with one array per variable, or for grids one array of shape (rows, columns, states).

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.zeros((4, 2)), np.zeros((2, 2)))
        >>> tt.distribution(model, [tt.count(state=1)]).marginals(tally=1)[0]
        array([0.75, 0.25])
        """
        weights = np.full(len(self._loaded().values), -np.inf)
        if tally is None:
            weights[self._cells] = 0.0
            total = self._relative_partition
        else:
            row = self._row((tally,), {})
            weights[self._cells[row]] = 0.0
            total = float(self._relative_logs[row])
        with self._lock:
            logs = pass_downward(self._loaded(), weights, self._level[0], self.plan)
        ends = np.cumsum(self.model.cardinalities)
        tables = [normalised(part, total) for part in np.split(logs, ends[:-1])] if len(ends) else []
        return self.reduction.original.arranged(self.reduction.fold(tables, np.add, 0.0))

    def gradient(self, weights: ArrayLike) -> list[NDArray[np.float64]]:
        """Return the derivatives of a function of ``log_partitions`` with respect to every table entry.

        If the weights are the probabilities of the tallies, these are the expected entries: the probability
        of each entry of each factor. Any function takes one upward and one downward pass.

        Parameters
        ----------
        weights : array of shape (S,)
            The derivative of the function with respect to the log-partition of each tally; of any sign.

        Returns
        -------
        list of arrays
            One for each block of ``model.blocks``, with the shape of its tables. For a table shared by
            several factors, the sum over these factors.

        Examples
        --------
        How the expected number of ones changes with each score:

        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
        >>> d = tt.distribution(model, [tt.count(state=1)])
        >>> ones = d.tallies[:, 0]
        >>> d.gradient(d.probabilities * (ones - d.probabilities @ ones))[0]
        array([[-0.25,  0.25],
               [-0.25,  0.25],
               [-0.25,  0.25]])
        """
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != (len(self.tallies),) or not np.isfinite(given).all():
            raise ModelError(
                f"weights must be one finite number for each of the {len(self.tallies)} tallies, got an "
                f"array of shape {given.shape}"
            )
        cells = np.zeros(len(self._messages.values))
        cells[self._cells] = given
        with self._lock:
            return differentiated(self._messages, cells, self.plan)

    def sample(
        self, size: int | None = None, *, tally: Tally | None = None, rng: Any = None
    ) -> NDArray[np.int64]:
        """Draw exact samples, optionally given a tally.

        Parameters
        ----------
        size : int, optional
            The number of samples; the result has shape (size, M). By default one sample of shape (M,). For
            grids, M is replaced by (rows, columns).
        tally : sequence of int, mapping of str to int, or int, optional
            Sample among the labellings with this tally, given in order or by name; an integer if there is
            one statistic.
        rng : numpy Generator, int or None
            The random generator, or its seed.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.zeros((6, 2)), np.zeros((2, 2)))
        >>> d = tt.distribution(model, [tt.count(state=1)])
        >>> d.sample(3, tally=2, rng=0).sum(axis=1)
        array([2, 2, 2])
        """
        generator, count = generator_of(rng), draws(size)
        rows = self._drawn_rows(count, tally, generator)
        uniforms = generator.random((count, len(self.plan.tables)))
        with self._lock:
            drawn = sampled(self._loaded(), self._cells[rows].astype(np.int64), uniforms)
        labellings = self.reduction.lift_all(drawn).reshape(count, *self.reduction.original.shape)
        return labellings[0] if size is None else labellings

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_level"}


# --- exact counts -----------------------------------------------------------------------------------------


def _primes() -> Iterator[int]:
    """Yield the primes below 2^31, largest first."""
    return (n for n in range(2**31 - 1, 2, -2) if _is_prime(n))


def _is_prime(n: int) -> bool:
    """Miller-Rabin test with bases that are deterministic for every n below 3.2e9."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(n, base, odd, twos) for base in (2, 3, 5, 7) if n % base)


def _passes(n: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, n)
    if power in (1, n - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % n
        if power == n - 1:
            return True
    return False


def _remainders(primes: Sequence[int], residues: Sequence[Sequence[int]]) -> list[int]:
    """Return the numbers below the product of the primes that have these residues."""
    totals, product = list(residues[0]), primes[0]
    for prime, row in zip(primes[1:], residues[1:], strict=True):
        inverse = pow(product, -1, prime)
        totals = [
            total + product * ((residue - total) * inverse % prime)
            for total, residue in zip(totals, row, strict=True)
        ]
        product *= prime
    return totals
