"""The engine for forests: messages are passed up a chart, from the words of a sentence to the whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallytree.errors import ModelError
from tallytree.parsing.bounded import BoundedTrees, TreeOutline, chart_searcher
from tallytree.parsing.distribution import TreeDistribution
from tallytree.parsing.forest import Forest
from tallytree.parsing.plan import plan_trees
from tallytree.parsing.profile import TreeProfile
from tallytree.parsing.statistics import TreeStatistic, checked_statistics
from tallytree.planning.query import Query
from tallytree.running.engine import Engine, register_engine
from tallytree.statistics.formula_constraints import as_condition


def _query(
    subject: Forest, statistics: Iterable[Any], where: Any = None, **restriction: Any
) -> Query[TreeStatistic]:
    """Check statistics and constraint; trees have no variables that could be restricted."""
    if restriction:
        raise ModelError("fixed= and allowed= restrict the variables of a model, but a forest has none")
    read = checked_statistics(statistics, len(subject))
    constraint = None if where is None else as_condition(where, read)
    if constraint is not None:
        checked_statistics(constraint.statistics, len(subject))
    return Query(subject, read, constraint, constraint)


CHARTS = Engine(_query, plan_trees, TreeProfile, TreeDistribution, chart_searcher, TreeOutline, BoundedTrees)
"""Queries about the trees of a sentence."""

register_engine(CHARTS, Forest)
