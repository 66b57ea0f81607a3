"""Stochastic subgradient descent with steps ``1/t``: the simplest solver, which also has a certificate.

For a sum over examples, a visit to example ``i`` with its most violated plane ``(a, b)`` is
``w ← (1 − 1/t) w + (1/t) n C a`` (Shalev-Shwartz et al., 2011), so that after ``t`` visits
``w = (n C / t) Σ a``: every plane found has the dual weight ``n C / t``. At the end of a pass each example
has been visited ``t / n`` times, so its planes add up to ``C``: the dual is feasible, and its value is a
lower bound on the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.learning.accepted import COUNT, FLAG, NATURAL, check_all
from tallytree.learning.oracle import Oracle
from tallytree.learning.planes import Floats
from tallytree.learning.solver import (
    Arrays,
    Report,
    Run,
    Solver,
    batches,
    half_square,
    hinge_sum,
    shuffled,
    taken,
)


@dataclass(frozen=True)
class Subgradient(Solver):
    """Stochastic subgradient descent.

    Parameters
    ----------
    batch : int
        The number of examples per step.
    averaging : bool
        Certify and return the average of the weights after each step, the k-th weighted by k.
    seed : int
        The seed for the order of the examples in each pass.

    Notes
    -----
    If there are several planes per example, only the first, which is a subgradient, is used.
    """

    batch: int = 16
    averaging: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        check_all(self, batch=COUNT, averaging=FLAG, seed=NATURAL)

    def start(self, oracle: Oracle, C: float) -> SubgradientRun:
        """Return a run at ``w = 0``."""
        return SubgradientRun(self, oracle, C)


class SubgradientRun(Run):
    """The state of a subgradient run."""

    def __init__(self, solver: Subgradient, oracle: Oracle, C: float) -> None:
        super().__init__(oracle, C)
        self.solver = solver
        self._slopes = np.zeros(oracle.dimension)  # Σ a over all visits
        self._offsets = 0.0  # Σ b
        self._visits = 0
        self._average = np.zeros(oracle.dimension if solver.averaging else 0)
        self._steps = 0
        self._best_dual = -np.inf

    @property
    def weights(self) -> Floats:
        """The average of the weights, or the last ones."""
        return self._average if self.solver.averaging else self._last()

    def _last(self) -> Floats:
        weights: Floats = self._slopes * self._share()
        return weights

    def _share(self) -> float:
        """Return the dual weight of each plane found."""
        return len(self.oracle) * self.C / max(self._visits, 1)

    def advance(self, number: int, certify: bool) -> Report:
        """Make one pass over the examples, and another one with fixed weights for a certificate."""
        hinges = square = 0.0
        for chunk in batches(shuffled(self.solver.seed, number, len(self.oracle)), self.solver.batch):
            weights = self._last()
            planes = self.oracle.planes(chunk, weights)
            hinges += hinge_sum(planes, weights)
            square += half_square(weights) * len(chunk) / len(self.oracle)
            for plane, *_ in planes:
                self._slopes[plane.indices] += plane.values
                self._offsets += plane.offset
            self._visits += len(chunk)
            self._note()
        last = self._last()
        self._best_dual = max(self._best_dual, self._share() * self._offsets - half_square(last))
        if certify:
            return self._certified()
        return Report(self._best_dual, square + self.C * hinges, hinges / len(self.oracle), None)

    def _note(self) -> None:
        self._steps += 1
        if self.solver.averaging:
            self._average += (2.0 / (self._steps + 1)) * (self._last() - self._average)

    def _certified(self) -> Report:
        weights = self.weights.copy()
        hinges = sum(  # by batch, because the examples may be on disk
            hinge_sum(self.oracle.planes(chunk, weights), weights)
            for chunk in batches(np.arange(len(self.oracle)), self.solver.batch)
        )
        primal = half_square(weights) + self.C * hinges
        return Report(self._best_dual, primal, hinges / len(self.oracle), weights)

    def arrays(self) -> Arrays:
        """Return the state as arrays."""
        numbers = np.array([self._offsets, self._best_dual, self._visits, self._steps])
        return {"slopes": self._slopes, "average": self._average, "numbers": numbers}

    def restore(self, arrays: Arrays) -> None:
        """Restore the state of another run."""
        self._slopes = taken(arrays, "slopes", self._slopes)
        self._average = taken(arrays, "average", self._average)
        self._offsets, self._best_dual, visits, steps = arrays["numbers"].tolist()
        self._visits, self._steps = int(visits), int(steps)

    def rescale(self, C: float) -> None:
        """Continue with another C."""
        factor = C / self.C
        self._average *= factor
        self.C = C
        self._best_dual = self._share() * self._offsets - half_square(self._last())
