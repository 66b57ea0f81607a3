"""Losses of all tallies, in tables that serve all truths of one size.

The losses of nodes, positions and chunks depend on a truth through its size alone: how many nodes, positions
or chunks there are to be found. So the losses of all tallies are tabulated once for each size, and looked up
by the thread that has the tallies of a problem; no Python is called back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tallytree.kernels import native
from tallytree.losses.base import Line, Loss
from tallytree.losses.scaling import Scaling

_STEP = 16
"""Tables reach to lengths that are multiples of this, so that truths of similar lengths share one."""

_SMALL, _KEPT = 16_384, 1024
"""The entries of a table that is kept for the next batch, and how many tables are."""


class SizedLosses(NamedTuple):
    """The losses of all tallies for truths of one size, and the line that they lie on if they do."""

    table: native.LossTable
    line: Line | None


class LossTables:
    """The losses of tallies, for truths of any size.

    Parameters
    ----------
    statistics : tuple of str
        What is counted. Of ``tp`` there are no more than the size of the truth, of others no more than its
        length.
    bound : callable
        Returns the loss with a truth.
    """

    def __init__(self, statistics: tuple[str, ...], bound: Callable[[Any], Loss]) -> None:
        self._statistics, self._bound = statistics, bound
        self._kept: dict[Any, SizedLosses] = {}

    def each(
        self, truths: Iterable[Any], sizes: Iterable[int], scaling: Scaling, margin: float = 1.0
    ) -> list[SizedLosses]:
        """Return the losses for each of several truths, whose sizes are known."""
        found: dict[Any, SizedLosses] = {}
        losses = []
        for truth, size in zip(truths, sizes, strict=True):
            longest = -(-len(truth) // _STEP) * _STEP
            key = size, longest, scaling, margin
            if key not in found:
                found[key] = self._kept.get(key) or self._made(truth, *key)
            losses.append(found[key])
        return losses

    def _made(self, truth: Any, size: int, longest: int, scaling: Scaling, margin: float) -> SizedLosses:
        loss = self._bound(truth)
        tallies = np.indices([(size if name == "tp" else longest) + 1 for name in self._statistics])
        values = np.asarray(loss.value(*tallies), dtype=np.float64)
        table = native.LossTable(values, [0] * len(tallies), scaling == "slack", margin)
        made = SizedLosses(table, loss.linear())
        if values.size <= _SMALL:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[size, longest, scaling, margin] = made
        return made
