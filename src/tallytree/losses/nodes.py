"""Losses based on true positives and false positives.

Labellings are compared by their **nodes**. The nodes of a labelling are the variables whose label is not
the background, with their labels; all variables if there is no background. The nodes of a parse tree
are its constituents. The nodes of ``y`` that are also in the truth ``y*`` are true positives (TP), the
others false positives (FP). The size of the truth, ``|y*|``, is its number of nodes.

Without a background, ``TP + FP = M``: one tally is enough, and F, precision and recall all equal the Hamming
loss.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.losses.base import Bounds, LabellingLoss, Line, Values, checked_beta, columns
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.recipes import matches, mismatches
from tallytree.trees import Tree


@dataclass(frozen=True)
class NodeLoss(LabellingLoss):
    """A loss of the true and false positives.

    Parameters
    ----------
    truth : labelling or tree, optional
        The true labelling or tree.
    background : str or int, optional
        The negative label, such as ``O`` for chunking; by default every variable is a node.

    Attributes
    ----------
    by_size : bool
        Whether the loss of a tally depends on the truth only through its size, as in ``of_counts``, so
        that one table of losses serves all truths of the same size. Subclasses must declare it:
        ``class Mine(FBeta, by_size=True)``.
    """

    by_size: ClassVar[bool] = False

    background: Any = field(default=None, kw_only=True)

    def __init_subclass__(cls, by_size: bool = False, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.by_size = by_size

    def nodes(self, y: Any) -> Counter[Any]:
        """Return the nodes of a labelling or a tree with their counts."""
        if isinstance(y, Tree):
            return Counter[Any](y.constituents())
        labels = zip(self.given(y), self._backgrounds(), strict=False)
        return Counter((i, label) for i, (label, nothing) in enumerate(labels) if label != nothing)

    def _backgrounds(self) -> Iterable[Any]:
        """Return the background for each variable, as a name or number like the truth."""
        if self._model is None or self.background is None:
            return repeat(self.background)
        codes: list[int] = self._model.state_codes(self.background).tolist()
        return codes

    @cached_property
    def gold(self) -> Counter[Any]:
        """The nodes of the truth."""
        truth = self._required()
        if self._model is None and self.background is not None and not isinstance(truth, Tree):
            self._check_terms()
        return self.nodes(truth)

    def _check_terms(self) -> None:
        if any(isinstance(label, str) != isinstance(self.background, str) for label in self.right):
            raise ModelError(
                f"the background {self.background!r} cannot be compared with the truth: one is a name, the "
                "other a number; use loss.on(model), which handles both"
            )

    @cached_property
    def size(self) -> int:
        """|y*|: the number of nodes of the truth."""
        if self._model is None or type(self).nodes is not NodeLoss.nodes or isinstance(self.truth, Tree):
            return self.gold.total()
        codes = self.anchor(self._model)
        if self.background is None:
            return len(codes)
        return int(np.count_nonzero(codes != self._model.state_codes(self.background)))

    def hits(self, y: Any) -> tuple[int, int]:
        """Return the numbers of true and of false positives of a labelling, by definition."""
        if self._model is None or type(self).nodes is not NodeLoss.nodes or isinstance(self.truth, Tree):
            nodes = self.nodes(y)
            right = (nodes & self.gold).total()
            return right, nodes.total() - right
        codes = self._model.encode(y)
        right = codes == self._codes
        if self.background is not None:
            node = codes != self._model.state_codes(self.background)
            tp = int(np.count_nonzero(right & node))
            return tp, int(np.count_nonzero(node)) - tp
        tp = int(np.count_nonzero(right))
        return tp, len(codes) - tp

    @property
    def one_tally(self) -> bool:
        """Whether every variable is a node, so that false positives suffice."""
        return self.background is None and not isinstance(self.truth, Tree)

    @property
    def counted(self) -> tuple[str, ...]:
        """What the statistics count, in order: ``tp``, ``fp`` or both."""
        return ("fp",) if self.one_tally else ("tp", "fp")

    def __call__(self, y: Any) -> float:
        """Compute the loss of a labelling or a tree from its nodes."""
        return self.compare(self.nodes(y), self.gold)

    def reduce(self, model: Model) -> Reduction:
        """Count on the model itself: false positives, and true positives if they add information."""
        if isinstance(self._required(), Tree):
            raise ModelError(
                "the truth is a tree, but the model is not a grammar; pass a labelling as the truth"
            )
        return self._counting(model, self.anchor(model))

    def reduce_all(self, model: Model, losses: Sequence[Any]) -> Reduction | None:
        """Count on many models side by side in one, which all have the same states; None if not supported.

        `losses`: the same loss, bound to the truth of each of the models.
        """
        return self._counting(model, np.concatenate([loss.anchor(loss._model) for loss in losses]))

    def _counting(self, model: Model, truth: NDArray[np.int64]) -> Reduction:
        made = {"tp": matches, "fp": mismatches}
        return Reduction.identity(
            model, [made[name](model, truth, self.background, name=name) for name in self.counted]
        )

    def value(self, *tallies: ArrayLike) -> Values:
        """Compute the loss from the counted tallies."""
        tp, fp = self.positives(columns(self.counted, tallies), self.size)
        return self.of_counts(tp, fp, self.size)

    def positives(
        self, tallies: Mapping[str, NDArray[np.int64]], size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return true and false positives from the counted tallies; zero for those not counted."""
        if (fp := tallies.get("fp")) is None:
            return tallies["tp"], np.zeros_like(tallies["tp"])
        if (tp := tallies.get("tp")) is None:
            tp = size - fp if self.one_tally else np.zeros_like(fp)
        return tp, fp

    def linear(self) -> Line | None:
        """Return the Hamming loss if every variable is a node."""
        return (0.0, (1 / max(self.size, 1),)) if self.one_tally else None

    @property
    def bounds(self) -> Bounds:
        """From 0 to 1."""
        return 0.0, 1.0

    @abstractmethod
    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Compute the loss from the nodes of a labelling and of the truth, by definition."""

    @abstractmethod
    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Compute the loss from true and false positives and the size of the truth, elementwise."""


