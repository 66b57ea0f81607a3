"""Scores and tallies of labellings, directly from the tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels import native

Evaluation = tuple[float, float, int, list[int]]
"""A labelling's score, the magnitude of its local scores, their number, and the sums of integer blocks."""


class Tables(Protocol):
    """Factors of one kind: their scopes and their tables."""

    scopes: NDArray[np.int32]
    tables: NDArray[Any]


def evaluator(
    cardinalities: NDArray[np.int32], scores: Sequence[Tables], counts: Sequence[Tables] = ()
) -> Callable[[NDArray[np.int64]], Evaluation]:
    """Return a function that evaluates labellings on tables of scores and integers.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model([2], [((0,), [0.0, 1.5])])
    >>> evaluator(model.cardinalities, model.blocks, tt.count(model, state=1).blocks)(np.array([1]))
    (1.5, 1.5, 1, [1])
    """
    return partial(
        native.evaluate,
        cardinalities,
        [block.scopes for block in scores],
        [block.tables for block in scores],
        [block.scopes for block in counts],
        [block.tables for block in counts],
    )
