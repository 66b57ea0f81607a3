"""Expected counts of constituents, rules and tags, and the tree with the most correct ones in expectation.

A tree is drawn with probability proportional to ``exp(score)``. The chart gives the expected count of each
chain of unary rules over each span; the labels of the chain determine the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.parsing.compiled import Compiled, row_sums
from tallytree.planning.charts import spans
from tallytree.running.charts import StepCounts


class Expectations(NamedTuple):
    """Expected counts if a tree is drawn with probability proportional to ``exp(score)``.

    Attributes
    ----------
    constituents : float64 array, [start][end][label]
        Labels in the grammar's order.
    binary, unary : float64 arrays
        For each rule of the grammar, over the whole sentence.
    tags : float64 array, [word][symbol]
        The probability of each tag for each word.
    """

    constituents: NDArray[np.float64]
    binary: NDArray[np.float64]
    unary: NDArray[np.float64]
    tags: NDArray[np.float64]


def expectations_of(compiled: Compiled, counts: StepCounts) -> Expectations:
    """Convert expected steps to expectations, for a grammar without levels."""
    tags, rules, chains = counts
    unary = np.zeros(len(compiled.grammar.unary))
    np.add.at(unary, compiled.path_rules, chains.sum(axis=1)[compiled.path_chains])
    return Expectations(constituents_of(compiled, counts), rules, unary, tags)


def constituents_of(compiled: Compiled, counts: StepCounts) -> NDArray[np.float64]:
    """Return the expected constituents alone, ``[start][end][label]``."""
    words = len(counts[0])
    constituents = np.zeros((words + 1, words + 1, len(compiled.grammar.labels)))
    starts, ends = spans(words)
    labels = compiled.counts[:, :, 0]
    bags, chosen = np.nonzero(labels)
    often = compiled.gather(counts[2], words)[bags] * labels[bags, chosen, None]
    constituents[starts, ends] = row_sums(often, chosen, labels.shape[1]).T
    return constituents


def bracket_gains(compiled: Compiled, counts: StepCounts, penalty: float) -> NDArray[np.float64]:
    """Return the gain of each chain over each span: its expected true positives, minus a penalty for each.

    The k-th constituent with a label over a span is correct if the drawn tree has at least k there.
    """
    words = len(counts[0])
    by_bag = compiled.gather(counts[2], words)
    labels = compiled.counts[:, :, 0]
    gains = np.repeat(-float(penalty) * labels.sum(axis=1, keepdims=True), by_bag.shape[1], axis=1)
    for often in range(1, int(labels.max(initial=0)) + 1):
        bags, chosen = np.nonzero(labels >= often)  # few: a bag has one or two labels
        right = row_sums(by_bag[bags], chosen, labels.shape[1])
        gains += row_sums(right[chosen], bags, len(labels))
    return compiled.spread(gains, words)
