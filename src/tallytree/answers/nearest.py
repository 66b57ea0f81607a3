"""The end of an infeasibility error: the attainable tallies that are nearest to satisfying the constraint.

The distance is :meth:`Constraint.violation`. Finding them takes a separate pass over the statistics of the
constraint, with nothing capped or pruned. Errors should be fast, so if that pass would
be large, the range of each statistic is reported instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from tallytree.answers.tallies import nearest_tallies
from tallytree.answers.tally_table import TallyTable
from tallytree.errors import BudgetError, InfeasibleError
from tallytree.planning.options import PlanOptions, RunOptions
from tallytree.planning.query import Query
from tallytree.running.engine import engine_of
from tallytree.statistics.statistic import Statistic

_MOST_OPERATIONS = 2e8  # about a fifth of a second
_MOST_BYTES = 2.0**26  # laying out as many takes about a tenth
_MOST_RANGES = 12


def unsatisfiable(query: Query[Any], options: PlanOptions, noun: str = "labelling") -> InfeasibleError:
    """Return the error for a constraint that nothing satisfies."""
    return InfeasibleError(f"no {noun} satisfies '{query.where}'; {nearest(query, options)}")


def nearest(query: Query[Any], options: PlanOptions) -> str:
    """Return the nearest tallies to an unsatisfiable constraint, for the end of an error message."""
    assert query.constraint is not None
    statistics = query.constraint.statistics
    if not statistics:
        return "it compares only numbers and is always false"
    limited = options._replace(memory_limit=min(_MOST_BYTES, options.limit))
    table = _affordable(query, statistics, limited)
    if table is None:
        some = statistics[:_MOST_RANGES] if len(statistics) > 1 else ()
        return _ranges(statistics, [_affordable(query, [s], limited) for s in some])
    if not len(table):
        return table._none_left
    missed = query.constraint.violation({s: table.tallies[:, i] for i, s in enumerate(statistics)})
    return nearest_tallies(table.names, table.tallies, missed, statistics)


def _affordable(query: Query[Any], statistics: Sequence[Any], options: PlanOptions) -> TallyTable[Any] | None:
    engine = engine_of(query.subject)
    whole = engine.query(query.subject, statistics)
    try:
        plan = engine.plan(whole, options)
    except BudgetError:
        return None
    if plan.operations > _MOST_OPERATIONS:
        return None
    table: TallyTable[Any] = engine.profile(whole, plan, RunOptions())
    return table


def _ranges(statistics: Sequence[Any], alone: Sequence[TallyTable[Any] | None]) -> str:
    """Report the range of each statistic: exact if that is cheap, from its table entries otherwise.

    `alone`: the tables of the first statistics, each by itself.
    """
    ranges = []
    for s, table in zip_longest(statistics[:_MOST_RANGES], alone):
        if table is not None and len(table):
            ranges.append(f"{s.name} ranges from {table.tallies.min()} to {table.tallies.max()}")
        elif isinstance(s, Statistic):
            ranges.append("{} is between {} and {}".format(s.name, *s.extent))
    if not ranges:
        return "there are too many tallies to list the nearest"
    others = len(statistics) - _MOST_RANGES
    more = f"; and {others:,} others" if others > 0 else ""
    return f"{'taken separately, ' if len(statistics) > 1 else ''}{', '.join(ranges)}{more}"
