"""The upward pass over a chart, by the native executor or by the NumPy reference.

Both give the root's table, one value per cell with its tally, and the derivation of any
cell. A derivation is an array with one row per step, top down and left to right: its kind (a word below
its tag, a chain of unary rules, a binary rule), its number, the start and the width of its span, and for a
rule the width of the left part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tallytree.algebra import Algebra, LogSumExp, MaxPlus
from tallytree.errors import ModelError
from tallytree.kernels import native
from tallytree.kernels.chart_problem import ChartProblem
from tallytree.planning.budget import Budget
from tallytree.planning.charts import ChartLayout, ChartTallies, spans
from tallytree.planning.options import Backend
from tallytree.running.engine import InOrder
from tallytree.running.reference import ReferenceChart

StepCounts = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
"""The expected counts of each tag for each word, of each rule, and of each chain over each span."""

_MAX_PLUS = MaxPlus()
_ALGEBRAS: dict[Algebra, native.Algebra] = {_MAX_PLUS: native.MAX_PLUS, LogSumExp(): native.LOG_SUM_EXP}


@dataclass(frozen=True)
class Scores:
    """The terms of a chart: scores of words, of binary rules and of chains."""

    words: NDArray[np.float64]  # [word][symbol]
    # [rule][1]
    rules: NDArray[np.float64]
    chains: NDArray[np.float64]

    def allowing(self) -> Scores:
        """Return scores that forbid the same items, and are 0 everywhere else."""
        return Scores(*(np.where(np.isneginf(a), a, 0.0) for a in (self.words, self.rules, self.chains)))


class NativeChart:
    """An upward pass over a chart by the native executor."""

    def __init__(self, layout: ChartLayout, scores: Scores, algebra: native.Algebra) -> None:
        self._layout = layout
        self._run = native.ChartRun(layout.native, scores.words, scores.rules, scores.chains, algebra)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The value of every root cell."""
        values = np.full(int(self._layout.cells[-1, 1]), -np.inf)
        cells, _, reached = self.root()
        values[cells] = reached
        return values

    def root(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the reachable cells, with their tallies and values."""
        return self._run.root()

    def decode(self, cell: int) -> NDArray[np.int32]:
        """Return the steps of the best derivation with the tally of a root cell."""
        return self._run.decode(cell)

    @property
    def choices(self) -> int:
        """The maximum number of choices in a derivation."""
        return self._run.choices

    def sample(self, cells: NDArray[np.int64], uniforms: NDArray[np.float64]) -> list[NDArray[np.int32]]:
        """Draw a derivation given the tally of each root cell, with numbers from [0, 1) for its choices."""
        return self._run.sample(cells, uniforms)

    def marginals(self) -> NDArray[np.float64]:
        """Return the sum (or the best) of all derivations with each item, for a chart without statistics."""
        return self._run.marginals()

    def expectations(self, probabilities: NDArray[np.float64] | None = None) -> StepCounts:
        """Return the expected count of each tag, rule and chain, for a log-sum-exp run.

        `probabilities`: the probability of each root cell; required for charts with statistics.
        """
        return self._run.expectations() if probabilities is None else self._run.expectations_of(probabilities)

    def in_order(self, cells: NDArray[np.int64], budget: Budget) -> InOrder:
        """Return a search for the derivations with the tallies of these root cells, best first."""
        return InOrder(native.ChartKBest(self._run, cells), budget, "trees")


ChartMessages = NativeChart | ReferenceChart
"""The result of an upward pass over a chart."""


def run_chart(
    layout: ChartLayout,
    scores: Scores,
    *,
    algebra: Algebra = _MAX_PLUS,
    backend: Backend = "native",
) -> ChartMessages:
    """Run the upward pass over a chart.

    `scores`: those of the layout's rules. `algebra`: only the reference supports counting, and counts
    derivations.
    """
    if backend == "reference":
        return _reference(layout, scores, algebra)
    known = _ALGEBRAS.get(algebra)
    if known is None:
        raise ModelError("only the reference counts derivations; use backend='reference'")
    return NativeChart(layout, scores, known)


def _reference(layout: ChartLayout, scores: Scores, algebra: Algebra) -> ReferenceChart:
    rules, tallies = layout.rules, layout.tallies
    every = len(spans(layout.words)[0])
    if tallies is None:
        nothing = np.zeros(0, dtype=np.int64)
        tallies = ChartTallies(np.zeros((rules.bags, every, 0), dtype=np.int32), nothing, nothing, nothing)
    problem = ChartProblem(
        rules.root,
        rules.binary,
        rules.chains,
        scores.words,
        scores.rules,
        scores.chains,
        tallies.shifts,
        tallies.caps,
        np.ones((2, every, rules.symbols)) if layout.live is None else layout.live,
    )
    return ReferenceChart(problem, (tallies.low, tallies.high), algebra)
