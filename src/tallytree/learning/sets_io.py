"""Working sets as flat arrays, and back, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.learning.planes import Plane
from tallytree.learning.solver import Arrays
from tallytree.learning.working_sets import WorkingSet

__all__ = ["packed", "unpacked"]


def packed(sets: Sequence[WorkingSet]) -> Arrays:
    """Return the arrays that hold some working sets."""
    planes = [plane for one in sets for plane in one.planes]
    return {
        "set_sizes": np.array([len(one) for one in sets], dtype=np.int64),
        "plane_sizes": np.array([len(plane.indices) for plane in planes], dtype=np.int64),
        "indices": np.concatenate([plane.indices for plane in planes]),
        "values": np.concatenate([plane.values for plane in planes]),
        "offsets": np.array([plane.offset for plane in planes], dtype=np.float64),
        "alpha": np.concatenate([one.alpha for one in sets]),
        "gram": np.concatenate([one.gram.ravel() for one in sets]),
    }


def unpacked(arrays: Arrays) -> list[WorkingSet]:
    """Return the working sets that such arrays hold."""
    ends = np.cumsum(arrays["plane_sizes"])[:-1]
    parts = zip(
        np.split(arrays["indices"], ends),
        np.split(arrays["values"], ends),
        arrays["offsets"].tolist(),
        strict=True,
    )
    planes = [Plane(*part) for part in parts]
    sets, first, square = [], 0, 0
    for size in arrays["set_sizes"].tolist():
        gram = arrays["gram"][square : square + size * size].reshape(size, size)
        last = first + size
        sets.append(WorkingSet(planes[first:last], arrays["alpha"][first:last], gram.copy()))
        first, square = last, square + size * size
    return sets
