"""Which way a single question goes: by the whole table, or by bounds.

``strategy="bounds"`` searches by bounds wherever it can, ``"full"`` never does. ``"auto"`` estimates what the
whole table would cost. Where that is more than a moment, it tries bounds first, for at most about a quarter
of that price, and gives way to the whole table after that; where the table does not fit the memory, the
search goes on. A search that cannot be asked gives way to the table, too.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any, Protocol

from tallytree.bounding.question import Question
from tallytree.bounding.table import BoundedTable
from tallytree.errors import BudgetError
from tallytree.model.model import Model
from tallytree.planning.options import Options
from tallytree.planning.plan import check_size
from tallytree.planning.query import Query
from tallytree.running.bounds import Found, program_for, search

_WORTH_TRYING = 1e7  # operations of a whole table by the cost model: a millisecond or two
_JOINED = 4  # the cost model takes the tables of small parts, which are joined, for larger than they are
_SHARE = 1 / 40  # a quarter of the time: one operation of a search takes as long as 10 of a table


class Known(Protocol):
    """What a search that was ended knows: the best value that it met, and a bound."""

    @property
    def value(self) -> float:
        """What the best has that was met."""

    @property
    def bound(self) -> float:
        """What none exceeds."""


def allowance(query: Query[Any], options: Options) -> float:
    """Return how much work a search may take before the whole table is made; 0: none, the table is small."""
    if not query.carried or not isinstance(query.subject, Model):
        return 0.0
    check = partial(check_size, options.plan)
    program = program_for(query.subject, query.carried, options.plan.order, check, draft=True)
    cost = program.cost / (_JOINED if program.step_count > len(query.subject) + 1 else 1)
    if cost >= _WORTH_TRYING and query.window:
        cost *= _within_window(query)
    return cost * _SHARE if cost >= _WORTH_TRYING else 0.0


def _within_window(query: Query[Any]) -> float:
    """Return about which share of the tallies lies on a way into the window."""
    share = 1.0
    for number, (above, below) in query.window.items():
        low, high = query.carried[number].capped(None).extent
        reach = min(high - low, inf if below is None else below - low, inf if above is None else high - above)
        share *= (max(reach, 0) + 1) / (high - low + 1)
    return share


def bounded(
    query: Query[Any], question: Question, options: Options, most_work: float = inf
) -> BoundedTable | Found | None:
    """Answer a question about a query by bounds.

    Returns
    -------
    BoundedTable, Found or None
        The tallies that are left; what is known, where the work was too much; None where the question cannot
        be asked in this way.
    """
    plain = options.run.backend == "native" and options.plan.precision == "double"
    if not plain or not isinstance(query.subject, Model):
        return None
    asked = question.wanted(query)
    if asked is None:
        return None
    counted, wanted = asked
    found = search(
        query.subject,
        counted,
        wanted,
        order=options.plan.order,
        check=partial(check_size, options.plan),
        starts=() if question.start is None else (question.start,),
        most_work=most_work,
        memory_limit=options.plan.limit - options.plan.beside,
    )
    if found is None or not found.finished:
        return found
    return BoundedTable(query, counted, found)


def known_so_far(error: BudgetError, found: Known) -> BudgetError:
    """Say what a search by bounds knows where neither it nor the whole table fits the memory."""
    if found.value == float("-inf"):
        known = f"no labelling has a value above {found.bound:.10g}, and none that is allowed was met"
    else:
        known = (
            f"no labelling has a value above {found.bound:.10g}, and one of value {found.value:.10g} was "
            f"found: a gap of {found.bound - found.value:.4g}"
        )
    return BudgetError(f"{error}. A search by bounds ended with the memory, too: {known}")
