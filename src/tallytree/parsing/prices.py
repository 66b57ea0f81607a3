"""Prices of statistics: a bound on the answer that tells hopeless items from the others.

To be the answer, a tree with tally ``l`` must score ``need(l)`` or more. For any prices ``c`` its score less
what it counts is then at least ``α = min need(l) - c·l``, over the tallies that trees can have. That can be
asked of items one by one, without tallies: those whose best tree, with the prices taken off the scores, does
not come to ``α`` are part of no answer. The best such value of all trees is above ``α`` by the **gap**

    max over trees of (score - c·tally)  +  max over tallies of (c·l - need(l)),

a convex function of the prices; the smaller it is, the fewer items are left. Each tree found on the way is a
candidate for the answer, and may raise what is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 8
_CLOSE = 0.9  # the model's gap that is near enough to the true one
_SMOOTH = (0.3, 0.1, 0.03, 0.01)  # parts of the gap that maxima are rounded off by, one after the other
_NEWTON = 12
_TINY = 1e-9  # a gap that is nothing but rounding

Floats = NDArray[np.float64]


class Prices(NamedTuple):
    """Prices of the statistics, and the gap that they leave."""

    prices: Floats
    gap: float


def find_prices(
    tallies: Floats, need: Callable[[], Floats], best: Callable[[Floats], tuple[float, Floats]]
) -> Prices:
    """Search for prices with a small gap.

    Parameters
    ----------
    tallies : (S, P) array
        What trees can count.
    need : callable
        What trees with these tallies must score at the moment; infinite where they cannot be the answer.
    best : callable
        The score and the tally of the best tree at some prices. It may raise what is needed.
    """
    prices = np.zeros(tallies.shape[1])
    scores: list[float] = []
    counts: list[Floats] = []
    found = Prices(prices, np.inf)
    for _ in range(_ROUNDS):
        score, tally = best(prices)
        scores.append(score)
        counts.append(tally)
        left = np.isfinite(needed := need())
        if not left.any():
            break
        gap = score - tally @ prices + np.max(tallies[left] @ prices - needed[left])
        if gap < found.gap:
            found = Prices(prices, float(gap))
        if not found.gap > _TINY * (1 + abs(score)):
            break
        model = _Model(np.array(scores), np.array(counts), needed[left], tallies[left])
        prices = model.minimiser(found.prices, found.gap)
        if model.gap(prices) > _CLOSE * found.gap:
            break
    return found


class _Model:
    """The gap as far as it is known: of all trees, those that were found."""

    def __init__(self, scores: Floats, counts: Floats, need: Floats, tallies: Floats) -> None:
        self._parts = ((scores, -counts), (-need, tallies))

    def gap(self, prices: Floats) -> float:
        return sum(float(np.max(constants + slopes @ prices)) for constants, slopes in self._parts)

    def minimiser(self, prices: Floats, gap: float) -> Floats:
        """Newton's method on rounded maxima, which come closer and closer."""
        for part in _SMOOTH:
            width = part * gap
            for _ in range(_NEWTON):
                value, slope, curvature = self._rounded(prices, width)
                ridge = 1e-9 * (1 + np.trace(curvature)) * np.eye(len(prices))
                step = -np.linalg.solve(curvature + ridge, slope)
                longest = max(float(np.abs(slopes @ step).max()) for _, slopes in self._parts)
                length = min(1.0, gap / longest) if longest > 0 else 0.0  # where it is flat, not too far
                shortest = 1e-3 * length
                while length > shortest and self._rounded(prices + length * step, width)[0] > value:
                    length /= 2
                if length <= shortest or -length * slope @ step < 1e-3 * width:
                    break
                prices = prices + length * step
        return prices

    def _rounded(self, prices: Floats, width: float) -> tuple[float, Floats, NDArray[np.float64]]:
        """Return the sum of both maxima, as logarithms of sums of exponentials, and its derivatives."""
        size = len(prices)
        value, slope, curvature = 0.0, np.zeros(size), np.zeros((size, size))
        for constants, slopes in self._parts:
            terms = (constants + slopes @ prices) / width
            top = terms.max()
            weights = np.exp(terms - top)
            total = weights.sum()
            weights /= total
            mean = weights @ slopes
            value += width * float(top + np.log(total))
            slope += mean
            curvature += ((slopes.T * weights) @ slopes - np.outer(mean, mean)) / width
        return value, slope, curvature
