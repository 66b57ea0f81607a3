"""The upward pass in NumPy, along the same elimination order: slow, and short enough to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.algebra import Algebra
from tallytree.algebra.tallies import cap_array, move_minima_out, put_minima_back
from tallytree.kernels import sweeps
from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.planning.plan import Plan
from tallytree.statistics.statistic import Statistic


def _pairs(blocks: Sequence[Block]) -> list[tuple[tuple[int, ...], NDArray[Any]]]:
    return [
        (tuple(scope), block.tables[k if len(block.tables) > 1 else 0])
        for block in blocks
        for k, scope in enumerate(block.scopes.tolist())
    ]


class ReferenceRun:
    """An upward pass over a model, with the same methods as the native run."""

    def __init__(self, plan: Plan, model: Model, algebra: Algebra) -> None:
        statistics: tuple[Statistic, ...] = plan.statistics
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
