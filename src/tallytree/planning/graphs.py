"""The plan of a query about a model; where it does not fit the memory, what answers the query without it."""

from __future__ import annotations

from tallytree.errors import BudgetError
from tallytree.model.model import Model
from tallytree.planning.budget import without_tallies
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan
from tallytree.planning.query import Query
from tallytree.planning.search_price import search_price
from tallytree.statistics.statistic import Statistic

_DEFAULTS = PlanOptions()


def plan_graph(query: Query[Statistic], options: PlanOptions = _DEFAULTS) -> Plan:
    """Plan what a query about a model carries, pruned to the window that its constraint leaves."""
    try:
        return Plan(query.subject, query.carried, options, query.window)
    except BudgetError as error:
        if not query.carried or not _plain_fits(query.subject, options):
            raise
        price = search_price(query.subject, query.carried, query.window, options.order)
        bounds = "" if price is None else f". {price.offer}"
        raise BudgetError(f"{error}. {without_tallies(query)}{bounds}") from None


def _plain_fits(model: Model, options: PlanOptions) -> bool:
    try:
        Plan(model, (), options._replace(layout="auto", precision="double"))
    except BudgetError:
        return False
    return True
