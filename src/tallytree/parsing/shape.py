"""The shape of a chart: a grammar over a number of words, with what statistics count. It has no scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.parsing.compiled import Compiled, compiled
from tallytree.parsing.grammar import Grammar
from tallytree.parsing.statistics import Chart, TreeStatistic
from tallytree.planning.charts import spans


@dataclass(frozen=True, eq=False)
class ChartShape:
    """What is known of a chart before any score; made by :meth:`of`.

    Attributes
    ----------
    compiled : Compiled
        The grammar; its symbols are told apart by depth as far as the statistics look at it.
    words : int
    statistics : tuple of TreeStatistic
    order : tuple of int
        The statistics as the chart has them: the one with the longest range comes last.
    shifts : int32 array, [bag][span][statistic]
        What each bag of labels adds over each span, statistics in that order.
    """

    compiled: Compiled
    words: int
    statistics: tuple[TreeStatistic, ...]
    order: tuple[int, ...]
    shifts: NDArray[np.int32]

    @classmethod
    def of(cls, grammar: Grammar, words: int, statistics: Sequence[TreeStatistic]) -> ChartShape:
        """Count what each bag of labels adds over each span."""
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

    def in_users_order(self, stored: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return tallies with the statistics as they were given."""
        tallies = np.empty_like(stored)
        tallies[:, list(self.order)] = stored
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
