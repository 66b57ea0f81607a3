"""Working sets as flat arrays, and back, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.learning.planes import Plane
from tallytree.learning.solver import Arrays
from tallytree.learning.working_sets import WorkingSet


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


def unpacked(arrays: Arrays, sets: int, dimension: int) -> list[WorkingSet]:
    """Return the working sets that such arrays hold: so many, of planes in so many dimensions."""
    _check(arrays, sets, dimension)
    ends = np.cumsum(arrays["plane_sizes"])[:-1]
    parts = zip(
        np.split(arrays["indices"], ends),
        np.split(arrays["values"], ends),
        arrays["offsets"].tolist(),
        strict=True,
    )
    planes = [Plane(*part) for part in parts]
    found, first, square = [], 0, 0
    for size in arrays["set_sizes"].tolist():
        gram = arrays["gram"][square : square + size * size].reshape(size, size)
        last = first + size
        found.append(WorkingSet(planes[first:last], arrays["alpha"][first:last], gram.copy()))
        first, square = last, square + size * size
    return found


def _check(arrays: Arrays, sets: int, dimension: int) -> None:
    """Refuse arrays that do not belong together."""
    of_sets, of_planes, indices = arrays["set_sizes"], arrays["plane_sizes"], arrays["indices"]
    planes, entries = len(of_planes), len(indices)
    right = (
        all(array.ndim == 1 and array.dtype == np.int64 for array in (of_sets, of_planes, indices))
        and len(of_sets) == sets
        and of_sets.min(initial=1) >= 1
        and of_planes.min(initial=0) >= 0
        and of_sets.sum() == planes
        and of_planes.sum() == entries
        and indices.min(initial=0) >= 0
        and indices.max(initial=0) < dimension
    )
    sizes = {"values": entries, "offsets": planes, "alpha": planes, "gram": int((of_sets**2).sum())}
    if not right or any(not is_floats(arrays[name], size) for name, size in sizes.items()):
        raise ValueError("the planes of the examples do not belong together")


def is_floats(array: NDArray[Any], size: int) -> bool:
    """Return whether an array has so many finite doubles in a row."""
    return array.dtype == np.float64 and array.shape == (size,) and bool(np.isfinite(array).all())
