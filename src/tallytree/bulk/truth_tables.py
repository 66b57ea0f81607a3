"""What losses count on chains, in tables that serve all truths over one set of labels.

A loss sees a position of a chain by its **kind**: what of the truth is there. Positions have W states, as
many everywhere; a kind says which label each of them stands for and what the statistics count in it, and two
kinds of neighbours say which states may follow each other and what is counted then. A truth is no more than a
row of kinds, so that nothing is compiled for it, and the tables of a chain are put together natively.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels import native
from tallytree.losses.base import Line, Loss
from tallytree.losses.nodes import is_own
from tallytree.losses.positions import HammingDistance, HammingLoss
from tallytree.losses.scaling import Scaling
from tallytree.model.inputs import code_in
from tallytree.model.model import Model
from tallytree.planning.orders import skeleton
from tallytree.statistics.statistic import Statistic

__all__ = ["ChainLoss", "Kinds", "PositionLoss", "Priced"]

Integers = NDArray[np.int64]

_KNOWN = 65_536
"""The truths whose kinds are kept: some hundred bytes each."""


class Kinds(NamedTuple):
    """The tables of K kinds, W states, P statistics and L pairs of kinds.

    Attributes
    ----------
    labels : int32 array of shape (K, W)
        The label that a state stands for; -1 for a state that no labelling takes.
    given : int64 array of shape (P, K, W)
        What a state counts by itself.
    pairs : int32 array of shape (K, K)
        The number of a pair of neighbours; -1 where they never are.
    fits : bool array of shape (L, W, W)
        Which states may follow each other. Where L is 0, states are labels and all may.
    moved : int64 array of shape (P, L, W, W)
        What two neighbours count.
    """

    labels: NDArray[np.int32]
    given: Integers
    pairs: NDArray[np.int32]
    fits: NDArray[np.bool_]
    moved: Integers


class Priced(NamedTuple):
    """The losses of all tallies that some truths allow, and the line that they lie on if they do."""

    table: native.LossTable
    line: Line | None


class ChainLoss(ABC):
    """A loss of labellings of chains over one set of labels.

    Attributes
    ----------
    recipe : Loss
        The loss without a truth.
    statistics : tuple of str
        What is counted.
    """

    def __init__(self, recipe: Loss, statistics: tuple[str, ...], tables: Kinds) -> None:
        self.recipe, self.statistics, self.tables = recipe, statistics, tables
        self.kinds_of = lru_cache(_KNOWN)(self._kinds_of)
        self._skeletons: dict[tuple[int, bool], native.Skeleton] = {}
        self._priced: dict[tuple[int, int, Scaling], Priced] = {}

    @abstractmethod
    def positions(self, truth: Integers) -> Integers:
        """Return the kind of each position of a truth, which is in numbers."""

    @abstractmethod
    def size(self, truth: Integers) -> int:
        """Return how much there is to be found in a truth: its losses depend on that and on its length."""

    @abstractmethod
    def bound(self, truth: Integers) -> Loss:
        """Return the loss with a truth."""

    @cached_property
    def compiled(self) -> native.ChainKinds:
        """The tables, on the other side."""
        return native.ChainKinds(*self.tables)

    def seen(self, truth: Integers) -> tuple[Integers, int]:
        """Return kinds and size of a truth, perhaps remembered."""
        return self.kinds_of(truth.tobytes())

    def _kinds_of(self, data: bytes) -> tuple[Integers, int]:
        truth = np.frombuffer(data, dtype=np.int64)
        return self.positions(truth), self.size(truth)

    def priced(self, truth: Integers, size: int, scaling: Scaling) -> Priced:
        """Return the losses of tallies for a truth of some size."""
        key = size, len(truth), scaling
        found = self._priced.get(key)
        if found is None:
            loss = self.bound(truth)
            most = [size if name == "tp" else len(truth) for name in self.statistics]
            losses = np.asarray(loss.value(*np.indices([one + 1 for one in most])), dtype=np.float64)
            table = native.LossTable(losses, [0] * len(most), scaling == "slack", 1.0)
            found = self._priced[key] = Priced(table, loss.linear())
        return found

    def skeleton(self, length: int, counting: bool) -> native.Skeleton:
        """Return the program of a chain of some length, with the statistics or without."""
        found = self._skeletons.get((length, counting))
        if found is None:
            states = self.tables.labels.shape[1]
            model = Model.chain(np.zeros((length, states)), np.zeros((states, states)))
            kept = model.blocks if len(self.tables.fits) else model.blocks[:1]
            blocks = [block.with_tables(np.zeros(block.tables.shape, dtype=np.int64)) for block in kept]
            statistics = [
                Statistic.from_blocks(blocks, name, None, model.cardinalities, 1) for name in self.statistics
            ]
            found = skeleton(model, statistics if counting else [])
            self._skeletons[length, counting] = found
        return found


class PositionLoss(ChainLoss):
    """A loss that compares each label with that of the truth: the kind of a position is its right label."""

    def __init__(
        self, recipe: Loss, statistics: tuple[str, ...], labels: int, background: int | None
    ) -> None:
        right = np.eye(labels, dtype=np.int64)
        node = np.arange(labels) != (-1 if background is None else background)
        given = [(right if name == "tp" else 1 - right) * node for name in statistics]
        same = np.broadcast_to(np.arange(labels, dtype=np.int32), (labels, labels))
        tables = Kinds(
            np.ascontiguousarray(same),
            np.array(given),
            np.full((labels, labels), -1, dtype=np.int32),
            np.zeros((0, labels, labels), dtype=np.bool_),
            np.zeros((len(statistics), 0, labels, labels), dtype=np.int64),
        )
        super().__init__(recipe, statistics, tables)
        self.background = background

    def positions(self, truth: Integers) -> Integers:
        """Return the right labels."""
        return truth

    def size(self, truth: Integers) -> int:
        """Return the number of nodes."""
        return int(np.count_nonzero(truth != self.background)) if self.background is not None else len(truth)

    def bound(self, truth: Integers) -> Loss:
        """Return the loss with a truth in numbers."""
        terms = {} if self.background is None else {"background": self.background}
        return self.recipe.replace(truth=truth, **terms)

    @classmethod
    def of(cls, loss: Loss, labels: int, names: tuple[str, ...] | None) -> PositionLoss | None:
        """Return a loss for a set of labels; None for one of another kind."""
        if type(loss) in (HammingDistance, HammingLoss):
            return cls(loss, ("mismatches",), labels, None)
        if not is_own(loss):
            return None
        background = None if loss.background is None else code_in(loss.background, names, labels)
        return (
            None if background is not None and background < 0 else cls(loss, loss.counted, labels, background)
        )