def _share(part: Any, whole: Any, otherwise: Any) -> Values:
    """Return ``part / whole``, and another value if the whole is zero."""
    some = np.asarray(whole) > 0
    if np.count_nonzero(some) == some.size:
        return np.asarray(part / whole, dtype=np.float64)
    return np.where(some, np.asarray(part, dtype=np.float64) / np.where(some, whole, 1), otherwise)


@dataclass(frozen=True)
class FBeta(NodeLoss, by_size=True):
    """One minus the F-measure: ``1 - (1 + β²)·TP / (β²·|y*| + TP + FP)``; 0 if there are no nodes at all.

    Parameters
    ----------
    truth, background
        As for :class:`NodeLoss`.
    beta : float
        The weight of recall relative to precision, from 1e-6 to 1e6.

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
        object.__setattr__(self, "beta", checked_beta(self.beta, of_nodes=True))

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


@dataclass(frozen=True)
class Precision(NodeLoss, by_size=True):
    """One minus precision, ``1 - TP / (TP + FP)``. Without predicted nodes: 0 if the truth has none, else 1.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.Precision([1, 0, 1], background=0)([1, 1, 0])
    0.5
    """

    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Return the fraction of predicted nodes that are wrong."""
        if not found:
            return 1.0 if gold else 0.0
        return (found - gold).total() / found.total()

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Compute the loss from true and false positives and the size of the truth, elementwise."""
        return np.maximum(1.0 - _share(tp, tp + fp, 0.0 if size else 1.0), 0.0)


@dataclass(frozen=True)
class Recall(NodeLoss, by_size=True):
    """One minus recall, ``1 - TP / |y*|``; 0 if the truth has no nodes.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.Recall([1, 0, 1], background=0)([1, 1, 0])
    0.5
    """

    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Return the fraction of true nodes that are missing."""
        return (gold - found).total() / gold.total() if gold else 0.0

    @property
    def counted(self) -> tuple[str, ...]:
        """True positives: one tally, with or without a background."""
        return super().counted[:1]

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Compute the loss from true positives, elementwise."""
        return np.maximum(1.0 - _share(tp, np.full_like(tp, size), 1.0), 0.0)

    def linear(self) -> Line | None:
        """Return the linear function: recall is linear in the true positives."""
        if self.one_tally:
            return super().linear()
        return (1.0, (-1 / self.size,)) if self.size else (0.0, (0.0,))


@dataclass(frozen=True)
class IntersectionOverUnion(NodeLoss, by_size=True):
    """One minus the Jaccard index, ``1 - TP / (|y*| + FP)``; 0 if there are no nodes at all.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.IntersectionOverUnion([1, 1, 0, 0], background=0)([1, 0, 1, 0])
    0.6666666666666667
    """

    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Return the fraction of the union that is not in the intersection."""
        union = (found | gold).total()
        return 1.0 - (found & gold).total() / union if union else 0.0

    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Compute the loss from true and false positives and the size of the truth, elementwise."""
        return np.maximum(1.0 - _share(tp, size + fp, 1.0), 0.0)

    def linear(self) -> Line | None:
        """Return None: it is not linear, whatever the background."""
        return None
