"""An independent integer program for MAP inference, solved by HiGHS through SciPy.

The program is the local polytope with integer variables: an indicator for each state of each variable and for
each joint state of each scope, and sums that tie the two together. A statistic is a row of it.
"""

import numpy as np
import pytest

import tallytree as tt
from tallytree.testing import factors_of

optimize = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")

Row = tuple[dict[int, float], float, float]
"""Coefficients by column, the least and the largest value of the sum."""


class IntegerProgram:
    """A model as a program, and rows that narrow it."""

    def __init__(self, model: tt.Model) -> None:
        self.model = model
        self.columns: dict[tuple[int, ...], np.ndarray] = {}
        self.upper: list[float] = []
        self.rows: list[Row] = []
        for v, n in enumerate(model.cardinalities.tolist()):
            self._indicators((v,), (n,))
        self.score, self.constant = self._sum(model.blocks)

    def _indicators(self, scope: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
        if scope in self.columns:
            return self.columns[scope]
        at = len(self.upper) + np.arange(int(np.prod(shape))).reshape(shape)
        self.columns[scope] = at
        self.upper += [1.0] * at.size
        if len(scope) == 1:
            self.rows.append((dict.fromkeys(at.tolist(), 1.0), 1.0, 1.0))
        for axis, v in enumerate(scope if len(scope) > 1 else ()):
            for state, single in enumerate(self.columns[(v,)].tolist()):
                joint = np.take(at, state, axis=axis).ravel().tolist()
                self.rows.append(({**dict.fromkeys(joint, 1.0), single: -1.0}, 0.0, 0.0))
        return at

    def _sum(self, blocks) -> tuple[dict[int, float], float]:
        """Return the coefficients of the sum of all tables, and its constant; ``-inf`` forbids."""
        coefficients: dict[int, float] = {}
        constant = 0.0
        for scope, table in factors_of(blocks):
            if not scope:
                constant += float(table)
                continue
            at = self._indicators(tuple(scope), table.shape)
            for column, entry in zip(at.ravel().tolist(), table.ravel().tolist(), strict=True):
                if entry == -np.inf:
                    self.upper[column] = 0.0
                else:
                    coefficients[column] = coefficients.get(column, 0.0) + entry
        return coefficients, constant

    def between(self, statistic: tt.Statistic, low: float, high: float) -> None:
        """Ask for an uncapped tally in a range."""
        self.rows.append(self.row(statistic, low, high))

    def row(self, statistic: tt.Statistic, low: float, high: float) -> Row:
        """Return the row for an uncapped tally in a range."""
        coefficients, constant = self._sum(statistic.blocks)
        return coefficients, low - constant, high - constant

    def score_between(self, low: float, high: float) -> None:
        """Ask for a score in a range."""
        self.rows.append((self.score, low - self.constant, high - self.constant))

    def fix(self, variable: int, state: int) -> None:
        """Ask for a state."""
        self.rows.append(({int(self.columns[(variable,)][state]): 1.0}, 1.0, 1.0))

    def apart(self, labelling, distance: int) -> None:
        """Ask for at least so many variables that differ from a labelling."""
        agreeing = {int(self.columns[(v,)][a]): 1.0 for v, a in enumerate(np.ravel(labelling))}
        self.rows.append((agreeing, 0.0, len(self.model) - distance))

    def solve(self, *further: Row) -> list[int] | None:
        """Return a best labelling, under further rows if there are any; None if there is none."""
        rows = [*self.rows, *further]
        entries = [(r, c, x) for r, (coefficients, _, _) in enumerate(rows) for c, x in coefficients.items()]
        i, j, x = zip(*entries, strict=True)
        size = len(self.upper)
        found = optimize.milp(
            -np.array([self.score.get(column, 0.0) for column in range(size)]),
            integrality=np.ones(size),
            bounds=optimize.Bounds(0, np.array(self.upper)),
            constraints=optimize.LinearConstraint(
                sparse.coo_array((x, (i, j)), shape=(len(rows), size)).tocsr(),
                [low for _, low, _ in rows],
                [high for _, _, high in rows],
            ),
            options={"mip_rel_gap": 0.0},
        )
        if found.status == 2:
            return None
        assert found.status == 0, found.message
        return [int(found.x[self.columns[(v,)]].argmax()) for v in range(len(self.model))]
