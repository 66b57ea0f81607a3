"""How sums over all labellings of chains change with the scores: entropies, and derivatives of marginals."""

from __future__ import annotations

import numpy as np

from tallytree.bulk.chain_sums import ChainSums, Floats, LaidChains, check_scores, sum_laid_chains
from tallytree.errors import ModelError
from tallytree.kernels import native


def bend_laid_chains(
    chains: LaidChains, by_labels: Floats, by_links: Floats, importance: Floats, threads: int
) -> ChainSums:
    """Compute the directional derivatives of log-partitions and marginals.

    Parameters
    ----------
    chains : LaidChains
        Scores; -inf forbids a label.
    by_labels, by_links : arrays of the shapes of the scores
        The direction.
    importance : array
        A factor for the derivatives of each chain.
    threads : int
        The result does not depend on it.

    Returns
    -------
    ChainSums
        The derivative of the log-partition of each chain: the mean of what is added to the score of a
        labelling. Then the derivatives of marginals of labels and pairs, which are also those of the means.

    Raises
    ------
    ModelError
        The scores of a chain are too far apart.

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
            f"the scores of chain {numbers[0]} are too far apart (by hundreds) for derivatives of marginals "
            "and entropies; scale them down, or use -inf for forbidden labels"
        )
    return ChainSums(*found)


def entropies_of(chains: LaidChains, threads: int) -> Floats:
    """Return the entropy of each chain; 0 if all labellings are forbidden. Chains must not be empty."""
    by_labels, by_links = directions_of(chains)
    ones = np.ones(len(chains.lengths))
    means, _, _, left_out = native.chain_bends(*chains, by_labels, by_links, ones, threads)
    sums = sum_laid_chains(chains, ones, threads).values
    for number in np.flatnonzero(left_out).tolist():
        means[number] = _mean(chains, number, threads)
    return np.where(np.isneginf(sums), 0.0, np.maximum(sums - means, 0.0))


def directions_of(chains: LaidChains) -> tuple[Floats, Floats]:
    """Return the scores as a direction, 0 for forbidden entries."""
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
