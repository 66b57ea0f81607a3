"""Single precision: tables of half the size, and answers with a gap.

In single precision factors are rounded up, and so is every sum. Maxima are exact, so a table holds upper
bounds on the best scores, despite rounding. A labelling is decoded from the same
tables and scored in double precision; no other one is better by more than the distance to the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from tallytree.errors import ModelError
from tallytree.model.blocks import Block
from tallytree.model.rounding import magnitude

Precision = Literal["double", "single"]

_LARGEST = 1e38  # smaller sums fit in a float
_EPSILON, _TINY = 2.0**-23, 2.0**-149


def check_scores(blocks: Iterable[Block]) -> None:
    """Raise an error for scores whose sums may be too large for single precision."""
    total = magnitude(blocks)
    if not total <= _LARGEST:
        raise ModelError(
            f"the scores add up to {total:.3g} in magnitude, but single precision ends at {_LARGEST:.0e}; "
            "divide all of them by a constant, or remove precision='single'"
        )


def excess(bound: float, found: float) -> float:
    """Return how far a bound is above the value found.

    Examples
    --------
    >>> excess(2.5, 2.0), excess(2.0, 2.0), excess(float("inf"), float("inf"))
    (0.5, 0.0, 0.0)
    """
    return 0.0 if bound == found else max(bound - found, 0.0)


def single_rounding(terms: int, size: float) -> float:
    """Bound what rounding up adds to a labelling's score: twice for each of its local scores.

    `terms`: the number of local scores. `size`: the sum of their magnitudes.

    Examples
    --------
    >>> single_rounding(10, 8.0) < 1e-4
    True
    """
    return (8 + 4 * terms) * (_EPSILON * size + _TINY)
