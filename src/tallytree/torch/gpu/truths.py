"""Counts of losses relative to the true tags: rules for all truths.

The tallies of a loss are the cells of a grid: lines count false positives, and cells within a line true
positives; for chunks, lines count predicted chunks, and cells within a line correct ones. The losses of all
cells depend on the truth only by its size, or its size and length, which is its key. The losses of known
keys are cached on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.quotients import chunk_labels
from tallytree.bulk.tallied_chains import Names
from tallytree.bulk.truth_tables import PositionTables
from tallytree.errors import TallytreeError
from tallytree.losses.base import Loss
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.nodes import NodeLoss
from tallytree.planning.budget import readable_bytes
from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.chains import address

_MOST = 1 << 28
"""The maximum bytes of losses that are cached on a device for one set of rules."""


RULES = "5P4i"
"""``Rules`` in ``kernels/counting.cu``: reach, types, labels, goes on, known;
background, by size, lines, line."""


@dataclass(frozen=True)
class Alphabet:
    """The meaning of labels for chunks, on a device."""

    outside: int  # the label outside of chunks, or -1
    types: Tensor  # (C,): -1 outside
    labels: Tensor  # (types, labels of a type): -1 for none
    bits: Tensor  # (C, ceil(C / 32)): bit `to` of row s: whether `to` after s continues its chunk
    pairs: Tensor  # the pairs of labels with a bit set
    before: Tensor  # (ways, C): the labels that each label continues; -1 for none


@dataclass
class Known:
    """The losses of known keys: rows (rows, count), and the row of each key, -1 if unknown.

    ``numbers``: those of the structure ``RULES``, with the rules that these belong to.
    """

    row_of: Tensor
    rows: Tensor
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Rows:
    """What is known about truths of one key, (size, length), if it is not the losses of all tallies.

    ``width`` is the number of entries of a row, and ``of_key`` computes it.
    """

    width: int
    of_key: Callable[[int], NDArray[np.float64]]


class Rules:
    """The counts of a loss for one number of positions, on a device.

    Attributes
    ----------
    shifts : int32 tensor of shape (rows, C)
        The shifts of labels: one row per true tag, or a single row.
    reach : int32 tensor of shape (C, 2), or None
        The maximum number of lines and cells within a line that a position adds, for each true tag.
    sizes : tuple of int
        The number of lines of the grid, and of cells of a line.
    extra : int
        The number of labels of a type of chunk; 0 if positions are counted.
    known : Known
        The losses that are known so far.
    """

    def __init__(
        self,
        shifts: Tensor,
        sizes: tuple[int, int],
        row: Callable[[int], NDArray[np.float64]],
        *,
        reach: Tensor | None = None,
        alphabet: Alphabet | None = None,
        background: int = -1,
        by_size: bool = True,
        width: int = 0,
    ) -> None:
        self.shifts, self.sizes, self.reach, self.alphabet = shifts, sizes, reach, alphabet
        self._row, self._numbers = row, (background, int(by_size), *sizes)
        self.extra = 0 if alphabet is None else alphabet.labels.shape[1]
        longest = sizes[0]
        keys = longest if by_size else longest * longest
        self._by_size, self._reached = by_size, [1, 1] if reach is None else reach.amax(0).tolist()
        unknown = torch.full((keys,), -1, dtype=torch.int32, device=shifts.device)
        self._width = width or self.count
        self.known = Known(unknown, torch.zeros(1, self._width, dtype=torch.float64, device=shifts.device))

    @cached_property
    def count(self) -> int:
        """The number of tallies."""
        return self.sizes[0] * self.sizes[1]

    def learn(self, keys: Tensor) -> Known:
        """Return the known losses, with those of more keys."""
        known, wanted = self.known, torch.unique(keys).cpu()
        if 8 * self._width * (len(known.rows) + len(wanted)) > _MOST:  # keep only the losses of this batch
            known = Known(torch.full_like(known.row_of, -1), known.rows[:0])
        row_of = known.row_of.cpu()
        new = wanted[row_of[wanted] < 0]
        if not len(new):  # another thread has met them meanwhile
            return known
        row_of[new] = torch.arange(len(known.rows), len(known.rows) + len(new), dtype=torch.int32)
        rows = torch.from_numpy(np.stack([self._row(key) for key in new.tolist()])).to(known.rows.device)
        self.known = Known(row_of.to(rows.device), torch.cat([known.rows, rows]))
        return self.known

    def complete(self) -> Known:
        """Return the losses of all keys, for replays of a CUDA graph, which cannot learn."""
        longest = self.sizes[0]
        sizes, lengths = torch.meshgrid(torch.arange(longest), torch.arange(1, longest), indexing="ij")
        possible = (sizes * longest + lengths)[sizes <= lengths]
        keys = torch.arange(longest) if self._by_size else possible
        if 8 * self._width * len(keys) > _MOST:
            raise TallytreeError(
                f"the losses of all truths of up to {longest - 1} positions need more than "
                f"{readable_bytes(_MOST)}, so this loss cannot be captured in a CUDA graph; use shorter "
                "sentences, or call it outside of the capture"
            )
        return self.learn(keys)

    @cached_property
    def most_columns(self) -> int:
        """The maximum number of columns of the tables of a sentence."""
        steps = np.arange(2, self.sizes[0] + 1) - 1
        lines, cells = (
            np.minimum(1 + most * steps, size) for most, size in zip(self._reached, self.sizes, strict=True)
        )
        return int((lines * cells).sum())

    def numbers(self, known: Known) -> tuple[int, ...]:
        """Return the rules in the form for a kernel."""
        if not known.numbers:
            its = self.alphabet
            chunks = (None, None, None) if its is None else (its.types, its.labels, its.bits)
            known.numbers = *map(address, (self.reach, *chunks, known.row_of)), *self._numbers
        return known.numbers


# --- rules of losses ---------------------------------------------------------------------------------------


def rules_of(loss: Loss, names: Names, states: int, positions: int, device: torch.device) -> Rules | None:
    """Return the rules of a loss; None if kernels do not support it."""
    try:
        return _known_rules(loss, names, states, positions + 1, device)
    except TypeError:  # a user-defined loss with a parameter that is not hashable
        return None


@lru_cache(maxsize=128)
def _known_rules(loss: Loss, names: Names, states: int, longest: int, device: torch.device) -> Rules | None:
    with compiling.preparing(device):
        return _rules_of(loss, names, states, longest, device)


def _rules_of(loss: Loss, names: Names, states: int, longest: int, device: torch.device) -> Rules | None:
    if type(loss) is ChunkFBeta and names is not None:
        few = longest**2 * max(states, longest) < 2**31
        return chunk_rules(loss, tuple(names), longest, device) if few else None
    tables = truth_tables(loss, states, names)
    if not isinstance(tables, PositionTables):
        return None
    few = longest ** len(tables.statistics) * max(states, longest) < 2**31  # column numbers fit in 32 bits
    return position_rules(tables, longest, device) if few else None


def position_rules(
    tables: PositionTables, longest: int, device: torch.device, rows: Rows | None = None
) -> Rules:
    """Count mismatches by position; or false positives, with true positives within them."""
    given = tables.tables.given[::-1]  # (statistics, true label, label)
    within = np.zeros_like(given[0])
    for one in given[1:]:
        within = within * longest + one
    line = longest ** (len(given) - 1)
    reach = np.stack([given[0].max(1), within.max(1)], 1)
    shifts, reached = (
        torch.from_numpy(np.ascontiguousarray(array, np.int32)).to(device)
        for array in (given[0] * line + within, reach)
    )
    by_size = rows is None and isinstance(tables.recipe, NodeLoss) and not tables.recipe.one_tally
    return Rules(
        shifts,
        (longest, line),
        rows.of_key if rows else lambda key: _position_losses(tables, key, by_size, longest),
        reach=reached,
        background=-1 if tables.background is None else tables.background,
        by_size=by_size,
        width=rows.width if rows else 0,
    )


def _position_losses(tables: PositionTables, key: int, by_size: bool, longest: int) -> NDArray[np.float64]:
    """Return the losses of all tallies for truths of some size and length."""
    size, length = (key, max(key, 1)) if by_size else divmod(key, longest)
    background = -1 if tables.background is None else tables.background
    node = 1 if background == 0 else 0
    truth = np.array([node] * size + [background] * (length - size), dtype=np.int64)
    grid = np.indices((longest,) * len(tables.statistics)).reshape(len(tables.statistics), -1)
    return np.asarray(tables.bound(truth).value(*grid[::-1]), dtype=np.float64)


def chunk_rules(
    loss: ChunkFBeta,
    names: tuple[str, ...],
    longest: int,
    device: torch.device,
    rows: Rows | None = None,
) -> Rules:
    """Count predicted chunks, with correct ones within them."""
    alphabet = _alphabet(loss, names, device)
    shifts = torch.where(alphabet.types >= 0, longest, 0).to(torch.int32).unsqueeze(0)
    row = rows.of_key if rows else lambda size: _chunk_losses(loss, size, longest)
    width = rows.width if rows else 0
    return Rules(shifts, (longest, longest), row, alphabet=alphabet, by_size=rows is None, width=width)


def _alphabet(loss: ChunkFBeta, names: tuple[str, ...], device: torch.device) -> Alphabet:
    known = chunk_labels(names, loss)
    types, goes_on = known.types.tolist(), known.goes_on
    of_type = [[label for label, kind in enumerate(types) if kind == i] for i in range(1 + max(types))]
    most = max(map(len, of_type), default=1)
    labels = np.array([one + [-1] * (most - len(one)) for one in of_type or [[]]])
    words = -(-len(names) // 32)
    padded = np.pad(goes_on, ((0, 0), (0, 32 * words - len(names)))).reshape(len(names), words, 32)
    bits = (padded << np.arange(32, dtype=np.uint64)).sum(2, dtype=np.uint64).astype(np.uint32).view(np.int32)
    arrays = np.array(types), labels, bits, np.argwhere(goes_on), labels_before(goes_on)
    tensors = [torch.from_numpy(np.ascontiguousarray(array, np.int32)).to(device) for array in arrays]
    return Alphabet(types.index(-1) if -1 in types else -1, *tensors)


def labels_before(goes_on: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the labels that each label continues, one column for each; -1 for none."""
    order = np.argsort(~goes_on, axis=0, kind="stable")[: goes_on.sum(0).max(initial=0)]
    return np.where(np.take_along_axis(goes_on, order, 0), order, -1)


def _chunk_losses(loss: ChunkFBeta, size: int, longest: int) -> NDArray[np.float64]:
    found, right = np.indices((longest, longest)).reshape(2, -1)
    return loss.of_counts(right, np.maximum(found - right, 0), size)
