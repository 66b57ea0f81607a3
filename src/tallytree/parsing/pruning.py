"""Charts without the items whose trees all score too little to be the answer.

Some tree reaches a value: the best one, or the best that satisfies the constraint. With the largest loss that
is left, a tree needs a certain score to reach that value as well. Items that score less in every tree are
left out; of those that stay, the plan knows a largest loss; and so on. The answer does not change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.core.expressions import as_constraint
from tallytree.losses.scaling import needed, scaled
from tallytree.parsing.parse import Parse
from tallytree.parsing.plan import TreePlan
from tallytree.parsing.question import TreeLossQuestion
from tallytree.parsing.solve import TreeInquiry, checked_statistics, solve

__all__ = ["pruned_plan"]

_ROUNDS, _WORTHWHILE = 4, 0.97  # how often the items are pruned again, and what makes it worth it


def pruned_plan(
    question: TreeLossQuestion, asked: TreeInquiry, margins: Sequence[float], memory_limit: float | None
) -> TreePlan:
    """Plan the chart for all margins between the first and the last."""
    start = _good_tree(asked, memory_limit)
    floor = _Floor(question, start, margins)
    largest = _largest_loss(question)
    plan = asked.plan(memory_limit, floor(largest))
    for _ in range(_ROUNDS):
        tallies = plan.root_tallies[:, : asked.seen]
        left = float(np.max(question.counted.value(*tallies.T), initial=0.0))
        if not 0 < left < _WORTHWHILE * largest:
            break
        largest = left
        plan = plan.raised(floor(largest))
    return plan


def _good_tree(asked: TreeInquiry, memory_limit: float | None) -> Parse:
    """Return the best tree of those that satisfy the constraint: it costs no statistic of the loss."""
    best = asked.forest.best()
    if asked.where is None:
        return best
    constraint = as_constraint(asked.where)
    read = checked_statistics(asked.forest, constraint.statistics)
    if constraint.holds({s: np.asarray(s.tally(best.tree)) for s in read}):
        return best
    return solve(asked.forest, where=constraint, memory_limit=memory_limit)


def _largest_loss(question: TreeLossQuestion) -> float:
    """Return the largest loss of any tree, or more."""
    most, line = question.loss.bounds[1], question.counted.line
    if np.isfinite(most) or line is None:
        return most
    return line[0] + question.gaining(line, 1.0, question.forest.scores.allowing()).best().value


class _Floor:
    """The least score that the answer can have, at any of the margins.

    What is needed at the largest loss is linear in the margin, so it is least at one end.
    """

    def __init__(self, question: TreeLossQuestion, start: Parse, margins: Sequence[float]) -> None:
        self._question, self._margins = question, margins
        self._loss = question.loss(start.tree)
        self._difference = start.score - question.truth_score
        self._room = _rounding(question, start.score)

    def __call__(self, largest: float) -> float:
        least = min(self._needed(largest, margin) for margin in (self._margins[0], self._margins[-1]))
        return self._question.truth_score + least - self._room

    def _needed(self, largest: float, margin: float) -> float:
        if not 0 < largest < np.inf or margin == np.inf:
            return -np.inf
        scaling = self._question.scaling
        reached = float(scaled(scaling, self._loss, self._difference, margin))
        if scaling == "slack" and reached < 0:  # any tree with a small enough loss reaches that
            return -np.inf
        enough = float(needed(scaling, np.asarray(largest), reached, margin))
        return min(enough, self._difference)  # the tree that we have stays, whatever its loss


def _rounding(question: TreeLossQuestion, score: float) -> float:
    """Return more than sums of the same scores in different orders can differ by."""
    scores, words = question.forest.scores, len(question.forest.words)
    arrays = (scores.words, scores.rules, scores.chains)
    largest = max(float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in arrays)
    return 1e-12 * (1 + abs(score) + abs(question.truth_score) + 8 * words * largest)
