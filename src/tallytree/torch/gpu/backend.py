"""The backend for NVIDIA devices: the functions of :mod:`tallytree.torch.cpu`.

Scores are float32 or float64. Sums are in float64. The best labelling by score and tally is found with
tables of the scores' own dtype: float32 tables are rounded up, so that no labelling is better by more than
the rounding of a sum. Counts that the kernels do not support are computed on the CPU, with a warning.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from tallytree.bulk.expectations import LossObjective
from tallytree.bulk.tallied_chains import Counted, Names
from tallytree.losses.base import Loss
from tallytree.losses.scaling import Scaling
from tallytree.torch import cpu
from tallytree.torch.elsewhere import on_cpu
from tallytree.torch.functions import Pull, Scores, Slopes, reduced
from tallytree.torch.gpu import chains as plain
from tallytree.torch.gpu import (
    counted,
    counting,
    decoding,
    labellings,
    quotients,
    replays,
    searching,
    truth_counts,
    truths,
)
from tallytree.torch.gpu.findings import FORBIDDEN, LIMITED, NOTHING, UNKNOWN
from tallytree.torch.gpu.looking import Seen, look
from tallytree.torch.gpu.totals import Totalled

_MANY = "sums with so many tags"


# --- without counts ----------------------------------------------------------------------------------------


def _summed(scores: Scores, tags: Tensor | None = None, sign: float = 1.0) -> tuple[Tensor, Pull] | None:
    """Return log Z of each sentence, or the log-probability of tags times a sign; None if it does not fit."""
    sizes = plain.sizes_of(scores.emissions, scores.transitions)
    if not sizes.fits:
        return None
    # Values that are added up belong to one call. Others may be those of a distribution, which is kept.
    seen = Seen(scores, tags, sizes.room if scores.slopes and scores.reduction != "none" else 0, sizes)
    chains, all_of_them = seen.chains, Totalled(scores)
    apart = scores.reduction == "none" and scores.slopes and chains.apart
    slopes = scores.slopes and (apart or not chains.shared or scores.reduction != "none")
    ask = partial(plain.likelihood, chains, tags, sign=sign)
    values, first = ask(slopes=slopes, apart=apart, found=seen.telling(), total=all_of_them.total)

    def again(gains: Tensor | None = None) -> plain.Summed:
        _, sums = ask(gains, slopes=True)
        assert sums is not None
        return sums

    pull = all_of_them.pull(chains, first, again, apart)
    seen.read()  # as late as possible: the kernel has had time
    return all_of_them.of(values), pull


def _elsewhere(function: Any, scores: Scores, what: str, *arguments: Any) -> Any:
    """Return what the CPU computes, with the values of sentences reduced."""
    replays.refuse("what is computed on the CPU")
    found = on_cpu(function, scores, what, *arguments)
    values, pull = reduced(found[0], found[-1], scores.reduction, scores.ends)
    return values, *found[1:-1], pull


def log_partition(scores: Scores) -> tuple[Tensor, Pull]:
    """Return ``log Σ_y exp F(y)`` of each sentence."""
    found: tuple[Tensor, Pull] = _summed(scores) or _elsewhere(cpu.log_partition, scores, _MANY)
    return found


def log_prob(scores: Scores, tags: Tensor, sign: float = 1.0) -> tuple[Tensor, Pull]:
    """Return ``log p(tags)`` times a sign of each sentence; for forbidden tags, derivatives are zero."""
    found: tuple[Tensor, Pull] | None = _summed(scores, tags, sign)
    return found or _elsewhere(cpu.log_prob, scores, _MANY, tags, sign)


def marginals(scores: Scores) -> tuple[Tensor, Pull]:
    """Return the probability of each tag at each position; their derivatives are computed on the CPU."""
    seen = Seen(scores)
    if not seen.chains.sizes.fits:
        return on_cpu(cpu.marginals, scores, _MANY)
    _, sums = plain.likelihood(seen.chains, slopes=True, found=seen.telling())
    seen.read()
    assert sums is not None
    if seen.slot.captured:  # zeros for invalid inputs
        plain.gathered(seen.chains, sums, in_place=True)

    def pull(gain: Tensor) -> Slopes:
        _, pulled = on_cpu(cpu.marginals, scores, "derivatives of marginals")
        return pulled(gain)

    return sums.nodes, pull


def viterbi(scores: Scores) -> Tensor:
    """Return the tags with the highest score; 0 in the padding."""
    seen = look(scores)
    _, labels = decoding.viterbi(seen.chains, seen.telling(NOTHING))
    if seen.read().flags & NOTHING:
        return cpu.viterbi(scores.on_cpu())  # raises the error
    return labels


def sample(scores: Scores, uniforms: Tensor) -> Tensor:
    """Return tags drawn by uniform numbers (draws, B, T)."""
    replays.refuse("sampling")
    if not Seen(scores).chains.sizes.fits:
        return on_cpu(cpu.sample, scores, _MANY, uniforms)
    seen = look(scores)
    drawn = decoding.draw(seen.chains, uniforms.contiguous(), seen.telling())
    if seen.read().flags & NOTHING:
        return cpu.sample(scores.on_cpu(), uniforms.cpu())  # raises the error
    return drawn


# --- with counts -------------------------------------------------------------------------------------------


def _fitting(
    chains: plain.Chains, tallies: counted.Tallies, real: torch.dtype, summed: bool
) -> counted.Run | None:
    """Return the run for some tallies; None if it does not fit."""
    run = counted.Run(chains, tallies, real, most=not summed)
    return run if run.layout.fits(gradient=summed) else None


class _Counted:
    """The counts of a loss relative to the true tags; ``known`` is False if kernels do not support it.

    They are counted while the host prepares what comes next, until :meth:`run` waits for them. `hinge`:
    whether that is the search for a hinge.
    """

    def __init__(
        self, scores: Scores, loss: Loss, names: Names, tags: Tensor, and_if: int = 0, hinge: bool = False
    ) -> None:
        sizes = plain.sizes_of(scores.emissions, scores.transitions)
        _, positions, states = sizes.shape
        rules = truths.rules_of(loss, names, states, positions, scores.emissions.device)
        self.known, self._and_if = rules is not None, and_if
        if rules is not None:
            next_room = searching.room(sizes) + labellings.room(sizes) if hinge else 0
            self.seen = Seen(scores, tags, truth_counts.room(rules, sizes) + next_room, sizes)
            self.counting = truth_counts.Counting(rules, self.seen, and_if)

    def run(self, summed: bool) -> tuple[truth_counts.Truths, counted.Run] | None:
        """Return the counts, and the run for their tallies; None if unsupported, or if it does not fit."""
        if not self.known:
            return None
        found, chains = self.counting.truths(self.seen.read(self._and_if)), self.seen.chains
        run = _fitting(chains, found.tallies, torch.float64 if summed else chains.nodes.dtype, summed)
        return None if run is None else (found, run)


def tallied(scores: Scores, statistics: Counted, names: Names) -> tuple[Tensor, Pull, tuple[int, ...]]:
    """Return the log-partition of every tally of each sentence, and the smallest tally of each statistic."""
    replays.refuse("a tally")
    seen = look(scores, tell=True)
    words, positions = seen.read(), scores.emissions.shape[1]
    found = counting.statistics_of(
        statistics, names, scores.emissions, positions - words.padding, lambda: scores.lengths.tolist()
    )
    run = None if found is None else _fitting(seen.chains, found.tallies, torch.float64, True)
    if found is None or run is None:
        return on_cpu(cpu.tallied, scores, "these statistics", statistics, names)
    ends = positions - words.padding, words.columns
    low, part = found.part(ends if found.monotonic else scores.lengths.tolist())
    values = searching.log_tallies(run)
    grid = values.view(-1, *found.sizes)
    shape = grid.shape
    places = None if part is None else (slice(None), *part)

    def pull(gain: Tensor) -> Slopes:
        given = gain.double()
        upstream = given if places is None else _put(shape, places, given)
        return searching.tally_expectations(run, upstream.contiguous())

    return grid if places is None else grid[places], pull, low


def _put(shape: torch.Size, places: tuple[slice, ...], part: Tensor) -> Tensor:
    """Return a part of a grid within zeros."""
    whole = part.new_zeros(shape)
    whole[places] = part
    return whole


def _complain(scores: Scores, loss: Loss, names: Names, tags: Tensor) -> None:
    """Let the CPU raise the error for a sentence in which nothing is allowed."""
    known = scores.ends.tags(tags, scores.emissions.shape[2])
    cpu.objective(scores.on_cpu(), loss, names, known.cpu(), "risk")


def _quotient(scores: Scores, loss: Loss, names: Names) -> quotients.Quotient | None:
    _, positions, states = scores.emissions.shape
    return quotients.quotient_of(loss, names, states, positions, scores.emissions.device)


def _risk(scores: Scores, loss: Loss, names: Names, tags: Tensor) -> tuple[Tensor, Pull] | None:
    """Return the expected loss of each sentence, without tables, if it is a quotient of counts that fits."""
    quotient, sizes = _quotient(scores, loss, names), plain.sizes_of(scores.emissions, scores.transitions)
    if quotient is None:
        return None
    shape = quotients.shape_of(sizes, quotient, scores.emissions.device)
    if not shape.fits:
        return None
    room = truth_counts.room(quotient.rules, sizes, boxes=False)
    seen = Seen(scores, tags, room + (shape.slopes_room if scores.slopes else 0), sizes)
    counting, chains = truth_counts.Counting(quotient.rules, seen, boxes=False), seen.chains
    all_of_them, slot, truth = Totalled(scores), seen.next_slot(), counting.numbered()
    slopes = scores.slopes and (scores.reduction != "none" or not chains.shared)
    ask = partial(quotients.risk, chains, quotient, shape, slopes=slopes, total=all_of_them.total)
    values, first = ask(truth, tags, found=slot.telling(NOTHING))
    words = seen.read()
    if words.flags & UNKNOWN:
        slot.read()
        slot, truth = seen.next_slot(), counting.numbered(words)
        values, first = ask(truth, tags, found=slot.telling(NOTHING))
    if not words.flags & LIMITED:  # everything is allowed
        slot.leave()
    elif slot.read().flags & NOTHING:
        _complain(scores, loss, names, tags)

    def again(gains: Tensor | None = None) -> plain.Summed:
        _, sums = quotients.risk(
            chains, quotient, shape, truth, tags, gains, slopes=True, found=(chains.words, 0, 0)
        )
        assert sums is not None
        return sums

    return all_of_them.of(values), all_of_them.pull(chains, first, again)


def objective(
    scores: Scores, loss: Loss, names: Names, tags: Tensor, kind: LossObjective
) -> tuple[Tensor, Pull]:
    """Return an objective of the losses of all taggings of each sentence, relative to the true tags."""
    soft = kind == "softmax-margin"
    if not soft and (found := _risk(scores, loss, names, tags)) is not None:
        return found
    counts, all_of_them = _Counted(scores, loss, names, tags, FORBIDDEN if soft else 0), Totalled(scores)
    known = counts.run(summed=True)
    if known is None:
        return _elsewhere(cpu.objective, scores, "this loss", loss, names, tags, kind)  # type: ignore[no-any-return]
    (truth, run), slot = known, counts.seen.next_slot()
    against = searching.Against(truth.losses, truth.which, tags, truth.right if soft else 0)
    values, first = searching.objective(
        run,
        against,
        slopes=scores.slopes and (scores.reduction != "none" or not run.chains.shared),
        found=slot.quiet if soft else slot.telling(NOTHING),
        total=all_of_them.total,
    )
    if soft:  # the true tags are allowed
        slot.free()
    elif slot.read().flags & NOTHING:
        _complain(scores, loss, names, tags)

    def again(gains: Tensor | None = None) -> plain.Summed:
        _, sums = searching.objective(run, against, gains, slopes=True, found=(run.chains.words, 0, 0))
        assert sums is not None
        return sums

    return all_of_them.of(values), all_of_them.pull(run.chains, first, again)


def hinge(
    scores: Scores, loss: Loss, names: Names, tags: Tensor, scaling: Scaling
) -> tuple[Tensor, Tensor, Pull]:
    """Return the hinge loss of each sentence, a bound on its error, and its derivatives."""
    counts = _Counted(scores, loss, names, tags, FORBIDDEN, hinge=True)
    all_of_them, best = Totalled(scores), searching.Best(counts.seen.chains) if counts.known else None
    known = counts.run(summed=False)
    if known is None or best is None:
        found: tuple[Tensor, Tensor, Pull] = _elsewhere(
            cpu.hinge, scores, "this loss", loss, names, tags, scaling
        )
        return found
    (truth, run), slot, slack = known, counts.seen.next_slot(), scaling == "slack"
    slopes, offsets = (truth.losses, None) if slack else (None, truth.losses)
    wanted = searching.Values(slopes, offsets, truth.which, truth.right, float(slack))
    total, bounds = all_of_them.total, run.worth_bounding
    searching.best(run, wanted, total=total, known=slot.quiet, bounds=bounds, into=best)
    slot.free()

    chains, known_best = run.chains, labellings.Labellings(best.place(3), tags, best.place(1), best)
    pull = all_of_them.pull(
        chains,
        None,
        lambda gains=None: labellings.labelled(chains, known_best, gains),
        at_once=lambda *by: labellings.labelled_by(chains, known_best, *by),
    )
    return best.values if scores.reduction == "none" else all_of_them.of(best.gaps), best.gaps, pull


def loss_bytes(scores: Scores, loss: Loss, names: Names, tags: Tensor, objective: str) -> int:
    """Return the device memory of a hinge or an objective: of its tables, or of what it uses instead."""
    if objective == "risk" and (quotient := _quotient(scores, loss, names)) is not None:
        device = scores.emissions.device
        shape = quotients.shape_of(plain.sizes_of(scores.emissions, scores.transitions), quotient, device)
        if shape.fits:
            return shape.blocks(device) * shape.block_bytes
    known = _Counted(scores, loss, names, tags).run(summed=objective != "hinge")
    if known is None:
        return 0
    run = known[1]
    return run.bytes + run.table_bytes if objective != "hinge" else max(run.bytes, run.chains.bytes)
