"""Chains with counts on a GPU: the best labelling by score and tally, and sums over all of each tally.

A tally is a number below ``Tallies.count``, and what a state adds to it is a shift: several counts are
numbered as the cells of a grid are, line by line. ``kernels/counted.cuh`` has the layout of the tables.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import torch
from torch import Tensor

from tallytree.errors import BudgetError
from tallytree.planning.budget import readable_bytes
from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.chains import NAMES, Chains

_THREADS = 128
"""Threads of a block, which takes a sentence at a time."""
_BLOCKS = 6
"""Blocks of a multiprocessor."""
_REAL = {torch.float32: 4, torch.float64: 8}


@dataclass(frozen=True)
class Chunks:
    """What is needed to count whole chunks.

    ``marks`` (B, T, 1 + k) are for each position 1 where a true chunk begins plus 2 where one ended just
    before, then the k labels of its type, -1 for none; ``goes_on`` (C, ceil(C / 32)) has bit ``to`` of row
    ``s`` where label ``to`` after ``s`` goes on with the same chunk; ``pairs`` lists those.
    """

    marks: Tensor
    goes_on: Tensor
    pairs: Tensor


@dataclass(frozen=True)
class Tallies:
    """How many tallies there are, and what states add.

    ``shifts`` (B, T, C) are int32 and not negative. ``line`` is the number of cells of a line of the grid;
    ``boxes`` (B, T, 2), int32, are the lines and cells of a line that are reached up to each position.
    """

    shifts: Tensor
    boxes: Tensor
    count: int
    line: int
    chunks: Chunks | None = None

    @cached_property
    def placed(self) -> Tensor:
        """Boxes, and where each begins: after all columns of those before."""
        sizes = self.boxes.prod(2)
        return torch.stack([*self.boxes.unbind(2), sizes.cumsum(1) - sizes], 2).to(torch.int32).contiguous()

    @cached_property
    def columns(self) -> int:
        """Columns of the tables of a sentence, at most."""
        return int(self.boxes.prod(2).sum(1).max())

    @property
    def extra_rows(self) -> int:
        """Rows of a table beside those of the states."""
        return 0 if self.chunks is None else self.chunks.marks.shape[2] - 1

    @property
    def exceptions(self) -> int:
        """Steps of a position whose shift is not that of the state."""
        return 0 if self.chunks is None else len(self.chunks.pairs) + self.extra_rows * self.shifts.shape[2]


@dataclass(frozen=True)
class Best:
    """The best labelling of each sentence; ``cells`` are tallies, -1 where no labelling is allowed."""

    values: Tensor
    cells: Tensor
    labels: Tensor
    profiles: Tensor | None


class _Batch(ctypes.Structure):
    """What a kernel is given; see ``Batch`` in ``kernels/counted.cuh``."""

    _fields_ = [
        *(
            (name, ctypes.c_void_p)
            for name in ("nodes", "weights", "lengths", "shifts", "boxes", "marks", "goes_on", "pairs")
        ),
        *(
            (name, ctypes.c_int)
            for name in ("pair_count", "sentences", "positions", "tallies", "shared", "line", "columns")
        ),
    ]


@dataclass(frozen=True)
class Run:
    """A batch, the kind of numbers of its tables, and the memory that a launch takes."""

    chains: Chains
    tallies: Tallies
    real: torch.dtype

    @property
    def blocks(self) -> int:
        """Blocks of a launch: as many as the device has use for, and as fit the memory that is free now.

        Raises
        ------
        BudgetError
            The tables of one sentence do not fit.
        """
        device = self.chains.nodes.device
        room, most = compiling.room(device), _BLOCKS * compiling.processors(device)
        if self.block_bytes > room:
            raise BudgetError(
                f"the tables of one sentence need {readable_bytes(self.block_bytes)} on {device}, and "
                f"{readable_bytes(room)} are free; cut long sentences, count less, or move the scores to the "
                "CPU, where searches need no whole tables"
            )
        return min(self.chains.shape[0], most, max(1, int(0.9 * room) // self.block_bytes))

    @property
    def columns(self) -> int:
        """Columns of the tables of a block: of a sentence, and of two positions of a backward pass."""
        return self.tallies.columns + 2 * self.tallies.count

    @property
    def block_bytes(self) -> int:
        """Bytes of the tables of a block, which takes one sentence after the other."""
        rows = self.chains.shape[2] + self.tallies.extra_rows
        return self.columns * rows * _REAL[self.real]

    @property
    def bytes(self) -> int:
        """Device memory that a launch takes beside its inputs and answers."""
        return self.blocks * self.block_bytes

    def fits(self, gradient: bool = False) -> bool:
        """Return whether numbers of columns fit 32 bits, and the weights of a step a block's memory."""
        rows = self.chains.shape[2] + self.tallies.extra_rows
        small = max(self.columns, rows * self.tallies.count) < 2**31
        memory = self.block_memory + (self.staged if gradient else 0)
        return small and memory <= compiling.block_memory(self.chains.nodes.device)

    @property
    def staged(self) -> int:
        """Shared memory that a backward pass takes besides."""
        return _THREADS // 32 * (self.chains.shape[2] + self.padded) * 33 * _REAL[self.real]

    @property
    def padded(self) -> int:
        """States with those that fill up the last tile."""
        states = self.chains.shape[2]
        tiles = ceil(states / 24)
        return tiles * 4 * ceil(states / tiles / 4)

    @property
    def block_memory(self) -> int:
        """Shared memory of a block."""
        real = _REAL[self.real]
        exceptions = self.tallies.exceptions * (24 + 2 * real)
        return ((self.chains.shape[2] + 1) * self.padded + 4) * real + exceptions + 4 * self.padded + 16

    def launch(
        self,
        source: str,
        name: str,
        before: tuple[Tensor, ...],
        after: tuple[Tensor | None, ...],
        *,
        blocks: int = 0,
        extra: int = 0,
    ) -> None:
        """Launch a kernel with its inputs, then its memory, then its answers."""
        run = self.chains.kernel(source, name, REAL=NAMES[self.real], CHUNKS=self.tallies.extra_rows)
        blocks = blocks or self.blocks
        size = blocks * self.block_bytes
        scratch = torch.empty(size, dtype=torch.uint8, device=self.chains.nodes.device)
        run(blocks, _THREADS, self.block_memory + extra, self._batch(), *before, scratch, *after)

    def _batch(self) -> _Batch:
        chains, chunks = self.chains, self.tallies.chunks
        counted = (None, None, None) if chunks is None else (chunks.marks, chunks.goes_on, chunks.pairs)
        tensors = (
            chains.nodes,
            chains.weights,
            chains.lengths,
            self.tallies.shifts,
            self.tallies.placed,
            *counted,
        )
        pairs = 0 if chunks is None else len(chunks.pairs)
        addresses = (None if tensor is None else tensor.data_ptr() for tensor in tensors)
        return _Batch(
            *addresses,
            pairs,
            *chains.shape[:2],
            self.tallies.count,
            chains.shared,
            self.tallies.line,
            self.columns,
        )


