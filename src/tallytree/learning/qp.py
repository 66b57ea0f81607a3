"""The quadratic program of cutting planes: the dual on the planes found so far.

Maximise ``Σ α b − ½ αᵀ G α`` subject to ``α ≥ 0`` and ``Σ_k α_ik = C`` for every set ``i``, where ``G`` holds
the inner products of the planes' slopes. Clarabel, an interior-point solver, does it; its answer is put back
on the simplices, so that what follows from it is a bound and not a claim.
"""

from __future__ import annotations

from collections.abc import Sequence

import clarabel
import numpy as np
from scipy import sparse

from tallytree.errors import TallytreeError
from tallytree.learning.planes import Floats
from tallytree.learning.working_sets import WorkingSet

_NEGLIGIBLE = 1e-9
"""Shares below this are what an interior point leaves on planes that have none."""


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
            "to about 1, lower C, or use the solver FrankWolfe(), which needs none"
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
