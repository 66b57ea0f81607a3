"""Margin and slack scaling: the two ways to combine a loss with a score.

Both compare a labelling with the truth: margin scaling maximises ``λ·loss(y) + F(y) - F(y*)``, slack scaling
``loss(y)·(λ + F(y) - F(y*))``, with a margin λ of 1 by default. Both are non-decreasing in the score,
slack scaling because the loss is non-negative.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tallytree.answers.objective import Objective
from tallytree.errors import ModelError
from tallytree.losses.base import Loss, Values, is_number

Scaling = Literal["margin", "slack"]


def checked_scaling(scaling: str, loss: Loss) -> Scaling:
    """Raise an error for an unknown scaling, or for slack scaling of a loss that can be negative."""
    if scaling not in ("margin", "slack"):
        raise ModelError(f"scaling must be 'margin' or 'slack', got {scaling!r}")
    if scaling == "slack" and loss.bounds[0] < 0:
        raise ModelError(
            f"slack scaling multiplies by the loss, which must not be negative, but this "
            f"{type(loss).__name__} can be {loss.bounds[0]:.6g}. Use scaling='margin', or a non-negative loss"
        )
    return scaling  # type: ignore[return-value]


def checked_margin(margin: float) -> float:
    """Raise an error unless a margin is a non-negative number."""
    if not is_number(margin) or not 0 <= margin < np.inf:
        raise ModelError(f"margin must be a finite, non-negative number, got {margin!r}")
    return float(margin)


def scaled(scaling: Scaling, losses: Any, difference: Any, margin: float = 1.0) -> Values:
    """Combine losses and score differences ``F(y) - F(y*)``."""
    if scaling == "margin":
        return np.asarray(margin * losses + difference, dtype=np.float64)
    return np.asarray(losses * (margin + difference), dtype=np.float64)


def needed(scaling: Scaling, losses: Any, value: float, margin: float = 1.0) -> Values:
    """Return the smallest score difference that gives a value; infinite if none does, or all do."""
    if scaling == "margin":
        return np.asarray(value - margin * losses, dtype=np.float64)
    some = np.asarray(losses) > 0
    none = np.inf if value > 0 else -np.inf
    return np.where(some, value / np.where(some, losses, 1.0) - margin, none)


def objective(loss: Loss, scaling: Scaling, truth_score: float, margin: float = 1.0) -> Objective:
    """Return ``H(score, *tallies)`` for the statistics of ``loss.reduce``."""

    def augmented(score: Any, *tallies: Any) -> Values:
        return scaled(scaling, loss.value(*tallies), score - truth_score, margin)

    return augmented
