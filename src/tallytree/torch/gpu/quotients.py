"""Expected losses that are quotients of counts, without tables of all tallies.

A loss such as the F-measure is ``errors / (c + k)``: errors add up over positions, and so does ``k``, the
number of predicted nodes or chunks. Gauss's quadrature of ``∫ x^(c + k - 1) dx`` on [0, 1] has positive
numbers with ``Σ w x^k = 1 / (c + k)`` for every ``k`` that is possible, so that the mean of the loss is
``Σ w Σ_y p(y) errors(y) x^k(y)``: sums over plain chains, one for each ``x``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.tallied_chains import Names
from tallytree.bulk.truth_tables import PositionTables
from tallytree.losses.base import Loss
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.nodes import FBeta, IntersectionOverUnion, Recall
from tallytree.losses.positions import HammingDistance, HammingLoss
from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.chains import SMALL, Chains, Summed, address
from tallytree.torch.gpu.findings import Findings
from tallytree.torch.gpu.structures import NO_FINDINGS, NO_TOTAL, Padded, Total
from tallytree.torch.gpu.truths import Rows, Rules, Truths, chunk_rules, position_rules

Numbers = NDArray[np.float64]

_ACCURACY = 1e-13
"""The maximum relative error of 1 / (c + k)."""
_LIGHT, _HEAVY = 1 / 64, 64.0
"""The range of β² for which few numbers are enough."""
_FEW, _MANY = 4, 12
"""Warps per block, and warps on a multiprocessor, which have 168 registers for each thread."""


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
def inverses(offset: float, most: int) -> tuple[Numbers, Numbers]:
    """Return few numbers with ``Σ w x^k = 1 / (offset + k)`` for k from 0 to `most`."""
    powers = np.arange(most + 1)[:, np.newaxis]

    def error(count: int) -> float:
        x, w = _gauss(count, offset - 1)
        return float(np.abs((w * x**powers).sum(1) * (offset + powers[:, 0]) - 1).max())

    low, high = 1, most // 2 + 1  # with the last one, there is no error but rounding
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) <= _ACCURACY else (middle + 1, high)
    return _gauss(low, offset - 1)


def _rule(offset: float, length: int) -> tuple[Numbers, Numbers]:
    """Return the numbers for quotients with an offset, in sentences of some length; errors are 0 if k is."""
    most = -(-length // 4) * 4
    if offset > 0:
        return inverses(offset, most)
    x, w = inverses(1.0, most - 1)
    return x, w / x


_ONE = np.ones(1)


# --- losses ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Form:
    """How a loss of positions counts: errors and k by true tag and label, and a rule by size and length."""

    errors: Numbers
    counted: NDArray[np.int32]
    rule: Callable[[int, int], tuple[Numbers, Numbers]]


@dataclass(frozen=True)
class Quotient:
    """The counts of a loss on a device.

    ``rules`` have the numbers for each truth; ``errors`` and ``counted`` (C, C) are for counts of positions,
    ``missed`` for those of chunks.
    """

    rules: Rules
    errors: Tensor | None
    counted: Tensor | None
    missed: float
    most: int


def quotient_of(
    loss: Loss, names: Names, states: int, positions: int, device: torch.device
) -> Quotient | None:
    """Return a loss as a quotient; None if it is none."""
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


class _Quotient(ctypes.Structure):
    """How a loss counts; see ``Quotient`` in ``kernels/courses.cuh``."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("errors", "counted", "marks", "types", "goes_on")),
        *(("missed", ctypes.c_double), ("rules", ctypes.c_void_p), ("which", ctypes.c_void_p)),
        ("width", ctypes.c_int),
    ]


class _Risk(ctypes.Structure):
    """The input of ``kernels/risks.cu``."""

    _fields_ = [
        *(("given", Padded), ("counts", _Quotient)),
        *((name, ctypes.c_void_p) for name in ("labels", "upstream", "scratch")),
        ("room", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("values", "nodes", "edges", "working")),
        *(("found", Findings), ("all", Total)),
    ]


class Shape:
    """The blocks of a launch, and their memory."""

    def __init__(self, chains: Chains, quotient: Quotient) -> None:
        sentences, positions, states = chains.shape
        alphabet, columns = quotient.rules.alphabet, quotient.most + 1
        self.extra = 0 if alphabet is None else alphabet.labels.shape[1]
        processors, room = compiling.processors(chains.device), compiling.block_memory(chains.device)
        warps = _MANY if sentences <= processors else _FEW
        self.warps = min(warps, columns) if chains.shared else 1  # each step has one table of derivatives
        while self.warps > 1 and self._memory(states, chains.shared) > room:
            self.warps -= 1
        self.memory = self._memory(states, chains.shared)
        self.fits = self.memory <= room
        kept = columns * positions * (2 * (4 if self.extra else 2) * states + 2)
        own = 0 if chains.shared else (positions - 1) * states**2
        self.room = positions * states + 4 * columns + own + 2 + kept + self.warps * positions * states
        self.room += self.room % 2
        self.tables = 0 if states <= SMALL else self.warps * states**2
        self.blocks = self._blocks(chains, _MANY // self.warps * processors)

    def _memory(self, states: int, shared: int) -> int:
        """Return the shared memory of a block: ``Block`` in ``kernels/risks.cu``."""
        each = (6 if self.extra else 2) * states * 32 + (8 * states**2 if states <= SMALL else 0)
        return shared * (states**2 + 1) // 2 * 16 + self.warps * each

    def _blocks(self, chains: Chains, most: int) -> int:
        wanted, each = min(chains.shape[0], most), 8 * (self.room + self.tables)
        if wanted * each <= compiling.plenty(chains.device):
            return wanted
        return max(1, min(wanted, int(0.9 * compiling.room(chains.device)) // each))

    @property
    def bytes(self) -> int:
        """The device memory of a launch, besides inputs and outputs."""
        return 8 * self.blocks * (self.room + self.tables)


def risk(
    chains: Chains,
    quotient: Quotient,
    truth: Truths,
    tags: Tensor,
    upstream: Tensor | None = None,
    *,
    slopes: bool = False,
    found: Findings = NO_FINDINGS,
    total: Total = NO_TOTAL,
) -> tuple[Tensor, Summed | None]:
    """Return the expected loss of each sentence, float64, as ``searching.objective`` does."""
    shape, values = Shape(chains, quotient), chains.empty(chains.shape[0])
    scratch = chains.empty(shape.blocks * (shape.room + shape.tables))
    sums = chains.empty_slopes(blocks=shape.blocks, tables=shape.blocks) if slopes else None
    alphabet, chunks = quotient.rules.alphabet, truth.tallies.chunks
    kinds: tuple[Any, ...] = (None, None, None)
    if alphabet is not None and chunks is not None:
        kinds = chunks.marks, alphabet.types, alphabet.bits
    counts = _Quotient(
        *map(address, (quotient.errors, quotient.counted, *kinds)),
        *(quotient.missed, truth.losses.data_ptr(), truth.which.data_ptr(), truth.losses.shape[1]),
    )
    asked = _Risk(
        *(chains.padded, counts, tags.data_ptr(), address(upstream), scratch.data_ptr(), shape.room),
        *(values.data_ptr(), *((None, None) if sums is None else (address(sums.nodes), address(sums.edges)))),
        *(scratch.data_ptr() + 8 * shape.blocks * shape.room, found, total),
    )
    run = chains.kernel("risks.cu", "risk", CHUNKS=shape.extra)
    run(shape.blocks, 32 * shape.warps, shape.memory, asked)
    return values, sums
