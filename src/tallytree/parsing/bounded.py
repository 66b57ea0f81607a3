"""The best tree under a constraint, without items that no such tree can have.

With prices ``c`` subtracted for what a tree counts, and ``A`` the best score then, a tree of regret r with a
tally in the window scores at most ``A - r + max c·l``. Items that only occur with a large regret are dropped;
the best tree of the remaining chart bounds the regret, and if that is larger than assumed, the chart is
built once more with the right floor. Prices are chosen to make ``A + max c·l`` small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.bounding.answering import check_operations
from tallytree.bounding.question import Question
from tallytree.errors import BudgetError, InfeasibleError
from tallytree.model.rounding import rounding_bound
from tallytree.parsing.plan import TreePlan, plan_trees
from tallytree.parsing.profile import TreeProfile
from tallytree.parsing.pruning import ChartPlans
from tallytree.parsing.statistics import TreeStatistic
from tallytree.planning.options import Options
from tallytree.planning.query import Query

_DEAR = 50  # from this many times the operations of a plain chart on, the passes here pay off
_GOLDEN = 0.6180339887498949
_EVALUATIONS, _ROUNDS = 24, 2

Floats = NDArray[np.float64]
Price = tuple[float, float]
"""The bound at a price, and the price."""


def searched_trees(query: Query[TreeStatistic], question: Question, options: Options) -> TreeProfile | None:
    """Return a profile that contains the best tree; None if the full chart should be built."""
    asked = question.objective is None and question.scaling == "none" and query.constraint is not None
    if not asked or options.run.backend != "native" or not _priced(query):
        return None
    if options.strategy == "auto":
        try:
            plan: TreePlan = plan_trees(query, options.plan)
        except BudgetError:
            return _Search(query, options).run()
        if plan.operations <= _DEAR * query.subject.price.operations:
            check_operations(plan, options.operation_limit)
            return TreeProfile(query, plan, options.run)
    return _Search(query, options).run()


def _priced(query: Query[TreeStatistic]) -> list[int]:
    """Return the statistics that can have a price: uncapped ones with a window."""
    return [p for p in query.window if query.carried[p].cap is None]


class _Search:
    def __init__(self, query: Query[TreeStatistic], options: Options) -> None:
        self.query, self.options = query, options
        self.plans = ChartPlans.of(query, options.plan)
        self.prices = np.zeros(len(query.carried))

    def run(self) -> TreeProfile | None:
        """Find prices, then a floor that leaves the best tree and little else."""
        if not np.isfinite(self._most(self.prices)):
            return None
        for _ in range(_ROUNDS if len(_priced(self.query)) > 1 else 1):
            for p in _priced(self.query):
                self.prices[p] = self._best_price(p)
        plans = self.plans.at_prices(tuple(self.prices.tolist()))
        best = plans.marginals.best
        gaps = np.sort((best.max() - best[best > -np.inf]).reshape(-1))
        budget, room = float(gaps[min(len(gaps) - 1, 3 * len(self.query.subject) + 200)]), self._room(best)
        for _ in range(40):
            floor = float(best.max()) - budget - room
            found, needed = self._above(plans, floor)
            if needed >= floor or budget >= gaps[-1]:
                return found
            budget = float(best.max()) - needed if np.isfinite(needed) else 4 * budget + 1e-6
        return None

    def _above(self, plans: ChartPlans, floor: float) -> tuple[TreeProfile, float]:
        """Return the profile of the chart above a floor, and the floor that its best tree implies."""
        plan = plans.above(floor)
        check_operations(plan, self.options.operation_limit)
        found = TreeProfile(self.query, plan, self.options.run)
        try:
            _, score = found.best_row()
        except InfeasibleError:
            return found, -np.inf
        return found, score - self._ceiling(self.prices) - self._room(plans.marginals.best)

    def _most(self, prices: Floats) -> float:
        """Return an upper bound on the score of a tree with a tally in the window: ``A + max c·l``."""
        best = self.plans.at_prices(tuple(prices.tolist())).marginals.best
        return float(best.max()) + self._ceiling(prices)

    def _ceiling(self, prices: Floats) -> float:
        """Return ``max c·l`` over the window."""
        ends = (self._end(p, price > 0) * price for p, price in enumerate(prices.tolist()) if price)
        return float(sum(ends))

    def _end(self, p: int, above: bool) -> float:
        low, high = self.query.window[p]
        end = high if above else low
        return (np.inf if above else -np.inf) if end is None else float(end)

    def _best_price(self, p: int) -> float:
        """Find the best price of one statistic, the others being fixed: the bound is convex in it."""
        low, high = self.query.window[p]
        scale = _scale(self.query.subject.scores)

        def bound(price: float) -> float:
            changed = self.prices.copy()
            changed[p] = price
            return self._most(changed)

        return _least(bound, 0.0 if low is None else -scale, 0.0 if high is None else scale)

    def _room(self, best: Floats) -> float:
        """Return a bound on the rounding difference between sums of the same scores."""
        words = len(self.query.subject)
        size = float(np.abs(best[np.isfinite(best)]).max(initial=0.0)) + abs(self._ceiling(self.prices))
        scale = _scale(self.query.subject.scores) * (8 * words + 1)
        return float(rounding_bound(8 * words, 1 + size + scale))


def _scale(scores: Any) -> float:
    """Return the largest magnitude of the score of a rule, a word or a chain."""
    arrays = (scores.words, scores.rules, scores.chains)
    return max(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)) for a in arrays)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Approximately minimise a convex function by golden-section search."""
    if low >= high:
        return 0.0
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b = function(a), function(b)
    seen: list[Price] = [(function(0.0), 0.0), (at_a, a), (at_b, b)]
    for _ in range(_EVALUATIONS):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = function(a)
            seen.append((at_a, a))
        else:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = function(b)
            seen.append((at_b, b))
    return min(seen)[1]
