"""Block-coordinate Frank-Wolfe with working sets.

A visit to an example calls the oracle for its most violated plane, adds it, and moves weight between the
stored planes by pairwise steps with exact line search. The dual increases with every step. With room for a
single plane, everything found before is merged into one mean plane, and a visit is the textbook step towards
the new one (Lacoste-Julien, Jaggi, Schmidt and Pletscher, 2013); more room makes it converge faster, because
planes that turn out to be wrong can lose their weight again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tallytree.learning.accepted import COUNT, FLAG, NATURAL, check_all
from tallytree.learning.oracle import Oracle
from tallytree.learning.planes import Floats, Plane, dot
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
from tallytree.learning.working_sets import WorkingSet, packed, unpacked

_SETTLED = 0.1
"""The fraction of a pass's gap that may remain on the stored planes, spread evenly over the examples."""


@dataclass(frozen=True)
class FrankWolfe(Solver):
    """Block-coordinate Frank-Wolfe.

    Parameters
    ----------
    room : int
        The number of planes stored per example: 1 is the textbook method.
    batch : int
        The number of examples per oracle call, at the same weights.
    cached_passes : int
        The maximum number of passes over the stored planes after each oracle pass; they need no inference,
        and end when there is little left to gain.
    averaging : bool
        Certify and return the average of the weights of all visits, the t-th weighted by t, instead of the
        last ones. It predicts better after few passes; later, the last weights have the smaller gap.
    seed : int
        The seed for the order of the examples in each pass.
    """

    room: int = 20
    batch: int = 16
    cached_passes: int = 100
    averaging: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_all(self, room=COUNT, batch=COUNT, cached_passes=NATURAL, averaging=FLAG, seed=NATURAL)

    def start(self, oracle: Oracle, C: float) -> FrankWolfeRun:
        """Return a run at ``w = 0``."""
        return FrankWolfeRun(self, oracle, C)


class FrankWolfeRun(Run):
    """The state of a Frank-Wolfe run."""

    def __init__(self, solver: FrankWolfe, oracle: Oracle, C: float) -> None:
        super().__init__(oracle, C)
        self.solver = solver
        full = np.full(1, C)
        self.sets = [
            WorkingSet([oracle.base(example)], full, np.zeros((1, 1))) for example in range(len(oracle))
        ]
        self._weights = np.zeros(oracle.dimension)
        self._workspace = np.zeros(oracle.dimension)
        # Σ_s s(s−1)/2 · change_s: the sum of t·w_t over T visits is T(T+1)/2 · w_T minus this
        self._lag = np.zeros(oracle.dimension if solver.averaging else 0)
        self._visits = 0

    @property
    def weights(self) -> Floats:
        """The weights as they are now, or their average."""
        if not self.solver.averaging or not self._visits:
            return self._weights
        average: Floats = self._weights - self._lag / (0.5 * self._visits * (self._visits + 1))
        return average

    @property
    def dual(self) -> float:
        """``D(α)``."""
        linear = sum(dot(one.alpha, one.offsets) for one in self.sets)
        return linear - half_square(self._weights)

    def advance(self, number: int, certify: bool) -> Report:
        """Make one pass over the examples, and some over the stored planes."""
        order = shuffled(self.solver.seed, number, len(self.sets))
        report = self._certified(order.tolist()) if certify else self._moving(order)
        self._settle(order.tolist(), report.gap)
        return report._replace(dual=self.dual)

    def _settle(self, order: Sequence[int], gap: float) -> None:
        """Pass over the stored planes; examples with a small part of the gap are skipped."""
        share = _SETTLED * gap / len(order)
        busy = [self.sets[example] for example in order if len(self.sets[example]) > 1]
        for _ in range(self.solver.cached_passes):
            busy = [one for one in busy if self._move(one) > share]
            if not busy:
                break

    def _moving(self, order: np.ndarray) -> Report:
        hinges = gap = 0.0
        for chunk in batches(order, self.solver.batch):
            for example, planes in zip(chunk, self.oracle.planes(chunk, self._weights), strict=True):
                hinges += planes[0].at(self._weights)
                gap += self._visit(self.sets[example], planes)
        dual = self.dual
        return Report(dual, dual + gap, hinges / len(order), None)

    def _certified(self, order: list[int]) -> Report:
        """Call the oracle for all examples at the same weights, then visit them."""
        self._weights[:] = 0.0  # sums of many small changes drift, so recompute them here
        for one in self.sets:
            one.add_to(self._weights)
        weights = self.weights.copy()
        found = self.oracle.planes(order, weights)
        hinges = hinge_sum(found, weights)
        for example, planes in zip(order, found, strict=True):
            self._visit(self.sets[example], planes)
        primal = half_square(weights) + self.C * hinges
        return Report(self.dual, primal, hinges / len(order), weights)

    def _visit(self, one: WorkingSet, planes: Sequence[Plane]) -> float:
        for plane in planes:
            one.add(plane, self._workspace)
        gap = self._move(one)
        if len(one) > self.solver.room:
            one.trim(self.solver.room, one.gradients(self._weights))
        return gap

    def _move(self, one: WorkingSet) -> float:
        """Improve one block; return its gap before, on the stored planes."""
        self._visits += 1
        return one.improve(self._weights, self._lag, 0.5 * self._visits * (self._visits - 1))

    def arrays(self) -> Arrays:
        """Return the state as arrays."""
        state = {"weights": self._weights, "lag": self._lag, "visits": np.array(self._visits)}
        return {**state, **packed(self.sets)}

    def restore(self, arrays: Arrays) -> None:
        """Restore the state of another run."""
        sets = unpacked(arrays, len(self.sets), self.oracle.dimension)
        weights, lag = taken(arrays, "weights", self._weights), taken(arrays, "lag", self._lag)
        self.sets, self._weights, self._lag = sets, weights, lag
        self._visits = int(arrays["visits"])

    def rescale(self, C: float) -> None:
        """Continue with another C."""
        factor = C / self.C
        for one in self.sets:
            one.alpha *= factor
        self._weights *= factor
        self._lag[:] = 0.0
        self._visits, self.C = 0, C
