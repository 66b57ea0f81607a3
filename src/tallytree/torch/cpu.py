"""The CPU backend, using the library's native batches.

These are the functions of a backend: they take :class:`~tallytree.torch.functions.Scores`. Those with
derivatives return values and their vector-Jacobian product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tallytree.bulk.best_chains import best_laid_chains
from tallytree.bulk.chain_bends import bend_laid_chains, directions_of, entropies_of
from tallytree.bulk.chain_sums import (
    ChainSums,
    Floats,
    LaidChains,
    check_scores,
    draw_laid_chains,
    put_packed,
    sum_laid_chains,
)
from tallytree.bulk.chains import best_of_chains
from tallytree.bulk.expectations import LossObjective, objective_of_chains, risks_of_laid_chains
from tallytree.bulk.tallied_chains import Counted, Names, TalliedChains
from tallytree.errors import InfeasibleError, ModelError
from tallytree.losses.base import Loss
from tallytree.losses.scaling import Scaling
from tallytree.torch.inputs import mask_of

if TYPE_CHECKING:
    from tallytree.torch.functions import Pull, Scores, Slopes


def laid(scores: Scores) -> LaidChains:
    """Return scores in the form for native code, without copying."""
    return LaidChains.padded(scores.emissions.numpy(), scores.transitions.numpy(), scores.lengths.numpy())


def check(scores: Scores) -> None:
    """Raise an error for invalid scores, except in padding."""
    check_scores(laid(scores), np.arange(len(scores.lengths)))


def log_partition(scores: Scores) -> tuple[Tensor, Pull]:
    """Return ``log Σ_y exp F(y)`` of each sentence."""
    return _summed(scores, None)


def possible_score(scores: Scores, tags: Tensor) -> Tensor:
    """Return the scores of the true tags, float64; raise an error if they are forbidden."""
    from tallytree.torch.functions import score_of

    inside = mask_of(scores.lengths, tags.shape[1])
    found = score_of(scores.emissions, scores.transitions, tags, inside)
    wrong = torch.nonzero(found == -torch.inf)
    if len(wrong):
        raise ModelError(
            f"the tags of sentence {int(wrong[0])} are forbidden by a score of -inf, so the loss is "
            "infinite; allow them, or drop the sentence"
        )
    return found


def _indicators(scores: Scores, *shares: tuple[Tensor, Tensor]) -> Slopes:
    """Return the derivatives of summed scores of taggings, given the tags and a weight for each sentence."""
    by_emissions, by_transitions = torch.zeros_like(scores.emissions), torch.zeros_like(scores.transitions)
    for tags, weights in shares:
        inside = mask_of(scores.lengths, tags.shape[1])
        each = torch.where(inside, weights.unsqueeze(1), 0.0)
        by_emissions.scatter_add_(2, tags.unsqueeze(2), each.unsqueeze(2))
        pairs: tuple[Tensor, ...] = tags[:, :-1], tags[:, 1:]
        if by_transitions.ndim == 4:
            places = (torch.arange(size, device="cpu") for size in pairs[0].shape)
            pairs = *torch.meshgrid(*places, indexing="ij"), *pairs
        by_transitions.index_put_(pairs, each[:, 1:], accumulate=True)
    return by_emissions, by_transitions


def log_prob(scores: Scores, tags: Tensor, sign: float = 1.0) -> tuple[Tensor, Pull]:
    """Return ``log p(tags)`` times a sign of each sentence; tags must be valid in the padding, too."""
    surprise, pulled = _summed(scores, tags.numpy().reshape(-1))
    return (surprise, pulled) if sign < 0 else (surprise.neg_(), lambda gain: pulled(-gain))


def _summed(scores: Scores, truths: np.ndarray | None) -> tuple[Tensor, Pull]:
    chains = laid(scores)

    def found(weights: Floats) -> ChainSums:
        return sum_laid_chains(chains, weights, torch.get_num_threads(), truths)

    first = found(np.ones(len(chains.lengths)))
    return torch.from_numpy(first.values), _pulled(scores, first, found, lambda sums: _slopes(scores, sums))


def _pulled(
    scores: Scores,
    first: ChainSums,
    again: Callable[[Floats], ChainSums],
    put: Callable[[ChainSums], Slopes],
) -> Pull:
    """Return the vector-Jacobian product, given the derivatives for gains of 1.

    Transitions shared by all sentences have one derivative, summed over sentences: if gains differ,
    it is recomputed.
    """

    def pull(gain: Tensor) -> Slopes:
        weights = gain.expand(len(scores.lengths)).contiguous().numpy()
        if scores.transitions.ndim == 2 and (weights != weights[0]).any():
            return put(again(weights))
        by_emissions, by_transitions = put(first)
        if scores.transitions.ndim == 2:
            return by_emissions * float(weights[0]), by_transitions * float(weights[0])
        each = gain.expand(len(weights))
        return by_emissions * each[:, None, None], by_transitions * each[:, None, None, None]

    return pull


def _slopes(scores: Scores, found: ChainSums) -> Slopes:
    return (
        torch.from_numpy(found.labels).view(scores.emissions.shape),
        torch.from_numpy(found.links).view(scores.transitions.shape),
    )


def entropy(scores: Scores) -> tuple[Tensor, Pull]:
    """Return the entropy of each sentence."""
    chains, threads = laid(scores), torch.get_num_threads()

    def pull(gain: Tensor) -> Slopes:
        moved = bend_laid_chains(chains, *directions_of(chains), -gain.contiguous().numpy(), threads)
        return _slopes(scores, moved)

    return torch.from_numpy(entropies_of(chains, threads)), pull


def marginals(scores: Scores) -> tuple[Tensor, Pull]:
    """Return the probability of each tag at each position."""
    chains, threads = laid(scores), torch.get_num_threads()
    ones = np.ones(len(chains.lengths))
    found = sum_laid_chains(chains, ones, threads)

    def pull(gain: Tensor) -> Slopes:
        by_labels = gain.contiguous().numpy().reshape(chains.emissions.shape)
        still = np.zeros_like(chains.links)
        return _slopes(scores, bend_laid_chains(chains, by_labels, still, ones, threads))

    return _slopes(scores, found)[0], pull


def tallied(scores: Scores, statistics: Counted, names: Names) -> tuple[Tensor, Pull, tuple[int, ...]]:
    """Return the log-partition of every tally of each sentence, and the smallest tally of each statistic."""
    found = TalliedChains(laid(scores), statistics, names, torch.get_num_threads())

    def pull(gain: Tensor) -> Slopes:
        return _slopes(scores, found.slopes(gain.numpy()))

    return torch.from_numpy(found.sums), pull, found.low


def objective(
    scores: Scores, loss: Loss, names: Names, tags: Tensor, kind: LossObjective
) -> tuple[Tensor, Pull]:
    """Return an objective of the losses of all taggings of each sentence, relative to the true tags."""
    if kind == "risk":
        return _risk(scores, loss, names, tags)
    chains, everyone = laid(scores), np.arange(len(scores.lengths))
    check_scores(chains, everyone)
    score = possible_score(scores, tags)
    packed, truths = chains.packed(everyone, names), tags.reshape(-1).numpy()[chains.positions(everyone)]

    def found(weights: Floats) -> ChainSums:
        return objective_of_chains(packed, loss, truths, kind, weights, torch.get_num_threads())

    def put(sums: ChainSums) -> Slopes:
        shapes = (0,), chains.emissions.shape, chains.links.shape
        whole = ChainSums(*map(np.zeros, shapes))
        put_packed(chains, everyone, (sums.labels, sums.links), whole)
        return _slopes(scores, whole)

    first = found(np.ones(len(everyone)))
    values, pulled = torch.from_numpy(first.values), _pulled(scores, first, found, put)

    def pull(gain: Tensor) -> Slopes:
        less = _indicators(scores, (tags, -gain.expand(len(everyone))))
        more = pulled(gain)
        return less[0] + more[0], less[1] + more[1]

    return values - score, pull


def _risk(scores: Scores, loss: Loss, names: Names, tags: Tensor) -> tuple[Tensor, Pull]:
    """Return the expected loss of each sentence."""
    chains, truths = laid(scores), tags.reshape(-1).numpy()

    def found(weights: Floats) -> ChainSums:
        return risks_of_laid_chains(chains, loss, names, truths, weights, torch.get_num_threads())

    def put(sums: ChainSums) -> Slopes:
        return _slopes(scores, sums)

    count = len(chains.lengths)
    first = found(np.full(count, float(scores.slopes)))
    _check_possible(first.values)
    values = torch.from_numpy(first.values)
    if scores.slopes:
        return values, _pulled(scores, first, found, put)
    return values, lambda gain: put(found(gain.expand(count).contiguous().numpy()))


def _check_possible(risks: Floats) -> None:
    """Raise an error for a sentence whose taggings are all forbidden."""
    wrong = np.flatnonzero(~np.isfinite(risks))
    if len(wrong):
        raise InfeasibleError(f"all taggings of sentence {wrong[0]} are forbidden by scores of -inf")


def hinge(
    scores: Scores, loss: Loss, names: Names, tags: Tensor, scaling: Scaling
) -> tuple[Tensor, Tensor, Pull]:
    """Return the hinge loss of each sentence, the bound on its error, which is 0, and its derivatives."""
    check(scores)
    score = possible_score(scores, tags)
    found, losses = _most_violated(scores, loss, names, tags, scaling)
    ahead, slack = possible_score(scores, found) - score, scaling == "slack"
    values = losses * (1 + ahead) if slack else losses + ahead

    def pull(gain: Tensor) -> Slopes:
        weights = gain * losses if slack else gain.expand(len(losses))
        return _indicators(scores, (found, weights), (tags, -weights))

    return values, torch.zeros_like(values), pull


def _most_violated(
    scores: Scores, loss: Loss, names: Names, tags: Tensor, scaling: Scaling
) -> tuple[Tensor, Tensor]:
    """Return the tags that most violate the margin, and their losses."""
    chains, everyone = laid(scores), np.arange(len(scores.lengths))
    at, flat = chains.positions(everyone), tags.reshape(-1).numpy()
    truths = np.split(flat[at], np.cumsum(scores.lengths.numpy())[:-1])
    found = best_of_chains(chains.packed(everyone, names), loss, truths, scaling, 1, torch.get_num_threads())
    labels = np.zeros_like(flat)
    labels[at] = np.concatenate([some[0][0] for some in found])
    losses = torch.tensor([some[0][1] for some in found], dtype=torch.float64, device="cpu")
    return torch.from_numpy(labels).view(tags.shape), losses


def loss_bytes(scores: Scores, loss: Loss, names: Names, tags: Tensor, objective: str) -> int:
    """Return 0: no device memory is used."""
    return 0


def viterbi(scores: Scores) -> Tensor:
    """Return the tags with the highest score; 0 in the padding."""
    found = best_laid_chains(laid(scores), torch.get_num_threads())
    return torch.from_numpy(found).view(scores.emissions.shape[:2])


def sample(scores: Scores, uniforms: Tensor) -> Tensor:
    """Return tags drawn by uniform numbers (draws, B, T)."""
    flat = uniforms.flatten(1).numpy()
    return torch.from_numpy(draw_laid_chains(laid(scores), flat, torch.get_num_threads())).view(
        uniforms.shape
    )


charts = models = True
"""Charts and single sentences are handled by the rest of the library."""
