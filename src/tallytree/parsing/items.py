"""The items of a chart: which symbols over which spans are part of a relevant tree.

This is found before planning, from the rules and from which scores are ``-inf``: a plan takes the items as
given and does not depend on other scores. A plain upward and downward pass finds more: the score of the best
tree with each item, its **max-marginal**.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tallytree.parsing.compiled import Compiled, compiled
from tallytree.parsing.grammar import Grammar
from tallytree.parsing.statistics import Chart, TreeStatistic
from tallytree.planning.charts import ChartLayout, chart_too_large, spans
from tallytree.running.charts import Scores, run_chart
from tallytree.values import read_only

Integer = TypeVar("Integer", np.int32, np.int64)


@dataclass(frozen=True, eq=False)
class ChartShape:
    """What is known about a chart before any score; made by :meth:`of`."""

    compiled: Compiled  # the grammar; its symbols are distinguished by depth if the statistics need it
    words: int
    statistics: tuple[TreeStatistic, ...]
    order: tuple[int, ...]  # the statistics in chart order: the one with the longest range comes last
    # [bag][span][statistic]: what each bag of labels adds over each span, statistics in that order
    shifts: NDArray[np.int32]

    @classmethod
    def of(cls, grammar: Grammar, words: int, statistics: Sequence[TreeStatistic]) -> ChartShape:
        """Compute what each bag of labels adds over each span."""
        made = compiled(grammar, max((s.levels for s in statistics), default=1))
        chart = Chart(made, *spans(words))
        weights = [s.weights(chart) for s in statistics]
        order = _longest_last(statistics, weights)
        none = np.zeros((len(made.bags), len(chart.starts), 0))
        shifts = np.stack([weights[i] for i in order], axis=2) if weights else none
        counts = np.ascontiguousarray(shifts, dtype=np.int32)
        return cls(made, words, tuple(statistics), tuple(order), counts)

    @property
    def symbols(self) -> int:
        """The number of symbols of the chart."""
        return len(self.compiled.symbol_of)

    def in_users_order(self, stored: NDArray[Integer]) -> NDArray[Integer]:
        """Return tallies, one per row, with the statistics in the order given by the user."""
        tallies = np.empty_like(stored)
        tallies[..., list(self.order)] = stored
        return tallies

    def __reduce__(self) -> tuple[Any, ...]:
        return ChartShape.of, (self.compiled.grammar, self.words, self.statistics)


def _longest_last(statistics: Sequence[TreeStatistic], weights: Sequence[NDArray[np.int64]]) -> list[int]:
    """Return the order of the statistics in the chart: rows of tallies run along the longest range."""

    def reach(i: int) -> float:
        largest = float(np.abs(weights[i]).max(axis=0, initial=0).sum())
        cap = statistics[i].cap
        return largest if cap is None else min(largest, cap)

    return sorted(range(len(statistics)), key=lambda i: (reach(i), i))


@dataclass(frozen=True, eq=False)
class Items:
    """The items of a chart."""

    # [layer][span][symbol]: 1 for the items that are kept. The layers are open and closed.
    live: NDArray[np.uint8]
    kept_bytes: int  # the memory that they keep
    peak_bytes: int  # the peak memory of the search for them
    rows: float = 0.0  # the rows of items that a plain pass goes over


@dataclass(frozen=True, eq=False)
class Marginals:
    """The score of the best tree with each item, minus the price of its tally."""

    best: NDArray[np.float64]  # [layer][span][symbol]: ``-inf`` for items that are part of no tree
    peak_bytes: int  # the peak memory of the two plain passes that found them

    def above(self, floor: float = -np.inf) -> Items:
        """Return the items whose best tree scores at least this."""
        live: NDArray[Any] = ((self.best > -np.inf) & (self.best >= floor)).astype(np.uint8)
        return Items(read_only(live), live.nbytes, self.peak_bytes)


def max_marginals(
    shape: ChartShape, scores: Scores, memory_limit: float, prices: tuple[float, ...] | None = None
) -> Marginals:
    """Find the best tree with each item, by a plain upward and a plain downward pass.

    `scores`: of the shape's rules. `memory_limit`: in bytes. `prices`: the price of each statistic; by
    default 0. Raises BudgetError if two plain charts exceed the memory limit.
    """
    paid = (0.0,) * len(shape.statistics) if prices is None else prices
    plain = ChartLayout.plain(shape.compiled.rules, shape.words, np.inf)
    kept = 16 * shape.shifts.shape[1] * shape.symbols
    peak = 2 * plain.arena_bytes + kept  # an upward and a downward table
    if peak > memory_limit:
        raise chart_too_large(shape.words, peak, memory_limit)
    if any(paid):
        taken = shape.shifts @ np.array(paid)[list(shape.order)]
        chains = np.ascontiguousarray(scores.chains - shape.compiled.spread(taken, shape.words))
        scores = Scores(scores.words, scores.rules, chains)
    return Marginals(run_chart(plain, scores).marginals(), peak)


def live_items(shape: ChartShape, scores: Scores, memory_limit: float) -> Items:
    """Return the items that are part of some tree.

    Raises BudgetError if it takes more than the memory limit to find them.
    """
    grammar = shape.compiled.rules.native
    peak = int(grammar.items_bytes(shape.words))
    if peak > memory_limit:
        raise chart_too_large(shape.words, peak, memory_limit)
    live, rows = grammar.items(scores.words, scores.rules, scores.chains)
    return Items(read_only(live), live.nbytes, peak, rows)
