"""The end of an infeasibility error: the attainable tallies that are nearest to satisfying the constraint.

The distance is :meth:`Constraint.violation`. Finding them takes a separate pass over the statistics of the
constraint, with nothing capped or pruned. Errors should be fast, so if that pass would be large, the range
of each statistic is reported instead: from a pass over this statistic alone, from a plain pass for either
end, or else from the entries of its tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallytree.answers.certification import certify_infeasible
from tallytree.answers.tallies import nearest_tallies, unsatisfied
from tallytree.answers.tally_table import TallyTable
from tallytree.errors import BudgetError, InfeasibleError
from tallytree.model.model import Model
from tallytree.planning.options import PlanOptions, RunOptions
from tallytree.planning.query import Query
from tallytree.reductions.folding import flat, weighted
from tallytree.running.engine import engine_of
from tallytree.statistics.statistic import Statistic

_MOST_OPERATIONS = 2e8  # about a fifth of a second
_MOST_BYTES = 2.0**26  # laying out as many takes about a tenth
_MOST_RANGES = 12


def unsatisfiable(query: Query[Any], options: PlanOptions, noun: str = "labelling") -> InfeasibleError:
    """Return the error for a constraint that nothing satisfies."""
    return unsatisfied(noun, query.where, nearest(query, options))


def nearest(query: Query[Any], options: PlanOptions) -> str:
    """Return the nearest tallies to an unsatisfiable constraint, for the end of an error message."""
    assert query.constraint is not None
    statistics = query.constraint.statistics
    if not statistics:
        return "it compares only numbers and is always false"
    limited = options._replace(memory_limit=min(_MOST_BYTES, options.limit))
    table = _affordable(query.subject, statistics, limited)
    if table is None:
        return _ranges(query.subject, statistics, limited)
    if not len(table):
        return table._none_left
    missed = query.constraint.violation({s: table.tallies[:, i] for i, s in enumerate(statistics)})
    certify_infeasible(query.where, table.tallies, missed)
    return nearest_tallies(table.names, table.tallies, missed, statistics)


def _affordable(subject: Any, statistics: Sequence[Any], options: PlanOptions) -> TallyTable[Any] | None:
    engine = engine_of(subject)
    whole = engine.query(subject, statistics)
    try:
        plan = engine.plan(whole, options)
    except BudgetError:
        return None
    if plan.operations > _MOST_OPERATIONS:
        return None
    table: TallyTable[Any] = engine.profile(whole, plan, RunOptions())
    return table


def _ranges(subject: Any, statistics: Sequence[Any], options: PlanOptions) -> str:
    """Report the range of each statistic: exact if that is cheap, from its table entries otherwise."""
    ranges = []
    for s in statistics[:_MOST_RANGES]:
        ends = _ends(subject, s, options, alone=len(statistics) > 1)
        if ends is not None:
            ranges.append("{} ranges from {} to {}".format(s.name, *ends))
        elif isinstance(s, Statistic):
            ranges.append("the entries of {} add up to between {} and {}".format(s.name, *s.extent))
    if not ranges:
        return "there are too many tallies to list the nearest"
    others = len(statistics) - _MOST_RANGES
    more = f"; and {others:,} others" if others > 0 else ""
    return f"{'taken separately, ' if len(statistics) > 1 else ''}{', '.join(ranges)}{more}"


def _ends(subject: Any, statistic: Any, options: PlanOptions, *, alone: bool) -> tuple[int, int] | None:
    """Return the smallest and the largest attainable tally; None if that is not cheap.

    `alone`: whether the table of this statistic alone has not been tried.
    """
    table = _affordable(subject, [statistic], options) if alone else None
    if table is not None:
        return (int(table.tallies.min()), int(table.tallies.max())) if len(table) else None
    if not isinstance(subject, Model):
        return None
    least, most = (_end(subject, statistic, sign, options) for sign in (-1, 1))
    return None if least is None or most is None else (least, most)


def _end(model: Model, statistic: Statistic, sign: int, options: PlanOptions) -> int | None:
    """Return an end of the attainable tallies: the best score if tallies are scores, and nothing else is."""
    counted = weighted([(statistic.capped(None), sign)])
    level = Model.from_blocks(model.cardinalities, (*map(flat, model.blocks), *counted))
    table = _affordable(level, (), options)
    return None if table is None or not len(table) else statistic.tally(table.best().assignment)
