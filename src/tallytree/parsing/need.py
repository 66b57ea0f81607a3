"""What a tree must score to be the answer to a question about a loss.

Some tree reaches a value already. With a given loss, another tree needs a certain score to reach that value
as well; with a smaller loss it needs more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tallytree.losses.scaling import Scaling, needed, scaled
from tallytree.model.rounding import rounding_bound
from tallytree.trees import Tree

if TYPE_CHECKING:
    from tallytree.parsing.loss_query import TreeLossQuery


Floats = NDArray[np.float64]


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
    scores, words = question.forest.scores, len(question.forest.words)
    arrays = (scores.words, scores.rules, scores.chains)
    largest = max(float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in arrays)
    size = 1 + abs(score) + abs(question.truth_score) + 8 * words * largest
    return float(rounding_bound(8 * words, size))
