"""The best labellings of chains stored in long arrays."""

from __future__ import annotations

import numpy as np

from tallytree.bulk.chain_sums import LaidChains, add_laid_chains, check_scores
from tallytree.bulk.kind_tables import Integers
from tallytree.bulk.labellings import Labellings
from tallytree.errors import BudgetError, InfeasibleError
from tallytree.kernels import native
from tallytree.planning.budget import default_memory_limit, readable_bytes


def best_laid_chains(chains: LaidChains, threads: int) -> Integers:
    """Find the labelling with the highest score for each chain; chains must not be empty.

    Parameters
    ----------
    chains : LaidChains
        Scores; -inf forbids a label.
    threads : int
        The result does not depend on it.

    Returns
    -------
    int64 array of shape (T,)
        0 at positions outside all chains.

    Examples
    --------
    >>> scores = np.array([[[0.0, 1.0], [2.0, 0.0]]])
    >>> best_laid_chains(LaidChains.padded(scores, np.zeros((2, 2)), np.array([2])), 1)
    array([1, 0])
    """
    numbers = np.arange(len(chains.lengths))
    check_scores(chains, numbers)
    batch = native.Batch(native.TallyMode.AUTO, default_memory_limit())
    add_laid_chains(batch, chains, numbers)
    batch.run(threads)
    for item, needed in batch.refused[:1].tolist():
        raise BudgetError(
            f"the tables of chain {item} need {readable_bytes(needed)}, which exceeds the memory limit"
        )
    found = Labellings(*batch.labellings())
    found.certify()
    missing = np.setdiff1d(numbers, found.known["item"])
    if len(missing):
        raise InfeasibleError(f"every labelling of chain {missing[0]} is forbidden by a score of -inf")
    labels = np.zeros(len(chains.emissions), dtype=np.int64)
    labels[chains.positions(numbers)] = found.labels
    return labels
