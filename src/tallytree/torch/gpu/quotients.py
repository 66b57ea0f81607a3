"""Expected losses that are quotients of counts, without tables of all tallies.

Which losses are, and for which numbers ``x`` plain chains are summed: :mod:`tallytree.bulk.quotients`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from tallytree.bulk import quotients
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.tallied_chains import Names
from tallytree.bulk.truth_tables import PositionTables
from tallytree.errors import BudgetError
from tallytree.losses.base import Loss
from tallytree.losses.chunks import ChunkFBeta
from tallytree.planning.budget import readable_bytes
from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.chains import LITTLE, SMALL, Chains, Sizes, Summed, address
from tallytree.torch.gpu.structures import (
    FINDINGS,
    NO_FINDINGS,
    NO_TOTAL,
    PADDED,
    TOTAL,
    Findings,
    Total,
    packing,
)
from tallytree.torch.gpu.truth_counts import Numbered
from tallytree.torch.gpu.truths import Rows, Rules, chunk_rules, position_rules

_FEW, _MANY = 4, 8
"""Warps per block if there are many sentences, and warps of a multiprocessor: threads need 255 registers."""


# --- losses ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quotient:
    """The counts of a loss on a device.

    ``rules`` have the numbers for each truth, at most ``most`` ones; ``errors`` and ``counted`` (C, C) are
    for counts of positions, ``missed`` for those of chunks.
    """

    rules: Rules
    errors: Tensor | None
    counted: Tensor | None
    missed: float
    most: int

    def numbers(self, truth: Numbered) -> tuple[int | float, ...]:
        """Return the numbers of the structure ``Quotient`` in ``kernels/courses.cuh``."""
        errors, counted, types, goes_on = self._places
        rules = truth.rows.data_ptr(), address(truth.which), truth.rows.shape[1]
        return errors, counted, truth.marks, types, goes_on, self.missed, *rules

    @cached_property
    def _places(self) -> tuple[int, ...]:
        """The addresses of errors, counts, types of labels, and pairs that continue a chunk."""
        its = self.rules.alphabet
        kinds = (None, None) if its is None else (its.types, its.bits)
        return tuple(map(address, (self.errors, self.counted, *kinds)))


def quotient_of(
    loss: Loss, names: Names, states: int, positions: int, device: torch.device
) -> Quotient | None:
    """Return a loss as a quotient; None if it is not one."""
    try:
        return _known_quotient(loss, names, states, positions + 1, device)
    except TypeError:  # a user-defined loss with a parameter that is not hashable
        return None


@lru_cache(maxsize=128)
def _known_quotient(
    loss: Loss, names: Names, states: int, longest: int, device: torch.device
) -> Quotient | None:
    if longest**2 * max(states, longest) >= 2**31:
        return None
    with compiling.preparing(device):
        known = quotients.quotient_of(loss, states, names)
        if known is None:
            return None
        width = known.width(longest - 1)
        rows = Rows(width, lambda key: known.row(*divmod(key, longest), width))
        if isinstance(loss, ChunkFBeta):
            rules = chunk_rules(loss, names or (), longest, device, rows)
            return Quotient(rules, None, None, known.missed, width // 2)
        tables = truth_tables(loss, states, names)
        assert isinstance(tables, PositionTables)
        arrays = known.errors, known.counted.astype(np.int32)
        errors, counted = (torch.from_numpy(array).to(device) for array in arrays)
        return Quotient(position_rules(tables, longest, device, rows), errors, counted, 0.0, width // 2)


# --- the kernel --------------------------------------------------------------------------------------------


_RISK = packing(PADDED, "5Pd2Pi", "3Pq4P", FINDINGS, TOTAL)
"""``Quotient`` in ``kernels/courses.cuh``: errors, counted, marks, types, goes on, missed, rules, which,
width; labels, upstream, scratch, room, values, nodes, edges, working: ``kernels/risks.cu``."""


class Shape:
    """The blocks of a launch, and their memory; ``slopes_room`` is as ``Sizes.room``."""

    def __init__(
        self, shape: tuple[int, int, int], shared: int, columns: int, extra: int, processors: int, room: int
    ) -> None:
        sentences, positions, states = shape
        self.extra = extra
        warps = _MANY if sentences <= processors else _FEW
        self.warps = min(warps, columns) if shared else 1  # each step has one table of derivatives
        while self.warps > 1 and self._memory(states, shared) > room:
            self.warps -= 1
        self.memory = self._memory(states, shared)
        self.fits = self.memory <= room
        kept = columns * positions * (2 * (4 if extra else 2) * states + 2)
        own = 0 if shared else (positions - 1) * states**2
        each = 3 * positions * states  # powers, errors and flags
        self.room = each + 4 * columns + own + 2 + kept + self.warps * positions * states
        self.room += self.room % 2
        self.tables = 0 if states <= SMALL else self.warps * states**2
        self._most = min(sentences, _MANY // self.warps * processors)
        derivatives = self._most * (states + 2) * states
        self.slopes_room = derivatives if shared and derivatives <= LITTLE else 0

    def _memory(self, states: int, shared: int) -> int:
        """Return the shared memory of a block: ``Block`` in ``kernels/risks.cu``."""
        each = (6 if self.extra else 2) * states * 32 + (8 * states**2 if states <= SMALL else 0)
        return shared * (states**2 + 1) // 2 * 16 + self.warps * each

    def blocks(self, device: torch.device) -> int:
        """Return the number of blocks: as many as the device can use, and as fit in free memory.

        Raises
        ------
        BudgetError
            The sums of one sentence do not fit.
        """
        each = self.block_bytes
        if self._most * each <= compiling.plenty(device):
            return self._most
        room = compiling.room(device)
        if each > room:
            raise BudgetError(
                f"the sums of one sentence need {readable_bytes(each)} on {device}, but only "
                f"{readable_bytes(room)} are free; split long sentences, or move the scores to the CPU"
            )
        return min(self._most, max(1, int(0.9 * room) // each))

    @property
    def block_bytes(self) -> int:
        """The device memory of a block, besides inputs and outputs."""
        return 8 * (self.room + self.tables)


_shape = lru_cache(maxsize=1024)(Shape)


def shape_of(sizes: Sizes, quotient: Quotient, device: torch.device) -> Shape:
    """Return the shape of a launch."""
    numbers = compiling.processors(device), compiling.block_memory(device)
    return _shape(sizes.shape, sizes.shared, quotient.most + 1, quotient.rules.extra, *numbers)


def risk(
    chains: Chains,
    quotient: Quotient,
    shape: Shape,
    truth: Numbered,
    tags: Tensor,
    upstream: Tensor | None = None,
    *,
    slopes: bool = False,
    found: Findings = NO_FINDINGS,
    total: Total = NO_TOTAL,
) -> tuple[Tensor, Summed | None]:
    """Return the expected loss of each sentence, float64.

    `slopes`, `upstream`, `found`: as for :func:`~tallytree.torch.gpu.searching.objective`.
    """
    values, blocks = chains.values(again=not total[0]), shape.blocks(chains.device)
    scratch = chains.empty(blocks * (shape.room + shape.tables))
    sums, nodes, edges = None, 0, 0
    if slopes:
        sums = chains.empty_slopes(blocks, blocks)
        nodes, edges = sums.nodes.data_ptr(), sums.edges
    memory = scratch.data_ptr()
    counts = *quotient.numbers(truth), tags.data_ptr(), address(upstream), memory, shape.room
    places = values.data_ptr(), nodes, edges, memory + 8 * blocks * shape.room
    inputs = _RISK(*chains.inputs, *counts, *places, *found, *total)
    run = chains.kernel("risks.cu", "risk", CHUNKS=shape.extra)
    run(blocks, 32 * shape.warps, shape.memory, inputs)
    return values, sums
