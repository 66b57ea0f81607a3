"""Charts without items that cannot be part of an optimum.

Some tree reaches a value: the best one, or the best that satisfies the constraint. With the largest remaining
loss, a tree needs a certain score to reach that value as well. Items that score less in every tree are
dropped; for the remaining ones the plan knows a largest loss; and so on. If the chart is still large,
prices of the statistics rule out more items (:mod:`tallytree.parsing.prices`). The answer does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tallytree.losses.scaling import Scaling
from tallytree.model.rounding import rounding_bound
from tallytree.parsing.items import ChartShape, Marginals, max_marginals
from tallytree.parsing.parse import Parse
from tallytree.parsing.plan import TreePlan
from tallytree.parsing.prices import Need, find_prices
from tallytree.parsing.statistics import TreeStatistic, checked_statistics
from tallytree.planning.carried import Window
from tallytree.planning.options import PlanOptions
from tallytree.planning.query import Query
from tallytree.running.charts import Scores
from tallytree.solving import solve
from tallytree.trees import Tree

if TYPE_CHECKING:
    from tallytree.parsing.loss_query import TreeLossQuery


_ROUNDS, _WORTHWHILE = 4, 0.97  # how often items are pruned again, and the ratio that makes it worthwhile
_DEAR = 50  # from this many times the operations of a plain chart on, the search for prices pays off

Floats = NDArray[np.float64]


def pruned_plan(
    question: TreeLossQuery, scaling: Scaling, margins: Sequence[float], options: PlanOptions
) -> TreePlan:
    """Plan the chart for all margins between the first and the last."""
    query = question.query
    start = _good_tree(query, options)
    need = Need(question, scaling, margins)
    need.add(start.tree, start.score)
    largest = _largest_loss(question)
    plans = ChartPlans.of(query, options)
    plan = plans.above(need.floor(np.array([largest])))
    for _ in range(_ROUNDS):
        left = float(np.max(_losses(question, plan), initial=0.0))
        if not 0 < left < _WORTHWHILE * largest:
            break
        largest = left
        plan = plans.above(need.floor(np.array([largest])))
    free = [s.cap is None for s in plan.statistics[: len(query.read)]]
    if plan.floor == -np.inf or not any(free) or _levelled(plan):
        return plan
    dear = plan.operations > _DEAR * query.subject.price.operations
    return _Market(question, need, np.array(free)).priced(plan, plans) if dear else plan


def _losses(question: TreeLossQuery, plan: TreePlan) -> Floats:
    """Return the loss of every tally that trees may have."""
    tallies = plan.root_tallies[:, : len(question.query.read)]
    return np.broadcast_to(question.counted.value(*tallies.T), len(tallies)).astype(np.float64)


def _levelled(plan: TreePlan) -> bool:
    """Whether the chart distinguishes more symbols than the forest does."""
    return any(s.levels > 1 for s in plan.statistics)


def _good_tree(query: Query[TreeStatistic], options: PlanOptions) -> Parse:
    """Return the best tree that satisfies the constraint, which needs no statistic of the loss."""
    best: Parse = query.subject.best()
    if _allowed(query, best.tree):
        return best
    parse: Parse = solve(query.subject, where=query.where, memory_limit=options.memory_limit)
    return parse


def _allowed(query: Query[TreeStatistic], tree: Tree) -> bool:
    """Whether a tree satisfies the constraint."""
    if query.constraint is None:
        return True
    read = checked_statistics(query.constraint.statistics, len(query.subject))
    return bool(query.constraint.holds({s: np.asarray(s.tally(tree)) for s in read}))


def _largest_loss(question: TreeLossQuery) -> float:
    """Return an upper bound on the loss of any tree."""
    most, line = question.loss.bounds[1], question.counted.line
    if np.isfinite(most) or line is None:
        return most
    return line[0] + question.gaining(line, 1.0, question.model.scores.allowing()).best().value


@dataclass(frozen=True)
class ChartPlans:
    """Plans of one question, with the items above a floor."""

    shape: ChartShape
    scores: Scores
    window: Window
    options: PlanOptions
    marginals: Marginals

    @classmethod
    def of(cls, query: Query[TreeStatistic], options: PlanOptions) -> ChartPlans:
        """Find the best tree with each item, without prices."""
        forest = query.subject
        shape = ChartShape.of(forest.grammar, len(forest), query.carried)
        scores = shape.compiled.levelled(forest.scores)
        return cls(shape, scores, query.window, options, max_marginals(shape, scores, options.limit))

    def at_prices(self, prices: tuple[float, ...]) -> ChartPlans:
        """Return the plans with the price of a tree's tally subtracted from its score."""
        return replace(self, marginals=max_marginals(self.shape, self.scores, self.options.limit, prices))

    def above(self, floor: float) -> TreePlan:
        """Plan the chart with only the items whose best tree scores at least this."""
        items = self.marginals.above(floor)
        return TreePlan(self.shape, items, self.options, self.window)


class _Market:
    """Prices of the uncapped statistics."""

    def __init__(self, question: TreeLossQuery, need: Need, free: NDArray[np.bool_]) -> None:
        self._question, self._query = question, question.query
        self._need, self._free = need, free

    def priced(self, plan: TreePlan, plans: ChartPlans) -> TreePlan:
        """Return the plan without items that are too expensive."""
        losses, tallies = self._losses_and_tallies(plan)
        found = find_prices(tallies, lambda: self._need(losses), self._best)
        if not any(found.prices):
            return plan
        every = np.zeros(len(plan.statistics))
        every[: len(self._query.read)][self._free] = found.prices
        floor, tolerable = self._floor(plan, found.prices), (1 - _WORTHWHILE) * found.gap
        plans = plans.at_prices(tuple(every.tolist()))
        plan = plans.above(floor)
        for _ in range(_ROUNDS):
            raised = self._floor(plan, found.prices)
            if not raised > floor + tolerable:
                break
            floor, plan = raised, plans.above(raised)
        return plan

    def _losses_and_tallies(self, plan: TreePlan) -> tuple[Floats, Floats]:
        tallies = plan.root_tallies[:, : len(self._query.read)][:, self._free]
        return _losses(self._question, plan), tallies.astype(np.float64)

    def _tally(self, tree: Tree) -> Floats:
        counted = [s.tally(tree) for s in self._question.counted.statistics]
        return np.array(counted, dtype=np.float64)[self._free]

    def _best(self, prices: Floats) -> tuple[float, Floats]:
        """Return score and tally of the best tree at some prices; record it if it is a better answer."""
        paid = np.zeros(len(self._free))
        paid[self._free] = -prices
        forest = self._question.model
        found = self._question.gaining((0.0, tuple(paid.tolist())), 1.0, forest.scores).best()
        tally = self._tally(found.tree)
        score = found.score + float(tally @ prices)
        if self._need.improves(found.tree, score) and _allowed(self._query, found.tree):
            self._need.add(found.tree, forest.score(found.tree))  # without the rounding of prices
        return score, tally

    def _floor(self, plan: TreePlan, prices: Floats) -> float:
        """Return the smallest score of an optimum, after prices."""
        losses, tallies = self._losses_and_tallies(plan)
        words = len(self._question.model)
        paid = 1 + float(np.max(np.abs(tallies) @ np.abs(prices), initial=0.0))
        room = float(rounding_bound(8 * words, 8 * words * paid))
        known = (score - float(self._tally(tree) @ prices) for tree, score in self._need.leaders())
        return min(float(np.min(self._need(losses) - tallies @ prices, initial=np.inf)), *known) - room
