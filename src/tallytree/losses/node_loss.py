"""Losses that compare what was found with what is there: true positives and false positives.

Labellings are compared by their **nodes**. The nodes of a labelling are the variables that are not labelled
with the background, each with its label; all variables if there is no background. The nodes of a parse tree
are its constituents. Of the nodes of ``y``, those that the truth ``y*`` has too are true positives (TP), the
others false positives (FP). The size of the truth, ``|y*|``, is the number of its nodes.

Without a background ``TP + FP = M``: one tally is enough, and F, precision and recall are all the Hamming
loss.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.losses.base import Bounds, LabellingLoss, Line, Values, columns
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.recipes import matches, mismatches
from tallytree.trees import Tree


@dataclass(frozen=True)
class NodeLoss(LabellingLoss):
    """A loss of the true and the false positives.

    Parameters
    ----------
    truth : labelling or tree, optional
        What is right.
    background : str or int, optional
        The label of what is no node, the ``O`` of chunking; by default every variable is one.

    Attributes
    ----------
    by_size : bool
        Whether the loss of a tally depends on the truth through its size alone, as ``of_counts`` has it, so
        that one table of losses serves all truths of a size. A subclass may redefine anything, so it says so
        itself: ``class Mine(FBeta, by_size=True)``.
    """

    by_size: ClassVar[bool] = False

    background: Any = field(default=None, kw_only=True)

    def __init_subclass__(cls, by_size: bool = False, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls.by_size = by_size

    def nodes(self, y: Any) -> Counter[Any]:
        """Return the nodes of a labelling or a tree, with how often each occurs."""
        if isinstance(y, Tree):
            return Counter[Any](y.constituents())
        labels = zip(self.given(y), self._backgrounds(), strict=False)
        return Counter((i, label) for i, (label, nothing) in enumerate(labels) if label != nothing)

    def _backgrounds(self) -> Iterable[Any]:
        """Return the background for each variable, in the same terms as the truth."""
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
                f"the background is {self.background!r}, but the truth is not in the same terms (names or "
                "numbers); use loss.on(model), which knows both"
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

    @property
    def one_tally(self) -> bool:
        """Whether every variable is a node, so that false positives say everything."""
        return self.background is None and not isinstance(self.truth, Tree)

    @property
    def counted(self) -> tuple[str, ...]:
        """What the statistics count, in order: ``tp``, ``fp`` or both."""
        return ("fp",) if self.one_tally else ("tp", "fp")

    def __call__(self, y: Any) -> float:
        """Compute the loss of a labelling or a tree from its nodes."""
        return self.compare(self.nodes(y), self.gold)

    def reduce(self, model: Model) -> Reduction:
        """Count on the model itself: false positives, and true positives where they say something more."""
        if isinstance(self._required(), Tree):
            raise ModelError("the truth is a tree, but the model is no grammar; give a labelling for a truth")
        truth = self.anchor(model)
        made = {"tp": matches, "fp": mismatches}
        return Reduction.identity(
            model, [made[name](model, truth, self.background, name=name) for name in self.counted]
        )

    def value(self, *tallies: ArrayLike) -> Values:
        """Compute the loss from the tallies that are counted."""
        tp, fp = self.positives(columns(self.counted, tallies), self.size)
        return self.of_counts(tp, fp, self.size)

    def positives(
        self, tallies: Mapping[str, NDArray[np.int64]], size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return true and false positives from what is counted; zero for what the loss does not look at."""
        nothing = np.zeros_like(next(iter(tallies.values())))
        fp = tallies.get("fp", nothing)
        return tallies.get("tp", size - fp if self.one_tally else nothing), fp

    def linear(self) -> Line | None:
        """Return the Hamming loss where every variable is a node."""
        return (0.0, (1 / max(self.size, 1),)) if self.one_tally else None

    @property
    def bounds(self) -> Bounds:
        """From 0 to 1."""
        return 0.0, 1.0

    @abstractmethod
    def compare(self, found: Counter[Any], gold: Counter[Any]) -> float:
        """Compute the loss from the nodes of a labelling and those of the truth, by the definition."""

    @abstractmethod
    def of_counts(self, tp: NDArray[np.int64], fp: NDArray[np.int64], size: int) -> Values:
        """Compute the loss from true and false positives and the size of the truth, elementwise."""
