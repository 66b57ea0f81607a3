"""Prices of statistics: a bound on the optimum that rules out items.

To be optimal, a tree with tally ``l`` must score at least ``need(l)``. For any prices ``c``, its score minus
the price of its tally is then at least ``α = min need(l) - c·l``, over the possible tallies. This can be
checked item by item, without tallies: items whose best tree, with prices subtracted from the scores, does
not reach ``α`` are part of no optimum. The best such value of all trees exceeds ``α`` by the **gap**

    max over trees of (score - c·tally)  +  max over tallies of (c·l - need(l)),

a convex function of the prices; the smaller it is, the fewer items remain. Each tree found on the way is a
candidate for the optimum, and may raise the required score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.losses.scaling import Scaling, needed, scaled
from tallytree.model.rounding import rounding_bound
from tallytree.trees import Tree

_ROUNDS = 8
_CLOSE = 0.9  # fraction of the true gap at which the model's gap is close enough
_SMOOTH = (0.3, 0.1, 0.03, 0.01)  # fractions of the gap by which maxima are smoothed, in turn
_NEWTON = 12
_TINY = 1e-9  # a gap that is just rounding

Floats = NDArray[np.float64]


class Prices(NamedTuple):
    """Prices of the statistics, and the remaining gap."""

    prices: Floats
    gap: float


def find_prices(
    tallies: Floats, need: Callable[[], Floats], best: Callable[[Floats], tuple[float, Floats]]
) -> Prices:
    """Search for prices with a small gap.

    `tallies` (S, P): the possible tallies. `need`: the score currently required with these tallies;
    infinite if they cannot be optimal. `best`: the score and the tally of the best tree at some prices.
    It may raise the required scores.
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
    """The gap restricted to the trees found so far."""

    def __init__(self, scores: Floats, counts: Floats, need: Floats, tallies: Floats) -> None:
        self._parts = ((scores, -counts), (-need, tallies))

    def gap(self, prices: Floats) -> float:
        return sum(float(np.max(constants + slopes @ prices)) for constants, slopes in self._parts)

    def minimiser(self, prices: Floats, gap: float) -> Floats:
        """Newton's method on smoothed maxima, with decreasing smoothing."""
        for part in _SMOOTH:
            width = part * gap
            for _ in range(_NEWTON):
                value, slope, curvature = self._rounded(prices, width)
                ridge = 1e-9 * (1 + np.trace(curvature)) * np.eye(len(prices))
                step = -np.linalg.solve(curvature + ridge, slope)
                longest = max(float(np.abs(slopes @ step).max()) for _, slopes in self._parts)
                length = min(1.0, gap / longest) if longest > 0 else 0.0  # limit the step where it is flat
                shortest = 1e-3 * length
                while length > shortest and self._rounded(prices + length * step, width)[0] > value:
                    length /= 2
                if length <= shortest or -length * slope @ step < 1e-3 * width:
                    break
                prices = prices + length * step
        return prices

    def _rounded(self, prices: Floats, width: float) -> tuple[float, Floats, NDArray[np.float64]]:
        """Return the sum of both maxima, smoothed by log-sum-exp, and its derivatives."""
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


if TYPE_CHECKING:
    from tallytree.parsing.loss_query import TreeLossQuery


# --- the score that a tree must reach to be optimal for a loss ----------------------------------------------
# Some tree already reaches a value. With a given loss, another tree needs a certain score to reach that value
# as well; with a smaller loss it needs more.


class Need:
    """The score that a tree with a given loss must reach to be better than the known ones, at any margin.

    The score required to be better than one tree is linear in the margin, so it is smallest at one end.
    """

    def __init__(self, question: TreeLossQuery, scaling: Scaling, margins: Sequence[float]) -> None:
        self._scaling = scaling
        self._question, self._ends = question, (margins[0], margins[-1])
        self._finite = [end for end in self._ends if end < np.inf]
        self._room = 0.0
        self._known: list[tuple[float, float]] = []  # losses, and scores minus that of the truth
        self._trees: list[tuple[Tree, float]] = []

    def add(self, tree: Tree, score: float) -> None:
        """Add a tree to the known ones."""
        self._room = max(self._room, _rounding(self._question, score))
        self._known.append((self._question.loss(tree), score - self._question.truth_score))
        self._trees.append((tree, score))

    def improves(self, tree: Tree, score: float) -> bool:
        """Whether a tree would be better than the known ones, at one of the ends."""
        mine = self._question.loss(tree), score - self._question.truth_score
        return any(self._values(end, mine)[0] > self._values(end, *self._known).max() for end in self._finite)

    def leaders(self) -> list[tuple[Tree, float]]:
        """Return the known trees that are best at one of the ends; others can only tie with them."""
        return [self._trees[int(self._values(end, *self._known).argmax())] for end in self._finite]

    def _values(self, margin: float, *trees: tuple[float, float]) -> Floats:
        losses, differences = np.array(trees).T
        return scaled(self._scaling, losses, differences, margin)

    def __call__(self, losses: Floats) -> Floats:
        """Return the required scores for these losses."""
        least = np.full(losses.shape, -np.inf)
        for known in self._known:
            ends = [self._needed(losses, *known, margin) for margin in self._ends]
            np.maximum(least, np.minimum(*ends), out=least)
        return self._question.truth_score + least - self._room

    def floor(self, losses: Floats) -> float:
        """Return the smallest required score."""
        return min(float(np.min(self(losses))), *(score - self._room for _, score in self.leaders()))

    def _needed(self, losses: Floats, loss: float, difference: float, margin: float) -> Floats:
        scaling = self._scaling
        nothing = np.full(losses.shape, -np.inf)
        if margin == np.inf or not np.all(losses < np.inf):
            return nothing
        reached = float(scaled(scaling, loss, difference, margin))
        if scaling == "margin":
            return needed(scaling, losses, reached, margin)
        if reached < 0:  # any tree with a small enough loss reaches it
            return nothing
        return np.where(losses > 0, needed(scaling, losses, reached, margin), np.inf)


def _rounding(question: TreeLossQuery, score: float) -> float:
    """Return a bound on the rounding difference between sums of the same scores."""
    scores, words = question.model.scores, len(question.model.words)
    arrays = (scores.words, scores.rules, scores.chains)
    largest = max(float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in arrays)
    size = 1 + abs(score) + abs(question.truth_score) + 8 * words * largest
    return float(rounding_bound(8 * words, size))
