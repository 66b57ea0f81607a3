"""The engine of models: variables are eliminated one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallytree.answers.distribution import Distribution
from tallytree.answers.profile import Profile
from tallytree.model.model import Model
from tallytree.planning.graphs import plan_graph
from tallytree.planning.query import Query, graph_query
from tallytree.reductions.reduction import Reduction, as_reduction
from tallytree.running.engine import Engine
from tallytree.statistics.statistic import Recipe, Statistic


def _query(
    subject: Model | Reduction,
    statistics: Iterable[Statistic | Recipe],
    where: Any = None,
    **restriction: Any,
) -> Query[Statistic]:
    """Bind statistics and constraint, on fewer states where variables are restricted."""
    return graph_query(as_reduction(subject, **restriction), statistics, where)


GRAPHS = Engine(_query, plan_graph, Profile, Distribution)
"""Queries about models, and about the models that reductions stand for."""
