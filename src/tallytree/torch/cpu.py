"""Answers for tensors on the CPU, by the library's native batches.

These are the functions of a backend: they take :class:`~tallytree.torch.functions.Scores`. Those with
derivatives return values and a function of what is gained with each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tallytree.bulk.best_chains import best_laid_chains
from tallytree.bulk.chain_sums import ChainSums, LaidChains, draw_laid_chains, sum_laid_chains
from tallytree.bulk.tallied_chains import Counted, Names, TalliedChains

if TYPE_CHECKING:
    from tallytree.torch.functions import Pull, Scores, Slopes


def laid(scores: Scores) -> LaidChains:
    """Return scores as native code takes them: the same memory."""
    return LaidChains.padded(scores.emissions.numpy(), scores.transitions.numpy(), scores.lengths.numpy())


def log_partition(scores: Scores) -> tuple[Tensor, Pull]:
    """Return ``log Σ_y exp F(y)`` of each sentence."""
    return _summed(scores, None)


def surprise(scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
    """Return ``−log p(tags)`` of each sentence; tags are those of the padding, too, whatever they are."""
    return _summed(scores, tags.numpy().reshape(-1))


def _summed(scores: Scores, truths: np.ndarray | None) -> tuple[Tensor, Pull]:
    chains, threads = laid(scores), torch.get_num_threads()
    ones = np.ones(len(chains.lengths))
    found = sum_laid_chains(chains, ones, threads, truths)

    def pull(gain: Tensor) -> Slopes:
        weights = gain.contiguous().numpy()
        if scores.transitions.ndim == 2 and (weights != weights[0]).any():
            return _slopes(scores, sum_laid_chains(chains, weights, threads, truths))
        by_emissions, by_transitions = _slopes(scores, found)
        if scores.transitions.ndim == 2:
            return by_emissions * weights[0], by_transitions * weights[0]
        return by_emissions * gain[:, None, None], by_transitions * gain[:, None, None, None]

    return torch.from_numpy(found.values), pull


def _slopes(scores: Scores, found: ChainSums) -> Slopes:
    return (
        torch.from_numpy(found.labels).view(scores.emissions.shape),
        torch.from_numpy(found.links).view(scores.transitions.shape),
    )


def tallied(scores: Scores, statistics: Counted, names: Names) -> tuple[Tensor, Pull, tuple[int, ...]]:
    """Return the log-partition of every tally of each sentence, and the least tally of each statistic."""
    found = TalliedChains(laid(scores), statistics, names, torch.get_num_threads())

    def pull(gain: Tensor) -> Slopes:
        return _slopes(scores, found.slopes(gain.numpy()))

    return torch.from_numpy(found.sums), pull, found.low


def viterbi(scores: Scores) -> Tensor:
    """Return the tags of the highest score; 0 in the padding."""
    found = best_laid_chains(laid(scores), torch.get_num_threads())
    return torch.from_numpy(found).view(scores.emissions.shape[:2])


def sample(scores: Scores, uniforms: Tensor) -> Tensor:
    """Return tags drawn by uniform numbers (draws, B, T)."""
    flat = uniforms.reshape(len(uniforms), -1).numpy()
    return torch.from_numpy(draw_laid_chains(laid(scores), flat, torch.get_num_threads())).view(
        uniforms.shape
    )
