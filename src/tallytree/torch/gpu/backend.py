"""The backend for NVIDIA devices: the functions of :mod:`tallytree.torch.cpu`.

Scores are float32 or float64. Sums are in float64. The best labelling by score and tally is found with
tables of the scores' own dtype: float32 tables are rounded up, so that no labelling is better by more than
the rounding of a sum. Counts that the kernels do not support are computed on the CPU, with a warning.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tallytree.bulk.expectations import LossObjective
from tallytree.bulk.tallied_chains import Counted, Names
from tallytree.losses.base import Loss
from tallytree.losses.scaling import Scaling
from tallytree.torch import cpu
from tallytree.torch.elsewhere import moved, on_cpu
from tallytree.torch.functions import Pull, Scores, Slopes
from tallytree.torch.gpu import chains as plain
from tallytree.torch.gpu import counted, counting

_MANY = "sums with so many tags"


def _chains(scores: Scores) -> plain.Chains:
    """Return scores in the form for kernels; raise an error for invalid ones."""
    if not torch.stack([(one < torch.inf).all() for one in scores[:2]]).all():
        cpu.check(moved(scores))  # padding may hold anything
    return _unchecked(scores)


def _unchecked(scores: Scores) -> plain.Chains:
    return plain.Chains(scores.emissions, scores.transitions, scores.lengths.to(torch.int32))


def log_partition(scores: Scores) -> tuple[Tensor, Pull]:
    """Return ``log Σ_y exp F(y)`` of each sentence."""
    chains = _chains(scores)
    if not chains.fits:
        return on_cpu(cpu.log_partition, scores, _MANY)
    return plain.log_partition(chains), lambda gain: plain.expectations(chains, gain)


def marginals(scores: Scores) -> tuple[Tensor, Pull]:
    """Return the probability of each tag at each position; their derivatives are computed on the CPU."""
    chains = _chains(scores)
    if not chains.fits:
        return on_cpu(cpu.marginals, scores, _MANY)
    found, _ = plain.expectations(chains, scores.emissions.new_ones(len(scores.lengths)))

    def pull(gain: Tensor) -> Slopes:
        _, pulled = on_cpu(cpu.marginals, scores, "derivatives of marginals")
        return pulled(gain)

    return found, pull


def score(scores: Scores, tags: Tensor) -> Tensor:
    """Return the scores of given tags, float64."""
    return plain.labelling_scores(_unchecked(scores), tags.contiguous())


def indicators(scores: Scores, *shares: tuple[Tensor, Tensor]) -> Slopes:
    """Return the derivatives of summed scores of taggings, given the tags and a weight for each sentence."""
    chains = _unchecked(scores)
    nodes, edges = plain.empty_slopes(chains)
    for tags, weights in shares:
        plain.add_labellings(chains, tags.contiguous(), weights, (nodes, edges))
    return nodes, plain.gathered(chains, edges)


def surprise(scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
    """Return ``−log p(tags)`` of each sentence; for forbidden tags, inf with zero derivatives."""
    partition, pulled = log_partition(scores)
    right = score(scores, tags)
    possible = right > -torch.inf

    def pull(gain: Tensor) -> Slopes:
        weights = torch.where(possible, gain, 0.0)
        return _sum(pulled(weights), indicators(scores, (tags, -weights)))

    return torch.where(possible, partition - right, torch.inf), pull


def _sum(one: Slopes, other: Slopes) -> Slopes:
    return one[0].add_(other[0]), one[1].add_(other[1])


def tallied(scores: Scores, statistics: Counted, names: Names) -> tuple[Tensor, Pull, tuple[int, ...]]:
    """Return the log-partition of every tally of each sentence, and the smallest tally of each statistic."""
    found = counting.statistics_of(statistics, names, scores.emissions, scores.lengths.tolist())
    run = None if found is None else counted.Run(_chains(scores), found.tallies, torch.float64)
    if found is None or run is None or not run.fits(gradient=True):
        return on_cpu(cpu.tallied, scores, "these statistics", statistics, names)
    values = counted.log_tallies(run)

    def pull(gain: Tensor) -> Slopes:
        upstream = torch.where(values > -torch.inf, gain.flatten(1), 0.0).contiguous()
        return counted.tally_expectations(run, upstream)

    return values.view(-1, *found.sizes), pull, found.low


def objective(
    scores: Scores, loss: Loss, names: Names, tags: Tensor, kind: LossObjective
) -> tuple[Tensor, Pull]:
    """Return an objective of the losses of all taggings of each sentence, relative to given tags."""
    found = counting.losses_of(loss, names, tags, scores.lengths, scores.emissions.shape[2])
    run = None if found is None else counted.Run(_chains(scores), found.tallies, torch.float64)
    if found is None or run is None or not run.fits(gradient=True):
        return on_cpu(cpu.objective, scores, "this loss", loss, names, tags, kind)
    sums, losses = counted.log_tallies(run), found.losses[found.which.long()]
    values, slopes = _risk(sums, losses) if kind == "risk" else _softmax_margin(sums, losses)

    def pull(gain: Tensor) -> Slopes:
        return counted.tally_expectations(run, (gain.unsqueeze(1) * slopes).contiguous())

    return values, pull


def _risk(sums: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    shares = torch.softmax(sums, 1)
    values = (shares * losses).sum(1)
    return values, shares * (losses - values.unsqueeze(1))


def _softmax_margin(sums: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    return torch.logsumexp(sums + losses, 1), torch.softmax(sums + losses, 1)


def most_violated(
    scores: Scores, loss: Loss, names: Names, tags: Tensor, scaling: Scaling
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the tags that most violate the margin, their losses, and an upper bound for each sentence."""
    found = counting.losses_of(loss, names, tags, scores.lengths, scores.emissions.shape[2])
    run = None if found is None else counted.Run(_chains(scores), found.tallies, scores.emissions.dtype)
    if found is None or run is None or not run.fits():
        return on_cpu(cpu.most_violated, scores, "this loss", loss, names, tags, scaling)
    right = score(scores, tags)
    ones, zeros = torch.ones_like(found.losses), torch.zeros_like(found.losses)
    slopes, offsets = (ones, found.losses) if scaling == "margin" else (found.losses, zeros)
    asked = counted.Values(slopes, offsets, found.which, float(scaling == "slack") - right)
    best = counted.best(run, asked)
    return best.labels, found.losses[found.which.long(), best.cells.long()], best.values


def loss_bytes(scores: Scores, loss: Loss, names: Names, tags: Tensor, summed: bool) -> int:
    """Return the device memory of the tables: of :func:`objective` if summed, else of `most_violated`."""
    found = counting.losses_of(loss, names, tags, scores.lengths, scores.emissions.shape[2])
    if found is None:
        return 0
    real = torch.float64 if summed else scores.emissions.dtype
    run = counted.Run(_unchecked(scores), found.tallies, real)
    return run.bytes if run.fits(gradient=summed) else 0


def viterbi(scores: Scores) -> Tensor:
    """Return the tags with the highest score; 0 in the padding."""
    best, labels = plain.viterbi(_chains(scores))
    return labels if (best > -torch.inf).all() else cpu.viterbi(moved(scores))  # raises the error


def sample(scores: Scores, uniforms: Tensor) -> Tensor:
    """Return tags drawn by uniform numbers (draws, B, T)."""
    chains = _chains(scores)
    if not chains.fits:
        return on_cpu(cpu.sample, scores, _MANY, uniforms)
    if not (plain.log_partition(chains) > -torch.inf).all():
        return cpu.sample(moved(scores), uniforms.cpu())  # raises the error
    return plain.draw(chains, uniforms.contiguous())
