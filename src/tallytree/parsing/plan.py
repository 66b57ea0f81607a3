"""The plan of a chart with statistics: which tallies each span can have, and what that costs.

Three things keep a chart small, and none of them changes an answer. Items that are part of no tree worth
looking at are left out; they are known before (:mod:`tallytree.parsing.items`). The tallies of a span are
those that trees over it can have: at most as many true positives as the truth has constituents inside it, no
more constituents than it can hold. And tallies that can no longer end inside the window of a constraint are
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.algebra import Algebra, MaxPlus
from tallytree.algebra.tallies import cap_array
from tallytree.errors import ModelError
from tallytree.parsing.compiled import Compiled
from tallytree.parsing.forest import Forest
from tallytree.parsing.items import ChartShape, Items, live_items
from tallytree.parsing.parse import ChartPrice
from tallytree.parsing.statistics import TreeStatistic
from tallytree.planning.budget import listed, readable_bytes, readable_count
from tallytree.planning.carried import Window, window_ends
from tallytree.planning.charts import ChartLayout, ChartTallies
from tallytree.planning.options import Backend, PlanOptions
from tallytree.planning.program import Step
from tallytree.planning.query import Query
from tallytree.running.charts import ChartMessages, Scores, run_chart

_MAX_PLUS = MaxPlus()

_DEFAULTS = PlanOptions()


class TreePlan:
    """What a chart will cost; print it.

    Made by :func:`tallytree.parsing.plan`. A plan looks at no score: it serves every forest of the same
    grammar and length whose trees are made of its items.

    Parameters
    ----------
    shape : ChartShape
        Grammar, number of words, and what the statistics count.
    items : Items
        What the chart has tables for.
    options : PlanOptions
        The memory limit; the other options are about models.
    window : mapping, optional
        The tallies that are of use.

    Attributes
    ----------
    statistics : tuple of TreeStatistic
    steps : tuple of Step
        The program, one step for each table.
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
        shape: ChartShape,
        items: Items,
        options: PlanOptions = _DEFAULTS,
        window: Window | None = None,
    ) -> None:
        self.shape, self.live, self.window = shape, items, window or {}
        self.options, self.limit = options, options.limit
        self.layout = ChartLayout.counting(
            shape.compiled.rules, shape.words, self._tallies(), items.live, self.limit, items.kept_bytes
        )

    def _tallies(self) -> ChartTallies:
        low, high = np.array(window_ends(self.window, self.shape.order), dtype=np.int64)
        caps = cap_array([self.statistics[i].cap for i in self.shape.order])
        return ChartTallies(self.shape.shifts, caps, low, high)

    @property
    def statistics(self) -> tuple[TreeStatistic, ...]:
        """What is counted."""
        return self.shape.statistics

    @property
    def compiled(self) -> Compiled:
        """The grammar as the chart has it."""
        return self.shape.compiled

    def check(self, forest: Forest, statistics: Sequence[TreeStatistic]) -> None:
        """Refuse a forest or statistics that this plan was not made for."""
        if self.window:
            raise ModelError(
                "this plan leaves out the tallies that a constraint rules out, so it cannot serve a whole "
                "profile; make one with tallytree.plan(forest, statistics), without where="
            )
        same = (self.compiled.grammar, self.shape.words) == (forest.grammar, len(forest))
        if not same or self.statistics != tuple(statistics):
            names = listed(tuple(s.name for s in self.statistics))
            raise ModelError(
                f"this plan was made for a sentence of {self.shape.words} words and {names}, or for another "
                "grammar; make one with tallytree.plan(forest, statistics)"
            )
        live = live_items(self.shape, self.compiled.levelled(forest.scores), self.limit).live
        if np.any(live & ~self.live.live):
            raise ModelError(
                "the forest has trees that this plan leaves out, because they were forbidden where it was "
                "made; make one with tallytree.plan(forest, statistics)"
            )

    # --- running ------------------------------------------------------------------------------------------

    def run(
        self,
        scores: Scores,
        algebra: Algebra = _MAX_PLUS,
        backend: Backend = "native",
    ) -> ChartMessages:
        """Build the chart, with the scores of ``plan.compiled``'s rules."""
        return run_chart(self.layout, scores, algebra=algebra, backend=backend)

    def root(self, run: ChartMessages) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the root cells by lexicographic tally, with their tallies and values."""
        cells, stored, values = run.root()
        tallies = self.shape.in_users_order(stored)
        if not self.statistics:
            return cells, tallies, values
        order = np.lexsort(tallies.T[::-1])
        return cells[order], tallies[order], values[order]

    # --- what it costs ------------------------------------------------------------------------------------

    @property
    def price(self) -> ChartPrice:
        """All of what it costs."""
        price = ChartPrice.of(self.layout, self.shape.symbols)
        return price._replace(peak_bytes=self.peak_bytes)

    @property
    def floor(self) -> float:
        """Items whose best tree scores less, its tally paid for, were left out."""
        return self.live.floor

    @property
    def prices(self) -> tuple[float, ...]:
        """What each statistic costs there."""
        return self.live.prices

    @property
    def root_tallies(self) -> NDArray[np.int64]:
        """The tallies that trees may have, as far as is known without the chart: one row each."""
        return self.shape.in_users_order(self.layout.root_tallies)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The program, step by step."""
        return self.layout.steps

    @property
    def items(self) -> int:
        """The number of symbols over spans that are part of some tree."""
        return self.layout.items

    @property
    def tallies(self) -> int:
        """The most tallies that a span has."""
        return self.layout.most_tallies

    @property
    def operations(self) -> float:
        """Additions and comparisons of the upward pass."""
        return self.layout.operations

    @property
    def peak_bytes(self) -> int:
        """The most memory at any time."""
        return max(self.layout.bytes + self.live.kept_bytes, self.live.peak_bytes)

    def __reduce__(self) -> tuple[Any, ...]:
        options = self.options._replace(memory_limit=self.limit)
        return _restored, (self.shape, self.live, options, self.window)  # the layout follows

    def __str__(self) -> str:
        layout, costliest = self.layout, self.layout.costliest
        spans = self.shape.shifts.shape[1]
        lines = [
            f"plan for {self.shape.words} words and {listed(tuple(s.name for s in self.statistics))}",
            f"  {self.shape.symbols:,} symbols, {self.items:,} items over {spans:,} spans, "
            f"tallies R = {self.tallies:,}",
            f"  {len(self.steps):,} steps, {readable_count(self.operations)} add-max operations, "
            f"{readable_bytes(self.peak_bytes)}",
        ]
        if layout.pruned:
            lines.append(f"  the constraint rules out {layout.pruned:,} pairs of rows of tallies")
        if costliest >= 0:
            states, tallies = layout.table(costliest)
            lines.append(
                f"  costliest step: {self.steps[costliest]}: {states:,} states x {tallies:,} tallies, "
                f"{layout.share(costliest):.0%} of the operations"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"TreePlan(items={self.items}, tallies={self.tallies}, operations={self.operations:.4g}, "
            f"peak_bytes={self.peak_bytes})"
        )


def _restored(shape: ChartShape, items: Items, options: PlanOptions, window: Window) -> TreePlan:
    return TreePlan(shape, items, options, window)


def plan_trees(query: Query[TreeStatistic], options: PlanOptions) -> TreePlan:
    """Plan the chart of a query about a forest, with all items that are part of some tree.

    Raises BudgetError: the chart, or the search for its items, does not fit the memory limit.
    """
    forest: Forest = query.subject
    shape = ChartShape.of(forest.grammar, len(forest), query.carried)
    items = live_items(shape, shape.compiled.levelled(forest.scores), options.limit)
    return TreePlan(shape, items, options, query.window)
