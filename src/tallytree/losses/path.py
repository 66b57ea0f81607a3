"""The optimum as a function of the margin: the upper envelope of lines, one for each tally."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.losses.base import is_number
from tallytree.values import read_only

Found = TypeVar("Found")


def checked_range(low: float, high: float) -> tuple[float, float]:
    """Raise an error unless it is a valid range of margins."""
    if not is_number(low) or not is_number(high) or not 0 <= low <= high or low == np.inf:
        raise ModelError(f"margins must satisfy 0 <= low <= high with low finite; got {low!r}, {high!r}")
    return float(low), float(high)


class MarginPath(Generic[Found]):
    """For every margin λ in a range, the best of the lines ``loss·λ + constant``, and its labelling.

    Attributes
    ----------
    low, high : float
        The range of margins.
    breakpoints : float array
        The margins at which the best labelling changes, in increasing order.
    losses : float array
        The loss on each piece, in increasing order: one more than there are breakpoints.

    Examples
    --------
    >>> path = MarginPath(np.array([0.0, 1.0]), np.array([2.0, 0.0]), 0.0, 5.0, lambda line, margin: line)
    >>> path.breakpoints, path.value([1.0, 4.0]), path.at(4.0)
    (array([2.]), array([2., 4.]), 1)
    """

    def __init__(
        self,
        losses: NDArray[np.float64],
        constants: NDArray[np.float64],
        low: float,
        high: float,
        solution: Callable[[int, float], Found],
    ) -> None:
        self.low, self.high = checked_range(low, high)
        lines, points = _envelope(losses, constants, self.low, self.high)
        self._lines, self._solution = lines, solution
        self.breakpoints: NDArray[np.float64] = read_only(np.array(points, dtype=np.float64))
        self.losses: NDArray[np.float64] = read_only(losses[lines])
        self._constants = constants[lines]

    def __len__(self) -> int:
        """Return the number of pieces."""
        return len(self._lines)

    def __iter__(self) -> Iterator[tuple[float, float, Found]]:
        """Iterate over the pieces: the margins where it starts and ends, and the labelling at its start."""
        ends = [self.low, *self.breakpoints.tolist(), self.high]
        for line, low, high in zip(self._lines, ends[:-1], ends[1:], strict=True):
            yield low, high, self._solution(line, low)

    def value(self, margins: ArrayLike) -> NDArray[np.float64]:
        """Return the optimum at some margins, without decoding."""
        at = self._checked(margins)
        piece = np.searchsorted(self.breakpoints, at)
        return np.asarray(self.losses[piece] * at + self._constants[piece], dtype=np.float64)

    def at(self, margin: float) -> Found:
        """Return the best labelling at a margin; at a breakpoint, the one that is best below it."""
        at = self._checked(margin)
        return self._solution(self._lines[int(np.searchsorted(self.breakpoints, at))], float(at))

    def _checked(self, margins: ArrayLike) -> NDArray[np.float64]:
        at = np.asarray(margins, dtype=np.float64)
        if not ((at >= self.low) & (at <= self.high) & (at < np.inf)).all():
            raise ModelError(f"the path covers {self.low:.6g} to {self.high:.6g}, got {margins!r}")
        return at

    def __repr__(self) -> str:
        return f"MarginPath({len(self)} pieces from {self.low:.6g} to {self.high:.6g})"


def _envelope(
    slopes: NDArray[np.float64], constants: NDArray[np.float64], low: float, high: float
) -> tuple[list[int], list[float]]:
    """Walk along the upper envelope: from each line to the steeper one that crosses it first."""
    values = slopes * low + constants
    best = int(values.argmax())
    steepest = np.flatnonzero(values == values[best])
    current = int(steepest[slopes[steepest].argmax()])  # of the best at the start, the steepest
    lines: list[int] = [current]
    points: list[float] = []
    while True:
        steeper = np.flatnonzero(slopes > slopes[current])
        rise = slopes[steeper] - slopes[current]
        crossings = (constants[current] - constants[steeper]) / rise
        if not len(steeper) or crossings.min() >= high:
            return lines, points
        first = crossings.min()
        met = steeper[crossings == first]
        current = int(met[slopes[met].argmax()])
        lines.append(current)
        points.append(max(float(first), low))
