"""Chains about which only the number of occurrences of some labels is known.

The objective is ``−log p(the counts are as known)``: the log of the sum over all labellings,
minus that over those whose tally is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from tallytree.bulk.chain_sums import ChainSums, Floats, check_refused
from tallytree.bulk.chains import Chains
from tallytree.bulk.kind_tables import Integers, KindTables
from tallytree.bulk.truth_tables import TruthTables
from tallytree.kernels import native
from tallytree.losses.base import Loss
from tallytree.losses.positions import HammingDistance
from tallytree.planning.budget import default_memory_limit, thread_count

Counts = Mapping[int, tuple[int, int]]
"""The smallest and the largest number of positions with each of some labels."""


class CountTables(TruthTables):
    """The counts of some labels, independent of the truth: all positions are of the same kind."""

    def __init__(self, labels: int, counted: tuple[int, ...]) -> None:
        given = np.zeros((len(counted), 1, labels), dtype=np.int64)
        given[np.arange(len(counted)), 0, counted] = 1
        tables = KindTables(
            np.arange(labels, dtype=np.int32)[np.newaxis],
            given,
            np.full((1, 1), -1, dtype=np.int32),
            np.zeros((0, labels, labels), dtype=np.bool_),
            np.zeros((len(counted), 0, labels, labels), dtype=np.int64),
        )
        super().__init__(HammingDistance(), tuple(f"count {label}" for label in counted), tables)

    def kinds(self, labels: Integers, lengths: Sequence[int]) -> tuple[Integers, list[int]]:
        """Return one kind for all positions."""
        return np.zeros(len(labels), dtype=np.int64), [0] * len(lengths)

    def bound(self, truth: Integers) -> Loss:
        """Return a placeholder loss: tallies are either allowed or not."""
        return self.recipe


@lru_cache(maxsize=64)
def _tables(labels: int, counted: tuple[int, ...]) -> CountTables:
    return CountTables(labels, counted)


@lru_cache(maxsize=4096)
def _allowed(length: int, ranges: tuple[tuple[int, int], ...]) -> native.LossTable:
    """Return losses of 1 for the tallies of a chain that are not allowed."""
    tallies = np.indices([length + 1] * len(ranges))
    outside = [(tally < low) | (tally > high) for tally, (low, high) in zip(tallies, ranges, strict=True)]
    return native.LossTable(np.any(outside, axis=0).astype(np.float64), [0] * len(ranges), False, 1.0)


def evidence_of_counts(
    chains: Chains, counts: Sequence[Counts], importance: Floats, threads: int | None = None
) -> ChainSums:
    """Compute ``−log p(counts)`` for each of many chains, and the derivatives of their weighted sum.

    Parameters
    ----------
    chains : Chains
        Label scores. All chains have counts of the same labels.
    counts : sequence of mappings of label numbers to (least, largest)
        What is known about each chain, both ends included.
    importance, threads
        As for :func:`tallytree.bulk.expectations.sum_chains`.

    Examples
    --------
    >>> chains = Chains(np.zeros((3, 2)), np.zeros((2, 2)), [3], None)
    >>> found = evidence_of_counts(chains, [{1: (1, 1)}], np.ones(1))
    >>> np.exp(-found.values).round(3), found.labels[0].round(3)
    (array([0.375]), array([-0.167,  0.167]))
    """
    counted = tuple(counts[0])
    tables = _tables(chains.emissions.shape[1], counted)
    labels = np.zeros(len(chains.emissions), dtype=np.int64)
    kinds, _ = tables.kinds(labels, chains.lengths)
    losses = [
        _allowed(length, tuple(known[label] for label in counted))
        for length, known in zip(chains.lengths, counts, strict=True)
    ]
    batch = native.Batch(native.TallyMode.AUTO, default_memory_limit())
    given = native.Truths(tables.compiled, kinds, labels, losses, np.zeros((0, 0)), 1)
    skeletons = [tables.chain(length, True) for length in chains.lengths]
    batch.add_chains(skeletons, chains.emissions, chains.links, given)
    values, (by_labels, by_links) = batch.expect(native.Objective.EVIDENCE, importance, thread_count(threads))
    check_refused(batch, np.arange(len(chains.lengths)))
    return ChainSums(values, by_labels, by_links)
