"""Programs for tables of parts that only statistics connect.

Without a factor between two parts of a model, each of them is eliminated on its own, and their tables are
joined at the end. With one count, nothing is cheaper. With several, each part carries the tallies of all of
them, although some could be complete: with a chain for each person and a count for each day, no day is
complete before the last person. Linked programs (``Purpose.LINKED``) join tables as soon as both count for
the same statistic. So tables are joined where the order says, and a statistic whose variables are all gone
has only those tallies left that its window allows.
"""

from __future__ import annotations

from collections.abc import Callable

from tallytree.kernels import native
from tallytree.planning.orders import METHODS, Order, Programs

_ORDERS = "min-open", "natural", "sweep"  # tried if no order is given

# Three programs and their prices take up to 250 ns for each variable and factor. They are made if the table
# takes ten times as long.
_WORTH = 2_500.0


def linked_programs(
    programs: Programs,
    cheapest: native.Skeleton,
    order: Order | None,
    work: Callable[[native.Skeleton], float],
) -> list[native.Skeleton]:
    """Return linked programs that may be cheaper than the cheapest one without links.

    `order`: as for a plan; if one is given, only the linked program in the same order.
    `work`: returns the price of a table in nanoseconds.
    """
    if not programs.worth_another(cheapest) or not _linked(programs):
        return []
    if work(cheapest) <= _WORTH * programs.size:
        return []
    shape = programs.shape
    orders = [shape.order(METHODS[name]) for name in _ORDERS] if order is None else [cheapest.order]
    different = {order.tobytes(): order for order in orders}.values()
    found = [shape.program(order, native.Purpose.LINKED) for order in different]
    return [program for program in found if program.feasible]


def _linked(programs: Programs) -> bool:
    """Whether there are several statistics, and some of them are complete early or connect parts."""
    if len(programs.statistics) < 2:
        return False
    variables = len(programs.model)
    partial = any(sum(map(len, s.blocks)) < variables for s in programs.statistics)
    return partial or programs.shape.parts > 1
