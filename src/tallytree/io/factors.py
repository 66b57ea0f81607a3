"""The factors of a model one by one, as stored in files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallytree.model.model import Model

Table: TypeAlias = NDArray[np.float64]
Factor: TypeAlias = tuple[tuple[int, ...], Table]

MOST_AXES = 31
"""The maximum number of axes in NumPy, minus one for the stack of tables."""

LARGEST_SCORE = 700.0
"""``exp(±700)`` is a normal double, with room to spare."""


def each_factor(model: Model) -> Iterator[Factor]:
    """Yield every factor as (scope, table)."""
    for block in model.blocks:
        shape = (len(block.scopes), *block.tables.shape[1:])
        for scope, table in zip(block.scopes.tolist(), np.broadcast_to(block.tables, shape), strict=True):
            yield tuple(scope), np.asarray(table)
