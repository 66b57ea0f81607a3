"""Chains with counts on a GPU: the best labelling by score and tally, and sums over each tally.

A tally is a number below ``Tallies.count``, and what a state adds to it is a shift: several counts are
numbered like the cells of a grid, row by row. ``kernels/counted.cuh`` describes the layout of the tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tallytree.errors import BudgetError
from tallytree.planning.budget import readable_bytes
from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.chains import NAMES, SMALL, Chains, address
from tallytree.torch.gpu.structures import PADDED, packing

_THREADS = 1024
"""Threads per multiprocessor; for sums more than run at once, so that blocks end about together."""
_WIDE = 160
"""Columns of a position, on average, from which a search takes more threads."""
_TILES = {True: (28, 16), False: (24, 24)}
"""The maximum number of states of a tile if there is one, and if there are several; for searches and sums."""
_WARPS = 4
"""Warps per block of a search by bounds, each of which takes a sentence."""
_MOST_LISTED = 1024
"""The maximum number of tallies that a search by bounds keeps of a sentence."""
_LARGE, _MANY = 5e5, 2e9
"""Steps of the tables of the longest sentence, and of a batch of such, from which bounds are tried first."""
_MET = 13
"""The labellings that it keeps, ``kPasses + 1`` in ``kernels/sweeps.cuh``."""
_REAL = {torch.float32: 4, torch.float64: 8}


@dataclass(frozen=True)
class Chunks:
    """The data for counting whole chunks.

    ``marks`` (B, T, 1 + k) has for each position 1 if a true chunk starts there plus 2 if one ended just
    before, then the k labels of its type, -1 for none; ``goes_on`` (C, ceil(C / 32)) has bit ``to`` of row
    ``s`` set if label ``to`` after ``s`` continues the same chunk; ``pairs`` lists those. ``groups`` (types +
    1, k) has the labels of each type, and the label outside of chunks, if there is one, as the first of its
    own; -1 for none.
    """

    marks: Tensor | int  # or its address
    goes_on: Tensor
    pairs: Tensor
    groups: Tensor


@dataclass(frozen=True)
class Tallies:
    """The number of tallies, and the shifts of states.

    ``shifts`` (rows, C) are int32 and non-negative; ``rows`` (B, T), int64, is the row of each position. If
    None, each position has its own row or, with chunks, all share the first. ``by_length``: if not 0, shifts
    and boxes are not those of each sentence, but of each length from this one to T. ``line`` is the number of
    cells of a line of the grid; ``boxes`` (B, T, 3), int32, are the lines and cells of a line that are
    reachable up to each position, and the number of columns before it; ``columns`` is the maximum of all.
    """

    shifts: Tensor
    boxes: Tensor | int  # or its address
    columns: int
    count: int
    line: int
    rows: Tensor | None = None
    chunks: Chunks | None = None
    by_length: int = 0

    @property
    def extra_rows(self) -> int:
        """The number of rows of a table besides those of the states."""
        return 0 if self.chunks is None else self.chunks.groups.shape[1]

    @property
    def exceptions(self) -> int:
        """The number of steps of a position whose shift is not that of the state."""
        if self.chunks is None:
            return 0
        return self.chunks.pairs.shape[0] + self.extra_rows * self.shifts.shape[-1]


def placed(boxes: Tensor) -> tuple[Tensor, int]:
    """Return boxes (B, T, 2) with the columns before each, and the maximum columns of a sentence."""
    sizes = boxes.prod(2)
    before = sizes.cumsum(1) - sizes
    found = torch.cat([boxes, before.unsqueeze(2)], 2).to(torch.int32).contiguous()
    return found, int(sizes.sum(1).max())


_BATCH = packing(PADDED, "7P7i")
"""Shifts, rows, boxes, marks, goes on, pairs, groups; numbers of pairs, groups and tallies, line, columns,
number of rows, by length: ``Batch`` in ``kernels/counted.cuh``."""


class Sized(NamedTuple):
    """What the memory of a launch depends on."""

    states: int
    positions: int
    columns: int
    tallies: int
    extra_rows: int
    exceptions: int
    groups: int
    by_position: bool  # whether positions are counted, relative to true tags
    chunks: bool
    real: torch.dtype
    most: bool
    few: bool  # sentences
    room: int  # shared memory of a block


class Layout:
    """Threads and memory of a block, which processes one sentence at a time.

    Attributes
    ----------
    tiles, padded : int
        The number of tiles of states, and the number of states rounded up to full tiles.
    columns : int
        The number of columns of its tables: of a sentence, and of two positions of a backward pass.
    bytes : int
        The size of its tables.
    memory, staged : int
        Its shared memory, and what a backward pass needs besides.
    threads : int
        About one per column, within limits. For few sentences, blocks are larger, so that the device is not
        idle.
    listed : int
        The number of tallies that a search by bounds keeps of a sentence; 0 if there is no such search, which
        is for counts of positions relative to true tags, the rows of shifts.
    """

    def __init__(self, size: Sized) -> None:
        self._size, states, real = size, size.states, _REAL[size.real]
        one, several = _TILES[size.most]
        self.tiles = 1 if states <= one else ceil(states / several)
        rows, self.padded = states + size.extra_rows, self.tiles * 4 * ceil(states / self.tiles / 4)
        self.columns = size.columns + 2 * size.tallies
        self.bytes = self.columns * rows * real
        self.memory = self._arrivals(real) if size.chunks and size.most else self._work(rows, real)
        self.threads = self._threads()
        self.staged = self._staged(self.threads)
        self._small = max(self.columns, rows * size.tallies) < 2**31
        self.listed = self._listed()

    def fits(self, gradient: bool) -> bool:
        """Return whether column numbers fit in 32 bits, and the weights of a step in a block's memory."""
        return self._small and self.memory + (self.staged if gradient else 0) <= self._size.room

    def _threads(self) -> int:
        size = self._size
        if size.tallies <= 64:
            return 32
        if size.few:
            threads = 512 if size.most else 256
        else:
            wide = size.columns > _WIDE * size.positions
            several = 512 if size.states > _TILES[True][0] else 256
            threads = several if size.most and wide and not size.chunks else 128
        while threads > 32 and not size.most and self._staged(threads) > size.room - self.memory:
            threads //= 2
        return threads

    def _work(self, rows: int, real: int) -> int:
        """Return the shared memory of a block: ``Work`` in ``kernels/counted.cuh``."""
        size, integers = self._size, 4 * (2 * self.padded + 4 * rows + 1)
        tables = ((size.states + 2) * self.padded + 4) * real
        return tables + size.exceptions * (24 + 2 * real) + integers + 16

    def _arrivals(self, real: int) -> int:
        """Return the shared memory of a search with chunks: ``Arrivals`` in ``kernels/gathering.cuh``."""
        size, padded, extra = self._size, self.padded, self._size.extra_rows
        steps = (extra + extra**2) * real
        turn = ceil((padded * real + steps + 4 * (2 * extra + 2)) / 16) * 16
        group = ceil((4 * extra + steps) / 16) * 16
        marks = 4 * size.positions * (1 + extra)
        return 2 * turn + size.groups * group + size.states * padded * real + marks

    def _staged(self, threads: int) -> int:
        states = self._size.states
        tables = 8 * states * states if states <= SMALL else 0  # of derivatives for weights
        return threads // 32 * ((states + self.padded) * 33 * _REAL[self._size.real] + tables) + 16

    def _listed(self) -> int:
        size = self._size
        if not size.by_position or size.states > 256:
            return 0
        most = min(size.tallies, (size.positions + 1) * (size.positions + 2) // 2, _MOST_LISTED)
        return most if self.bounds_memory(most) <= size.room else 0

    def bounds_memory(self, listed: int) -> int:
        """Return the shared memory of a block of a search by bounds: ``Room`` in ``kernels/sweeps.cuh``."""
        states, positions = self._size.states, self._size.positions
        each = 24 * listed + 24 * _MET + 8 * states + ceil(positions * (states + 2) / 16) * 16
        return _WARPS * ceil(each / 16) * 16


_layout = lru_cache(maxsize=1024)(Layout)


@dataclass(frozen=True)
class Run:
    """A batch, the dtype of its tables, and the memory of a launch.

    ``most``: whether the best labellings are computed, not sums.
    """

    chains: Chains
    tallies: Tallies
    real: torch.dtype
    most: bool = False

    @cached_property
    def layout(self) -> Layout:
        """Threads and memory of a block."""
        (sentences, positions, states), device = self.chains.shape, self.chains.device
        tallies, chunks = self.tallies, self.tallies.chunks is not None
        counts = tallies.columns, tallies.count, tallies.extra_rows, tallies.exceptions
        groups = 0 if tallies.chunks is None else tallies.chunks.groups.shape[0]
        by_position = tallies.rows is not None and not chunks
        few, room = sentences <= compiling.processors(device), compiling.block_memory(device)
        return _layout(
            Sized(states, positions, *counts, groups, by_position, chunks, self.real, self.most, few, room)
        )

    @cached_property
    def blocks(self) -> int:
        """The number of blocks of a launch: as many as the device can use, and as fit in free memory.

        Raises
        ------
        BudgetError
            The tables of one sentence do not fit.
        """
        device, layout = self.chains.device, self.layout
        at_once = _THREADS // 2 if self.most and self.real == torch.float64 else _THREADS
        most = min(self.chains.shape[0], at_once // layout.threads * compiling.processors(device))
        if most * layout.bytes <= compiling.plenty(device):
            return most
        room = compiling.room(device)
        if layout.bytes > room:
            raise BudgetError(
                f"the tables of one sentence need {readable_bytes(layout.bytes)} on {device}, but only "
                f"{readable_bytes(room)} are free; split long sentences, count less, or move the scores to "
                "the CPU, where searches need no full tables"
            )
        return min(most, max(1, int(0.9 * room) // layout.bytes))

    @property
    def bytes(self) -> int:
        """The device memory of a launch besides its inputs and outputs."""
        return self.blocks * self.layout.bytes

    @property
    def table_bytes(self) -> int:
        """The device memory of the tables of derivatives for weights, one per warp and one per block."""
        states = self.chains.shape[2]
        own = 0 if states <= SMALL else self.layout.threads // 32 * states
        return self.blocks * 8 * states * (own + states + 2)

    @property
    def worth_bounding(self) -> bool:
        """Whether a search by bounds is likely to take less time than the tables."""
        sentences, _, states = self.chains.shape
        each = self.tallies.columns * states**2
        return each >= _LARGE and each * sentences >= _MANY

    def launch_bounds(self, inputs: Any, listed: int) -> None:
        """Launch the search by bounds, with one warp per sentence."""
        run = self.chains.kernel("bounds.cu", "bounds", REAL=NAMES[self.real], CHUNKS=0)
        run(self.chains.blocks(), 32 * _WARPS, self.layout.bounds_memory(listed), self._batch, inputs)

    def launch(self, source: str, name: str, inputs: Any, *, blocks: int, extra: int = 0) -> None:
        """Launch a kernel with the batch and its other input."""
        chunks, tiles = self.tallies.extra_rows, self.layout.tiles
        run = self.chains.kernel(source, name, REAL=NAMES[self.real], CHUNKS=chunks, TILES=tiles)
        run(blocks, self.layout.threads, self.layout.memory + extra, self._batch, inputs)

    @cached_property
    def _batch(self) -> Any:  # bytes: that name is a property here
        tallies, chunks = self.tallies, self.tallies.chunks
        tensors: list[Tensor | int | None] = [
            tallies.shifts,
            tallies.rows,
            tallies.boxes,
            None,
            None,
            None,
            None,
        ]
        if chunks is not None:
            tensors[3:] = chunks.marks, chunks.goes_on, chunks.pairs, chunks.groups
        sizes = (0, 0) if chunks is None else (len(chunks.pairs), len(chunks.groups))
        numbers = *sizes, tallies.count, tallies.line, self.layout.columns
        shifts = tallies.shifts.numel() // self.chains.shape[2]
        return _BATCH(*self.chains.inputs, *map(address, tensors), *numbers, shifts, tallies.by_length)
