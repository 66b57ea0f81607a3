"""The engine for models: variables are eliminated one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallytree.answers.distribution import Distribution
from tallytree.answers.profile import Profile
from tallytree.model.model import Model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.options import PlanOptions
from tallytree.planning.planner import plan_graph
from tallytree.planning.query import Query, graph_query
from tallytree.reductions.reduction import Reduction, as_reduction
from tallytree.running.bounds import ModelSearcher
from tallytree.running.engine import Engine
from tallytree.statistics.statistic import Recipe, Statistic


def _query(
    subject: Model | Reduction,
    statistics: Iterable[Statistic | Recipe],
    where: Any = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
) -> Query[Statistic]:
    """Bind statistics and constraint, with fewer states where variables are restricted."""
    return graph_query(as_reduction(subject, fixed, allowed), statistics, where)


def _searcher(query: Query[Statistic], options: PlanOptions) -> ModelSearcher:
    return ModelSearcher(query.subject, query.counted, options.order, options.check_size)


GRAPHS = Engine(_query, plan_graph, Profile, Distribution, _searcher)
"""Queries about models, and about the models behind reductions."""
