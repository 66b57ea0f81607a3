"""Losses that decompose over positions: mismatches, and the difference of label counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.losses.base import Bounds, LabellingLoss, Line, Values, columns
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.recipes import mismatches
from tallytree.statistics.statistic import Statistic


def _alone(name: str, tallies: Sequence[ArrayLike]) -> NDArray[np.int64]:
    """Return the tally of a loss that counts one thing."""
    return columns((name,), tallies)[name]


@dataclass(frozen=True)
class _MismatchLoss(LabellingLoss):
    """A loss of the number of mismatches."""

    def _wrong(self, y: Any) -> int:
        return sum(a != b for a, b in zip(self.given(y), self.right, strict=True))

    def reduce(self, model: Model) -> Reduction:
        """Count the mismatches."""
        return Reduction.identity(model, [mismatches(model, self.anchor(model))])


@dataclass(frozen=True)
class ZeroOne(_MismatchLoss):
    """1 if any variable is wrong, 0 otherwise.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.ZeroOne([1, 0, 1])([1, 1, 0])
    1.0
    """

    def __call__(self, y: Any) -> float:
        """Return whether any variable is wrong."""
        return float(self.given(y) != self.right)

    def reduce(self, model: Model) -> Reduction:
        """Count mismatches, capped at 1: two tallies."""
        return Reduction.identity(model, [mismatches(model, self.anchor(model), name="wrong", cap=1)])

    def value(self, *tallies: ArrayLike) -> Values:
        """Return the tally."""
        return _alone("wrong", tallies).astype(np.float64)

    bounds = (0.0, 1.0)


@dataclass(frozen=True)
class HammingDistance(_MismatchLoss):
    """The number of mismatches.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.HammingDistance([1, 0, 1])([1, 1, 0])
    2.0
    """

    def __call__(self, y: Any) -> float:
        """Return the number of mismatches."""
        return float(self._wrong(y))

    def value(self, *tallies: ArrayLike) -> Values:
        """Return the tally."""
        return _alone("mismatches", tallies).astype(np.float64)

    def linear(self) -> Line | None:
        """Return the identity: the loss is the tally."""
        return 0.0, (1.0,)

    @property
    def bounds(self) -> Bounds:
        """From 0 to the number of variables."""
        return 0.0, float(len(self.right)) if self.bound else np.inf


@dataclass(frozen=True)
class HammingLoss(_MismatchLoss):
    """The fraction of variables that are wrong.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.HammingLoss([1, 0, 1, 1])([1, 1, 0, 1])
    0.5
    """

    def __call__(self, y: Any) -> float:
        """Return the fraction of mismatches."""
        return self._wrong(y) / len(self.right) if self.right else 0.0

    def value(self, *tallies: ArrayLike) -> Values:
        """Return the tally as a fraction."""
        return _alone("mismatches", tallies) / max(len(self.right), 1)

    def linear(self) -> Line | None:
        """Return the linear function."""
        return 0.0, (1 / max(len(self.right), 1),)

    bounds = (0.0, 1.0)


@dataclass(frozen=True)
class LabelCount(LabellingLoss):
    """The error of the mean state number: ``|Σ y - Σ y*| / M``.

    With two states, the difference between the predicted and the true number of positives.

    Examples
    --------
    >>> import tallytree as tt
    >>> tt.losses.LabelCount([1, 0, 1, 1])([0, 0, 1, 0])
    0.5
    """

    def _numbers(self, states: list[Any]) -> list[int]:
        if any(isinstance(state, str) for state in states):
            raise ModelError(
                "LabelCount adds up state numbers, but the labelling has names; use loss.on(model), "
                "which knows their numbers"
            )
        return states

    @property
    def _target(self) -> int:
        return sum(self._numbers(self.right))

    def __call__(self, y: Any) -> float:
        """Return the difference of the sums, divided by the number of variables."""
        numbers = self._numbers(self.given(y))
        return abs(sum(numbers) - self._target) / len(numbers) if numbers else 0.0

    def reduce(self, model: Model) -> Reduction:
        """Add up the state numbers."""
        pairs = [((i,), np.arange(n)) for i, n in enumerate(model.cardinalities.tolist())]
        return Reduction.identity(model, [Statistic(pairs, name="label_sum")])

    def value(self, *tallies: ArrayLike) -> Values:
        """Return the distance of the tally from that of the truth, divided by the number of variables."""
        distance = np.abs(_alone("label_sum", tallies) - self._target)
        return np.asarray(distance / max(len(self.right), 1), dtype=np.float64)

    @property
    def bounds(self) -> Bounds:
        """From 0; the upper bound depends on the number of states."""
        if self._model is None:
            return 0.0, np.inf
        most = int((self._model.cardinalities - 1).sum())
        return 0.0, max(self._target, most - self._target) / max(len(self.right), 1)
