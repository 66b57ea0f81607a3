"""From a query about a model to its plan, possibly a cached one."""

from __future__ import annotations

from collections.abc import Hashable

from tallytree.errors import BudgetError
from tallytree.model.model import Model
from tallytree.planning.budget import too_wide, without_tallies
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan
from tallytree.planning.query import Query
from tallytree.planning.recent import Recent
from tallytree.planning.search_price import CACHED_BYTES, search_price
from tallytree.statistics.statistic import Statistic

_DEFAULTS = PlanOptions()
_RECENT = Recent[Plan](most=128, most_bytes=16e6)
_MET = [0] * 1024  # hashes of past queries: the plan of a repeated one is cached


def plan_graph(query: Query[Statistic], options: PlanOptions = _DEFAULTS) -> Plan:
    """Plan what a query about a model carries, pruned to the window that its constraint allows.

    Small plans are cached when they are needed again, for queries with equal statistics on models of the
    same shape.
    """
    key = _key(query, options)
    if key is None:
        return _planned(query, options)
    found = _RECENT.get(key)
    if found is None:
        found = _planned(query, options)
        number = hash(key)
        if _MET[number % len(_MET)] != number:
            _MET[number % len(_MET)] = number
        elif (size := found.kept_bytes) <= CACHED_BYTES:
            _RECENT.keep(key, found, size)
    return found


def _key(query: Query[Statistic], options: PlanOptions) -> Hashable | None:
    """Return everything that determines a plan; None if the plan would not be cached."""
    if options.order is not None:
        return None
    counted: list[Hashable] = []
    size = 0  # bytes of the tables that the plan would store
    for statistic in query.carried:
        counted.append((statistic.name, statistic.cap))
        for block in statistic.blocks:
            tables = block.tables
            size += tables.nbytes
            if size > CACHED_BYTES:
                return None
            counted += block.key, tables.shape, tables.tobytes()
    layout = (options.limit, *options[2:])
    return query.subject.key, tuple(counted), tuple(query.window.items()), layout


def _planned(query: Query[Statistic], options: PlanOptions) -> Plan:
    try:
        return Plan(query.subject, query.carried, options, query.window)
    except BudgetError as error:
        if not query.carried or error.too_wide:
            raise
        if not _plain_fits(query.subject, options):
            cause = str(error).split(". ")[0]  # without advice on statistics
            text = f"{cause}. Even without statistics, the tables exceed the limit"
            raise too_wide(text, "Raise memory_limit=, or use") from None
        advised = BudgetError(f"{error}. {without_tallies(query)}{_offer(query, options)}")
        advised.cause = str(error)
        raise advised from None


def _offer(query: Query[Statistic], options: PlanOptions) -> str:
    """Describe the cost of a search by bounds, if its program fits in memory."""
    try:
        price = search_price(query.subject, query.carried, query.window, options.order, options.check_size)
    except BudgetError:
        return ""
    return "" if price is None else f". {price.offer}"


def _plain_fits(model: Model, options: PlanOptions) -> bool:
    try:
        Plan(model, (), options._replace(layout="auto", precision="double"))
    except BudgetError:
        return False
    return True
