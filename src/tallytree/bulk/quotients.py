"""Losses that are quotients of counts, ``errors / (c + k)``, whose expectations need no tables.

Errors add up over positions, and so does ``k``, the number of predicted nodes or chunks; ``c`` depends on the
truth. With numbers such that ``Σ w x^k = 1 / (c + k)`` (``quadrature.py``), the mean of the loss is
``Σ w Σ_y p(y) errors(y) x^k(y)``: sums over plain chains, one for each ``x``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.kind_tables import Integers
from tallytree.bulk.quadrature import Numbers, Powers, inverses
from tallytree.bulk.truth_tables import PositionTables
from tallytree.kernels import native
from tallytree.losses.base import Loss
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.nodes import FBeta, IntersectionOverUnion, Recall
from tallytree.losses.positions import HammingDistance, HammingLoss
from tallytree.transducers.chunks import tag_of

_LIGHT, _HEAVY = 1 / 64, 64.0
"""The range of β² for which few numbers are enough."""
_KEPT = 4096
"""The number of rules that are kept for the next batch."""
_ONE = np.ones(1)

Rule = Callable[[int, int], Powers]
"""Numbers for truths of some size and length."""


# --- what losses count -------------------------------------------------------------------------------------


class ChunkLabels(NamedTuple):
    """What labels mean for chunks.

    Attributes
    ----------
    types : int32 array
        The type of chunk that a label is part of; -1 outside.
    boundaries : bool array of shape (N, N)
        Whether there is a boundary between a label and the next.
    """

    types: NDArray[np.int32]
    boundaries: NDArray[np.bool_]

    @property
    def goes_on(self) -> NDArray[np.bool_]:
        """Whether a label continues a chunk of the one before it."""
        return (self.types >= 0)[:, np.newaxis] & ~self.boundaries


@lru_cache(maxsize=64)
def chunk_labels(names: tuple[str, ...], loss: ChunkFBeta) -> ChunkLabels:
    """Return what labels mean for the chunks of a loss.

    Examples
    --------
    >>> import tallytree as tt
    >>> chunk_labels(("O", "B-NP", "I-NP"), tt.losses.ChunkFBeta()).goes_on.astype(int)
    array([[0, 0, 0],
           [0, 0, 1],
           [0, 0, 1]])
    """
    tags = [tag_of(name, loss.scheme, loss.background) for name in names]
    kinds = sorted({tag.type for tag in tags if tag.type is not None})
    types = [-1 if tag.type is None else kinds.index(tag.type) for tag in tags]
    boundaries = [[before.boundary(after) for after in tags] for before in tags]
    return ChunkLabels(np.array(types, dtype=np.int32), np.array(boundaries, dtype=np.bool_))


@dataclass(frozen=True, eq=False)
class Quotient:
    """A loss as a quotient, over one set of labels.

    Attributes
    ----------
    rule : callable
        The numbers and weights for truths of some size (number of nodes or chunks) and length.
    errors, counted : arrays of shape (N, N)
        For counts of positions: the errors of a label for each true label, and whether it adds to k.
    background : int, optional
        The label that is not a node, for counts of positions.
    chunks : ChunkLabels, optional
        For counts of chunks. A wrong chunk is one error.
    missed : float
        The error of a true chunk that is missed.
    """

    rule: Rule
    errors: Numbers = field(default_factory=lambda: np.zeros((0, 0)))
    counted: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.bool_))
    background: int | None = None
    chunks: ChunkLabels | None = None
    missed: float = 0.0

    @cached_property
    def compiled(self) -> native.QuotientCounts:
        """The counts in the form for native code."""
        none = ChunkLabels(np.zeros(0, dtype=np.int32), np.zeros((0, 0), dtype=np.bool_))
        types, boundaries = self.chunks or none
        return native.QuotientCounts(self.errors, self.counted, types, boundaries, self.missed)

    def width(self, longest: int) -> int:
        """Return the length of a row of numbers for truths of up to some length."""
        return 1 + 2 * max(len(self.rule(size, longest)[0]) for size in (0, 1))  # small sizes need most

    def row(self, size: int, length: int, width: int) -> Numbers:
        """Return the numbers for a truth in one row: how many, all x, all w."""
        found = np.zeros(width)
        x, w = self.rule(size, length)
        found[0], found[1 : 1 + len(x)], found[1 + len(x) : 1 + 2 * len(x)] = len(x), x, w
        return found

    def sizes(self, truths: Integers, starts: Integers, lengths: Integers) -> Integers:
        """Return the number of nodes or chunks of each truth; their labels lie anywhere in an array."""
        if self.chunks is not None:
            some = self.chunks.types[truths] >= 0
            first = some[starts[lengths > 0]]
            some[1:] &= ~self.chunks.goes_on[truths[:-1], truths[1:]]
            some[starts[lengths > 0]] = first
        else:
            some = truths != (-1 if self.background is None else self.background)
        before = np.concatenate(([0], np.cumsum(some)))
        return np.asarray(before[starts + lengths] - before[starts])

    def rules(self, sizes: Integers, lengths: Integers) -> tuple[Numbers, Integers]:
        """Return rows of numbers, and the row of each truth."""
        keys = list(zip(sizes.tolist(), lengths.tolist(), strict=True))
        known, rows = self._known[0]
        new = dict.fromkeys(key for key in keys if key not in known)
        if new:
            if len(known) + len(new) > _KEPT:
                known, rows, new = {}, rows[:0], dict.fromkeys(keys)
            width = max(rows.shape[1], *(self.width(max(length, 1)) for _, length in new))
            more = [self.row(size, max(length, 1), width) for size, length in new]
            rows = np.vstack((_widened(rows, width), *more))
            known = known | {key: len(known) + number for number, key in enumerate(new)}
            self._known[0] = known, rows  # in one step, for other threads
        return rows, np.array([known[key] for key in keys], dtype=np.int64)

    @cached_property
    def _known(self) -> list[tuple[dict[tuple[int, int], int], Numbers]]:
        return [({}, np.zeros((0, 1)))]


def _widened(rows: Numbers, width: int) -> Numbers:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))


# --- losses ------------------------------------------------------------------------------------------------


def _rule(offset: float, length: int) -> Powers:
    """Return the numbers for quotients with an offset, in sentences of some length; errors are 0 if k is."""
    step = 2 * 2 ** max(0, length.bit_length() - 5)  # so that sentences of similar length share them
    most = (length // step + 1) * step - 1  # odd: as many numbers are exact for the even one before
    if offset > 0:
        return inverses(offset, most)
    x, w = inverses(1.0, most - 1)
    return x, w / x


def quotient_of(loss: Loss, labels: int, names: tuple[str, ...] | None) -> Quotient | None:
    """Return a loss of labellings as a quotient, given the truth; None if it is not one.

    Examples
    --------
    >>> import tallytree as tt
    >>> quotient_of(tt.losses.FBeta(background=0), 3, None).counted.astype(int)[0]
    array([0, 1, 1])
    >>> quotient_of(tt.losses.Precision(background=0), 3, None) is None
    True
    """
    try:
        return _known_quotient(loss, labels, None if names is None else tuple(names))
    except TypeError:  # a user-defined loss with a parameter that is not hashable
        return None


@lru_cache(maxsize=64)
def _known_quotient(loss: Loss, labels: int, names: tuple[str, ...] | None) -> Quotient | None:
    if type(loss) is ChunkFBeta:
        missed = loss.beta**2
        if names is None or not _LIGHT <= missed <= _HEAVY:
            return None
        chunks = chunk_labels(names, loss)
        return Quotient(lambda size, length: _rule(missed * size, length), chunks=chunks, missed=missed)
    tables = truth_tables(loss, labels, names)
    return _of_positions(loss, labels, tables.background) if isinstance(tables, PositionTables) else None


def _of_positions(loss: Loss, labels: int, background: int | None) -> Quotient | None:
    wrong = 1.0 - np.eye(labels)
    node = np.arange(labels) != (-1 if background is None else background)
    none, found, kind = np.zeros((labels, labels), np.bool_), wrong * node, type(loss)
    if kind is HammingDistance:
        return Quotient(lambda size, length: (_ONE, _ONE), wrong, none)
    if kind is HammingLoss or (kind in (FBeta, Recall) and background is None):
        return Quotient(lambda size, length: (_ONE, _ONE / length), wrong, none, background)
    lost = wrong * node[:, np.newaxis]
    if kind is Recall:
        return Quotient(lambda size, length: (_ONE, _ONE / max(size, 1)), lost, none, background)
    if kind is IntersectionOverUnion:
        rule: Rule = lambda size, length: _rule(float(size), length)  # noqa: E731
        return Quotient(rule, found + lost, found > 0, background)
    if type(loss) is FBeta and _LIGHT <= loss.beta**2 <= _HEAVY:
        missed = loss.beta**2
        counted = np.ascontiguousarray(np.broadcast_to(node, wrong.shape))
        rule = lambda size, length: _rule(missed * size, length)  # noqa: E731
        return Quotient(rule, found + missed * lost, counted, background)
    return None


def turned_quotient(loss: Loss, labels: int, names: tuple[str, ...] | None) -> Quotient | None:
    """Return a loss of truths as a quotient, given a labelling; None if it is not one.

    With truth and labelling exchanged, an F-measure is one with the inverse of β.
    """
    if type(loss) in (FBeta, ChunkFBeta):
        return quotient_of(loss.replace(beta=1 / loss.beta), labels, names)  # type: ignore[attr-defined]
    return quotient_of(loss, labels, names) if type(loss) is IntersectionOverUnion else None
