"""The labels of many truths as one array of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.model.model import Model


def truth_codes(
    truths: Sequence[Any], models: Sequence[Model], names: Mapping[str, int]
) -> NDArray[np.int64] | None:
    """Return labellings, concatenated: all given as numbers, or all as names (-1 for an unknown one).

    None if one is invalid. `models`: each has at least one variable. `names`: the numbers of the names.
    """
    lengths = list(map(len, models))
    try:
        if list(map(len, truths)) != lengths:
            truths = list(map(_in_one_row, truths, models))
        if list(map(len, truths)) != lengths:
            return None
        numbers = np.concatenate(truths)
    except (TypeError, ValueError):  # not a sequence, or of different dimensions
        return None
    if numbers.dtype.kind in "iu" and numbers.ndim == 1:
        return numbers.astype(np.int64, copy=False)
    labels = list(chain.from_iterable(t.tolist() if isinstance(t, np.ndarray) else t for t in truths))
    if set(map(type, labels)) != {str}:
        return None
    return np.array([names.get(label, -1) for label in labels], dtype=np.int64)


def _in_one_row(truth: Any, model: Model) -> Any:
    """Return a labelling in the shape of an image as a row."""
    image = len(model.shape) > 1 and isinstance(truth, np.ndarray) and truth.shape == model.shape
    return truth.reshape(-1) if image else truth
