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

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.losses.scaling import Scaling, needed, scaled
from tallytree.model.rounding import rounding_bound
from tallytree.trees import Tree

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

    `tallies` (S, P): what trees can count. `need`: what trees with these tallies must score at the moment;
    infinite where they cannot be the answer. `best`: the score and the tally of the best tree at some prices.
    It may raise what is needed.
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


if TYPE_CHECKING:
    from tallytree.parsing.loss_query import TreeLossQuery


# --- what a tree must score to be the answer to a question about a loss -------------------------------------
# Some tree reaches a value already. With a given loss, another tree needs a certain score to reach that value
# as well; with a smaller loss it needs more.


class Need:
    """What a tree must score to be better than those that are known, at any of the margins, by its loss.

    What is needed to be better than one tree is linear in the margin, so it is least at one end.
    """

    def __init__(self, question: TreeLossQuery, scaling: Scaling, margins: Sequence[float]) -> None:
        self._scaling = scaling
        self._question, self._ends = question, (margins[0], margins[-1])
        self._finite = [end for end in self._ends if end < np.inf]
        self._room = 0.0
        self._known: list[tuple[float, float]] = []  # losses, and scores less that of the truth
        self._trees: list[tuple[Tree, float]] = []

    def add(self, tree: Tree, score: float) -> None:
        """Take note of a tree."""
        self._room = max(self._room, _rounding(self._question, score))
        self._known.append((self._question.loss(tree), score - self._question.truth_score))
        self._trees.append((tree, score))

    def improves(self, tree: Tree, score: float) -> bool:
        """Say whether a tree would be better than those that are known, at one of the ends."""
        mine = self._question.loss(tree), score - self._question.truth_score
        return any(self._values(end, mine)[0] > self._values(end, *self._known).max() for end in self._finite)

    def leaders(self) -> list[tuple[Tree, float]]:
        """Return the trees that are best at one of the ends: they stay, others may be as good at best."""
        return [self._trees[int(self._values(end, *self._known).argmax())] for end in self._finite]

    def _values(self, margin: float, *trees: tuple[float, float]) -> Floats:
        losses, differences = np.array(trees).T
        return scaled(self._scaling, losses, differences, margin)

    def __call__(self, losses: Floats) -> Floats:
        """Return the least scores with these losses."""
        least = np.full(losses.shape, -np.inf)
        for known in self._known:
            ends = [self._needed(losses, *known, margin) for margin in self._ends]
            np.maximum(least, np.minimum(*ends), out=least)
        return self._question.truth_score + least - self._room

    def floor(self, losses: Floats) -> float:
        """Return the least score of all."""
        return min(float(np.min(self(losses))), *(score - self._room for _, score in self.leaders()))

    def _needed(self, losses: Floats, loss: float, difference: float, margin: float) -> Floats:
        scaling = self._scaling
        nothing = np.full(losses.shape, -np.inf)
        if margin == np.inf or not np.all(losses < np.inf):
            return nothing
        reached = float(scaled(scaling, loss, difference, margin))
        if scaling == "margin":
            return needed(scaling, losses, reached, margin)
        if reached < 0:  # any tree with a small enough loss reaches that
            return nothing
        return np.where(losses > 0, needed(scaling, losses, reached, margin), np.inf)


def _rounding(question: TreeLossQuery, score: float) -> float:
    """Return more than sums of the same scores in different orders can differ by."""
    scores, words = question.model.scores, len(question.model.words)
    arrays = (scores.words, scores.rules, scores.chains)
    largest = max(float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in arrays)
    size = 1 + abs(score) + abs(question.truth_score) + 8 * words * largest
    return float(rounding_bound(8 * words, size))
