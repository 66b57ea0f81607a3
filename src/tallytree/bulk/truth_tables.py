"""What losses count, in tables that serve all truths over one set of labels.

A loss sees a variable by its **kind**: what the truth has there. All variables have the same number W of
states; a kind says which label each of them stands for and what the statistics count in it, and on chains
a pair of kinds says which states may follow each other and what is counted then. A truth is just
a row of kinds: nothing is compiled for it, and the tables of a problem are assembled natively.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels import native
from tallytree.losses.base import Line, Loss
from tallytree.losses.nodes import NodeLoss
from tallytree.losses.positions import HammingDistance, HammingLoss
from tallytree.losses.scaling import Scaling
from tallytree.model.blocks import Block, unary_scopes
from tallytree.model.inputs import code_in
from tallytree.model.model import Model
from tallytree.planning.options import Strategy
from tallytree.planning.orders import skeleton
from tallytree.statistics.statistic import Statistic

Integers = NDArray[np.int64]

_MOST_LABELS = 512
"""Tables have an entry for each pair of labels: with more labels, statistics are made for each truth."""

_NO_FOLDS = np.zeros((0, 0))


_STRATEGIES = {
    "auto": native.Strategy.AUTO,
    "full": native.Strategy.FULL,
    "bounds": native.Strategy.BOUNDS,
}


class Search(NamedTuple):
    """Whether a problem with one answer is searched by bounds, and from where."""

    strategy: Strategy = "auto"
    # for each problem and statistic: where the search starts, if it is a number; then where it ended
    prices: NDArray[np.float64] | None = None


BY_ESTIMATE, WHOLE_TABLES = Search("auto"), Search("full")


class KindTables(NamedTuple):
    """The tables of K kinds, W states, P statistics and L pairs of kinds."""

    # (K, W): the label that a state stands for; -1 for an unused state
    labels: NDArray[np.int32]
    given: Integers  # (P, K, W): the counts of a single state
    pairs: NDArray[np.int32]  # (K, K): the index of a pair of neighbours; -1 if they never occur
    # (L, W, W): which states may follow each other. If L is 0, states are labels and all may.
    fits: NDArray[np.bool_]
    moved: Integers  # (P, L, W, W): the counts of two neighbours


class TruthTables(ABC):
    """What a loss counts in labellings over one set of labels, for any truth.

    Attributes
    ----------
    recipe : Loss
        The loss without a truth.
    statistics : tuple of str
        The counted statistics.
    tables : KindTables
        By kinds.
    losses : LossTables
        What tallies cost.
    """

    def __init__(self, recipe: Loss, statistics: tuple[str, ...], tables: KindTables) -> None:
        self.recipe, self.statistics, self.tables = recipe, statistics, tables
        self.losses = LossTables(statistics, self.bound)
        self._skeletons: dict[tuple[int, bool], native.Skeleton] = {}
        self._shapes: dict[Any, tuple[Statistic, ...]] = {}  # by the shapes of models

    @abstractmethod
    def kinds(self, labels: Integers, lengths: Sequence[int]) -> tuple[Integers, list[int]]:
        """Return the kinds of the positions of truths, concatenated, and the size of each truth.

        The losses of a truth depend on its size: how much there is to find in it.
        """

    @abstractmethod
    def bound(self, truth: Integers) -> Loss:
        """Return the loss bound to a truth given as numbers."""

    @cached_property
    def compiled(self) -> native.TruthTables:
        """The tables as a native object."""
        return native.TruthTables(*self.tables)

    def truths(
        self,
        labels: Integers,
        lengths: Sequence[int],
        scaling: Scaling,
        margin: float = 1.0,
        count: int = 1,
        folds: bool = False,
        search: Search = WHOLE_TABLES,
    ) -> tuple[native.Truths, bool]:
        """Return truths for a batch, and whether their losses are folded into the scores.

        `labels`: the truths, concatenated. `lengths`: the lengths of the truths. `scaling` and `margin`: how
        losses enter. `count`: how many of the best tallies are decoded. `folds`: whether to fold losses into
        the scores if all of them are linear and one tally is needed. `search`: whether to search by
        bounds, and where to start.
        """
        kinds, sizes = self.kinds(labels, lengths)
        losses = self.losses.each(labels, lengths, sizes, scaling, margin)
        foldable = folds and count == 1 and scaling == "margin"
        terms = [one.line[1] for one in losses if one.line is not None] if foldable else []
        folded = foldable and len(terms) == len(losses)
        factors = margin * np.array(terms).reshape(-1, len(self.statistics)) if folded else _NO_FOLDS
        tables = [one.table for one in losses]
        strategy = _STRATEGIES[search.strategy]
        made = native.Truths(self.compiled, kinds, labels, tables, factors, count, strategy, search.prices)
        return made, folded

    def bytes_for(self, labels: Integers, lengths: Sequence[int]) -> tuple[int, int]:
        """Return the size of the losses of all tallies of some truths, and of what makes the largest."""
        return self.losses.bytes_for(lengths, self.kinds(labels, lengths)[1])

    def bytes_at_most(self, length: int) -> int:
        """Return the most memory that the losses of all tallies of one truth take while they are computed."""
        return self.losses.bytes_at_most(length)

    @property
    def linked(self) -> bool:
        """Whether it looks at neighbours on chains, with states of its own."""
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


class PositionTables(TruthTables):
    """A loss that compares each label with that of the truth: the kind of a position is its true label."""

    def __init__(
        self, recipe: Loss, statistics: tuple[str, ...], labels: int, background: int | None
    ) -> None:
        right = np.eye(labels, dtype=np.int64)
        node = np.arange(labels) != (-1 if background is None else background)
        given = [(right if name == "tp" else 1 - right) * node for name in statistics]
        same = np.broadcast_to(np.arange(labels, dtype=np.int32), (labels, labels))
        tables = KindTables(
            np.ascontiguousarray(same),
            np.array(given),
            np.full((labels, labels), -1, dtype=np.int32),
            np.zeros((0, labels, labels), dtype=np.bool_),
            np.zeros((len(statistics), 0, labels, labels), dtype=np.int64),
        )
        super().__init__(recipe, statistics, tables)
        self.background = background

    def kinds(self, labels: Integers, lengths: Sequence[int]) -> tuple[Integers, list[int]]:
        """Return the true labels themselves, and the number of nodes of each truth."""
        if self.background is None:
            return labels, list(lengths)
        nodes = np.concatenate(([0], np.cumsum(labels != self.background)))
        return labels, np.diff(nodes[np.cumsum([0, *lengths])]).tolist()

    def bound(self, truth: Integers) -> Loss:
        """Return the loss bound to a truth given as numbers."""
        terms = {} if self.background is None else {"background": self.background}
        return self.recipe.replace(truth=truth, **terms)

    @staticmethod
    def suit(loss: object) -> bool:
        """Return whether a loss counts position by position, and depends on the truth only by its size."""
        return loss.by_size if isinstance(loss, NodeLoss) else type(loss) in (HammingDistance, HammingLoss)

    @classmethod
    def of(cls, loss: Loss, labels: int, names: tuple[str, ...] | None) -> PositionTables | None:
        """Return the tables of a loss for a set of labels; None for a loss of another kind."""
        if labels > _MOST_LABELS or not cls.suit(loss):
            return None
        if not isinstance(loss, NodeLoss):
            return cls(loss, ("mismatches",), labels, None)
        background = None if loss.background is None else code_in(loss.background, names, labels)
        return (
            None if background is not None and background < 0 else cls(loss, loss.counted, labels, background)
        )


# --- losses of all tallies, in tables that serve all truths of one size -------------------------------------
# The losses of nodes, positions and chunks depend on a truth only through its size: how many nodes,
# positions or chunks it has. So the losses of all tallies are tabulated once for each size,
# and looked up by the thread that has the tallies of a problem, without a Python callback.

_STEP = 16
"""Tables are computed for lengths that are multiples of this, so that truths of similar length share one."""

_SMALL, _KEPT = 16_384, 1024
"""The largest table that is cached for the next batch, and how many tables are."""

_MADE_BYTES = 40
"""Of arrays that make a table, for each of its entries: tallies, values, and sums on the way."""


def _longest(length: int) -> int:
    """Return the length that the table of a truth is made for."""
    return -(-length // _STEP) * _STEP


class SizedLosses(NamedTuple):
    """The losses of all tallies for truths of one size, and the line they lie on, if any."""

    table: native.LossTable
    line: Line | None


class LossTables:
    """The losses of tallies, for truths of any size.

    `statistics`: the counted statistics. ``tp`` is at most the size of the truth, others are at most
    its length. `bound`: returns the loss bound to a truth.
    """

    def __init__(self, statistics: tuple[str, ...], bound: Callable[[Any], Loss]) -> None:
        self._statistics, self._bound = statistics, bound
        self._kept: dict[Any, SizedLosses] = {}

    def each(
        self,
        labels: Integers,
        lengths: Sequence[int],
        sizes: Sequence[int],
        scaling: Scaling,
        margin: float = 1.0,
    ) -> list[SizedLosses]:
        """Return the losses for each of several truths, whose labels are concatenated."""
        found: dict[tuple[int, int], SizedLosses] = {}
        keys = list(zip(sizes, map(_longest, lengths), strict=True))
        for key, length, end in zip(keys, lengths, accumulate(lengths), strict=True):
            if key not in found:
                known = self._kept.get((*key, scaling, margin))
                found[key] = known or self._made(labels[end - length : end], *key, scaling, margin)
        return [found[key] for key in keys]

    def bytes_for(self, lengths: Sequence[int], sizes: Sequence[int]) -> tuple[int, int]:
        """Return the size of the tables for several truths, and of what makes the largest of them."""
        keys = set(zip(sizes, map(_longest, lengths), strict=True))
        every = [prod(self._shape(*key)) for key in keys]
        return 8 * sum(every), _MADE_BYTES * max(every, default=0)

    def bytes_at_most(self, length: int) -> int:
        """Return the most memory that the table of a truth of some length takes while it is made."""
        longest = _longest(length)
        return (8 + _MADE_BYTES) * prod(self._shape(longest, longest))

    def _shape(self, size: int, longest: int) -> list[int]:
        return [(size if name == "tp" else longest) + 1 for name in self._statistics]

    def _made(self, truth: Any, size: int, longest: int, scaling: Scaling, margin: float) -> SizedLosses:
        loss = self._bound(truth)
        tallies = np.indices(self._shape(size, longest))
        values = np.asarray(loss.value(*tallies), dtype=np.float64)
        table = native.LossTable(values, [0] * len(tallies), scaling == "slack", margin)
        made = SizedLosses(table, loss.linear())
        if values.size <= _SMALL:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[size, longest, scaling, margin] = made
        return made
