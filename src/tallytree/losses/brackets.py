"""Losses of parse trees that count crossing brackets.

A constituent crosses another tree's if they overlap and neither contains the other. Labels do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from tallytree.errors import ModelError
from tallytree.losses.base import Line, Loss, Values
from tallytree.model.model import Model
from tallytree.trees import Tree


@dataclass(frozen=True)
class BracketLoss(Loss):
    """A loss based on the constituents that cross one of the truth."""

    def _crossing(self, y: Any) -> int:
        for tree in (self._required(), y):
            if not isinstance(tree, Tree):
                raise ModelError(f"{type(self).__name__} is a loss of parse trees, got {tree!r:.60}")
        right = {(start, end) for _, start, end in self._required().constituents()}
        return sum(
            count
            for (_, start, end), count in y.constituents().items()
            if any(s < start < e < end or start < s < end < e for s, e in right)
        )

    def reduce(self, model: Model) -> NoReturn:
        """Raise an error: labellings have no brackets."""
        raise ModelError(
            f"{type(self).__name__} is a loss of parse trees; use tallytree.parsing.loss_augmented"
        )


@dataclass(frozen=True)
class CrossingBrackets(BracketLoss):
    """The number of constituents that cross one of the truth.

    Examples
    --------
    >>> import tallytree as tt
    >>> truth = tt.parsing.parse_tree("(S (X (a a) (b b)) (c c))")
    >>> tt.losses.CrossingBrackets(truth)(tt.parsing.parse_tree("(S (a a) (Y (b b) (c c)))"))
    1.0
    """

    def __call__(self, y: Any) -> float:
        """Count the constituents that cross one of the truth."""
        return float(self._crossing(y))

    def value(self, *tallies: ArrayLike) -> Values:
        """Return the tally."""
        return np.asarray(tallies[0], dtype=np.float64)

    def linear(self) -> Line | None:
        """Return the identity: the loss is the tally."""
        return 0.0, (1.0,)

    bounds = (0.0, np.inf)


@dataclass(frozen=True)
class CrossingBracketsRate(BracketLoss):
    """The fraction of constituents that cross one of the truth; 0 if there are none.

    Examples
    --------
    >>> import tallytree as tt
    >>> truth = tt.parsing.parse_tree("(S (X (a a) (b b)) (c c))")
    >>> tt.losses.CrossingBracketsRate(truth)(tt.parsing.parse_tree("(S (a a) (Y (b b) (c c)))"))
    0.5
    """

    def __call__(self, y: Any) -> float:
        """Divide the number of crossing constituents by the number of constituents."""
        crossing, size = self._crossing(y), y.constituents().total()
        return crossing / size if size else 0.0

    def value(self, *tallies: ArrayLike) -> Values:
        """Divide the first tally by the second."""
        crossing, size = (np.asarray(tally, dtype=np.float64) for tally in tallies)
        return np.asarray(crossing / np.maximum(size, 1), dtype=np.float64)

    bounds = (0.0, 1.0)
