"""How far two sums of the same scores can be apart.

A sum of n numbers, in whatever order, is off by at most ``(n - 1)·eps/2·Σ|f|`` to first order. Messages,
certificates and users add the same scores in different orders, so two results that differ by no more than
:func:`rounding` are one and the same score.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tallytree.model.blocks import Block

__all__ = ["magnitude", "rounding"]

_EPSILON = float(np.finfo(np.float64).eps)


def rounding(blocks: Iterable[Block], *further: float) -> float:
    """Bound the difference of any two evaluations of a labelling: ``(8 + 2n)·eps·Σ max|f|``.

    Parameters
    ----------
    blocks : iterable of Block
        The factors.
    further : float
        Numbers that are added to them.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model([2], [((0,), [0.0, 1.5]), ((0,), [-4.0, 0.0])])
    >>> rounding(model.blocks) < 1e-13
    True
    """
    parts = list(blocks)
    terms = sum(map(len, parts)) + len(further)
    return (8 + 2 * terms) * _EPSILON * (magnitude(parts) + sum(map(abs, further)))


def magnitude(blocks: Iterable[Block]) -> float:
    """Return what no score exceeds in size: the largest entries of all factors, ``Σ max|f|``."""
    return sum(map(_magnitude, blocks), 0.0)


def _magnitude(block: Block) -> float:
    """Sum the largest magnitudes of the tables; -inf is exact, whatever is added to it."""
    sizes = np.abs(np.where(np.isneginf(block.tables), 0, block.tables))
    largest = sizes.reshape(len(sizes), -1).max(axis=1, initial=0)
    return float(largest.sum()) * (len(block) if len(largest) == 1 else 1)
