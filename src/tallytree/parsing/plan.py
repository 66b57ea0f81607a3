"""The plan of a chart with statistics: which tallies each span can have, and the cost.

Three things keep a chart small without changing an answer. Items that are part of no relevant tree
are left out; they are known before (:mod:`tallytree.parsing.items`). The tallies of a span are
those of trees over it: at most as many true positives as the truth has constituents inside it, and no
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
from tallytree.planning.carried import Window, check_window, window_ends
from tallytree.planning.charts import ChartOutline, ChartTallies
from tallytree.planning.options import Backend, PlanOptions
from tallytree.planning.program import Step
from tallytree.planning.query import Query
from tallytree.running.charts import ChartMessages, Scores, run_chart
from tallytree.values import counted

_MAX_PLUS = MaxPlus()

_DEFAULTS = PlanOptions()


class TreePlan:
    """The cost of a chart; print it to read it.

    Returned by :func:`tallytree.parsing.plan`. A plan does not depend on scores: it can be used for every
    forest of the same grammar and length whose trees consist of its items.

    Parameters
    ----------
    shape : ChartShape
        Grammar, number of words, and the statistics.
    items : Items
        The items of the chart.
    options : PlanOptions
        The memory limit; the other options are for models.
    window : mapping, optional
        The relevant tallies.
    outline : ChartOutline, optional
        The outline of the chart, if it was made before.

    Attributes
    ----------
    statistics : tuple of TreeStatistic
        The statistics that are counted, in order.
    steps : tuple of Step
        The program, one step for each table.
    items : int
        Symbols over spans that are part of some tree.
    tallies : int
        The largest number of tallies of a span.
    operations : float
        The number of additions and comparisons of the upward pass.
    peak_bytes : int
        The peak memory: of the chart and its plan, or of the search for the items before it.
    """

    def __init__(
        self,
        shape: ChartShape,
        items: Items,
        options: PlanOptions = _DEFAULTS,
        window: Window | None = None,
        outline: ChartOutline | None = None,
    ) -> None:
        self.shape, self.live, self.window = shape, items, window or {}
        self.options, self.limit = options, options.limit
        outline = outline or outline_of(shape, items, self.window)
        self.layout = outline.layout(self.limit, items.kept_bytes)

    @property
    def statistics(self) -> tuple[TreeStatistic, ...]:
        """The statistics that are counted."""
        return self.shape.statistics

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the statistics."""
        return tuple(s.name for s in self.statistics)

    @property
    def compiled(self) -> Compiled:
        """The grammar in the form for the chart."""
        return self.shape.compiled

    def check(
        self, forest: Forest, statistics: Sequence[TreeStatistic], window: Window | None = None
    ) -> None:
        """Raise an error for a forest, statistics or a window that this plan was not made for."""
        check_window(self.window, window or {})
        same = (self.compiled.grammar, self.shape.words) == (forest.grammar, len(forest))
        if not same or self.statistics != tuple(statistics):
            names = listed(self.names)
            raise ModelError(
                f"this plan was made for a sentence of {counted(self.shape.words, 'word')} and {names}, or "
                "for another grammar; make one with tallytree.plan(forest, statistics)"
            )
        live = live_items(self.shape, self.compiled.levelled(forest.scores), self.limit).live
        if np.any(live & ~self.live.live):
            raise ModelError(
                "the forest has trees that this plan leaves out, because they were forbidden when it was "
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
        """The total cost."""
        price = ChartPrice.of(self.layout, self.shape.symbols)
        return price._replace(peak_bytes=self.peak_bytes)

    @property
    def root_tallies(self) -> NDArray[np.int64]:
        """The tallies that trees may have, as far as known without the chart: one row each."""
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
        """The largest number of tallies of a span."""
        return self.layout.most_tallies

    @property
    def operations(self) -> float:
        """The number of additions and comparisons of the upward pass."""
        return self.layout.operations

    @property
    def peak_bytes(self) -> int:
        """The peak memory."""
        return max(self.layout.bytes + self.live.kept_bytes, self.live.peak_bytes)

    @property
    def every_table_bytes(self) -> int:
        """The same if all tables are needed: they are always kept."""
        return self.peak_bytes

    def __reduce__(self) -> tuple[Any, ...]:
        options = self.options._replace(memory_limit=self.limit)
        return _restored, (self.shape, self.live, options, self.window)  # the layout is recomputed

    def __str__(self) -> str:
        layout, costliest = self.layout, self.layout.costliest
        spans = self.shape.shifts.shape[1]
        names = listed(self.names)
        lines = [
            f"plan for {counted(self.shape.words, 'word')} and {names}",
            f"  {self.shape.symbols:,} symbols, {self.items:,} items over {spans:,} spans, "
            f"tallies R = {self.tallies:,}",
            f"  {counted(len(self.steps), 'step')}, {readable_count(self.operations)} add-max operations, "
            f"{readable_bytes(self.peak_bytes)}",
        ]
        if layout.pruned:
            lines.append(f"  the constraint rules out {layout.pruned:,} pairs of rows of tallies")
        if costliest >= 0:
            states, tallies = layout.table(costliest)
            lines.append(
                f"  costliest step: {self.steps[costliest]}: {counted(states, 'state')} x "
                f"{counted(tallies, 'tally')}, {layout.share(costliest):.0%} of the operations"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"TreePlan(items={self.items}, tallies={self.tallies}, operations={self.operations:.4g}, "
            f"peak_bytes={self.peak_bytes})"
        )


def _restored(shape: ChartShape, items: Items, options: PlanOptions, window: Window) -> TreePlan:
    return TreePlan(shape, items, options, window)


def outline_of(shape: ChartShape, items: Items, window: Window) -> ChartOutline:
    """Return the outline of a chart."""
    low, high = np.array(window_ends(window, shape.order), dtype=np.int64)
    caps = cap_array([shape.statistics[i].cap for i in shape.order])
    tallies = ChartTallies(shape.shifts, caps, low, high)
    return ChartOutline(shape.compiled.rules, shape.words, tallies, items.live)


def plan_trees(query: Query[TreeStatistic], options: PlanOptions) -> TreePlan:
    """Plan the chart of a query about a forest, with all items that are part of some tree.

    Raises BudgetError if the chart, or the search for its items, exceeds the memory limit.
    """
    forest: Forest = query.subject
    shape = ChartShape.of(forest.grammar, len(forest), query.carried)
    items = live_items(shape, shape.compiled.levelled(forest.scores), options.limit)
    return TreePlan(shape, items, options, query.window)
