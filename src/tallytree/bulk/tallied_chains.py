"""Sums over the labellings of chains, tally by tally, and the derivatives of any function of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tallytree.bulk.chain_sums import (
    ChainSums,
    Floats,
    LaidChains,
    check_refused,
    check_scores,
    put_slopes,
    scores_of,
)
from tallytree.bulk.truth_tables import Integers
from tallytree.errors import BudgetError
from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit, readable_bytes
from tallytree.planning.orders import skeleton
from tallytree.planning.plan import tally_limits
from tallytree.statistics.statistic import Recipe, Statistic

Counted = tuple[Statistic | Recipe, ...]
Names = tuple[str, ...] | None


class _Bound(NamedTuple):
    """Statistics on chains of one length."""

    skeleton: native.Skeleton
    statistics: tuple[Statistic, ...]
    shifts: list[Integers]  # the tables of their blocks
    limits: tuple[list[int], list[int], list[int]]


@lru_cache(maxsize=1024)
def bound_on(statistics: Counted, length: int, labels: int, names: Names) -> _Bound:
    """Bind statistics to chains of one length; bound ones are cached."""
    model = Model.chain(np.zeros((length, labels)), np.zeros((labels, labels)), states=names)
    found = tuple(statistic.on(model) for statistic in statistics)
    tables = [block.tables for statistic in found for block in statistic.blocks]
    return _Bound(skeleton(model, found), found, tables, tally_limits(found, {}))


class TalliedChains:
    """``log Σ { exp F(y) : G(y) = l }`` of each chain, for every tally ``l``.

    Parameters
    ----------
    chains : LaidChains
        Scores; -inf forbids a label. Chains must not be empty.
    statistics : tuple of Statistic or Recipe
        The statistics to count.
    names : tuple of str, optional
        The labels.
    threads : int
        The result does not depend on it.

    Attributes
    ----------
    low, high : tuple of int
        The smallest and the largest tally of each statistic, over all chains.
    sums : array of shape (chains, high[0] - low[0] + 1, …)
        -inf for a tally that no labelling has.

    Examples
    --------
    >>> import tallytree as tt
    >>> chains = LaidChains.padded(np.zeros((1, 2, 2)), np.zeros((2, 2)), np.array([2]))
    >>> np.exp(TalliedChains(chains, (tt.count(state=1),), None, 1).sums)
    array([[1., 2., 1.]])
    """

    def __init__(self, chains: LaidChains, statistics: Counted, names: Names, threads: int) -> None:
        self._chains, self._threads = chains, threads
        check_scores(chains, np.arange(len(chains.lengths)))
        labels = chains.emissions.shape[1]
        each = [bound_on(statistics, length, labels, names) for length in chains.lengths.tolist()]
        self.low, self.high = _ends(each, len(statistics))
        self._batch = native.Batch(native.TallyMode.AUTO, default_memory_limit())
        for number, one in enumerate(each):
            emissions, links = scores_of(chains, number)
            tables = [emissions, links][: len(emissions)]
            self._batch.add(one.skeleton, one.shifts, *one.limits, tables, [], [], False)
        self._batch.profile(threads, native.Algebra.LOG_SUM_EXP)
        check_refused(self._batch, range(len(each)))
        self.sums = self._tabulated()

    def _tabulated(self) -> Floats:
        """Collect the sums of all tallies in one table, and record their positions."""
        roots = [self._batch.take_root(number) for number in range(len(self._chains.lengths))]
        rows = [len(sums) for _, _, sums in roots]
        tallies, sums = (np.concatenate([root[i] for root in roots]) for i in (1, 2))
        sizes = [high - low + 1 for low, high in zip(self.low, self.high, strict=True)]
        _check_size(len(rows) * float(np.prod(sizes, dtype=np.float64)))
        table = np.full((len(rows), *sizes), -np.inf)
        counted = tallies.reshape(-1, len(sizes)) - np.array(self.low, dtype=np.int64)
        owners = np.repeat(np.arange(len(rows)), rows)
        self._places = np.ravel_multi_index((owners, *counted.T), table.shape)
        self._starts = np.cumsum([0, *rows], dtype=np.int64)
        table.reshape(-1)[self._places] = sums
        return table

    def slopes(self, gains: Floats) -> ChainSums:
        """Return the derivatives of a function of all sums.

        Parameters
        ----------
        gains : array of the shape of ``sums``
            The derivative of the function with respect to each sum; ignored where sums are -inf.
        """
        given = np.ascontiguousarray(gains).reshape(-1)[self._places]
        by_tables = self._batch.differentiate(given, self._starts, self._threads)
        check_refused(self._batch, range(len(self._chains.lengths)))
        shapes = (0,), self._chains.emissions.shape, self._chains.links.shape
        found = ChainSums(*map(np.zeros, shapes))
        put_slopes(self._chains, np.arange(len(self._chains.lengths)), by_tables, found)
        return found


def _ends(each: Sequence[_Bound], count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ends = {id(one): [statistic.extent for statistic in one.statistics] for one in each}
    low = tuple(min(some[i][0] for some in ends.values()) for i in range(count))
    return low, tuple(max(some[i][1] for some in ends.values()) for i in range(count))


def _check_size(cells: float) -> None:
    if 8 * cells > default_memory_limit() / 4:
        raise BudgetError(
            f"the sums of all tallies need {readable_bytes(8 * cells)}, which exceeds the memory limit; "
            "count fewer statistics together, cap them, or use smaller batches"
        )