@dataclass(frozen=True)
class Values:
    """What a score is worth with each tally: ``slope * (score + base) + offset``.

    ``slopes`` and ``offsets`` (rows, count) serve several sentences: ``which`` (B,), int32, is the row of
    each; bases are (B,), and all but ``which`` float64. An offset of -inf forbids a tally.
    """

    slopes: Tensor
    offsets: Tensor
    which: Tensor
    bases: Tensor


def best(run: Run, asked: Values, *, want_profiles: bool = False) -> Best:
    """Maximise the value over the labellings of each sentence.

    In single precision values and profiles are upper bounds: sums are rounded up.
    """
    sentences, positions, _ = run.chains.shape
    device = run.chains.nodes.device
    profiles = (
        torch.empty(sentences, run.tallies.count, dtype=run.real, device=device) if want_profiles else None
    )
    values = torch.empty(sentences, dtype=torch.float64, device=device)
    cells = torch.empty(sentences, dtype=torch.int32, device=device)
    labels = torch.zeros(sentences, positions, dtype=torch.int64, device=device)
    inputs = asked.slopes, asked.offsets, asked.which, asked.bases
    run.launch("best.cu", "best", inputs, (profiles, values, cells, labels))
    return Best(values, cells, labels, profiles)


def log_tallies(run: Run) -> Tensor:
    """Return log Z of every tally, (B, count), float64."""
    shape = (run.chains.shape[0], run.tallies.count)
    answers = torch.empty(shape, dtype=torch.float64, device=run.chains.nodes.device)
    run.launch("sums.cu", "log_tallies", (), (answers,))
    return answers


def tally_expectations(run: Run, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of ``sum(upstream * log_tallies)`` by nodes and weights; upstream is float64."""
    chains, states, blocks = run.chains, run.chains.shape[2], run.blocks
    nodes = torch.zeros(chains.shape, dtype=torch.float64, device=chains.nodes.device)
    tables = nodes.new_zeros(blocks * (_THREADS // 32), states, states)
    steps = None if chains.shared else nodes.new_zeros(chains.weights.shape)
    answers = nodes, tables, steps
    run.launch("sums.cu", "tally_expectations", (upstream,), answers, blocks=blocks, extra=run.staged)
    return nodes, tables.sum(0) if steps is None else steps
