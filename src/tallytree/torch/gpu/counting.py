"""Statistics in the form for kernels: shifts in a grid of tallies, and the boxes that are reachable.

Two counts are the lines of a grid and the cells within a line; a single count has one cell per line. A state
at a position then adds one shift, and after each position a box of the grid is reachable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tallytree.bulk.tallied_chains import Counted, Names, bound_on
from tallytree.errors import TallytreeError
from tallytree.statistics.statistic import Statistic
from tallytree.torch.gpu.counted import Tallies, placed

Integers = NDArray[np.int64]
_MOST_CELLS = 1 << 20
"""Up to this number of counts, all lengths are laid out at once; beyond, those of each batch."""


def _gridded(counts: Sequence[Tensor], sizes: Sequence[int]) -> Tallies:
    """Return indices for the tallies of non-negative counts (B, T, C), whose tallies are below `sizes`.

    The first one counts lines, the others cells within them.
    """
    lines, *others = counts
    line = int(np.prod(sizes[1:], dtype=np.int64))
    within = torch.zeros_like(lines)
    for count, size in zip(others, sizes[1:], strict=True):
        within = within * size + count
    boxes = 1 + torch.stack([one.amax(2).cumsum(1) for one in (lines, within)], 2)
    most = torch.tensor([sizes[0], line], device=boxes.device)
    shifts = (lines * line + within).to(torch.int32).contiguous()
    return Tallies(shifts, *placed(torch.minimum(boxes, most)), sizes[0] * line, line)


# --- statistics --------------------------------------------------------------------------------------------


def _node_table(statistic: Statistic, length: int, states: int) -> Integers | None:
    """Return the count of each state at each position; None if neighbours count, or a cap applies."""
    table = np.zeros((length, states), dtype=np.int64)
    for block in statistic.blocks:
        if block.arity != 1:
            return None
        np.add.at(table, block.scopes[:, 0], np.broadcast_to(block.tables, (len(block), states)))
    return None if statistic.cap is not None else table


@dataclass(frozen=True)
class Counts:
    """Statistics on chains of some lengths, on a device.

    ``least`` and ``most`` (lengths, statistics) are the smallest and largest tallies for each of ``lengths``;
    ``low`` and ``sizes`` describe the grid, which has the tallies of all of them.
    """

    tallies: Tallies
    lengths: Integers
    least: Integers
    most: Integers
    low: Integers
    sizes: tuple[int, ...]

    def part(self, lengths: Sequence[int]) -> tuple[tuple[int, ...], tuple[slice, ...] | None]:
        """Return the smallest tallies of some lengths, and the part of the grid that they use, if not all."""
        index = np.searchsorted(self.lengths, lengths)
        low, high = self.least[index].min(0), self.most[index].max(0)
        first, sizes = low - self.low, high - low + 1
        part = tuple(
            slice(start, start + size) for start, size in zip(first.tolist(), sizes.tolist(), strict=True)
        )
        return tuple(low.tolist()), None if tuple(sizes.tolist()) == self.sizes else part

    @cached_property
    def monotonic(self) -> bool:
        """Whether the shortest and the longest of some sentences have their smallest and largest tallies."""
        steps = np.diff(self.least, axis=0), np.diff(self.most, axis=0)
        return all(((step >= 0).all(0) | (step <= 0).all(0)).all() for step in steps)


def statistics_of(
    statistics: Counted, names: Names, nodes: Tensor, shortest: int, lengths: Callable[[], list[int]]
) -> Counts | None:
    """Return statistics on sentences from some length on; None if kernels do not support them.

    `lengths`: reads the lengths of all sentences, if tables for all possible lengths were too large.
    """
    _, positions, states = nodes.shape
    if len(statistics) * positions**2 * states > _MOST_CELLS:
        return _of_batch(statistics, names, nodes, lengths())
    first = min(shortest, _first_length(statistics, names, states, positions))
    return _of_all_lengths(statistics, names, states, positions, first, nodes.device)


def _of_batch(statistics: Counted, names: Names, nodes: Tensor, lengths: list[int]) -> Counts | None:
    """Return statistics on the sentences of one batch: only their lengths are laid out."""
    _, positions, states = nodes.shape
    different = sorted({*lengths})
    found = _counts(statistics, names, states, positions, different)
    if found is None:
        return None
    which = torch.from_numpy(np.searchsorted(different, lengths)).to(nodes.device)
    rows = which.unsqueeze(1) * positions + torch.arange(positions, device=nodes.device)
    assert isinstance(found.tallies.boxes, Tensor)
    boxes = found.tallies.boxes.to(nodes.device).index_select(0, which)
    shifts = found.tallies.shifts.to(nodes.device)
    return replace(found, tallies=replace(found.tallies, shifts=shifts, boxes=boxes, rows=rows))


@lru_cache(maxsize=256)
def _first_length(statistics: Counted, names: Names, states: int, positions: int) -> int:
    """Return the smallest length from which on all lengths allow some statistics."""
    for length in range(positions, 0, -1):
        try:
            bound_on(statistics, length, states, names)
        except TallytreeError:
            return length + 1
    return 1


@lru_cache(maxsize=256)
def _of_all_lengths(
    statistics: Counted, names: Names, states: int, positions: int, first: int, device: torch.device
) -> Counts | None:
    found = _counts(statistics, names, states, positions, range(first, positions + 1))
    if found is None:
        return None
    there = {name: getattr(found.tallies, name).to(device) for name in ("shifts", "boxes")}
    return replace(found, tallies=replace(found.tallies, by_length=first, **there))


def _counts(
    statistics: Counted, names: Names, states: int, positions: int, lengths: Sequence[int]
) -> Counts | None:
    tables = []
    for length in lengths:
        table = _tables(statistics, length, states, names, positions)
        if table is None:
            return None
        tables.append(table)
    each = np.stack(tables)  # (lengths, statistics, T, C)
    least, most = each.min(3).sum(2), each.max(3).sum(2)
    low, high = least.min(0), most.max(0)
    added = each - each.min(3, keepdims=True)
    added[:, :, 0] += (least - low)[:, :, None]  # the smallest tally depends on the length
    sizes = tuple((high - low + 1).tolist())
    if _too_many(float(np.prod(sizes, dtype=np.float64)) * positions, states):
        return None
    counts = [torch.from_numpy(np.ascontiguousarray(added[:, i])) for i in range(len(sizes))]
    return Counts(_gridded(counts, sizes), np.array(lengths), least, most, low, sizes)


@lru_cache(maxsize=1024)
def _tables(statistics: Counted, length: int, states: int, names: Names, positions: int) -> Integers | None:
    bound = bound_on(statistics, length, states, names).statistics
    tables = [_node_table(statistic, length, states) for statistic in bound]
    if any(table is None for table in tables):
        return None
    return np.stack(
        [np.pad(table, ((0, positions - length), (0, 0))) for table in tables if table is not None]
    )


def _too_many(tallies: float, states: int) -> bool:
    """Return whether cells of a table cannot be numbered with 32 bits, for very long sentences."""
    return tallies * states >= 2**31
