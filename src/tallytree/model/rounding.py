"""How far apart two sums of the same scores can be.

A sum of n numbers, in any order, is off by at most ``(n - 1)·eps/2·Σ|f|`` to first order. Messages,
certificates and users add the same scores in different orders, so two results that differ by no more than
:func:`rounding` count as the same score.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tallytree.model.blocks import Block, row_ends
from tallytree.model.model import Model
from tallytree.values import read_only

_EPSILON = float(np.finfo(np.float64).eps)


def rounding_bound(terms: Any, magnitude: Any) -> Any:
    """Bound the difference of any two sums of the same numbers, in any order: ``(8 + 2n)·eps·Σ|f|``.

    `terms`: how many numbers there are. `magnitude`: the sum of their magnitudes.

    Examples
    --------
    >>> rounding_bound(10, 8.0) < 1e-13
    True
    """
    return (8 + 2 * terms) * _EPSILON * magnitude


def rounding(blocks: Iterable[Block], *further: float) -> float:
    """Bound the difference of any two evaluations of any labelling of a model.

    `blocks`: the factors. `further`: numbers that are added to them.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model([2], [((0,), [0.0, 1.5]), ((0,), [-4.0, 0.0])])
    >>> rounding(model.blocks) < 1e-13
    True
    """
    parts = list(blocks)
    terms = sum(map(len, parts)) + len(further)
    return float(rounding_bound(terms, magnitude(parts) + sum(map(abs, further))))


def magnitude(blocks: Iterable[Block]) -> float:
    """Return a bound on the magnitude of all scores: the largest entries of all factors, ``Σ max|f|``."""
    return sum(map(_magnitude, blocks), 0.0)


def lowest_score(blocks: Iterable[Block]) -> float:
    """Return a lower bound on the score of every allowed labelling: the smallest entries of all factors.

    Examples
    --------
    >>> import tallytree as tt
    >>> lowest_score(tt.Model([2], [((0,), [-4.0, -np.inf])]).blocks) < -4.0
    True
    """
    parts = list(blocks)
    return sum(map(_least, parts), 0.0) - rounding(parts)


def _least(block: Block) -> float:
    """Sum the smallest scores of the tables."""
    tables = np.where(np.isneginf(block.tables), np.inf, block.tables).reshape(len(block.tables), -1)
    return float(row_ends(np.minimum, tables).sum()) * _repeats(block)


def _magnitude(block: Block) -> float:
    """Sum the largest magnitudes of the tables; -inf is exact, whatever is added to it."""
    tables = block.tables.reshape(len(block.tables), -1)
    least = row_ends(np.minimum, tables)
    if np.isneginf(least).any():  # copies the tables, which is avoided for large models
        least = row_ends(np.minimum, np.where(np.isneginf(tables), 0, tables))
    largest = np.maximum(np.maximum(row_ends(np.maximum, tables), -least), 0)
    return float(largest.sum()) * (len(block) if len(largest) == 1 else 1)


# --- large scores common to all labellings, and the model without them --------------------------------------
# A sum of exponentials resolves differences between labellings only as far as the rounding of the scores
# allows: next to 1e16, the logarithm of a number of labellings is lost. What a table adds to every
# labelling changes no probability, so the largest entry of each table is subtracted first if that matters.

_LARGE = 2.0**20  # below this, sums of exponentials are accurate to ten digits


def levelled(model: Model) -> tuple[Model, float]:
    """Return a model with the same probabilities, and the score subtracted from it (0 if scores are small).

    Examples
    --------
    >>> import tallytree as tt
    >>> level, offset = levelled(tt.Model([2], [((0,), [1e16, 1e16 - 2])]))
    >>> level.blocks[0].tables, offset
    (array([[ 0., -2.]]), 1e+16)
    """
    if sum(map(_most, model.blocks)) < _LARGE:
        return model, 0.0
    tops = [_tops(block) for block in model.blocks]
    if (
        sum(float(np.abs(top).sum()) * _repeats(b) for top, b in zip(tops, model.blocks, strict=True))
        < _LARGE
    ):
        return model, 0.0
    blocks = [
        block.with_tables(read_only(block.tables - top.reshape(-1, *(1,) * block.arity)))
        for top, block in zip(tops, model.blocks, strict=True)
    ]
    offset = sum(float(top.sum()) * _repeats(b) for top, b in zip(tops, model.blocks, strict=True))
    level = Model.from_blocks(
        model.cardinalities, blocks, shape=model.shape, variables=model.variables, states=model.states
    )
    return level, offset


def _most(block: Block) -> float:
    """Return an upper bound on the sum of the largest entries; inf if something is forbidden."""
    if not block.tables.size:
        return 0.0
    flat = block.tables.reshape(-1)  # for short rows, finding a position is faster than a maximum
    return max(float(flat[flat.argmax()]), -float(flat[flat.argmin()])) * len(block)


def _tops(block: Block) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the largest entry of each table; 0 if all entries are forbidden."""
    largest = row_ends(np.maximum, block.tables.reshape(len(block.tables), -1))
    return np.where(np.isneginf(largest), 0.0, largest)


def _repeats(block: Block) -> int:
    """Return how many factors share each table."""
    return len(block) if len(block.tables) == 1 else 1
