"""Sums over the labellings of chains, tally by tally, and the derivatives of any function of them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tallytree.bulk.chain_sums import (
    ChainSums,
    Floats,
    LaidChains,
    check_refused,
    check_scores,
    put_packed,
    put_slopes,
    scores_of,
)
from tallytree.bulk.counting import counting_tables
from tallytree.bulk.kind_tables import CountingTables, Integers
from tallytree.errors import BudgetError
from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit, readable_bytes
from tallytree.planning.carried import tally_limits
from tallytree.planning.orders import skeleton
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


class _Counting(NamedTuple):
    """Statistics on chains of several lengths."""

    bound: dict[int, _Bound]  # by length
    low: tuple[int, ...]  # the smallest and the largest tally of each statistic, over all lengths
    high: tuple[int, ...]
    tables: CountingTables | None  # by kinds, if positions and neighbours are all they look at
    kinds: dict[int, Integers]  # of the positions, by length


@lru_cache(maxsize=256)
def _counting_on(statistics: Counted, lengths: tuple[int, ...], labels: int, names: Names) -> _Counting:
    """Bind statistics to chains of several lengths, which are distinct; bound ones are cached."""
    bound = {length: bound_on(statistics, length, labels, names) for length in lengths}
    ends = np.array([[one.extent for one in some.statistics] for some in bound.values()])
    low, high = ends[..., 0].min(axis=0).tolist(), ends[..., 1].max(axis=0).tolist()
    tables, kinds = counting_tables({length: one.statistics for length, one in bound.items()}, labels)
    return _Counting(bound, tuple(low), tuple(high), tables, kinds)


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
        self._everyone = np.arange(len(chains.lengths))
        check_scores(chains, self._everyone)
        lengths = tuple(sorted(set(chains.lengths.tolist())))
        counting = _counting_on(statistics, lengths, chains.emissions.shape[1], names)
        self.low, self.high = counting.low, counting.high
        sizes = [high - low + 1 for low, high in zip(self.low, self.high, strict=True)]
        _check_size(len(chains.lengths) * float(np.prod(sizes, dtype=np.float64)))
        self._packed = counting.tables is not None
        self._batch = native.Batch(native.TallyMode.AUTO, default_memory_limit())
        if counting.tables is not None:
            self._add_packed(counting.tables, counting.kinds)
        else:
            self._add_each(counting.bound)
        self.sums = self._batch.tally_sums(self.low, sizes, threads)
        check_refused(self._batch, self._everyone)

    def _add_packed(self, tables: CountingTables, kinds: dict[int, Integers]) -> None:
        """Add all chains with tables of kinds: these may be summed as plain products."""
        packed = self._chains.packed(self._everyone)
        every = np.concatenate([kinds[length] for length in packed.lengths])
        given = native.Truths(tables.compiled, every, np.zeros_like(every), [], np.zeros((0, 0)), 1)
        skeletons = [tables.chain(length, True) for length in packed.lengths]
        self._batch.add_chains(skeletons, packed.emissions, packed.links, given)

    def _add_each(self, bound: dict[int, _Bound]) -> None:
        """Add one chain at a time, with statistics of any kind."""
        for number, length in enumerate(self._chains.lengths.tolist()):
            emissions, links = scores_of(self._chains, number)
            one, tables = bound[length], [emissions, links][:length]
            self._batch.add(one.skeleton, one.shifts, *one.limits, tables, [], [], False)

    def slopes(self, gains: Floats) -> ChainSums:
        """Return the derivatives of a function of all sums.

        Parameters
        ----------
        gains : array of the shape of ``sums``
            The derivative of the function with respect to each sum; ignored where sums are -inf.
        """
        slopes = self._batch.differentiate(np.ascontiguousarray(gains), self.low, self._threads)
        check_refused(self._batch, self._everyone)
        shapes = (0,), self._chains.emissions.shape, self._chains.links.shape
        found = ChainSums(*map(np.zeros, shapes))
        if self._packed:
            put_packed(self._chains, self._everyone, (slopes[0], slopes[1]), found)
        else:
            put_slopes(self._chains, self._everyone, slopes, found)
        return found


def _check_size(cells: float) -> None:
    if 8 * cells > default_memory_limit() / 4:
        raise BudgetError(
            f"the sums of all tallies need {readable_bytes(8 * cells)}, which exceeds the memory limit; "
            "count fewer statistics together, cap them, or use smaller batches"
        )
