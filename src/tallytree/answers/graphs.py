"""The engine of models: variables are eliminated one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallytree.answers.distribution import Distribution
from tallytree.answers.profile import Profile
from tallytree.model.model import Model
from tallytree.planning.options import PlanOptions, RunOptions
from tallytree.planning.plan import Plan, plan_graph
from tallytree.planning.query import Query, graph_query
from tallytree.reductions.reduction import Reduction, as_reduction
from tallytree.running.engine import Engine
from tallytree.statistics.statistic import Recipe, Statistic


class GraphEngine(Engine):
    """Queries about models, and about the models that reductions stand for."""

    def query(
        self,
        subject: Model | Reduction,
        statistics: Iterable[Statistic | Recipe],
        where: Any = None,
        **restriction: Any,
    ) -> Query[Statistic]:
        """Bind statistics and constraint, on fewer states where variables are restricted."""
        return graph_query(as_reduction(subject, **restriction), statistics, where)

    def plan(self, query: Query[Statistic], options: PlanOptions) -> Plan:
        """Choose an order, lay the tables out, and count what that costs."""
        return plan_graph(query, options)

    def profile(self, query: Query[Statistic], plan: Plan, options: RunOptions) -> Profile:
        """Run a plan over max-plus."""
        return Profile(query, plan, options)

    def distribution(self, query: Query[Statistic], plan: Plan, options: RunOptions) -> Distribution:
        """Run a plan over log-sum-exp."""
        return Distribution(query, plan, options)
