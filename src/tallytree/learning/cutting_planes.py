"""Cutting planes: solve the problem on the planes found so far, ask the oracle there, repeat.

With one slack the planes of all examples are added up to a plane of the whole sum ``Σ_i ξ_i`` (Joachims,
Finley and Yu, 2009): one small quadratic program, many passes. With a slack for each example
(Tsochantaridis et al., 2005) few passes do, and the programs are larger. Every pass ends with a certified
gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tallytree.errors import ModelError
from tallytree.learning.oracle import Oracle
from tallytree.learning.planes import Floats, Plane, combined, dot
from tallytree.learning.qp import best_alpha
from tallytree.learning.sets_io import packed, unpacked
from tallytree.learning.solver import Arrays, Report, Run, Solver, half_square, hinge_sum, taken
from tallytree.learning.working_sets import WorkingSet


@dataclass(frozen=True)
class CuttingPlanes(Solver):
    """Cutting planes with one slack, or with one for each example.

    Parameters
    ----------
    slacks : {"one", "each"}
        Whether the planes of all examples are added up.
    room : int
        The planes that are kept in each working set; idle ones are dropped first.
    """

    slacks: Literal["one", "each"] = "one"
    room: int = 50

    def start(self, oracle: Oracle, C: float) -> CuttingPlanesRun:
        """Return a run at ``w = 0``."""
        if self.slacks not in ("one", "each"):
            raise ModelError(f"slacks must be 'one' or 'each', got {self.slacks!r}")
        return CuttingPlanesRun(self, oracle, C)


class CuttingPlanesRun(Run):
    """Cutting planes at work."""

    def __init__(self, solver: CuttingPlanes, oracle: Oracle, C: float) -> None:
        super().__init__(oracle, C)
        self.solver = solver
        bases = [[oracle.base(example)] for example in range(len(oracle))]
        self.sets = [WorkingSet([plane], np.full(1, C)) for (plane,) in self._grouped(bases)]
        self._weights = np.zeros(oracle.dimension)
        self._workspace = np.zeros(oracle.dimension)

    @property
    def weights(self) -> Floats:
        """The optimum on the planes found so far."""
        return self._weights

    def advance(self, number: int, certify: bool) -> Report:
        """Ask the oracle for all examples, and solve the program with what it finds."""
        weights = self._weights
        found = self.oracle.planes(range(len(self.oracle)), weights)
        hinges = hinge_sum(found, weights)
        dual = self._dual()
        for one, planes in zip(self.sets, self._grouped(found), strict=True):
            for plane in planes:
                one.add(plane, self._workspace)
        self._solve()
        primal = half_square(weights) + self.C * hinges
        return Report(max(dual, self._dual()), primal, hinges / len(self.oracle), weights)

    def _grouped(self, found: Sequence[Sequence[Plane]]) -> Sequence[Sequence[Plane]]:
        """Return the planes for each working set: as they are, or added up over the examples rank by rank."""
        if self.solver.slacks == "each":
            return found
        most = max(map(len, found))
        ranks = [[planes[min(rank, len(planes) - 1)] for planes in found] for rank in range(most)]
        return [[combined(planes, np.ones(len(planes))) for planes in ranks]]

    def _solve(self) -> None:
        for one, alpha in zip(self.sets, best_alpha(self.sets, self.C), strict=True):
            one.alpha = alpha
        self._gather()
        for one in self.sets:
            if len(one) > self.solver.room:
                one.trim(self.solver.room, one.gradients(self._weights))

    def _gather(self) -> None:
        self._weights = np.zeros(self.oracle.dimension)
        for one in self.sets:
            one.add_to(self._weights)

    def _dual(self) -> float:
        return sum(dot(one.alpha, one.offsets) for one in self.sets) - half_square(self._weights)

    def arrays(self) -> Arrays:
        """Return the state as arrays."""
        return {"weights": self._weights, **packed(self.sets)}

    def restore(self, arrays: Arrays) -> None:
        """Take up the state of another run."""
        self.sets = unpacked(arrays, len(self.sets), self.oracle.dimension)
        self._weights = taken(arrays, "weights", self._weights)

    def rescale(self, C: float) -> None:
        """Go on with another C: the planes stay valid, and the program is solved again."""
        for one in self.sets:
            one.alpha *= C / self.C
        self.C = C
        self._solve()
