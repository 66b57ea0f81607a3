"""What losses count, in tables that serve all truths over one set of labels.

A loss sees a variable by its **kind** (``kind_tables.py``): what the truth has there. A truth is just a row
of kinds: nothing is compiled for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.bulk.by_bounds import STRATEGIES
from tallytree.bulk.kind_tables import CountingTables, Integers, KindTables
from tallytree.kernels import native
from tallytree.losses.base import Line, Loss
from tallytree.losses.nodes import NodeLoss
from tallytree.losses.positions import HammingDistance, HammingLoss
from tallytree.losses.scaling import Scaling
from tallytree.model.inputs import code_in
from tallytree.planning.options import Strategy

_MOST_LABELS = 512
"""Tables have an entry for each pair of labels: with more labels, statistics are made for each truth."""

_NO_FOLDS = np.zeros((0, 0))


class Search(NamedTuple):
    """Whether a problem with one answer is searched by bounds, and from where."""

    strategy: Strategy = "auto"
    # for each problem and statistic: where the search starts, if it is a number; then where it ended
    prices: NDArray[np.float64] | None = None


BY_ESTIMATE, WHOLE_TABLES = Search("auto"), Search("full")


class TruthTables(CountingTables, ABC):
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
        super().__init__(statistics, tables)
        self.recipe, self.losses = recipe, LossTables(statistics, self.bound)

    @abstractmethod
    def kinds(self, labels: Integers, lengths: Sequence[int]) -> tuple[Integers, list[int]]:
        """Return the kinds of the positions of truths, concatenated, and the size of each truth.

        The losses of a truth depend on its size: how much there is to find in it.
        """

    @abstractmethod
    def bound(self, truth: Integers) -> Loss:
        """Return the loss bound to a truth given as numbers."""

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
        strategy = STRATEGIES[search.strategy]
        made = native.Truths(self.compiled, kinds, labels, tables, factors, count, strategy, search.prices)
        return made, folded

    def bytes_for(self, labels: Integers, lengths: Sequence[int], scaling: Scaling) -> tuple[int, int]:
        """Return the size of the losses of all tallies of some truths, and of what makes the largest."""
        return self.losses.bytes_for(lengths, self.kinds(labels, lengths)[1], scaling)

    def bytes_at_most(self, length: int) -> int:
        """Return the most memory that the losses of all tallies of one truth take while they are computed."""
        return self.losses.bytes_at_most(length)


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

    def bytes_for(self, lengths: Sequence[int], sizes: Sequence[int], scaling: Scaling) -> tuple[int, int]:
        """Return the size of the tables for several truths, and of what makes the largest of them."""
        keys = set(zip(sizes, map(_longest, lengths), strict=True))
        every = [prod(self._shape(*key)) for key in keys]
        each = 16 if scaling == "slack" else 8  # inverses of the losses as well
        return each * sum(every), _MADE_BYTES * max(every, default=0)

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
