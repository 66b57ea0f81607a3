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
from tallytree.torch.elsewhere import on_cpu
from tallytree.torch.functions import Pull, Scores, Slopes
from tallytree.torch.gpu import chains as plain
from tallytree.torch.gpu import counted, counting, truths
from tallytree.torch.gpu.looking import FORBIDDEN, NOTHING, Seen, look

_MANY = "sums with so many tags"


# --- without counts ----------------------------------------------------------------------------------------


def _summed(seen: Seen) -> tuple[Tensor, Pull]:
    """Return log Z, or the log-probability of tags, of each sentence."""
    chains = seen.chains
    seen.read()
    values, first = plain.likelihood(chains, seen.tags, slopes=seen.scores.at_once)

    def pull(gain: Tensor, rate: float = 1.0) -> Slopes:
        given, sums = _as_scores(gain, seen.scores), first
        if gain.dim() and chains.shared:  # tables are summed over sentences, weighted by their gains
            _, sums = plain.likelihood(chains, seen.tags, given, slopes=True)
            given = None
        elif sums is None:
            _, sums = plain.likelihood(chains, seen.tags, slopes=True)
        assert sums is not None
        return plain.gathered(chains, sums, given, rate)

    return values, pull


def _as_scores(gain: Tensor, scores: Scores) -> Tensor | None:
    """Return gains in the dtype of the scores."""
    return gain.to(scores.emissions.dtype).contiguous()


def log_partition(scores: Scores) -> tuple[Tensor, Pull]:
    """Return ``log Σ_y exp F(y)`` of each sentence."""
    seen = look(scores)
    return _summed(seen) if seen.chains.fits else on_cpu(cpu.log_partition, scores, _MANY)


