"""Which way a single question goes: by the whole table, or by bounds.

``strategy="bounds"`` searches by bounds wherever it can, ``"full"`` never does. ``"auto"`` does so where the
whole table does not fit the memory, and where it would take long: then the search may cost a quarter of what
the table does, and gives way to it after that. So does a search that cannot be asked.
"""

from __future__ import annotations

from typing import Any

from tallytree.bounding.question import Question
from tallytree.bounding.table import BoundedTable
from tallytree.errors import BudgetError
from tallytree.model.model import Model
from tallytree.planning.options import Options
from tallytree.planning.query import Query
from tallytree.running.bounds import Found, search

__all__ = ["allowance", "bounded", "known_so_far"]

_WORTH_TRYING = 2e7  # operations: a few milliseconds
_SHARE = 1 / 200  # an operation of a search takes some 50 times as long as one of a table


def allowance(operations: float) -> float:
    """Return how much work a search may take where a whole table takes so many operations; 0: none."""
    return operations * _SHARE if operations >= _WORTH_TRYING else 0.0


def bounded(
    query: Query[Any], question: Question, options: Options, most_work: float = float("inf")
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
        starts=() if question.start is None else (question.start,),
        most_work=most_work,
        memory_limit=options.plan.limit,
    )
    if found is None or not found.finished:
        return found
    return BoundedTable(query, counted, found)


def known_so_far(error: BudgetError, found: Found) -> BudgetError:
    """Say what a search by bounds knows where neither it nor the whole table fits the memory."""
    if found.value == float("-inf"):
        known = f"no labelling has a value above {found.bound:.10g}, and none that is allowed was met"
    else:
        known = (
            f"no labelling has a value above {found.bound:.10g}, and one of value {found.value:.10g} was "
            f"found: a gap of {found.bound - found.value:.4g}"
        )
    return BudgetError(f"{error}. A search by bounds ended with the memory, too: {known}")
