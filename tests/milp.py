"""An independent mixed-integer program for MAP inference, solved by HiGHS through SciPy.

Binary ``x[i, a]`` says that variable i has state a; continuous ``z[t, s]`` that factor t sees the states s.
Each factor's z add up to the x of its variables, state by state. Nothing of the library's inference is used.
"""

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

import tallytree as tt
from tallytree.testing import factors_of


class Program:
    """The program of a model, and rows that are added to it."""

    def __init__(self, model: tt.Model) -> None:
        self.model = model
        sizes = model.cardinalities.tolist()
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        self.costs = np.zeros(self.starts[-1]).tolist()
        self.upper = np.ones(self.starts[-1]).tolist()
        self.rows: list[dict[int, float]] = []
        self.low: list[float] = []
        self.high: list[float] = []
        for v, size in enumerate(sizes):
            self.add({self.starts[v] + a: 1.0 for a in range(size)}, 1, 1)
        self.score_terms: dict[int, float] = {}
        for scope, table in factors_of(model.blocks):
            self.score_terms |= self._linked(scope, table)
        for column, score in self.score_terms.items():
            self.costs[column] = -score

    def add(self, row: dict[int, float], low: float, high: float) -> None:
        self.rows.append(row)
        self.low.append(low)
        self.high.append(high)

    def _linked(self, scope: Sequence[int], table: np.ndarray) -> dict[int, float]:
        """Add columns for the states that a factor or a statistic sees; return the entry of each."""
        first = len(self.costs)
        entries = np.where(np.isneginf(table), 0.0, table).reshape(-1)
        self.costs += [0.0] * table.size
        self.upper += np.where(np.isneginf(table), 0.0, 1.0).reshape(-1).tolist()
        numbers = np.arange(first, first + table.size).reshape(table.shape)
        for axis, v in enumerate(scope):
            for a in range(table.shape[axis]):
                row = dict.fromkeys(np.take(numbers, a, axis).reshape(-1).tolist(), 1.0)
                self.add({**row, int(self.starts[v] + a): -1.0}, 0, 0)
        return dict(zip(range(first, first + table.size), entries.tolist(), strict=True))

    def tally(self, statistic: tt.Statistic) -> dict[int, float]:
        """Return the row of an uncapped statistic."""
        row: dict[int, float] = {}
        for scope, table in factors_of(statistic.blocks):
            if len(scope) == 1:
                for a, entry in enumerate(np.asarray(table, dtype=float).tolist()):
                    column = int(self.starts[scope[0]] + a)
                    row[column] = row.get(column, 0.0) + entry
            else:
                row |= self._linked(scope, np.asarray(table, dtype=float))
        return row

    def agreement(self, labelling: Sequence[int]) -> dict[int, float]:
        """Return the row that counts the variables with the state of a labelling."""
        return {int(self.starts[v] + a): 1.0 for v, a in enumerate(labelling)}

    def apart(self, labelling: Sequence[int], distance: int) -> None:
        """Ask for at least so many variables that differ from a labelling."""
        self.add(self.agreement(labelling), 0, len(self.model) - distance)

    def solve(self) -> np.ndarray | None:
        """Return a best labelling; None if there is none."""
        columns, count = len(self.costs), len(self.rows)
        entries = [(r, c, value) for r, row in enumerate(self.rows) for c, value in row.items()]
        at, to, values = zip(*entries, strict=True)
        matrix = sp.csr_matrix((values, (at, to)), shape=(count, columns))
        integral = np.zeros(columns)
        integral[: self.starts[-1]] = 1
        result = milp(
            np.array(self.costs),
            integrality=integral,
            bounds=Bounds(np.zeros(columns), np.array(self.upper)),
            constraints=LinearConstraint(matrix, self.low, self.high),
            options={"mip_rel_gap": 0.0, "time_limit": 20},
        )
        if result.status == 2:
            return None
        assert result.status == 0, result.message
        chosen = np.split(result.x[: self.starts[-1]], self.starts[1:-1])
        return np.array([int(part.argmax()) for part in chosen])


def best(model: tt.Model, add: Callable[[Program], None] = lambda program: None) -> np.ndarray | None:
    """Solve the program of a model with further rows."""
    program = Program(model)
    add(program)
    return program.solve()
