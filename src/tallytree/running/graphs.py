"""The upward pass over a model, by the native executor or by the NumPy reference.

Both give the last table, one value per cell with its tally, and the labelling of any cell.
The native executor runs the whole program, including packing of factors and decoding, without Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tallytree.algebra import LogSumExp, MaxPlus
from tallytree.errors import BudgetError, ModelError
from tallytree.kernels import native
from tallytree.kernels.evaluation import Evaluation, evaluator
from tallytree.model.blocks import evaluate
from tallytree.model.model import Model
from tallytree.planning.budget import Budget, readable_bytes
from tallytree.planning.options import RunOptions
from tallytree.planning.plan import Plan
from tallytree.planning.precision import check_scores
from tallytree.running.engine import InOrder
from tallytree.running.reference import ReferenceRun
from tallytree.statistics.statistic import Statistic

MAX_PLUS, LOG_SUM_EXP = native.MAX_PLUS, native.LOG_SUM_EXP

GraphMessages = native.Run | native.SingleRun | ReferenceRun
"""The result of an upward pass over a model."""

_DEFAULTS = RunOptions()
_NOWHERE = np.zeros(0, dtype=np.int64)  # the empty labelling, to evaluate constants


def pass_upward(
    plan: Plan, model: Model, options: RunOptions = _DEFAULTS, algebra: native.Algebra = MAX_PLUS
) -> GraphMessages:
    """Run the upward pass; the result does not depend on the number of threads."""
    if algebra != MAX_PLUS:
        plan.need_double("distributions")
    if options.backend == "reference":
        plan.need_double("reference runs")
        return ReferenceRun(plan, model, LogSumExp() if algebra == LOG_SUM_EXP else MaxPlus())
    tables = [block.tables for block in model.blocks]
    threads = plan.threads(options.threads)
    if plan.precision == "double":
        return native.Run(plan.layout, tables, algebra, threads=threads, every=options.every_table)
    run = native.SingleRun(plan.layout, tables, threads=threads)
    if run.overflowed:
        check_scores(model.blocks)
    return run


def pass_downward(
    messages: GraphMessages, weights: NDArray[np.float64], model: Model, plan: Plan
) -> NDArray[np.float64]:
    """Run the downward pass; constants of the model are included, as in the root's values."""
    plan.need_double("marginals")
    if isinstance(messages, ReferenceRun):
        return messages.downward(weights)
    assert isinstance(messages, native.Run)
    if not plan.every_table:
        raise plan.without_room("marginals", copies=2)
    _need_twice("marginals", plan)
    constants = sum(evaluate([block], _NOWHERE) for block in model.blocks if not block.arity)
    return messages.downward(weights) + constants


def differentiated(
    messages: GraphMessages, weights: NDArray[np.float64], plan: Plan
) -> list[NDArray[np.float64]]:
    """Return the derivatives of a function of the root's values with respect to all table entries.

    Parameters
    ----------
    messages
        From an upward pass over log-sum-exp, by the native executor.
    weights
        The derivatives with respect to the value of each root cell, of any sign.
    plan
        The plan of the messages. Tables that it did not keep are recomputed.
    """
    if not isinstance(messages, native.Run):
        raise ModelError("derivatives need the native executor; remove backend=")
    _need_twice("derivatives", plan)
    return messages.differentiate(weights)


def _need_twice(what: str, plan: Plan) -> None:
    """Raise BudgetError if a second set of tables does not fit."""
    needed = plan.every_table_bytes + plan.table_bytes
    if needed > plan.limit:
        raise BudgetError(
            f"{what} need every table twice, {readable_bytes(needed)} in all, but the limit is "
            f"{readable_bytes(plan.limit)}; raise memory_limit="
        )


def in_order(messages: GraphMessages, cells: NDArray[np.int64], plan: Plan, budget: Budget) -> InOrder:
    """Return a search through the labellings of some root cells in order of score, within a budget.

    Raises BudgetError if the plan does not keep all tables.
    """
    plan.need_double("labellings in order")
    if not isinstance(messages, native.Run):
        raise ModelError("labellings in order need the native executor; remove backend=")
    try:
        return InOrder(native.KBest(messages, cells), budget, "labellings")
    except native.BudgetExceededError:
        raise plan.without_room("labellings in order") from None


def sampled(
    messages: GraphMessages, cells: NDArray[np.int64], uniforms: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Draw a labelling for each of some root cells from random numbers, one per table."""
    if not isinstance(messages, native.Run):
        raise ModelError("the reference backend does not support sampling; use backend='native'")
    return messages.sample(cells, uniforms)


def residues(
    plan: Plan, model: Model, cells: NDArray[np.int64], primes: Sequence[int], threads: int | None
) -> list[NDArray[np.int64]]:
    """Return the number of labellings of some root cells, modulo each of some primes."""
    tables = [block.tables for block in model.blocks]
    several = plan.threads(threads)
    return [
        native.Run(plan.layout, tables, native.COUNTING, prime, several).values[cells].astype(np.int64)
        for prime in primes
    ]


def evaluator_of(model: Model, statistics: Sequence[Statistic]) -> Callable[[NDArray[np.int64]], Evaluation]:
    """Return a function that evaluates labellings on the tables of a model and of statistics."""
    counts = [block for statistic in statistics for block in statistic.blocks] if statistics else ()
    return evaluator(model.cardinalities, model.blocks, counts)
