"""Counts in the form for kernels: shifts in a grid of tallies, and the boxes that are reachable.

Two counts are the lines of a grid and the cells within a line; a single count has one cell per line. A state
at a position then adds one shift, and after each position a box of the grid is reachable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.tallied_chains import Counted, Names, bound_on
from tallytree.bulk.truth_tables import PositionTables
from tallytree.losses.base import Loss
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.nodes import NodeLoss
from tallytree.statistics.statistic import Statistic
from tallytree.torch.gpu.counted import Chunks, Tallies
from tallytree.torch.inputs import mask_of
from tallytree.transducers.chunks import tag_of

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
    return Tallies(shifts, torch.minimum(boxes, most).to(torch.int32), sizes[0] * line, line)


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
    found = {length: _tables(statistics, length, states, names, positions) for length in {*lengths}}
    tables = [table for length in lengths if (table := found[length]) is not None]
    if len(tables) < len(lengths):
        return None
    each = np.stack(tables)  # (B, statistics, T, C)
    least, most = each.min(3).sum(2), each.max(3).sum(2)
    low, high = least.min(0), most.max(0)
    added = each - each.min(3, keepdims=True)
    added[:, :, 0] += (least - low)[:, :, None]  # the smallest tally depends on the length
    sizes = tuple((high - low + 1).tolist())
    if _too_many(float(np.prod(sizes, dtype=np.float64)) * positions, states):
        return None
    counts = [torch.from_numpy(np.ascontiguousarray(added[:, i])).to(nodes.device) for i in range(len(sizes))]
    return Counts(_gridded(counts, sizes), tuple(low.tolist()), sizes)


@lru_cache(maxsize=1024)
def _tables(statistics: Counted, length: int, states: int, names: Names, positions: int) -> Integers | None:
    bound = bound_on(statistics, length, states, names).statistics
    tables = [_node_table(statistic, length, states) for statistic in bound]
    if any(table is None for table in tables):
        return None
    return np.stack(
        [np.pad(table, ((0, positions - length), (0, 0))) for table in tables if table is not None]
    )


# --- losses ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LossCounts:
    """Tallies of what a loss counts, with its values.

    ``losses`` (rows, count) are float64, and ``which`` (B,), int32, is the row of each sentence.
    """

    tallies: Tallies
    losses: Tensor
    which: Tensor


def losses_of(loss: Loss, names: Names, tags: Tensor, lengths: Tensor, states: int) -> LossCounts | None:
    """Return the counts of a loss relative to given tags; None if kernels do not support it."""
    inside, longest = mask_of(lengths, tags.shape[1]), tags.shape[1] + 1
    if type(loss) is ChunkFBeta and names is not None:
        return None if _too_many(longest**2, states) else _chunks(loss, names, tags, inside)
    tables = truth_tables(loss, states, names)
    if not isinstance(tables, PositionTables) or _too_many(longest ** len(tables.statistics), states):
        return None
    return _positions(tables, tags, inside)


def _too_many(tallies: float, states: int) -> bool:
    """Return whether cells of a table cannot be numbered with 32 bits, for very long sentences."""
    return tallies * states >= 2**31


def _positions(tables: PositionTables, tags: Tensor, inside: Tensor) -> LossCounts:
    """Count mismatches by position; or false positives, with true positives within them."""
    longest = tags.shape[1] + 1
    given = torch.from_numpy(tables.tables.given).to(tags.device)  # (statistics, true label, label)
    counts = [torch.where(inside.unsqueeze(2), table[tags], 0) for table in given.flip(0)]
    tallies = _gridded(counts, [longest] * len(counts))
    lengths = inside.sum(1)
    nodes = lengths if tables.background is None else ((tags != tables.background) & inside).sum(1)
    by_size = isinstance(tables.recipe, NodeLoss) and not tables.recipe.one_tally
    keys = nodes if by_size else nodes * longest + lengths
    return _looked_up(tallies, keys, lambda key: _position_losses(tables, key, by_size, longest))


@lru_cache(maxsize=256)
def _position_losses(tables: PositionTables, key: int, by_size: bool, longest: int) -> NDArray[np.float64]:
    """Return the losses of all tallies for truths of some size and length."""
    size, length = (key, max(key, 1)) if by_size else divmod(key, longest)
    background = -1 if tables.background is None else tables.background
    node = 1 if background == 0 else 0
    truth = np.array([node] * size + [background] * (length - size), dtype=np.int64)
    grid = np.indices((longest,) * len(tables.statistics)).reshape(len(tables.statistics), -1)
    return np.asarray(tables.bound(truth).value(*grid[::-1]), dtype=np.float64)


def _looked_up(tallies: Tallies, keys: Tensor, row: Callable[[int], NDArray[np.float64]]) -> LossCounts:
    known, which = torch.unique(keys, return_inverse=True)
    rows = np.stack([row(key) for key in known.tolist()])
    losses = torch.from_numpy(rows).to(keys.device)
    return LossCounts(tallies, losses, which.to(torch.int32))


@dataclass(frozen=True)
class _Alphabet:
    """The meaning of labels for chunks, on a device."""

    goes_on: Tensor  # (C, C): whether the second label continues the chunk of the first
    types: Tensor  # (C,): -1 outside
    labels: Tensor  # (types, labels of a type): -1 for none
    bits: Tensor
    pairs: Tensor


@lru_cache(maxsize=16)
def _alphabet(loss: ChunkFBeta, names: tuple[str, ...], device: torch.device) -> _Alphabet:
    tags = [tag_of(name, loss.scheme, loss.background) for name in names]
    kinds = sorted({tag.type for tag in tags if tag.type is not None})
    types = [-1 if tag.type is None else kinds.index(tag.type) for tag in tags]
    goes_on = np.array([[a.type is not None and not a.boundary(b) for b in tags] for a in tags])
    of_type = [[label for label, kind in enumerate(types) if kind == i] for i in range(len(kinds))]
    most = max(map(len, of_type), default=1)
    labels = np.array([one + [-1] * (most - len(one)) for one in of_type] or [[-1]])
    words = -(-len(names) // 32)
    padded = np.pad(goes_on, ((0, 0), (0, 32 * words - len(names)))).reshape(len(names), words, 32)
    bits = (padded << np.arange(32, dtype=np.uint64)).sum(2, dtype=np.uint64).astype(np.uint32).view(np.int32)
    pairs = np.argwhere(goes_on).astype(np.int32)
    arrays = goes_on, np.array(types), labels, bits, pairs
    return _Alphabet(*(torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in arrays))


def _chunks(loss: ChunkFBeta, names: tuple[str, ...], tags: Tensor, inside: Tensor) -> LossCounts:
    """Count predicted chunks, with correct ones within them."""
    alphabet = _alphabet(loss.replace(truth=None), names, tags.device)
    some = (alphabet.types[tags] >= 0) & inside
    cut = ~alphabet.goes_on[tags[:, :-1], tags[:, 1:]]
    begins, ended = some.clone(), torch.zeros_like(some)
    begins[:, 1:] &= cut
    ended[:, 1:] = some[:, :-1] & cut & inside[:, 1:]
    labels = torch.where(some.unsqueeze(2), alphabet.labels[alphabet.types[tags].clamp(min=0)], -1)
    flags = begins.int() + 2 * ended.int()
    marks = torch.cat([flags.unsqueeze(2), labels.int()], 2).contiguous()
    return _chunk_counts(loss, alphabet, marks, begins.sum(1))


def _chunk_counts(loss: ChunkFBeta, alphabet: _Alphabet, marks: Tensor, sizes: Tensor) -> LossCounts:
    sentences, positions, _ = marks.shape
    longest = positions + 1
    shifts = torch.where(alphabet.types >= 0, longest, 0).to(torch.int32)
    lines = torch.arange(2, positions + 2, device=marks.device).expand(sentences, -1)
    boxes = torch.stack([lines, 1 + (marks[..., 0] >= 2).cumsum(1)], 2).to(torch.int32)
    tallies = Tallies(
        shifts.expand(sentences, positions, -1).contiguous(),
        boxes,
        longest * longest,
        longest,
        Chunks(marks, alphabet.bits, alphabet.pairs),
    )
    return _looked_up(tallies, sizes, lambda size: _chunk_losses(loss, size, longest))


@lru_cache(maxsize=256)
def _chunk_losses(loss: ChunkFBeta, size: int, longest: int) -> NDArray[np.float64]:
    found, right = np.indices((longest, longest)).reshape(2, -1)
    return loss.of_counts(right, np.maximum(found - right, 0), size)
