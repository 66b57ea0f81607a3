"""What statistics count in the labels of variables, in tables by the kinds of variables.

All variables have the same number W of states; a kind says which label each of them stands for and what
the statistics count in it, and on chains a pair of kinds says which states may follow each other and what is
counted then. The tables of a problem are assembled natively from those of its kinds.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels import native
from tallytree.model.blocks import Block, unary_scopes
from tallytree.model.model import Model
from tallytree.planning.orders import skeleton
from tallytree.statistics.statistic import Statistic

Integers = NDArray[np.int64]

_KEPT = 1024


class KindTables(NamedTuple):
    """The tables of K kinds, W states, P statistics and L pairs of kinds."""

    # (K, W): the label that a state stands for; -1 for an unused state
    labels: NDArray[np.int32]
    given: Integers  # (P, K, W): the counts of a single state
    pairs: NDArray[np.int32]  # (K, K): the index of a pair of neighbours; -1 if they never occur
    # (L, W, W): which states may follow each other. If L is 0, states are labels and all may.
    fits: NDArray[np.bool_]
    moved: Integers  # (P, L, W, W): the counts of two neighbours


class CountingTables:
    """Statistics as tables by kinds.

    Attributes
    ----------
    statistics : tuple of str
        The counted statistics.
    tables : KindTables
        By kinds.
    """

    def __init__(self, statistics: tuple[str, ...], tables: KindTables) -> None:
        self.statistics, self.tables = statistics, tables
        self._skeletons: dict[tuple[int, bool], native.Skeleton] = {}
        self._shapes: dict[Any, tuple[Statistic, ...]] = {}  # by the shapes of models

    @cached_property
    def compiled(self) -> native.TruthTables:
        """The tables as a native object."""
        return native.TruthTables(*self.tables)

    @property
    def linked(self) -> bool:
        """Whether it depends on neighbours on chains, and has its own states."""
        return len(self.tables.fits) > 0

    def suits(self, model: Model) -> bool:
        """Whether it can count on a model of the labels."""
        return not self.linked or model.key[1:] == _chain_key(len(model))

    def chain(self, length: int, counting: bool) -> native.Skeleton:
        """Return the program of a chain of some length, with the statistics or without."""
        found = self._skeletons.get((length, counting))
        if found is None:
            states = self.tables.labels.shape[1]
            model = Model.chain(np.zeros((length, states)), np.zeros((states, states)))
            found = skeleton(model, self.shapes(model) if counting else [])
            self._skeletons[length, counting] = found
        return found

    def shapes(self, model: Model) -> tuple[Statistic, ...]:
        """Return statistics with the scopes of the tables that count nothing; they are cached."""
        found = self._shapes.get(model.key)
        if found is None:
            if len(self._shapes) >= _KEPT:
                self._shapes.clear()
            found = self._shapes[model.key] = self._shaped(model)
        return found

    def _shaped(self, model: Model) -> tuple[Statistic, ...]:
        scopes, key = unary_scopes(len(model))
        states = self.tables.labels.shape[1]
        blocks = [Block(scopes, np.zeros((1, states), dtype=np.int64), key)]
        if self.linked:  # only on chains, whose last block is that of neighbours
            blocks += [b.with_tables(np.zeros((1, states, states), dtype=np.int64)) for b in model.blocks[1:]]
        return tuple(
            Statistic.from_blocks(blocks, name, None, model.cardinalities, 1) for name in self.statistics
        )


@lru_cache(maxsize=1024)
def _chain_key(length: int) -> tuple[bytes, ...]:
    """Return the key shared by all chains of a length."""
    return Model.chain(np.zeros((length, 1)), np.zeros((1, 1))).key[1:]
