"""What a labelling is worth, straight from the tables of scores and of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels import native

__all__ = ["Evaluation", "evaluate"]

Evaluation = tuple[float, float, int, list[int]]
"""A labelling's score, the size of its local scores, their number, and the sum of each block of integers."""

Blocks = Sequence[tuple[NDArray[np.int32], NDArray[Any]]]
"""Scopes and tables of some factors, one pair for each kind."""


def evaluate(
    cardinalities: NDArray[np.int32], scores: Blocks, counts: Blocks, assignment: NDArray[np.int64]
) -> Evaluation:
    """Look a labelling up in tables of scores and of integers.

    Examples
    --------
    >>> import numpy as np
    >>> score = np.array([[0]], dtype=np.int32), np.array([[0.0, 1.5]])
    >>> count = np.array([[0]], dtype=np.int32), np.array([[0, 2]])
    >>> evaluate(np.array([2], dtype=np.int32), [score], [count], np.array([1]))
    (1.5, 1.5, 1, [2])
    """
    return native.evaluate(
        cardinalities,
        [scopes for scopes, _ in scores],
        [tables for _, tables in scores],
        [scopes for scopes, _ in counts],
        [tables for _, tables in counts],
        assignment,
    )
