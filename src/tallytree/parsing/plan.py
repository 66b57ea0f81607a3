"""The plan of a chart with statistics: which items it has, which tallies each span can have, what that costs.

Three things keep it small, and none of them changes an answer. Items that are part of no tree are left out;
so are those whose best tree scores below a floor, where one is known. The tallies of a span are those that
trees over it can have: at most as many true positives as the truth has constituents inside it, no more
constituents than it can hold. And tallies that can no longer end inside the window of a constraint are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels import native
from tallytree.parsing.budget import kept_budget, too_large
from tallytree.parsing.forest import Forest
from tallytree.parsing.parse import ChartPrice
from tallytree.parsing.statistics import Chart, TreeStatistic
from tallytree.planning.budget import readable_bytes, readable_count
from tallytree.planning.carried import Window
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import listed

__all__ = ["TreePlan"]

_DEFAULTS = PlanOptions()


class TreePlan:
    """What a chart will cost; print it.

    Made by :func:`tallytree.parsing.plan`.

    Attributes
    ----------
    forest : Forest
    statistics : tuple of TreeStatistic
    items : int
        Symbols over spans that are part of some tree.
    tallies : int
        The most that a span has.
    operations : float
        Additions and comparisons of the upward pass.
    peak_bytes : int
        The most memory at any time: of the chart and its plan, or of the two plain passes before it that find
        the items.
    """

    def __init__(
        self,
        forest: Forest,
        statistics: Sequence[TreeStatistic],
        options: PlanOptions = _DEFAULTS,
        window: Window | None = None,
        *,
        floor: float = -np.inf,
    ) -> None:
        self.forest = forest
        self.statistics = tuple(statistics)
        self.options, self.limit = options, options.limit
        self._floor, self._prices, self._window = floor, (0.0,) * len(self.statistics), window or {}
        self._prepare()

    def _prepare(self) -> None:
        """Make what follows from the rest."""
        forest = self.forest
        levels = max((s.levels for s in self.statistics), default=1)
        self.compiled, self.scores = forest.levelled(levels)
        chart = Chart(self.compiled, forest.starts, forest.ends)
        weights = [s.weights(chart) for s in self.statistics]
        self._order = _run_last(self.statistics, weights)
        shape = (len(self.compiled.bags), len(forest.starts), len(weights))
        shifts = np.stack([weights[i] for i in self._order], axis=2) if weights else np.zeros(shape)
        self._shifts = np.ascontiguousarray(shifts, dtype=np.int32)
        self._best = self._marginals()
        self.layout = self._laid_out()

    def raised(self, floor: float, prices: Sequence[float] | None = None) -> TreePlan:
        """Return the plan with only the items whose best tree, its tally paid for, scores this or more."""
        other = object.__new__(TreePlan)
        other.__dict__.update(self.__dict__, _floor=floor)
        if prices is not None and tuple(prices) != self._prices:
            other._prices = tuple(prices)
            other._best = other._marginals()
        other.layout = other._laid_out()
        return other

    def _marginals(self) -> NDArray[np.float64]:
        """Return the score, less the price, of the best tree with each item: ``[layer][span][symbol]``."""
        words, s, chains = len(self.forest.words), self.scores, self.scores.chains
        plain = native.ChartLayout.plain(self.compiled.native, words, np.inf)
        self._marginal_bytes = 16 * len(self.forest.starts) * len(self.compiled.symbol_of)
        self._planning_bytes = 2 * plain.arena_bytes + self._marginal_bytes  # a table up, and one down
        if self._planning_bytes > self.limit:
            raise too_large(words, self._planning_bytes, self.limit)
        if any(self._prices):
            paid = self._shifts @ np.array(self._prices)[self._order]
            chains = np.ascontiguousarray(chains - self.compiled.spread(paid, words))
        return native.ChartRun(plain, s.words, s.rules, chains, native.MAX_PLUS).marginals()

    def _laid_out(self) -> native.ChartLayout:
        items = ((self._best > -np.inf) & (self._best >= self._floor)).astype(np.uint8)
        ends = [self._window.get(i, (None, None)) for i in self._order]
        caps = [self.statistics[i].cap for i in self._order]
        with kept_budget(len(self.forest.words), self.limit, self._marginal_bytes):
            return native.ChartLayout.tallies(
                self.compiled.native,
                len(self.forest.words),
                self._shifts,
                np.array([native.UNCAPPED if cap is None else cap for cap in caps], dtype=np.int64),
                np.array([-native.NO_LIMIT if low is None else low for low, _ in ends], dtype=np.int64),
                np.array([native.NO_LIMIT if high is None else high for _, high in ends], dtype=np.int64),
                items,
                self.limit - self._marginal_bytes,
            )

    @property
    def price(self) -> ChartPrice:
        """All of what it costs."""
        found = ChartPrice.of(self.layout, len(self.forest.words), len(self.compiled.symbol_of))
        return found._replace(peak_bytes=self.peak_bytes)

    @property
    def floor(self) -> float:
        """Items whose best tree scores less, its tally paid for, were left out."""
        return self._floor

    @property
    def prices(self) -> tuple[float, ...]:
        """What each statistic costs there."""
        return self._prices

    def run(self, algebra: native.Algebra = native.MAX_PLUS) -> native.ChartRun:
        """Build the chart."""
        return native.ChartRun(self.layout, self.scores.words, self.scores.rules, self.scores.chains, algebra)

    def root(self, run: native.ChartRun) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the root cells by lexicographic tally, with their tallies and values."""
        cells, stored, values = run.root()
        tallies = np.empty_like(stored)
        tallies[:, self._order] = stored
        if not self.statistics:
            return cells, tallies, values
        order = np.lexsort(tallies.T[::-1])
        return cells[order], tallies[order], values[order]

    @property
    def root_tallies(self) -> NDArray[np.int64]:
        """The tallies that trees may have, as far as is known without the chart: one row each."""
        stored = self.layout.root_tallies
        tallies = np.empty_like(stored)
        tallies[:, self._order] = stored
        return tallies

    @property
    def items(self) -> int:
        """The number of symbols over spans that are part of some tree."""
        return self.layout.items

    @property
    def tallies(self) -> int:
        """The most tallies that a span has."""
        return self.layout.most_cells

    @property
    def operations(self) -> float:
        """Additions and comparisons of the upward pass."""
        return self.layout.operations

    @property
    def peak_bytes(self) -> int:
        """The most memory at any time."""
        kept = self.layout.arena_bytes + self.layout.plan_bytes + self._marginal_bytes
        return max(kept, self._planning_bytes)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("forest", "statistics", "limit", "_floor", "_prices", "_window")  # the rest follows
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    def __str__(self) -> str:
        forest, layout = self.forest, self.layout
        lines = [
            f"plan for {len(forest.words)} words and {listed(tuple(s.name for s in self.statistics))}",
            f"  {len(self.compiled.symbol_of):,} symbols, {self.items:,} items over "
            f"{len(forest.starts):,} spans, tallies R = {self.tallies:,}",
            f"  {readable_count(self.operations)} add-max operations, {readable_bytes(self.peak_bytes)}",
        ]
        if layout.pruned:
            lines.append(f"  the constraint rules out {layout.pruned:,} pairs of rows of tallies")
        if layout.costliest_operations > 0:
            share = layout.costliest_operations / max(self.operations, 1)
            start, end = forest.starts[layout.costliest], forest.ends[layout.costliest]
            cells = layout.cells[layout.costliest, 0]
            lines.append(
                f"  costliest span: words {start} to {end}, {cells:,} tallies, {share:.0%} of the operations"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"TreePlan(items={self.items}, tallies={self.tallies}, operations={self.operations:.4g}, "
            f"peak_bytes={self.peak_bytes})"
        )


def _run_last(statistics: Sequence[TreeStatistic], weights: Sequence[NDArray[np.int64]]) -> list[int]:
    """Return the statistics in the order of the chart: the one with the longest range goes along its rows."""

    def reach(i: int) -> float:
        largest = float(np.abs(weights[i]).max(axis=0, initial=0).sum())
        cap = statistics[i].cap
        return largest if cap is None else min(largest, cap)

    return sorted(range(len(statistics)), key=lambda i: (reach(i), i))
