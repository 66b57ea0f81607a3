"""Margin and slack scaling: the two ways to put a loss and a score together.

Both compare a labelling with the truth: margin scaling maximises ``λ·loss(y) + F(y) - F(y*)``, slack scaling
``loss(y)·(λ + F(y) - F(y*))``, with a margin λ of 1 unless said otherwise. Neither decreases in the score,
slack scaling because the loss is not negative.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tallytree.answers.objective import Objective
from tallytree.errors import ModelError
from tallytree.losses.base import Loss, Values, is_number

Scaling = Literal["margin", "slack"]


def checked_scaling(scaling: str, loss: Loss) -> Scaling:
    """Refuse a scaling that does not exist, or slack scaling of a loss that can be negative."""
    if scaling not in ("margin", "slack"):
        raise ModelError(f"scaling must be 'margin' or 'slack', got {scaling!r}")
    if scaling == "slack" and loss.bounds[0] < 0:
        raise ModelError(
            f"slack scaling multiplies by the loss, which must not be negative; this {type(loss).__name__} "
            f"can be {loss.bounds[0]:.6g}. Use scaling='margin', or a loss that is not negative"
        )
    return scaling  # type: ignore[return-value]


def checked_margin(margin: float) -> float:
    """Refuse a margin that is negative or no number."""
    if not is_number(margin) or not 0 <= margin < np.inf:
        raise ModelError(f"a margin is a finite number that is not negative, got {margin!r}")
    return float(margin)


def scaled(scaling: Scaling, losses: Any, difference: Any, margin: float = 1.0) -> Values:
    """Put losses and score differences ``F(y) - F(y*)`` together."""
    if scaling == "margin":
        return np.asarray(margin * losses + difference, dtype=np.float64)
    return np.asarray(losses * (margin + difference), dtype=np.float64)


def needed(scaling: Scaling, losses: Any, value: float, margin: float = 1.0) -> Values:
    """Return the least score difference that gives a value; infinite where none does, or any."""
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
