"""Questions about chains with counts on a GPU: the best labelling, sums over each tally, and objectives."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tallytree.torch.gpu.chains import SMALL, Chains, Summed, address, gathered
from tallytree.torch.gpu.counted import Run
from tallytree.torch.gpu.findings import Findings
from tallytree.torch.gpu.structures import NO_FINDINGS, NO_TOTAL, Total

_ADDRESS = ctypes.c_void_p


class _Answers(ctypes.Structure):
    """Where results are written; see ``Answers`` in ``kernels/asking.cuh``."""

    _fields_ = [(name, _ADDRESS) for name in ("profiles", "values", "gaps", "slopes", "cells", "labels")]


class _Search(ctypes.Structure):
    """The input of ``kernels/bounds.cu`` and ``kernels/best.cu``."""

    _fields_ = [
        *((name, _ADDRESS) for name in ("slopes", "offsets", "which", "right")),
        ("plus", ctypes.c_double),
        ("scratch", _ADDRESS),
        ("answers", _Answers),
        ("found", Findings),
        ("all", Total),
        ("listed", ctypes.c_int),
    ]


class _Summing(ctypes.Structure):
    """The input of ``kernels/tallies.cu``."""

    _fields_ = [(name, _ADDRESS) for name in ("scratch", "answers", "nodes", "edges", "working")]


class _Objective(ctypes.Structure):
    """The input of ``kernels/objectives.cu``."""

    _fields_ = [
        *((name, _ADDRESS) for name in ("losses", "which", "labels", "right", "upstream")),
        *((name, _ADDRESS) for name in ("scratch", "weights", "values", "nodes", "edges", "working")),
        ("found", Findings),
        ("all", Total),
    ]


@dataclass(frozen=True)
class Values:
    """The value of a score with each tally: ``slope * (plus + score - right) + offset``.

    ``slopes`` and ``offsets`` (rows, count) are shared by sentences: ``which`` (B,), int32, is the row of
    each; if None, slopes are 1 and offsets 0. ``right`` is (B,), and all but ``which`` are float64. An
    offset of -inf forbids a tally.
    """

    slopes: Tensor | None
    offsets: Tensor | None
    which: Tensor
    right: Tensor
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
        (sentences, positions, _), empty = chains.shape, chains.empty
        self._sentences, self._space = sentences, empty(sentences * (3 + positions))
        self.gaps = empty(sentences)
        self.profiles: Tensor | None = None

    def place(self, row: int) -> int:
        """Return the address of values (0), slopes (1), cells (2) or labels (3)."""
        return self._space.data_ptr() + 8 * row * self._sentences

    @property
    def answers(self) -> _Answers:
        """The form for a kernel."""
        values, slopes, cells, labels = map(self.place, range(4))
        return _Answers(address(self.profiles), values, self.gaps.data_ptr(), slopes, cells, labels)

    @property  # the result of a call must not be kept by its own derivatives
    def values(self) -> Tensor:
        """The values of the labellings."""
        return self._space[: self._sentences]

    @cached_property
    def slopes(self) -> Tensor:
        """The slopes of their tallies."""
        return self._space[self._sentences : 2 * self._sentences]

    @cached_property
    def cells(self) -> Tensor:
        """Their tallies; -1 if no labelling is allowed."""
        return self._space[2 * self._sentences :].view(torch.int32)[: self._sentences]

    @cached_property
    def labels(self) -> Tensor:
        """The labellings, (B, T)."""
        return self._space[3 * self._sentences :].view(torch.int64).view(self._sentences, -1)


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
        found.profiles = run.chains.empty(run.chains.shape[0], run.tallies.count, dtype=run.real)
    scratch = run.chains.empty(blocks * run.layout.bytes, dtype=torch.uint8)
    search = _Search(
        *map(address, (inputs.slopes, inputs.offsets, inputs.which, inputs.right)),
        *(inputs.plus, scratch.data_ptr(), found.answers, known, total, run.layout.listed if bounds else 0),
    )
    if search.listed:
        run.launch_bounds(search, search.listed)
    run.launch("best.cu", "best", search, blocks=blocks)
    return found


def log_tallies(run: Run) -> Tensor:
    """Return log Z of every tally, (B, count), float64."""
    answers, blocks = run.chains.empty(run.chains.shape[0], run.tallies.count), run.blocks
    scratch = run.chains.empty(blocks * run.layout.bytes, dtype=torch.uint8)
    inputs = _Summing(scratch.data_ptr(), answers.data_ptr(), None, None, None)
    run.launch("tallies.cu", "log_tallies", inputs, blocks=blocks)
    return answers


def _expected(run: Run) -> tuple[Summed, Tensor, int, int]:
    """Return memory for derivatives, for the tables of blocks, and the addresses of its parts."""
    blocks, states = run.blocks, run.chains.shape[2]
    sums, tables = run.chains.empty_slopes(blocks=blocks, tables=blocks), blocks * run.layout.bytes
    weights = 8 * blocks * run.tallies.count
    own = 0 if states <= SMALL else 8 * blocks * run.layout.threads // 32 * states * states
    scratch = run.chains.empty(-(-tables // 8) * 8 + weights + own, dtype=torch.uint8)
    first = scratch.data_ptr() + -(-tables // 8) * 8
    return sums, scratch, first, first + weights


def tally_expectations(run: Run, upstream: Tensor) -> tuple[Tensor, ...]:
    """Return the gradient of ``sum(upstream * log_tallies)`` for nodes and weights; upstream is float64."""
    sums, scratch, _, working = _expected(run)
    places = sums.nodes.data_ptr(), sums.edges.data_ptr(), working
    inputs = _Summing(scratch.data_ptr(), upstream.data_ptr(), *places)
    run.launch("tallies.cu", "tally_expectations", inputs, blocks=sums.blocks, extra=run.layout.staged)
    return gathered(run.chains, sums, in_place=True)


@dataclass(frozen=True)
class Against:
    """What an objective compares with: losses (rows, count), the row of each sentence, and the true tags.

    ``right`` are the scores of the tags for the softmax margin; for the expected loss they are None.
    """

    losses: Tensor
    which: Tensor
    tags: Tensor
    right: Tensor | None


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
    places: tuple[int | None, ...] = None, None, None
    if slopes:
        sums, scratch, weights, working = _expected(run)
        places = sums.nodes.data_ptr(), sums.edges.data_ptr(), working
    else:
        sums = None
        tables = -(-blocks * run.layout.bytes // 8) * 8
        scratch = run.chains.empty(tables + 8 * blocks * run.tallies.count, dtype=torch.uint8)
        weights = scratch.data_ptr() + tables
    its = against.losses, against.which, against.tags, against.right, upstream
    inputs = _Objective(
        *map(address, its),
        *(scratch.data_ptr(), weights, values.data_ptr(), *places),
        found,
        total,
    )
    run.launch("objectives.cu", "objective", inputs, blocks=blocks, extra=run.layout.staged if slopes else 0)
    return values, sums
