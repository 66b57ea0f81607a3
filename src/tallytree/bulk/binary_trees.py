"""Sums over all binary trees of many sentences, and the best ones, without grammars and plans.

Every constituent has one of C labels, and the score of a tree is the sum of the scores of its labelled spans,
given as padded arrays (B, T, T, C): ``scores[b, i, j, c]`` is for label c over words i to j, inclusive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.bulk.kind_tables import Integers
from tallytree.kernels import native

Floats = NDArray[np.float64]


class TreeSums(NamedTuple):
    """Sums over all trees of each sentence.

    Attributes
    ----------
    values : array of shape (B,)
        ``log Σ exp F(tree)``; -inf if no tree is allowed.
    marginals : array of shape (B, T, T, C)
        The probability of each labelled span; 0 in the padding, and if no tree is allowed.
    left_out : int array
        The sentences with invalid scores (nan, +inf or too large), which have neither.
    """

    values: Floats
    marginals: Floats
    left_out: Integers


def sum_binary_trees(scores: Floats, lengths: Integers, threads: int) -> TreeSums:
    """Sum over all binary trees of each sentence.

    Parameters
    ----------
    scores : array of shape (B, T, T, C)
        Scores of labelled spans; -inf forbids one. Entries below the diagonal and in the padding are ignored.
    lengths : array of B int
        The number of words of each sentence, at least 1.
    threads : int
        The result does not depend on it.

    Examples
    --------
    >>> found = sum_binary_trees(np.zeros((1, 4, 4, 1)), np.array([4]), 1)
    >>> found.values  # the logarithm of 5
    array([1.60943791])
    >>> found.marginals[0, 0, :, 0]
    array([1. , 0.4, 0.4, 1. ])
    """
    values, marginals, left_out = native.tree_sums(scores, lengths, threads)
    return TreeSums(values, marginals, np.flatnonzero(left_out))


def best_binary_trees(scores: Floats, lengths: Integers, threads: int) -> tuple[Integers, Integers]:
    """Find the binary tree with the highest score for each sentence.

    The parameters are those of :func:`sum_binary_trees`.

    Returns
    -------
    trees : int64 array of shape (B, T, T, C)
        Ones where a tree has constituents.
    left_out : int array
        The sentences without a tree: they have invalid scores, or all trees are forbidden.

    Examples
    --------
    >>> scores = np.array([[0.0, 1, 0], [9, 0, 2], [9, 9, 0]]).reshape(1, 3, 3, 1)
    >>> best, _ = best_binary_trees(scores, np.array([3]), 1)
    >>> best[0, :, :, 0]
    array([[1, 0, 1],
           [0, 1, 1],
           [0, 0, 1]])
    """
    trees, left_out = native.best_trees(scores, lengths, threads)
    return trees, np.flatnonzero(left_out)


def draw_binary_trees(
    scores: Floats, lengths: Integers, uniforms: Floats, threads: int
) -> tuple[Integers, Integers]:
    """Draw binary trees with probability proportional to ``exp F``.

    Parameters
    ----------
    scores, lengths, threads
        As for :func:`sum_binary_trees`.
    uniforms : array of shape (draws, B, 3 T)
        Numbers between 0 and 1, which determine the draws.

    Returns
    -------
    trees : int64 array of shape (draws, B, T, T, C)
        Ones where a tree has constituents.
    left_out : int array
        The sentences without trees, as for :func:`best_binary_trees`.
    """
    trees, left_out = native.tree_draws(scores, lengths, uniforms, threads)
    return trees, np.flatnonzero(left_out)
