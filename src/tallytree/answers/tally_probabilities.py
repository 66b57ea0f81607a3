"""Probabilities of tallies under ``p(y) ∝ exp(F(y))``: shared by labellings and trees.

The last table has ``log Σ exp F(y)`` for every tally that the messages carry. A constraint may need further
statistics there; what only differs in those is added up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tallytree import html
from tallytree.answers.root_table import RootTable
from tallytree.answers.tallies import Tally, row_of, wanted_tally
from tallytree.errors import InfeasibleError, ModelError
from tallytree.values import read_only

_SEEDS = {"generator", "random_seed", "random_state", "seed"}  # what other libraries call rng=
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


def summed(logs: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the logarithm of the sum of each group of log-weights; groups begin at ``starts``.

    Examples
    --------
    >>> summed(np.log([1.0, 3.0, 5.0]), np.array([0, 2]))
    array([1.38629436, 1.60943791])
    """
    largest = np.maximum.reduceat(logs, starts)
    sizes = np.diff(starts, append=len(logs))
    sums: NDArray[np.float64] = np.add.reduceat(np.exp(logs - largest.repeat(sizes)), starts)
    return largest + np.log(sums)


class TallyProbabilities(RootTable):
    """The exact distribution of a tally under ``p(y) ∝ exp(F(y))``, optionally given a constraint.

    The messages may carry statistics that only the constraint reads. A row then has one cell of the last
    table for each of their tallies, and its sum is over these cells.
    """

    log_partitions: NDArray[np.float64]  # (S,): ``log Σ exp F(y)`` over all ``y`` with each
    _offset: float = 0.0  # part of the score common to all labellings, left out of the pass
    _relative: NDArray[np.float64] | None = None  # the log-partitions without the offset
    _starts: NDArray[np.int64] | None = None  # the first cell of each row, if rows have several
    _cell_logs: NDArray[np.float64] | None = None  # the sum of each cell, without the offset
    _none_left: ClassVar[str]

    def _fill(self, values: NDArray[np.float64]) -> None:
        if self.query.where is not None:
            values = self._conditioned(values)
        if not len(values):
            raise InfeasibleError(f"{self._none_left}, so the distribution is not defined")
        self._relative = values if self._offset else None
        self.log_partitions = read_only(values + self._offset) if self._offset else values

    def _conditioned(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Keep what satisfies the constraint, and add up what only differs in statistics that it reads."""
        kept = self._satisfying(self.tallies)
        self._cells, values = self._cells[kept], values[kept]
        read = len(self.query.read)
        self.statistics, self._names = self.statistics[:read], self._names[:read]
        tallies = self.tallies[kept][:, :read]
        first = np.ones(len(tallies), dtype=bool)
        first[1:] = (tallies[1:] != tallies[:-1]).any(axis=1)  # sorted, so equal ones are adjacent
        self.tallies = read_only(tallies[first])
        if first.all():
            return read_only(values)
        self._starts, self._cell_logs = np.flatnonzero(first), values
        return read_only(summed(values, self._starts))

    def _satisfying(self, tallies: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of the tallies of the messages that satisfy the constraint."""
        if self.query.remaining is None:
            return np.arange(len(tallies))
        columns: dict[Any, Any] = dict(zip(self.query.carried, tallies.T, strict=True))
        return np.flatnonzero(np.broadcast_to(self.query.remaining.holds(columns), len(tallies)))

    def _cells_of(self, row: int) -> slice:
        """Return where the cells of a row are."""
        if self._starts is None:
            return slice(row, row + 1)
        end = len(self._cells) if row + 1 == len(self._starts) else int(self._starts[row + 1])
        return slice(int(self._starts[row]), end)

    def _spread(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivatives with respect to cells, from those with respect to rows."""
        if self._starts is None or self._cell_logs is None:
            return weights
        sizes = np.diff(self._starts, append=len(self._cells))
        shares: NDArray[np.float64] = np.exp(self._cell_logs - self._relative_logs.repeat(sizes))
        return weights.repeat(sizes) * shares

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
        found = self._names, self.tallies, self.probabilities
        return html.ranking("Distribution", *found, "probability", self.query.where)

    def at(self, *tally: Tally, **named: int) -> float:
        """Return the probability of a tally, given in order or by name; 0 for one that nothing has.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
        >>> d = tt.distribution(model, [tt.count(state=1, name="ones")])
        >>> d.at(1), d.at(ones=2), d.at({"ones": 3})
        (0.5, 0.25, 0.0)
        """
        row = row_of(self.tallies, wanted_tally(self._names, tally, named))
        return 0.0 if row is None else float(self.probabilities[row])

    def _given(self, tally: Sequence[Any], named: Mapping[str, Any], whole: Tally | None) -> int | None:
        """Return the row of a tally passed in order, by name, or whole as ``tally=``; None without one."""
        if whole is not None:
            if tally or named:
                raise ModelError("a tally is passed in order, by name, or as tally=, but not in two ways")
            return self._row((whole,), {})
        none = not named and (not tally or (len(tally) == 1 and tally[0] is None))
        return None if none else self._row(tally, named)

    def _sampled_row(self, named: Mapping[str, Any], whole: Tally | None) -> int | None:
        """Return the row to sample from; None for any."""
        for name in _SEEDS.intersection(named).difference(self._names):
            raise ModelError(f"sample has no argument {name!r}. Did you mean rng={named[name]!r}?")
        return self._given((), named, whole)

    def _drawn_cells(self, count: int, row: int | None, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw cells of the last table: of any row, or of a given one."""
        logs = self._relative_logs if self._cell_logs is None else self._cell_logs
        chosen = slice(None) if row is None else self._cells_of(row)
        if row is not None and self._starts is None:
            return self._cells[chosen].repeat(count).astype(np.int64)
        shares = self.probabilities if self._starts is None else np.exp(logs[chosen] - logs[chosen].max())
        places = generator.choice(len(shares), size=count, p=shares / shares.sum())  # sums to exactly 1
        return self._cells[chosen][places].astype(np.int64)
