"""Expected losses of chains that are quotients of counts, with their derivatives, without tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallytree.bulk.chain_sums import ChainSums, Floats, LaidChains, check_scores, put_packed
from tallytree.bulk.kind_tables import Integers
from tallytree.bulk.quotients import Quotient
from tallytree.kernels import native


def risks_of_quotients(
    chains: LaidChains,
    quotient: Quotient,
    truths: Integers,
    importance: Floats,
    by_tables: Callable[[Integers], ChainSums],
    *,
    memory_limit: float,
    threads: int,
) -> ChainSums:
    """Return the expected loss of each chain, and the derivatives of their weighted sum.

    Parameters
    ----------
    chains : LaidChains
        Scores; -inf forbids a label. If every labelling of a chain is forbidden, its value is -inf.
    quotient : Quotient
        The loss.
    truths : int64 array
        A label for each position, also outside all chains.
    importance : array
        A factor for the derivatives of each chain; they are not computed for those where it is 0.
    by_tables : callable
        Returns the same for some chains, by number, concatenated: those with scores that are too far apart
        for sums of products, or sums that do not fit in the memory.
    memory_limit : float
        For the sums of all threads.
    threads : int
        The result does not depend on it.
    """
    sizes = quotient.sizes(truths, chains.starts, chains.lengths)
    rules = quotient.rules(sizes, chains.lengths)
    *sums, left_out = native.chain_risks(
        *chains, truths, quotient.compiled, *rules, importance, memory_limit, threads
    )
    found, numbers = ChainSums(*sums), np.flatnonzero(left_out)
    if len(numbers):
        check_scores(chains, numbers)
        some = by_tables(numbers)
        found.values[numbers] = some.values
        put_packed(chains, numbers, (some.labels, some.links), found)
    return found
