"""Losses that are numbers of nodes: of wrong ones, or of wrong and missing ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.losses.base import Bounds, Line, Values
from tallytree.losses.nodes import NodeLoss
from tallytree.trees import Tree


@dataclass(frozen=True)
class FalsePositives(NodeLoss, by_size=True):
    """The number of false positives.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.FalsePositives([1, 0, 1], background=0)([1, 1, 0])
    1.0
    """

    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Return the number of predicted nodes that are wrong."""
        return float((found - gold).total())

    @property
    def counted(self) -> tuple[str, ...]:
        """Only false positives."""
        return ("fp",)

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Return the false positives."""
        return fp.astype(np.float64)

    def linear(self) -> Line | None:
        """Return the identity: the loss is the tally."""
        return 0.0, (1.0,)

    @property
    def bounds(self) -> Bounds:
        """From 0 to the number of variables; infinity if that is unknown."""
        known = self.bound and not isinstance(self.truth, Tree)
        return 0.0, float(len(self.right)) if known else np.inf


@dataclass(frozen=True)
class SymmetricDifference(NodeLoss, by_size=True):
    """The number of nodes in exactly one of the two: ``FP + |y*| - TP``.

    For trees, the counterpart of the Hamming distance: the constituents that are wrong or missing.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.SymmetricDifference([1, 0, 1], background=0)([1, 1, 0])
    2.0
    """

    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Return the number of nodes that are wrong or missing."""
        return float((found - gold).total() + (gold - found).total())

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Return the number of wrong and missing nodes."""
        return np.asarray(fp + (size - tp), dtype=np.float64)

    def linear(self) -> Line | None:
        """Return the linear function; if every variable is a node, a mismatch is both wrong and missing."""
        return (0.0, (2.0,)) if self.one_tally else (float(self.size), (-1.0, 1.0))

    @property
    def bounds(self) -> Bounds:
        """From 0 to twice the number of variables; infinity if that is unknown."""
        known = self.bound and not isinstance(self.truth, Tree)
        return 0.0, 2.0 * len(self.right) if known else np.inf
