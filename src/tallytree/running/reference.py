"""The passes in NumPy, over models and charts: slow, and short enough to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.algebra import Algebra
from tallytree.algebra.tallies import cap_array, move_minima_out, put_minima_back
from tallytree.kernels import sweeps
from tallytree.kernels.chart_problem import SPLIT, UNARY, ChartProblem, Item, Way
from tallytree.kernels.chart_sweeps import sweep_down, sweep_up, walk
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
        """Return the reachable cells; the reference keeps them sorted."""
        cells = np.flatnonzero(self.values > -np.inf)
        return cells, self._tallies[cells], self.values[cells]

    def decode(self, cell: int) -> NDArray[np.int64]:
        """Fix one variable after the other: a state is optimal if the best score with it is the best."""
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


class ReferenceChart:
    """An upward pass over a chart, with the same methods as the native run.

    Parameters
    ----------
    problem : ChartProblem
    window : pair of (P,) arrays
        The smallest and the largest relevant tally at the root.
    algebra : Algebra

    Attributes
    ----------
    values : array
        The value of every root cell.
    """

    def __init__(
        self,
        problem: ChartProblem,
        window: tuple[NDArray[np.int64], NDArray[np.int64]],
        algebra: Algebra,
    ) -> None:
        self._problem, self._algebra = problem, algebra
        self._inside = sweep_up(problem, algebra)
        self._tallies = np.zeros((0, len(problem.caps)), dtype=np.int64)
        self.values = algebra.full((0,), algebra.zero)
        if problem.top in self._inside:
            root = self._inside[problem.top]
            within = np.all((window[0] <= root.tallies) & (root.tallies <= window[1]), axis=1)
            self._within = np.flatnonzero(within)
            self._tallies, self.values = root.tallies[within], root.values[within]

    def root(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the reachable cells, with their tallies and values."""
        cells = np.flatnonzero(self.values != self._algebra.zero)
        return cells, self._tallies[cells], self.values[cells]

    def decode(self, cell: int) -> NDArray[np.int32]:
        """Return the steps of the best derivation with the tally of a root cell."""
        return walk(self._problem, self._inside, self._tallies[cell], _first_of_best, self._algebra)

    @property
    def choices(self) -> int:
        """The maximum number of choices in a derivation."""
        return 3 * (2 * self._problem.words - 1)

    def sample(self, cells: NDArray[np.int64], uniforms: NDArray[np.float64]) -> Sequence[NDArray[np.int32]]:
        """Draw a derivation given the tally of each root cell, with numbers from [0, 1) for its choices."""
        return [self._drawn(cell, row.tolist()) for cell, row in zip(cells.tolist(), uniforms, strict=True)]

    def _drawn(self, cell: int, uniforms: list[float]) -> NDArray[np.int32]:
        source = iter(uniforms)

        def choose(values: NDArray[np.float64]) -> int:
            sums = np.cumsum(np.exp(values - values.max()))
            place = np.searchsorted(sums, next(source) * sums[-1], side="right")
            return min(int(place), len(sums) - 1)

        return walk(self._problem, self._inside, self._tallies[cell], choose, self._algebra)

    def marginals(self) -> NDArray[np.float64]:
        """Return the sum (or the best) of all derivations with each item: ``[layer][span][symbol]``."""
        problem, algebra = self._problem, self._algebra
        result = algebra.full(problem.live.shape, algebra.zero)
        for item, way, value in self._downward(algebra.full(self.values.shape, algebra.one)):
            if way is None:
                result[item.layer, problem.span(item.start, item.width), item.symbol] = value
        return result

    def expectations(
        self, probabilities: NDArray[np.float64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the expected count of each tag, rule and chain, for a log-sum-exp run.

        `probabilities`: the probability of each root cell; by default proportional to its value.
        """
        problem = self._problem
        words = np.zeros(problem.word_scores.shape)
        rules = np.zeros(len(problem.rules))
        chains = np.zeros((len(problem.chains), problem.live.shape[1]))
        if probabilities is None:
            weights = np.full(self.values.shape, -np.logaddexp.reduce(self.values, initial=-np.inf))
        else:
            with np.errstate(divide="ignore"):
                weights = np.log(probabilities) - self.values
        for item, way, value in self._downward(weights):
            if way is None:
                continue
            if way.kind == SPLIT:
                rules[way.number] += np.exp(value)
            elif way.kind == UNARY:
                chains[way.number, problem.span(item.start, item.width)] += np.exp(value)
            else:
                words[item.start, way.number] += np.exp(value)
        return words, rules, chains

    def _downward(
        self, weights: NDArray[np.float64]
    ) -> Iterator[tuple[Item, Way | None, NDArray[np.float64]]]:
        if not len(self.values):
            return iter(())
        every = self._algebra.full(self._inside[self._problem.top].values.shape, self._algebra.zero)
        every[self._within] = weights
        return sweep_down(self._problem, self._inside, every, self._algebra)


def _first_of_best(values: NDArray[np.float64]) -> int:
    return int(np.argmax(values))
