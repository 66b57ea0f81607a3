"""Labellings between one that satisfies a constraint and one that does not.

If many labellings are tied at the best prices, those that plain passes find may be far inside the ranges of
the constraint, although better ones are at their ends: with equal scores, either all variables have the
counted state or none. Variables change one after the other, in elimination order, from one labelling to the
other; where the constraint is about to be violated, the labelling differs from both only along one cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Labelling = NDArray[np.int64]


def crossings(
    inside: Labelling, outside: Labelling, order: NDArray[np.int32], holds: Callable[[Labelling], bool]
) -> Iterator[Labelling]:
    """Yield labellings that satisfy a constraint, next to ones that do not.

    `inside` satisfies it, `outside` does not; `holds` tells which labellings do. Variables change in `order`,
    or the other way round.

    Examples
    --------
    >>> none, all = np.zeros(5, np.int64), np.ones(5, np.int64)
    >>> for between in crossings(none, all, np.arange(5), lambda y: y.sum() <= 2):
    ...     print(between)
    [1 1 0 0 0]
    [0 0 0 1 1]
    """
    for way in (order, order[::-1]):
        below, above, found = 0, len(way), inside
        while above - below > 1:
            middle = (below + above) // 2
            between = inside.copy()
            between[way[:middle]] = outside[way[:middle]]
            if holds(between):
                below, found = middle, between
            else:
                above = middle
        yield found
