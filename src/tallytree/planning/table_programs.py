"""The program of a full table: the cheapest one by the cost model of orders, or one with fewer joins.

That model counts operations, and knows neither the window of a constraint nor rows: a join of two tables
with two variables each, of 20 states, has 8,000 rows, and each takes as long as a few hundred operations,
however few tallies can still end in the window. The price of tables (``native/plan/table_price.h``) counts
both. So orders with few joins, which go along a graph or inwards from its rim, are compared by it with the
cheapest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.planning.carried import Window, tally_limits
from tallytree.planning.linked_programs import linked_programs
from tallytree.planning.orders import Check, Order, Programs, drafted
from tallytree.statistics.statistic import Statistic

_OTHERS = ("sweep", "min-degree")


def table_programs(
    model: Model,
    statistics: Sequence[Statistic],
    window: Window,
    order: Order | None = None,
    check: Check | None = None,
    room: float = inf,
) -> list[native.Skeleton]:
    """Return the programs to consider for a full table, best first; the last is the cheapest by operations.

    Arguments are as for a plan. `room`: in bytes; the cheapest program is left out if there is a linked one
    and its lists are expected to take more.
    """
    programs = Programs(model, statistics, check)
    cheapest = programs.get(order)
    if not statistics or drafted(model, statistics):
        return [cheapest]
    counts = [block.tables for s in statistics for block in s.blocks]
    limits = tally_limits(statistics, window)

    def price(program: native.Skeleton) -> tuple[float, float]:
        if not program.feasible:
            return inf, inf
        _, tables, layout, lists = native.table_price(program, counts, *limits)
        return tables + layout, lists

    linked = linked_programs(programs, cheapest, order, lambda program: price(program)[0])
    found = [*_with_fewer_joins(programs, cheapest, order), *linked]
    if not found:
        return [cheapest]
    prices = [price(program) for program in (cheapest, *found)]
    best = min(range(len(prices)), key=lambda i: prices[i][0])
    if best == 0:
        return [cheapest]
    if found[best - 1] in linked and prices[0][1] > room:
        return [found[best - 1]]
    return [found[best - 1], cheapest]


def _with_fewer_joins(
    programs: Programs, cheapest: native.Skeleton, order: Order | None
) -> list[native.Skeleton]:
    """Return other programs; none for forests, since joins over a single variable have few rows."""
    if order is not None or cheapest.width <= 1 or not cheapest.feasible:
        return []
    if not programs.worth_another(cheapest):
        return []
    others = {other.order.tobytes(): other for other in map(programs.get, _OTHERS) if other.feasible}
    others.pop(cheapest.order.tobytes(), None)
    return list(others.values())
