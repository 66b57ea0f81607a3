"""Chains with counts on a GPU: the best labelling by score and tally, and sums over each tally.

A tally is a number below ``Tallies.count``, and what a state adds to it is a shift: several counts are
numbered like the cells of a grid, row by row. ``kernels/counted.cuh`` describes the layout of the tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from tallytree.errors import BudgetError
from tallytree.planning.budget import readable_bytes
from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.chains import NAMES, SMALL, Chains, address
from tallytree.torch.gpu.layouts import TEAMS, WARPS, Layout, Sized, layout_of
from tallytree.torch.gpu.structures import PADDED, packing

_THREADS = 1024
"""Threads per multiprocessor; for sums more than run at once, so that blocks end about together."""
_LARGE, _MANY = 5e5, 2e9
"""Steps of the tables of the longest sentence, and of a batch of such, from which bounds are tried first."""


@dataclass(frozen=True)
class Chunks:
    """The data for counting whole chunks.

    ``marks`` (B, T, 1 + k) has for each position 1 if a true chunk starts there plus 2 if one ended just
    before, then the k labels of its type, -1 for none; ``goes_on`` (C, ceil(C / 32)) has bit ``to`` of row
    ``s`` set if label ``to`` after ``s`` continues the same chunk; ``pairs`` lists those, and ``before``
    (ways, C) has the labels ``s`` of each label, -1 for none. ``outside`` is the label outside of chunks, or
    -1.
    """

    marks: Tensor | int  # or its address
    goes_on: Tensor
    pairs: Tensor
    before: Tensor
    outside: int
    extra_rows: int  # k


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
        return 0 if self.chunks is None else self.chunks.extra_rows

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


_BATCH = packing(PADDED, "7P8i")
"""Shifts, rows, boxes, marks, goes on, pairs, before; numbers of pairs and ways, outside, number of tallies,
line, columns, number of rows, by length: ``Batch`` in ``kernels/counted.cuh``."""


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
        ways = 0 if tallies.chunks is None else len(tallies.chunks.before)
        by_position = tallies.rows is not None and not chunks
        most = TEAMS[-1] if compiling.has_clusters(device) else 1
        spare, room = min(compiling.processors(device) // sentences, most), compiling.block_memory(device)
        return layout_of(
            Sized(states, positions, *counts, ways, by_position, chunks, self.real, self.most, spare, room)
        )

    @cached_property
    def blocks(self) -> int:
        """The number of blocks or teams of a launch: as many as the device can use, and as fit in memory.

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
        run(self.chains.blocks(), 32 * WARPS, self.layout.bounds_memory(listed), self._batch, inputs)

    def launch(self, source: str, name: str, inputs: Any, *, blocks: int, extra: int = 0) -> None:
        """Launch a kernel with the batch and its other input."""
        chunks, tiles = self.tallies.extra_rows, self.layout.tiles
        team = self.layout.team
        run = self.chains.kernel(source, name, REAL=NAMES[self.real], CHUNKS=chunks, TILES=tiles, TEAM=team)
        run(blocks * team, self.layout.threads, self.layout.memory + extra, self._batch, inputs)

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
            tensors[3:] = chunks.marks, chunks.goes_on, chunks.pairs, chunks.before
        sizes = (0, 0, -1) if chunks is None else (len(chunks.pairs), len(chunks.before), chunks.outside)
        numbers = *sizes, tallies.count, tallies.line, self.layout.columns
        shifts = tallies.shifts.numel() // self.chains.shape[2]
        return _BATCH(*self.chains.inputs, *map(address, tensors), *numbers, shifts, tallies.by_length)
