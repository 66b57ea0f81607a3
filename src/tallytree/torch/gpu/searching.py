"""Questions about chains with counts on a GPU: the best labelling, sums over each tally, and objectives."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from tallytree.torch.gpu.chains import SMALL, Chains, Sizes, Summed, address, gathered
from tallytree.torch.gpu.counted import Run
from tallytree.torch.gpu.structures import FINDINGS, NO_FINDINGS, NO_TOTAL, TOTAL, Findings, Total, packing

_SEARCH = packing("4PdP", "6P", FINDINGS, TOTAL, "i")
"""Slopes, offsets, which, right, plus, scratch; answers; listed: ``Search`` in ``kernels/asking.cuh``."""
_SUMMING = packing("5P")
"""Scratch, answers, nodes, edges, working: ``kernels/tallies.cu``."""
_OBJECTIVE = packing("11P", FINDINGS, TOTAL)
"""Losses, which, labels, right, upstream, scratch, weights, values, nodes, edges, working:
``kernels/objectives.cu``."""


class Values(NamedTuple):
    """The value of a score with each tally: ``slope * (plus + score - right) + offset``.

    ``slopes`` and ``offsets`` (rows, count) are shared by sentences: ``which`` (B,), int32, is the row of
    each; if None, slopes are 1 and offsets 0. ``right`` is (B,), and all but ``which`` are float64. ``which``
    and ``right`` may be addresses. An offset of -inf forbids a tally.
    """

    slopes: Tensor | None
    offsets: Tensor | None
    which: Tensor | int
    right: Tensor | int
    plus: float = 0.0


class Best:
    """The best labelling of each sentence.

    Attributes
    ----------
    gaps : tensor of shape (B,)
        No other labelling is better by more than this.
    profiles : tensor of shape (B, count), or None
        The best score of each tally.
    """

    def __init__(self, chains: Chains) -> None:
        self._sentences, self._positions, _ = chains.shape
        self._space = chains.take(room(chains.sizes))
        self.gaps = chains.empty(self._sentences)
        self.profiles: Tensor | None = None

    def place(self, row: int) -> int:
        """Return the address of values (0), slopes (1), cells (2) or labels (3)."""
        return self._space.place + 8 * row * self._sentences

    @property
    def answers(self) -> tuple[int, ...]:
        """The numbers of the structure ``Answers`` in ``kernels/asking.cuh``."""
        place, step = self._space.place, 8 * self._sentences
        rest = place + step, place + 2 * step, place + 3 * step
        return address(self.profiles), place, self.gaps.data_ptr(), *rest

    def _part(self, row: int, rows: int = 1) -> Tensor:
        whole, first = self._space
        step = 2 * self._sentences
        return whole[first + row * step : first + (row + rows) * step]

    @property  # the result of a call must not be kept by its own derivatives
    def values(self) -> Tensor:
        """The values of the labellings."""
        return self._part(0).view(torch.float64)

    @cached_property
    def slopes(self) -> Tensor:
        """The slopes of their tallies."""
        return self._part(1).view(torch.float64)

    @cached_property
    def cells(self) -> Tensor:
        """Their tallies; -1 if no labelling is allowed."""
        return self._part(2)[: self._sentences]

    @cached_property
    def labels(self) -> Tensor:
        """The labellings, (B, T)."""
        return self._part(3, self._positions).view(torch.int64).view(self._sentences, -1)


def room(sizes: Sizes) -> int:
    """Return the number of words for the best labellings of a batch."""
    return sizes.shape[0] * (3 + sizes.shape[1])


def best(
    run: Run,
    inputs: Values,
    *,
    want_profiles: bool = False,
    total: Total = NO_TOTAL,
    known: Findings = NO_FINDINGS,
    bounds: bool = False,
    into: Best | None = None,
) -> Best:
    """Maximise the value over the labellings of each sentence.

    In single precision, profiles are upper bounds: sums are rounded up. `total`: gets the sum of the values,
    by means of `known`, the words of earlier launches. `bounds`: whether to search by bounds where possible,
    and to fill tables only for the sentences that these do not settle; scores are relative to those of true
    tags, the rows of shifts, which are allowed. `into`: memory for the result, if there is some.
    """
    found, blocks = into or Best(run.chains), run.blocks
    if want_profiles:
        found.profiles = run.chains.empty((run.chains.shape[0], run.tallies.count), run.real)
    scratch = run.chains.empty(blocks * run.layout.bytes, dtype=torch.uint8)
    listed = run.layout.listed if bounds else 0
    places = *map(address, inputs[:4]), inputs.plus, scratch.data_ptr()
    search = _SEARCH(*places, *found.answers, *known, *total, listed)
    if listed:
        run.launch_bounds(search, listed)
    run.launch("best.cu", "best", search, blocks=blocks)
    return found


def log_tallies(run: Run) -> Tensor:
    """Return log Z of every tally, (B, count), float64."""
    answers, blocks = run.chains.empty((run.chains.shape[0], run.tallies.count)), run.blocks
    scratch = run.chains.empty(blocks * run.layout.bytes, dtype=torch.uint8)
    inputs = _SUMMING(scratch.data_ptr(), answers.data_ptr(), 0, 0, 0)
    run.launch("tallies.cu", "log_tallies", inputs, blocks=blocks)
    return answers


def _expected(run: Run) -> tuple[Summed, Tensor, int, int]:
    """Return memory for derivatives, for the tables of blocks, and the addresses of its parts."""
    blocks, states = run.blocks, run.chains.shape[2]
    sums, tables = run.chains.empty_slopes(blocks, blocks), blocks * run.layout.bytes
    weights = 8 * blocks * run.tallies.count
    own = 0 if states <= SMALL else 8 * blocks * run.layout.threads // 32 * states * states
    scratch = run.chains.empty(-(-tables // 8) * 8 + weights + own, dtype=torch.uint8)
    first = scratch.data_ptr() + -(-tables // 8) * 8
    return sums, scratch, first, first + weights


def tally_expectations(run: Run, upstream: Tensor) -> tuple[Tensor, ...]:
    """Return the gradient of ``sum(upstream * log_tallies)`` for nodes and weights; upstream is float64."""
    sums, scratch, _, working = _expected(run)
    places = sums.nodes.data_ptr(), sums.edges, working
    inputs = _SUMMING(scratch.data_ptr(), upstream.data_ptr(), *places)
    run.launch("tallies.cu", "tally_expectations", inputs, blocks=sums.blocks, extra=run.layout.staged)
    return gathered(run.chains, sums, in_place=True)


class Against(NamedTuple):
    """What an objective compares with: losses (rows, count), the row of each sentence, and the true tags.

    ``right`` is the address of the scores of the tags for the softmax margin; for the expected loss it is 0.
    """

    losses: Tensor
    which: Tensor | int
    tags: Tensor
    right: int


def objective(
    run: Run,
    against: Against,
    upstream: Tensor | None = None,
    *,
    slopes: bool = False,
    found: Findings = NO_FINDINGS,
    total: Total = NO_TOTAL,
) -> tuple[Tensor, Summed | None]:
    """Return the expected loss or the softmax margin of each sentence, float64.

    `slopes`, `upstream`: as for :func:`~tallytree.torch.gpu.chains.likelihood`. `found`: whether there is
    a sentence without an allowed labelling, if that is reported.
    """
    values, blocks = run.chains.empty(run.chains.shape[0]), run.blocks
    places = 0, 0, 0
    if slopes:
        sums, scratch, weights, working = _expected(run)
        places = sums.nodes.data_ptr(), sums.edges, working
    else:
        sums = None
        tables = -(-blocks * run.layout.bytes // 8) * 8
        scratch = run.chains.empty(tables + 8 * blocks * run.tallies.count, dtype=torch.uint8)
        weights = scratch.data_ptr() + tables
    memory = scratch.data_ptr(), weights, values.data_ptr()
    inputs = _OBJECTIVE(*map(address, against), address(upstream), *memory, *places, *found, *total)
    run.launch("objectives.cu", "objective", inputs, blocks=blocks, extra=run.layout.staged if slopes else 0)
    return values, sums
