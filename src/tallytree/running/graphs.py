"""The upward pass of a plan, by the native executor or by the NumPy reference.

Both give the last table, one value per cell with its tally, and can be asked for the labelling behind a cell.
The native executor runs the whole program, packing of factors and decoding included, with no Python in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from tallytree.algebra import Algebra, LogSumExp, MaxPlus
from tallytree.algebra.tallies import cap_array, move_minima_out, put_minima_back
from tallytree.errors import BudgetError, ModelError
from tallytree.kernels import native, sweeps
from tallytree.model.blocks import Block, evaluate
from tallytree.model.model import Model
from tallytree.planning.plan import Plan
from tallytree.planning.precision import check_scores
from tallytree.planning.threads import threads_for
from tallytree.statistics.statistic import Statistic

__all__ = ["Backend", "Messages", "downward", "pass_messages"]

Backend = Literal["native", "reference"]


class Messages(Protocol):
    """What remains of an upward pass."""

    @property
    def values(self) -> NDArray[np.float64]:
        """The value of every root cell."""

    def root(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the root cells that some labelling reaches, by lexicographic tally; tallies and values."""

    def decode(self, cell: int) -> NDArray[np.int64]:
        """Return the best labelling with the tally of a root cell."""


def pass_messages(
    plan: Plan,
    model: Model,
    statistics: Sequence[Statistic],
    *,
    algebra: native.Algebra = native.MAX_PLUS,
    backend: Backend = "native",
    threads: int | None = None,
) -> Messages:
    """Run the upward pass; the result does not depend on the number of threads."""
    if algebra != native.MAX_PLUS:
        plan.need_double("distributions")
    if backend == "native":
        tables = [block.tables for block in model.blocks]
        several = threads_for(plan.operations, threads)
        if plan.precision == "double":
            return native.Run(plan.layout, tables, algebra, threads=several)
        run = native.SingleRun(plan.layout, tables, threads=several)
        if run.overflowed:
            check_scores(model.blocks)
        return run
    if backend == "reference":
        plan.need_double("reference runs")
        return _Reference(
            plan, model, statistics, LogSumExp() if algebra == native.LOG_SUM_EXP else MaxPlus()
        )
    raise ModelError(f"backend must be 'native' or 'reference', got {backend!r}")


def downward(
    messages: Messages, weights: NDArray[np.float64], model: Model, plan: Plan
) -> NDArray[np.float64]:
    """Run the downward pass; constants of the model are in the result as they are in the root's values."""
    plan.need_double("marginals")
    assert isinstance(messages, (native.Run, _Reference))
    native_run = isinstance(messages, native.Run)
    if native_run and (plan.segments > 1 or plan.peak_bytes + plan.layout.arena_bytes > plan.limit):
        raise BudgetError(
            f"marginals keep every table twice, {2 * plan.layout.arena_bytes:,} bytes; the limit is "
            f"{plan.limit:,.0f}, and this plan keeps {plan.kept}. Raise memory_limit="
        )
    result = messages.downward(weights)
    if native_run:
        result = result + sum(evaluate([block], _NOWHERE) for block in model.blocks if not block.arity)
    return result


_NOWHERE = np.zeros(0, dtype=np.int64)  # where constants are evaluated


def _pairs(blocks: Sequence[Block]) -> list[tuple[tuple[int, ...], NDArray[Any]]]:
    return [
        (tuple(scope), block.tables[k if len(block.tables) > 1 else 0])
        for block in blocks
        for k, scope in enumerate(block.scopes.tolist())
    ]


class _Reference:
    """The same pass in NumPy, along the same elimination order: slow, and short enough to read."""

    def __init__(self, plan: Plan, model: Model, statistics: Sequence[Statistic], algebra: Algebra) -> None:
        self._order: list[int] = plan.order.tolist()
        self._algebra = algebra
        shifts, offsets, rooms = [], [], []
        for statistic in statistics:
            pairs = _pairs(statistic.blocks)
            tables, offset, room = move_minima_out([table for _, table in pairs], statistic.cap)
            shifts.append([(scope, table) for (scope, _), table in zip(pairs, tables, strict=True)])
            offsets.append(offset)
            rooms.append(room)
        self._problem = sweeps.Problem(
            model.cardinalities.tolist(), _pairs(model.blocks), shifts, np.array(rooms, dtype=np.int64)
        )
        self._steps = sweeps.sweep_up(self._problem, self._order, algebra)
        root = self._steps[-1].output
        self.values: NDArray[np.float64] = root.values
        caps = cap_array([s.cap for s in statistics])
        self._tallies = put_minima_back(root.tallies, np.array(offsets, dtype=np.int64), caps)

    def root(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the cells that some labelling reaches; the reference keeps them sorted."""
        cells = np.flatnonzero(self.values > -np.inf)
        return cells, self._tallies[cells], self.values[cells]

    def decode(self, cell: int) -> NDArray[np.int64]:
        """Fix one variable after the other: a state is right if the best score with it is the best."""
        fixed: list[Any] = []
        steps = self._steps
        assignment = np.zeros(len(self._order), dtype=np.int64)
        for variable in self._order:
            weights = np.full(len(self.values), -np.inf)
            weights[cell] = 0.0
            best = sweeps.sweep_down(steps, weights, self._algebra)[variable]
            assignment[variable] = int(np.argmax(best))
            only = np.full(best.shape, -np.inf)
            only[assignment[variable]] = 0.0
            fixed.append(((variable,), only))
            problem = sweeps.Problem(
                self._problem.cardinalities,
                [*self._problem.factors, *fixed],
                self._problem.shifts,
                self._problem.caps,
            )
            steps = sweeps.sweep_up(problem, self._order, self._algebra)
        return assignment

    def downward(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over all labellings with each state of each variable, root cells weighted."""
        marginals = sweeps.sweep_down(self._steps, weights, self._algebra)
        return np.concatenate([[], *(marginals[v] for v in sorted(marginals))])
