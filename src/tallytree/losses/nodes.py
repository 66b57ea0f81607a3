"""The losses of true and false positives: F, precision, recall, intersection over union and others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.losses.base import Bounds, Line, Values, check_positive
from tallytree.losses.node_loss import NodeLoss
from tallytree.trees import Tree


def _share(part: Any, whole: Any, otherwise: Any) -> Values:
    """Return ``part / whole``, and something else where there is no whole."""
    some = np.asarray(whole) > 0
    return np.where(some, np.asarray(part, dtype=np.float64) / np.where(some, whole, 1), otherwise)


@dataclass(frozen=True)
class FBeta(NodeLoss, by_size=True):
    """One minus the F-measure: ``1 - (1 + β²)·TP / (β²·|y*| + TP + FP)``; 0 where there is nothing at all.

    Parameters
    ----------
    truth, background
        As for every loss of nodes.
    beta : float
        How many times as much recall counts as precision; positive.

    Examples
    --------
    >>> import tallytree as tt
    >>> loss = tt.losses.FBeta(["B", "O", "B"], background="O")
    >>> loss(["B", "B", "O"])
    0.5
    >>> loss.value([1, 2], [1, 0])
    array([0.5, 0. ])
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self.beta, "beta")

    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Return one minus the weighted harmonic mean of precision and recall."""
        right, weight = (found & gold).total(), self.beta**2
        if not right:
            return 1.0 if found or gold else 0.0
        precision, recall = right / found.total(), right / gold.total()
        return max(0.0, 1.0 - (1 + weight) * precision * recall / (weight * precision + recall))

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Compute the loss from true and false positives and the size of the truth, elementwise."""
        weight = self.beta**2
        measure = _share((1 + weight) * tp, weight * size + tp + fp, 1.0)
        return np.maximum(1.0 - measure, 0.0)

    def quotient(self) -> tuple[Line, Line] | None:
        """Return ``(β²·|y*| + FP - β²·TP) / (β²·|y*| + FP + TP)``."""
        weight, size = self.beta**2, float(self.size)
        if self.one_tally or not size:
            return super().quotient()
        return (weight * size, (-weight, 1.0)), (weight * size, (1.0, 1.0))


@dataclass(frozen=True)
class Precision(NodeLoss, by_size=True):
    """One minus precision, ``1 - TP / (TP + FP)``; nothing found: 1, or 0 if there is nothing to find.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.Precision([1, 0, 1], background=0)([1, 1, 0])
    0.5
    """

    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Return the share of what was found that is not right."""
        if not found:
            return 1.0 if gold else 0.0
        return (found - gold).total() / found.total()

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Compute the loss from true and false positives and the size of the truth, elementwise."""
        return np.maximum(1.0 - _share(tp, tp + fp, 0.0 if size else 1.0), 0.0)


@dataclass(frozen=True)
class Recall(NodeLoss, by_size=True):
    """One minus recall, ``1 - TP / |y*|``; 0 if there is nothing to find.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.Recall([1, 0, 1], background=0)([1, 1, 0])
    0.5
    """

    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Return the share of what is there that was not found."""
        return (gold - found).total() / gold.total() if gold else 0.0

    @property
    def counted(self) -> tuple[str, ...]:
        """What was found: one tally, with a background or without."""
        return super().counted[:1]

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Compute the loss from true positives, elementwise."""
        return np.maximum(1.0 - _share(tp, np.full_like(tp, size), 1.0), 0.0)

    def linear(self) -> Line | None:
        """Return it all: recall is linear in the true positives."""
        if self.one_tally:
            return super().linear()
        return (1.0, (-1 / self.size,)) if self.size else (0.0, (0.0,))

    def quotient(self) -> tuple[Line, Line] | None:
        """Return ``(|y*| - TP) / |y*|``, which is 0 without rounding where nothing is missing."""
        if self.one_tally or not self.size:
            return super().quotient()
        return (float(self.size), (-1.0,)), (float(self.size), (0.0,))


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
        """Return how much was found that is not there."""
        return float((found - gold).total())

    @property
    def counted(self) -> tuple[str, ...]:
        """False positives alone."""
        return ("fp",)

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Return the false positives."""
        return fp.astype(np.float64)

    def linear(self) -> Line | None:
        """Return it all: the loss is the tally."""
        return 0.0, (1.0,)

    @property
    def bounds(self) -> Bounds:
        """From 0 to the number of variables; to infinity where that is not known."""
        known = self.bound and not isinstance(self.truth, Tree)
        return 0.0, float(len(self.right)) if known else np.inf


@dataclass(frozen=True)
class SymmetricDifference(NodeLoss, by_size=True):
    """The number of nodes that one of the two has and the other has not: ``FP + |y*| - TP``.

    Of trees, what the Hamming distance is of labellings: the constituents that are wrong or missing.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.SymmetricDifference([1, 0, 1], background=0)([1, 1, 0])
    2.0
    """

    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Return how much was found that is not there, and how much is there that was not found."""
        return float((found - gold).total() + (gold - found).total())

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Return what is wrong and what is missing."""
        return np.asarray(fp + (size - tp), dtype=np.float64)

    def linear(self) -> Line | None:
        """Return it all; where every variable is a node, each mismatch is both wrong and missing."""
        return (0.0, (2.0,)) if self.one_tally else (float(self.size), (-1.0, 1.0))

    @property
    def bounds(self) -> Bounds:
        """From 0 to twice the number of variables; to infinity where that is not known."""
        known = self.bound and not isinstance(self.truth, Tree)
        return 0.0, 2.0 * len(self.right) if known else np.inf


@dataclass(frozen=True)
class IntersectionOverUnion(NodeLoss, by_size=True):
    """One minus the Jaccard index, ``1 - TP / (|y*| + FP)``; 0 where there is nothing at all.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.IntersectionOverUnion([1, 1, 0, 0], background=0)([1, 0, 1, 0])
    0.6666666666666667
    """

    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Return the share of what is in either that is not in both."""
        union = (found | gold).total()
        return 1.0 - (found & gold).total() / union if union else 0.0

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Compute the loss from true and false positives and the size of the truth, elementwise."""
        return np.maximum(1.0 - _share(tp, size + fp, 1.0), 0.0)

    def quotient(self) -> tuple[Line, Line] | None:
        """Return ``(|y*| + FP - TP) / (|y*| + FP)``."""
        size = float(self.size)
        if not size:
            return None
        if self.one_tally:
            return (0.0, (2.0,)), (size, (1.0,))
        return (size, (-1.0, 1.0)), (size, (0.0, 1.0))

    def linear(self) -> Line | None:
        """Return nothing: it is not linear, whatever the background."""
        return None
