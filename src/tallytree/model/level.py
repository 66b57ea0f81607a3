"""Large scores that all labellings have in common, and the model without them.

A sum of exponentials keeps what differs between labellings only as far as the scores' own rounding allows:
next to 1e16 there is no room for the logarithm of a number of labellings. What a table adds to every
labelling changes no probability, so the largest entry of each table is taken off first, where that matters.
"""

from __future__ import annotations

import numpy as np

from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.values import read_only

_LARGE = 2.0**20  # below, sums of exponentials are right to ten digits


def levelled(model: Model) -> tuple[Model, float]:
    """Return a model with the same probabilities, and what was taken off all scores: nothing if it is small.

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
    """Return what the largest entries cannot add up to more than; inf where something is forbidden."""
    if not block.tables.size:
        return 0.0
    return max(float(block.tables.max()), -float(block.tables.min())) * len(block)


def _tops(block: Block) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the largest entry of each table; 0 where all is forbidden."""
    largest = block.tables.reshape(len(block.tables), -1).max(axis=1)
    return np.where(np.isneginf(largest), 0.0, largest)


def _repeats(block: Block) -> int:
    """Return how many factors each table stands for."""
    return len(block) if len(block.tables) == 1 else 1
