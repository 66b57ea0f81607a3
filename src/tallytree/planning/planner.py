"""From a query about a model to its plan, possibly a cached one."""

from __future__ import annotations

from functools import partial

from tallytree.errors import BudgetError
from tallytree.model.model import Model
from tallytree.planning.budget import without_tallies
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan, check_size
from tallytree.planning.query import Query
from tallytree.planning.recent import Recent
from tallytree.planning.search_price import search_price
from tallytree.statistics.statistic import Statistic

_DEFAULTS = PlanOptions()
_SMALL = 1 << 16  # plans up to this many bytes are cached
_RECENT = Recent[Plan](most=128, most_bytes=4e6)


def plan_graph(query: Query[Statistic], options: PlanOptions = _DEFAULTS) -> Plan:
    """Plan what a query about a model carries, pruned to the window that its constraint allows.

    Small plans are cached for the next query about the same statistics on a model of the same shape. (A plan
    keeps its statistics alive, so that their ids stay unique.)
    """
    if options.order is not None:
        return _planned(query, options)
    places = tuple(map(id, query.carried)), tuple(query.window.items())
    key = (query.subject.key, *places, options._replace(memory_limit=options.limit))
    found = _RECENT.get(key)
    if found is None:
        found = _planned(query, options)
        if (size := found.kept_bytes) <= _SMALL:
            _RECENT.keep(key, found, size)
    return found


def _planned(query: Query[Statistic], options: PlanOptions) -> Plan:
    try:
        return Plan(query.subject, query.carried, options, query.window)
    except BudgetError as error:
        if not query.carried or not _plain_fits(query.subject, options):
            raise
        raise BudgetError(f"{error}. {without_tallies(query)}{_offer(query, options)}") from None


def _offer(query: Query[Statistic], options: PlanOptions) -> str:
    """Describe the cost of a search by bounds, if its program fits in memory."""
    try:
        check = partial(check_size, options)
        price = search_price(query.subject, query.carried, query.window, options.order, check)
    except BudgetError:
        return ""
    return "" if price is None else f". {price.offer}"


def _plain_fits(model: Model, options: PlanOptions) -> bool:
    try:
        Plan(model, (), options._replace(layout="auto", precision="double"))
    except BudgetError:
        return False
    return True
