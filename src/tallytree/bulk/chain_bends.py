"""How sums over all labellings of chains move when scores do: entropies, and derivatives of marginals."""

from __future__ import annotations

import numpy as np

from tallytree.bulk.chain_sums import ChainSums, Floats, LaidChains, check_scores, sum_laid_chains
from tallytree.errors import ModelError
from tallytree.kernels import native


def bend_laid_chains(
    chains: LaidChains, by_labels: Floats, by_links: Floats, importance: Floats, threads: int
) -> ChainSums:
    """Find how log-partitions and marginals move when scores move in a direction.

    Parameters
    ----------
    chains : LaidChains
        Scores; -inf forbids a label.
    by_labels, by_links : arrays of the shapes of the scores
        The direction.
    importance : array
        What the derivatives of each chain are multiplied by.
    threads : int
        The result does not depend on it.

    Returns
    -------
    ChainSums
        How the log-partition of each chain moves: the mean of what is added to the score of a labelling.
        Then how marginals of labels and of neighbours move, which is also how these means move with scores.

    Raises
    ------
    ModelError
        The scores of a chain lie too far apart.

    Examples
    --------
    >>> chains = LaidChains.padded(np.zeros((1, 1, 2)), np.zeros((2, 2)), np.array([1]))
    >>> bend_laid_chains(chains, np.array([[0.0, 1.0]]), np.zeros((2, 2)), np.ones(1), 1).labels
    array([[-0.25,  0.25]])
    """
    *found, left_out = native.chain_bends(*chains, by_labels, by_links, importance, threads)
    numbers = np.flatnonzero(left_out)
    if len(numbers):
        check_scores(chains, numbers)
        raise ModelError(
            f"the scores of chain {numbers[0]} lie too far apart for derivatives of marginals and entropies, "
            "by some hundreds; make them smaller, or use -inf for what is forbidden"
        )
    return ChainSums(*found)


def entropies_of(chains: LaidChains, threads: int) -> Floats:
    """Return the entropy of each chain, none of which is empty; 0 where all labellings are forbidden."""
    by_labels, by_links = directions_of(chains)
    ones = np.ones(len(chains.lengths))
    means, _, _, left_out = native.chain_bends(*chains, by_labels, by_links, ones, threads)
    sums = sum_laid_chains(chains, ones, threads).values
    for number in np.flatnonzero(left_out).tolist():
        means[number] = _mean(chains, number, threads)
    return np.where(np.isneginf(sums), 0.0, np.maximum(sums - means, 0.0))


def directions_of(chains: LaidChains) -> tuple[Floats, Floats]:
    """Return the scores as a direction; what is forbidden does not move."""
    return (
        np.where(np.isneginf(chains.emissions), 0.0, chains.emissions),
        np.where(np.isneginf(chains.links), 0.0, chains.links),
    )


def _mean(chains: LaidChains, number: int, threads: int) -> float:
    """Return the mean score of a labelling of one chain, from its marginals."""
    start, length = int(chains.starts[number]), int(chains.lengths[number])
    links = chains.links if chains.links.ndim == 2 else chains.links[chains.tables(number)]
    zero = np.zeros(1, dtype=np.int64)
    one = LaidChains(chains.emissions[start : start + length], links, zero, zero + length)
    found = sum_laid_chains(one, np.ones(1), threads)
    by_labels, by_links = directions_of(one)
    return float((found.labels * by_labels).sum() + (found.links * by_links).sum())
