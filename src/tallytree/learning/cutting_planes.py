"""Cutting planes: solve the problem on the planes found so far, call the oracle at the solution, repeat.

With one slack, the planes of all examples are added up to a plane of the sum ``Σ_i ξ_i`` (Joachims,
Finley and Yu, 2009): one small quadratic program, many passes. With a slack per example
(Tsochantaridis et al., 2005) a few passes suffice, and the programs are larger. Every pass ends with a
certified gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import clarabel
import numpy as np
from scipy import sparse

from tallytree.errors import TallytreeError
from tallytree.learning.accepted import COUNT, check_all, one_of
from tallytree.learning.oracle import Oracle
from tallytree.learning.planes import Floats, Plane, combined, dot
from tallytree.learning.solver import Arrays, Report, Run, Solver, half_square, hinge_sum, taken
from tallytree.learning.working_sets import WorkingSet, packed, unpacked

# --- the quadratic program of cutting planes ----------------------------------------------------------------
# The dual on the planes found so far. Maximise ``Σ α b − ½ αᵀ G α`` subject to ``α ≥ 0`` and ``Σ_k α_ik = C``
# for every set ``i``, where ``G`` holds the inner products of the planes' slopes. Clarabel, an interior-point
# solver, solves it; its solution is projected back to the simplices, so that the resulting bound is valid.

_NEGLIGIBLE = 1e-9
"""Interior-point solvers leave shares up to this on planes that should have none."""


def best_alpha(sets: Sequence[WorkingSet], C: float) -> list[Floats]:
    """Return the best weights of the planes of all sets together, in the order of the sets."""
    sizes = np.array([len(one) for one in sets])
    owners = np.repeat(np.arange(len(sets)), sizes)
    offsets = np.concatenate([one.offsets for one in sets])
    shares = _shares(_gram(sets), offsets, owners, C)
    shares[shares < _NEGLIGIBLE] = 0.0
    shares /= np.bincount(owners, weights=shares)[owners]
    return np.split(C * shares, np.cumsum(sizes)[:-1])


def _shares(gram: sparse.csc_matrix, offsets: Floats, owners: np.ndarray, C: float) -> Floats:
    """Solve in terms of ``α / C``: minimise ``½ C · sᵀ G s − bᵀ s``."""
    count, total = int(owners[-1]) + 1, len(owners)
    sums = sparse.csc_matrix((np.ones(total), (owners, np.arange(total))), shape=(count, total))
    constraints = sparse.vstack([sums, -sparse.identity(total)]).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    settings.max_threads = 1
    solution = clarabel.DefaultSolver(
        sparse.triu(C * gram).tocsc(),
        -offsets,
        constraints,
        np.concatenate((np.ones(count), np.zeros(total))),
        [clarabel.ZeroConeT(count), clarabel.NonnegativeConeT(total)],
        settings,
    ).solve()
    shares = np.asarray(solution.x)
    if not np.isfinite(shares).all():
        raise TallytreeError(
            f"the quadratic program of {total} planes was not solved ({solution.status}): scale the features "
            "to about 1, lower C, or use the solver FrankWolfe(), which does not need one"
        )
    return shares


def _gram(sets: Sequence[WorkingSet]) -> sparse.csc_matrix:
    if len(sets) == 1:
        return sparse.csc_matrix(sets[0].gram)
    planes = [plane for one in sets for plane in one.planes]
    indices = np.concatenate([plane.indices for plane in planes])
    used, columns = np.unique(indices, return_inverse=True)
    ends = np.cumsum([0, *(len(plane.indices) for plane in planes)])
    values = np.concatenate([plane.values for plane in planes])
    slopes = sparse.csr_matrix((values, columns, ends), shape=(len(planes), len(used)))
    return (slopes @ slopes.T).tocsc()


@dataclass(frozen=True)
class CuttingPlanes(Solver):
    """Cutting planes with one slack, or with one per example.

    Parameters
    ----------
    slacks : {"one", "each"}
        Whether the planes of all examples are added up (``"one"``) or kept apart (``"each"``).
    room : int
        The maximum number of planes in each working set; idle ones are dropped first.
    """

    slacks: Literal["one", "each"] = "one"
    room: int = 50

    def __post_init__(self) -> None:
        check_all(self, slacks=one_of("one", "each"), room=COUNT)

    def start(self, oracle: Oracle, C: float) -> CuttingPlanesRun:
        """Return a run at ``w = 0``."""
        return CuttingPlanesRun(self, oracle, C)


class CuttingPlanesRun(Run):
    """The state of a cutting-plane run."""

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
        """Call the oracle for all examples, and solve the program with the planes found."""
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
        """Return the planes for each working set: unchanged, or added up over the examples by rank."""
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
        """Restore the state of another run."""
        self.sets = unpacked(arrays, len(self.sets), self.oracle.dimension)
        self._weights = taken(arrays, "weights", self._weights)

    def rescale(self, C: float) -> None:
        """Continue with another C: the planes stay valid, and the program is solved again."""
        for one in self.sets:
            one.alpha *= C / self.C
        self.C = C
        self._solve()
