"""From a query to the table that answers it: a full table, or the part that bounds leave for one question."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from tallytree.answers.tally_table import TallyTable
from tallytree.bounding.question import Question
from tallytree.bounding.strategy import (
    bounded,
    first_work,
    known_so_far,
    supported,
    unsupported,
    work_limit,
)
from tallytree.bounding.table import BoundedTable
from tallytree.errors import BudgetError
from tallytree.planning.budget import without_tallies
from tallytree.planning.options import Options
from tallytree.planning.plan import Plan
from tallytree.planning.printed import printed
from tallytree.planning.query import Query
from tallytree.planning.search_price import WORTH_TRYING
from tallytree.running.engine import engine_of

Ask = Callable[[], Question]
"""Makes the question; called only if a search may answer it."""


def answered(query: Query[Any], options: Options, ask: Ask | None = None) -> TallyTable[Any]:
    """Plan a query and run the plan: the best score for every tally that may be needed.

    If only one question will be asked of the table, it may hold nothing but the answer.
    """
    engine = engine_of(query.subject)
    if ask is None or options.strategy == "full":
        return _in_full(query, options, ask, engine.plan(query, options.plan))
    if not supported(query, options):
        return _in_full_first(query, options, ask)
    if options.strategy == "auto" and engine.outline is not None:
        return _by_stages(query, options, ask, engine.outline)
    most_work = first_work(query, options, ask(), WORTH_TRYING)
    found = bounded(query, ask(), options, most_work) if most_work else None
    if found is not None and found.finished:
        return found
    limited = options.strategy != "auto" and most_work == work_limit(query.subject, options) < inf
    if found is not None and found.ended and limited:
        raise _known(None, found, ask())
    return _in_full_first(query, options, ask)


def _in_full_first(query: Query[Any], options: Options, ask: Ask) -> TallyTable[Any]:
    """Compute the full table if it fits in memory; search otherwise."""
    try:
        return _in_full(query, options, ask, engine_of(query.subject).plan(query, options.plan))
    except BudgetError as error:
        return _within_limits(query, ask(), options, error)


def _by_stages(query: Query[Any], options: Options, ask: Ask, outline: Any) -> TallyTable[Any]:
    """Search for a share of the time of the full table, as far as known: from outline, then plan.

    The outline and the plan are those of the table, if it is computed after all.
    """
    try:
        known = outline(query, options.plan)
        plan = None if known.early else known.plan()
        question, spent = ask(), 0.0
        while True:
            work = min(known.work(plan, spent, question.searches), work_limit(query.subject, options))
            found = bounded(query, question, options, work, known.searcher) if work else None
            if found is not None and found.finished:
                return found
            if plan is not None:
                return _in_full(query, options, ask, plan)
            spent = work if found is None else found.found.work
            question = question if found is None else found.continued(question)
            plan = known.plan()
    except BudgetError as error:
        return _within_limits(query, ask(), options, error)


def _in_full(query: Query[Any], options: Options, ask: Ask | None, plan: Any) -> TallyTable[Any]:
    """Compute the full table."""
    if options.operation_limit is not None:
        each = 0.0 if ask is None else ask().row_operations
        check_operations(plan, options.operation_limit, each)
    table: TallyTable[Any] = engine_of(query.subject).profile(query, plan, options.run)
    return table


def check_operations(plan: Any, limit: float | None, each: float = 0.0) -> None:
    """Raise an error if a plan exceeds the operation limit; `each`: operations of the objective per tally."""
    evaluations = each * plan.tallies
    operations = plan.operations + evaluations
    if limit is not None and operations > limit:
        fewer = (
            "cap a statistic, or use fewer statistics"
            if plan.names
            else "or give a better elimination order (order=)"
        )
        parts = f" ({plan.operations:.3g} for its tables, {evaluations:.3g} to evaluate the objective)"
        tables = printed(plan, search=False) if isinstance(plan, Plan) else plan
        raise BudgetError(
            f"the plan takes {operations:.3g} operations{parts if evaluations else ''}, but operation_limit "
            f"is {limit:.3g}; raise operation_limit, {fewer}\n{tables}"
        )


def _within_limits(
    query: Query[Any], question: Question, options: Options, error: BudgetError
) -> TallyTable[Any]:
    """Answer a question by bounds if its tables exceed the limits, or report what is known."""
    found = bounded(query, question, options, work_limit(query.subject, options))
    if error.cause:  # without advice to search by bounds
        relax = "" if query.constraint is None else f". {without_tallies(query)}"
        error = BudgetError(f"{error.cause}{relax}")
        if found is None:
            raise BudgetError(f"{error}. {unsupported(query, options)}")
    if found is None:
        raise error
    if found.finished:
        return found
    raise _known(error, found, question) from None


def _known(error: BudgetError | None, found: BoundedTable, question: Question) -> BudgetError:
    """Report what an unfinished search knows about the values of a question."""
    best, offset = found.best_known(question), question.offset
    known = found.knowing(found.bound + offset, found.value + offset, found.passes)
    return known_so_far(error, known, best, noun=found.noun)
