"""Loss-augmented parsing: the tree that most violates the margin, exactly.

A loss of trees is determined by statistics of trees: F-measures, precision and recall by true and false
positives, crossing brackets by their number. The chart carries them, and the objective is looked up at its
root. Two short cuts change no answer: under margin scaling a linear loss is added to the scores; and where
some tree reaches a value already, only trees that score enough to reach it too need be looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from tallytree.core.expressions import as_constraint
from tallytree.core.lookup import Where
from tallytree.errors import ModelError, TallytreeError
from tallytree.losses.base import Line, Loss
from tallytree.losses.brackets import CrossingBrackets, CrossingBracketsRate
from tallytree.losses.nodes import NodeLoss
from tallytree.losses.positions import ZeroOne
from tallytree.losses.scaling import Scaling, checked_margin, checked_scaling, needed, scaled
from tallytree.parsing.derivation import Scores
from tallytree.parsing.forest import Forest, Parse
from tallytree.parsing.plan import TreePlan
from tallytree.parsing.profile import TreeProfile
from tallytree.parsing.solve import best_of, pose
from tallytree.parsing.statistics import (
    Chart,
    TreeStatistic,
    count,
    crossing_brackets,
    false_positives,
    true_positives,
    wrong_nodes,
)
from tallytree.trees import Tree

__all__ = ["AugmentedParse", "CountedLoss", "counted_loss", "loss_augmented"]


_ROUNDS, _WORTHWHILE = 4, 0.97  # how often the items are pruned again, and what makes it worth it


class CountedLoss(NamedTuple):
    """A loss in terms of statistics of trees.

    Attributes
    ----------
    statistics : tuple of TreeStatistic
        What is counted.
    value : callable
        The loss from their tallies, elementwise.
    line : (constant, coefficients) or None
        The value where it is linear.
    """

    statistics: tuple[TreeStatistic, ...]
    value: Callable[..., Any]
    line: Line | None = None


class AugmentedParse(NamedTuple):
    """The tree that maximises a loss together with the score.

    Attributes
    ----------
    value : float
        ``loss + score - truth_score`` under margin scaling, ``loss·(1 + score - truth_score)`` under slack
        scaling.
    loss, score : float
        Of the tree.
    truth_score : float
        The score of the truth.
    tally : named tuple of int
        What the loss, and the constraint, counted.
    tree : Tree
    """

    value: float
    loss: float
    score: float
    truth_score: float
    tally: Any
    tree: Tree


@singledispatch
def counted_loss(loss: Loss) -> CountedLoss:
    """Say which statistics of trees determine a loss; register losses of your own here."""
    raise ModelError(
        f"a loss of trees such as tallytree.losses.FBeta(tree) is needed, got {loss!r}; losses of your own "
        "are registered with tallytree.parsing.counted_loss"
    )


@counted_loss.register
def _(loss: NodeLoss) -> CountedLoss:
    made = {"tp": true_positives, "fp": false_positives}
    return CountedLoss(tuple(made[name](loss.truth) for name in loss.counted), loss.value, loss.linear())


@counted_loss.register
def _(loss: CrossingBrackets) -> CountedLoss:
    return CountedLoss((crossing_brackets(loss.truth),), loss.value, loss.linear())


@counted_loss.register
def _(loss: CrossingBracketsRate) -> CountedLoss:
    return CountedLoss((crossing_brackets(loss.truth), count()), loss.value)


@counted_loss.register
def _(loss: ZeroOne) -> CountedLoss:
    size = loss.truth.constituents().total()
    statistics = (true_positives(loss.truth), wrong_nodes(loss.truth, cap=1))
    return CountedLoss(statistics, lambda tp, wrong: np.where((tp == size) & (wrong == 0), 0.0, 1.0))


def loss_augmented(
    forest: Forest,
    loss: Loss,
    scaling: Scaling = "margin",
    *,
    margin: float = 1.0,
    where: Where = None,
    memory_limit: float | None = None,
    prune: bool = True,
) -> AugmentedParse:
    """Find the tree that most violates the margin.

    Parameters
    ----------
    forest : Forest
        A sentence with a grammar.
    loss : Loss
        Bound to a tree, as ``tallytree.losses.FBeta(tree)``.
    scaling : {"margin", "slack"}
        Maximise ``loss(y) + F(y) - F(truth)``, or ``loss(y)·(1 + F(y) - F(truth))``.
    margin : float
        In the place of the factor 1 of the loss, or of the 1 in the brackets.
    where : Constraint, optional
        Only trees that satisfy it.
    memory_limit : float, optional
        As for :func:`profile`.
    prune : bool
        Whether to leave out items whose trees all score too little to be the answer. It changes only what
        the answer costs.

    Raises
    ------
    ModelError
        The truth is no tree of the grammar; or the loss can be negative, with slack scaling.

    Examples
    --------
    >>> import tallytree as tt
    >>> rules = {("N", "N", "N"): -1.0}
    >>> forest = tt.parsing.Forest(tt.parsing.Grammar(rules, {}, {"N": {"a": 0.0}}, root="N"), "a a a")
    >>> truth = tt.parsing.parse_tree("(N (N a) (N (N a) (N a)))")
    >>> found = tt.parsing.loss_augmented(forest, tt.losses.FBeta(truth), "slack")
    >>> str(found.tree), found.loss, found.value
    ('(N (N (N a) (N a)) (N a))', 0.5, 0.5)
    """
    return _Question(forest, loss, scaling, margin).answer(where, memory_limit, prune)


class _Question:
    """A loss on a forest."""

    def __init__(self, forest: Forest, loss: Loss, scaling: Scaling, margin: float) -> None:
        if not isinstance(loss, Loss) or not isinstance(loss.truth, Tree):
            raise ModelError(
                f"a loss bound to a tree is needed, as tallytree.losses.FBeta(tree); got {loss!r}"
            )
        self.forest, self.loss, self.counted = forest, loss, counted_loss(loss)
        self.scaling, self.margin = checked_scaling(scaling, loss), checked_margin(margin)
        self.truth_score = forest.score(loss.truth)
        if self.truth_score == -np.inf:
            raise ModelError(
                "the truth scores -inf: it is no tree of the grammar, so no tree can be compared with it"
            )

    def objective(self, score: Any, *tallies: Any) -> Any:
        """Put loss and score together."""
        return scaled(self.scaling, self.counted.value(*tallies), score - self.truth_score, self.margin)

    def answer(self, where: Where, memory_limit: float | None, prune: bool) -> AugmentedParse:
        """Find the tree, and certify its loss."""
        if self.scaling == "margin" and self.counted.line is not None:
            return self._folded(self.counted.line, where, memory_limit)
        if prune and where is None:
            plan = self._pruned(memory_limit)
            found = TreeProfile(plan).best(self.objective)
        else:
            asked = pose(self.forest, self.counted.statistics, where, memory_limit=memory_limit)
            found = best_of(asked, self.objective, where)
        return self._certified(found, found.score, found.tally)

    def _certified(self, found: Parse, score: float, tally: Any) -> AugmentedParse:
        defined = self.loss(found.tree)
        counted = [s.tally(found.tree) for s in self.counted.statistics]
        loss = float(self.counted.value(*map(np.asarray, counted)))
        if abs(defined - loss) > 1e-9 * max(1.0, defined):
            raise TallytreeError(
                f"the certificate failed: the chart promises loss {loss!r}, {found.tree} has {defined!r}. "
                "This is a bug in tallytree, or in a loss of your own"
            )
        value = float(scaled(self.scaling, loss, score - self.truth_score, self.margin))
        return AugmentedParse(value, loss, score, self.truth_score, tally, found.tree)

    # --- linear losses ------------------------------------------------------------------------------------

    def _folded(self, line: Line, where: Where, memory_limit: float | None) -> AugmentedParse:
        """Add the loss to the scores: it is a sum over spans, as the score is."""
        changed = self.forest.rescored(self._gains(line, self.margin, self.forest.scores))
        hidden = () if where is None else as_constraint(where).statistics
        found = (
            best_of(pose(changed, (), where, memory_limit=memory_limit), None, where)
            if hidden
            else changed.best()
        )
        return self._certified(found, self.forest.score(found.tree), found.tally)

    def _gains(self, line: Line, margin: float, scores: Scores) -> Scores:
        """Return scores to which multiples of the statistics are added."""
        c, n = self.forest.compiled, len(self.forest.words)
        chart = Chart(c, self.forest.starts, self.forest.ends)
        gain = np.zeros((len(c.bags), len(self.forest.starts)))
        for weight, statistic in zip(line[1], self.counted.statistics, strict=True):
            gain += margin * weight * statistic.weights(chart)
        added = c.spread(gain, n)
        return Scores(scores.words, scores.rules, np.ascontiguousarray(scores.chains + added))

    # --- pruning ------------------------------------------------------------------------------------------

    def _pruned(self, memory_limit: float | None) -> TreePlan:
        """Plan without the items whose trees all score too little to be the answer.

        The best tree and the truth reach some value. With the largest loss that is left, a tree needs a
        certain score to reach it as well; of items that score enough, the plan knows a largest loss; and so
        on.
        """
        best = self.forest.best()
        gained = scaled(self.scaling, self.loss(best.tree), best.score - self.truth_score, self.margin)
        reached, room = max(float(gained), 0.0), self._rounding(best.score)

        def floor(largest: float) -> float:
            if not 0 < largest < np.inf:
                return -np.inf
            short = float(needed(self.scaling, np.asarray(largest), reached, self.margin))
            return self.truth_score + short - room

        largest = self._largest()
        plan = TreePlan(self.forest, self.counted.statistics, memory_limit=memory_limit, floor=floor(largest))
        for _ in range(_ROUNDS):
            left = float(np.max(self.counted.value(*plan.root_tallies.T), initial=0.0))
            if not left < _WORTHWHILE * largest:
                break
            largest = left
            plan = plan.raised(floor(largest))
        return plan

    def _rounding(self, score: float) -> float:
        """Return more than sums of the same scores in different orders can differ by."""
        s = self.forest.scores
        largest = max(float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in (s.words, s.rules, s.chains))
        return 1e-12 * (1 + abs(score) + abs(self.truth_score) + 8 * len(self.forest.words) * largest)

    def _largest(self) -> float:
        """Return the largest loss of any tree, or more."""
        most = self.loss.bounds[1]
        if np.isfinite(most) or self.counted.line is None:
            return most
        only = self._gains(self.counted.line, 1.0, self.forest.scores.allowing())
        return self.counted.line[0] + self.forest.rescored(only).best().value
