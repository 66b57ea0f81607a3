"""Penalties on the weights, and the bounds on the distance to the optimum that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.learning.accepted import NON_NEGATIVE, check_all
from tallytree.learning.planes import Floats


@dataclass(frozen=True)
class Penalty:
    """The penalty ``c1 ‖w‖₁ + c2 ‖w‖²``, as in crfsuite.

    Examples
    --------
    >>> Penalty(c1=1.0, c2=0.5).value(np.array([2.0, -1.0]))
    5.5
    """

    c1: float = 0.0
    c2: float = 1.0

    def __post_init__(self) -> None:
        check_all(self, c1=NON_NEGATIVE, c2=NON_NEGATIVE)

    def value(self, weights: Floats) -> float:
        """Return the penalty of some weights."""
        return float(self.c1 * np.abs(weights).sum() + self.c2 * (weights @ weights))

    def subgradient(self, weights: Floats, gradient: Floats) -> Floats:
        """Return the shortest subgradient of a function plus the penalty, given the function's gradient."""
        smooth = gradient + 2.0 * self.c2 * weights
        if self.c1 == 0.0:
            return smooth
        at_zero = np.sign(smooth) * np.maximum(np.abs(smooth) - self.c1, 0.0)
        return np.where(weights == 0.0, at_zero, smooth + self.c1 * np.sign(weights))

    def excess(self, weights: Floats, gradient: Floats, value: float) -> float:
        """Return an upper bound on the distance of a convex function plus the penalty from its minimum.

        Parameters
        ----------
        weights : array
            The current weights.
        gradient : array
            The function's gradient there, without the penalty.
        value : float
            The value, with the penalty. The function itself must be non-negative everywhere.

        Notes
        -----
        With ``c2``, the sum is strongly convex: ``F(w) − F* ≤ ‖s‖² / (4 c2)`` for any subgradient ``s``.
        With ``c1``, the optimum has ``c1 ‖w*‖₁ ≤ F(w)``, and ``F(w) − F*`` is at most
        ``∇·w + c1 ‖w‖₁ + max(‖∇‖∞ − c1, 0) ‖w*‖₁`` where ``∇`` is the gradient of everything but the L1 norm.
        Both hold, and so does ``F* ≥ 0``.
        """
        bounds = [value]
        if self.c2 > 0.0:
            shortest = self.subgradient(weights, gradient)
            bounds.append(float(shortest @ shortest) / (4.0 * self.c2))
        if self.c1 > 0.0:
            smooth = gradient + 2.0 * self.c2 * weights
            over = max(float(np.abs(smooth).max(initial=0.0)) - self.c1, 0.0)
            linear = float(smooth @ weights) + self.c1 * float(np.abs(weights).sum())
            bounds.append(linear + over * value / self.c1)
        return max(min(bounds), 0.0)
