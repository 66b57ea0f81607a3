"""Statistics in the form for kernels: shifts in a grid of tallies, and the boxes that are reachable.

Two counts are the lines of a grid and the cells within a line; a single count has one cell per line. A state
at a position then adds one shift, and after each position a box of the grid is reachable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tallytree.bulk.tallied_chains import Counted, Names, bound_on
from tallytree.statistics.statistic import Statistic
from tallytree.torch.gpu.counted import Tallies, placed

Integers = NDArray[np.int64]


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
    """Tallies of statistics, and the smallest and largest tally of each over all sentences."""

    tallies: Tallies
    low: tuple[int, ...]
    sizes: tuple[int, ...]


def statistics_of(statistics: Counted, names: Names, nodes: Tensor, lengths: Sequence[int]) -> Counts | None:
    """Return tallies of statistics on a batch; None if kernels do not support them."""
    _, positions, states = nodes.shape
    different = sorted({*lengths})
    found = (_tables(statistics, length, states, names, positions) for length in different)
    tables = [table for table in found if table is not None]
    if len(tables) < len(different):
        return None
    each = np.stack(tables)  # (lengths, statistics, T, C)
    least, most = each.min(3).sum(2), each.max(3).sum(2)
    low, high = least.min(0), most.max(0)
    added = each - each.min(3, keepdims=True)
    added[:, :, 0] += (least - low)[:, :, None]  # the smallest tally depends on the length
    sizes = tuple((high - low + 1).tolist())
    if _too_many(float(np.prod(sizes, dtype=np.float64)) * positions, states):
        return None
    counts = [torch.from_numpy(np.ascontiguousarray(added[:, i])) for i in range(len(sizes))]
    which = torch.from_numpy(np.searchsorted(different, lengths)).to(nodes.device)
    return Counts(_given_to(_gridded(counts, sizes), which, positions), tuple(low.tolist()), sizes)


def _given_to(tallies: Tallies, which: Tensor, positions: int) -> Tallies:
    """Return tallies for a batch, from those of each length and the index of the length of each sentence."""
    rows = which.unsqueeze(1) * positions + torch.arange(positions, device=which.device)
    boxes = tallies.boxes.to(which.device).index_select(0, which)
    return replace(tallies, shifts=tallies.shifts.to(which.device), boxes=boxes, rows=rows)


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