def log_prob(scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
    """Return ``log p(tags)`` of each sentence; for forbidden tags, -inf with zero derivatives."""
    seen = look(scores, tags)
    return _summed(seen) if seen.chains.fits else on_cpu(cpu.log_prob, scores, _MANY, tags)


def marginals(scores: Scores) -> tuple[Tensor, Pull]:
    """Return the probability of each tag at each position; their derivatives are computed on the CPU."""
    seen = look(scores)
    if not seen.chains.fits:
        return on_cpu(cpu.marginals, scores, _MANY)
    seen.read()
    _, sums = plain.likelihood(seen.chains, slopes=True)
    assert sums is not None

    def pull(gain: Tensor, rate: float = 1.0) -> Slopes:
        _, pulled = on_cpu(cpu.marginals, scores, "derivatives of marginals")
        return pulled(gain, rate)

    return sums.nodes, pull


def viterbi(scores: Scores) -> Tensor:
    """Return the tags with the highest score; 0 in the padding."""
    seen = look(scores)
    _, labels = plain.viterbi(seen.chains, seen.words)
    if seen.read().flags & NOTHING:
        return cpu.viterbi(scores.on_cpu())  # raises the error
    return labels


def sample(scores: Scores, uniforms: Tensor) -> Tensor:
    """Return tags drawn by uniform numbers (draws, B, T)."""
    seen = look(scores)
    if not seen.chains.fits:
        return on_cpu(cpu.sample, scores, _MANY, uniforms)
    drawn = plain.draw(seen.chains, uniforms.contiguous(), seen.words)
    if seen.read().flags & NOTHING:
        return cpu.sample(scores.on_cpu(), uniforms.cpu())  # raises the error
    return drawn


# --- with counts -------------------------------------------------------------------------------------------


def _fitting(seen: Seen, tallies: counted.Tallies, real: torch.dtype, summed: bool) -> counted.Run | None:
    """Return the run for some tallies; None if it does not fit."""
    run = counted.Run(seen.chains, tallies, real)
    return run if run.fits(gradient=summed) else None


def _against(
    scores: Scores, loss: Loss, names: Names, tags: Tensor, *, summed: bool, and_if: int = 0
) -> tuple[Seen, truths.Truths, counted.Run] | None:
    """Return the counts of a loss relative to the true tags; None if unsupported or too large for kernels."""
    _, positions, states = scores.emissions.shape
    rules = truths.rules_of(loss, names, states, positions, scores.emissions.device)
    if rules is None:
        return None
    seen = look(scores, tags)
    found = truths.count(rules, seen, and_if)
    run = _fitting(seen, found.tallies, torch.float64 if summed else scores.emissions.dtype, summed)
    return None if run is None else (seen, found, run)


def tallied(scores: Scores, statistics: Counted, names: Names) -> tuple[Tensor, Pull, tuple[int, ...]]:
    """Return the log-partition of every tally of each sentence, and the smallest tally of each statistic."""
    seen = look(scores)
    seen.read()
    found = counting.statistics_of(statistics, names, scores.emissions, scores.lengths.tolist())
    run = None if found is None else _fitting(seen, found.tallies, torch.float64, True)
    if found is None or run is None:
        return on_cpu(cpu.tallied, scores, "these statistics", statistics, names)
    values = counted.log_tallies(run)

    def pull(gain: Tensor, rate: float = 1.0) -> Slopes:
        upstream = torch.where(values > -torch.inf, gain.double().flatten(1) * rate, 0.0)
        return counted.tally_expectations(run, upstream.contiguous())

    return values.view(-1, *found.sizes), pull, found.low


def objective(
    scores: Scores, loss: Loss, names: Names, tags: Tensor, kind: LossObjective
) -> tuple[Tensor, Pull]:
    """Return an objective of the losses of all taggings of each sentence, relative to the true tags."""
    soft = kind == "softmax-margin"
    known = _against(scores, loss, names, tags, summed=True, and_if=FORBIDDEN if soft else 0)
    if known is None:
        return on_cpu(cpu.objective, scores, "this loss", loss, names, tags, kind)
    seen, found, run = known
    sums, losses = counted.log_tallies(run), found.losses.index_select(0, found.which)
    values, slopes = _softmax_margin(sums, losses) if soft else _risk(sums, losses)

    def pull(gain: Tensor, rate: float = 1.0) -> Slopes:
        gained = gain.double() * rate
        more = counted.tally_expectations(run, gained.view(-1, 1) * slopes)
        if not soft:
            return more
        shares = gained.expand(len(values)).contiguous()
        less = plain.gathered(run.chains, plain.labelled(run.chains, shares, tags))
        return more[0] - less[0], more[1] - less[1]

    return values - seen.right if soft and seen.right is not None else values, pull


def _risk(sums: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    shares = torch.softmax(sums, 1)
    values = (shares * losses).sum(1)
    return values, shares * (losses - values.unsqueeze(1))


def _softmax_margin(sums: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    return torch.logsumexp(sums + losses, 1), torch.softmax(sums + losses, 1)


def hinge(
    scores: Scores, loss: Loss, names: Names, tags: Tensor, scaling: Scaling
) -> tuple[Tensor, Tensor, Pull]:
    """Return the hinge loss of each sentence, a bound on its error, and its derivatives."""
    known = _against(scores, loss, names, tags, summed=False, and_if=FORBIDDEN)
    if known is None:
        return on_cpu(cpu.hinge, scores, "this loss", loss, names, tags, scaling)
    seen, found, run = known
    assert seen.right is not None
    slack, losses = scaling == "slack", found.losses
    slopes, offsets = (losses, None) if slack else (None, losses)
    best = counted.best(run, counted.Values(slopes, offsets, found.which, seen.right, float(slack)))

    def pull(gain: Tensor, rate: float = 1.0) -> Slopes:
        shares = best.slopes * gain if gain.dim() else best.slopes
        sums = plain.labelled(run.chains, shares, best.labels, tags)
        return plain.gathered(run.chains, sums, None if gain.dim() else _as_scores(gain, scores), rate)

    return best.values, best.gaps, pull


def loss_bytes(scores: Scores, loss: Loss, names: Names, tags: Tensor, summed: bool) -> int:
    """Return the device memory of the tables: of :func:`objective` if summed, else of :func:`hinge`."""
    known = _against(scores, loss, names, tags, summed=summed)
    if known is None:
        return 0
    run = known[2]
    return run.bytes + run.table_bytes if summed else max(run.bytes, run.chains.bytes)
