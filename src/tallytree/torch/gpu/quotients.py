"""Expected losses that are quotients of counts, without tables of all tallies.

A loss such as the F-measure is ``errors / (c + k)``: errors add up over positions, and so does ``k``, the
number of predicted nodes or chunks. Gauss's quadrature of ``∫ x^(c + k - 1) dx`` on [0, 1] has positive
numbers with ``Σ w x^k = 1 / (c + k)`` for every ``k`` that is possible, so that the mean of the loss is
``Σ w Σ_y p(y) errors(y) x^k(y)``: sums over plain chains, one for each ``x``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import floor, log2

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.tallied_chains import Names
from tallytree.bulk.truth_tables import PositionTables
from tallytree.errors import BudgetError
from tallytree.losses.base import Loss
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.nodes import FBeta, IntersectionOverUnion, Recall
from tallytree.losses.positions import HammingDistance, HammingLoss
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

Numbers = NDArray[np.float64]

_ACCURACY = 1e-13
"""The maximum relative error of 1 / (c + k)."""
_LIGHT, _HEAVY = 1 / 64, 64.0
"""The range of β² for which few numbers are enough."""
_FEW, _MANY = 4, 8
"""Warps per block if there are many sentences, and warps of a multiprocessor: threads need 255 registers."""


# --- quadrature --------------------------------------------------------------------------------------------


def _gauss(count: int, power: float) -> tuple[Numbers, Numbers]:
    """Return the numbers and weights of Gauss's quadrature of ``x^power f(x)`` on [0, 1] (Golub, Welsch)."""
    k = np.arange(1, count)
    even = 2 * k + power
    diagonal = np.concatenate(([power / (power + 2)], power**2 / (even * (even + 2))))
    first = [4 * (1 + power) / ((2 + power) ** 2 * (3 + power))]
    k, even = k[1:], even[1:]
    rest = 4 * (k * (k + power)) ** 2 / (even**2 * (even + 1) * (even - 1))
    beside = np.sqrt(np.concatenate((first, rest)))[: count - 1]
    places, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return (1 + places) / 2, vectors[0] ** 2 / (power + 1)


@lru_cache(maxsize=4096)
def _enough(offset: float, most: int) -> int:
    """Return how many numbers are enough for inverses from an offset on: fewer are for larger ones."""
    powers = np.arange(most + 1)[:, np.newaxis]

    def error(count: int) -> float:
        x, w = _gauss(count, offset - 1)
        return float(np.abs((w * x**powers).sum(1) * (offset + powers[:, 0]) - 1).max())

    low, high = 1, most // 2 + 1  # with the last one, there is no error but rounding
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= _ACCURACY else (middle + 1, high)
    return low


@lru_cache(maxsize=4096)
def inverses(offset: float, most: int) -> tuple[Numbers, Numbers]:
    """Return few numbers with ``Σ w x^k = 1 / (offset + k)`` for k from 0 to `most`."""
    return _gauss(_enough(2.0 ** floor(log2(offset)), most), offset - 1)


def _rule(offset: float, length: int) -> tuple[Numbers, Numbers]:
    """Return the numbers for quotients with an offset, in sentences of some length; errors are 0 if k is."""
    step = 4 * 2 ** max(0, (length - 1).bit_length() - 5)  # so that sentences of similar length share them
    most = -(-length // step) * step
    if offset > 0:
        return inverses(offset, most)
    x, w = inverses(1.0, most - 1)
    return x, w / x


_ONE = np.ones(1)


# --- losses ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Form:
    """How a loss of positions counts: errors and k (true, label), and a rule by size and length."""

    errors: Numbers
    counted: NDArray[np.int32]
    rule: Callable[[int, int], tuple[Numbers, Numbers]]


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
        if type(loss) is ChunkFBeta:
            return None if names is None else _chunk_quotient(loss, tuple(names), longest, device)
        tables = truth_tables(loss, states, names)
        form = _form(loss, tables, states) if isinstance(tables, PositionTables) else None
        if form is None or not isinstance(tables, PositionTables):
            return None
        rows = _rows(form.rule, longest)
        errors, counted = (
            torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in (form.errors, form.counted)
        )
        return Quotient(position_rules(tables, longest, device, rows), errors, counted, 0.0, rows.width // 2)


def _chunk_quotient(
    loss: ChunkFBeta, names: tuple[str, ...], longest: int, device: torch.device
) -> Quotient | None:
    missed = loss.beta**2
    if not _LIGHT <= missed <= _HEAVY:
        return None
    rows = _rows(lambda size, length: _rule(missed * size, length), longest)
    return Quotient(chunk_rules(loss, names, longest, device, rows), None, None, missed, rows.width // 2)


def _form(loss: Loss, tables: PositionTables, states: int) -> _Form | None:
    wrong = 1.0 - np.eye(states)
    node = np.arange(states) != (-1 if tables.background is None else tables.background)
    none, found, kind = np.zeros((states, states), np.int32), wrong * node, type(loss)
    if kind is HammingDistance:
        return _Form(wrong, none, lambda size, length: (_ONE, _ONE))
    if kind is HammingLoss or (kind in (FBeta, Recall) and tables.background is None):
        return _Form(wrong, none, lambda size, length: (_ONE, _ONE / length))
    lost = wrong * node[:, np.newaxis]
    if kind is Recall:
        return _Form(lost, none, lambda size, length: (_ONE, _ONE / max(size, 1)))
    if kind is IntersectionOverUnion:
        return _Form(found + lost, found.astype(np.int32), lambda size, length: _rule(float(size), length))
    if type(loss) is FBeta and _LIGHT <= loss.beta**2 <= _HEAVY:
        missed = loss.beta**2
        counted = np.broadcast_to(node, wrong.shape).astype(np.int32)
        return _Form(found + missed * lost, counted, lambda size, length: _rule(missed * size, length))
    return None


def _rows(rule: Callable[[int, int], tuple[Numbers, Numbers]], longest: int) -> Rows:
    """Return rows of numbers by size and length: how many, all x, all w."""
    width = 1 + 2 * max(len(rule(size, longest - 1)[0]) for size in (0, 1))  # most are needed for small sizes

    def row(key: int) -> Numbers:
        found = np.zeros(width)
        x, w = rule(*divmod(key, longest))
        found[0], found[1 : 1 + len(x)], found[1 + len(x) : 1 + 2 * len(x)] = len(x), x, w
        return found

    return Rows(width, row)


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
