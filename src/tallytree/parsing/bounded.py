"""The best tree by bounds: the chart of a sentence for the general search, and what it leaves.

A pass of the search is a plain chart with prices in its scores; see :mod:`tallytree.bounding`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tallytree.answers.certificate import Claim
from tallytree.bounding.certificate import BoundsCertificate, BoundsEvidence
from tallytree.bounding.table import BoundedTable
from tallytree.parsing.forest import Forest
from tallytree.parsing.items import ChartShape, live_items
from tallytree.parsing.parse import ChartPrice, Parse
from tallytree.parsing.plan import TreePlan, outline_of
from tallytree.parsing.profile import Derivation, certify_derivation, derivation, kept_bytes
from tallytree.parsing.statistics import TreeStatistic
from tallytree.planning.budget import readable_count
from tallytree.planning.charts import ChartLayout
from tallytree.planning.options import PlanOptions
from tallytree.planning.query import Query
from tallytree.running.chart_bounds import ChartSearcher, steps_of
from tallytree.running.charts import Scores
from tallytree.values import counted

# Nanoseconds that parts of passes, bands and full charts take, at least. Only their ratios matter.
_ROW, _ENTRY, _PATH = 6.0, 11.0, 2.0  # of a pass: a row of items, an item (there or not), a path over a span
_CELL = 18.0  # of a band
_SPLIT = 1.5  # of a full chart: a symbol over a split
_GROUP = 120.0  # a group of rules over a split, for each statistic
_JOINED, _OPERATION = 8.0, 0.12  # two rows of tallies, and each pair of their entries

_CALL = 4e5  # besides passes, to set up a search; and besides finding items, to plan a chart
_PLANNING = 2  # passes that take as long as planning a chart
_SHARE = 0.42  # of the time of a full chart that searches may take before

_FEWEST = 4  # passes: most searches make as many


def chart_searcher(query: Query[TreeStatistic], options: PlanOptions) -> ChartSearcher:
    """Prepare a search for trees.

    Raises BudgetError if a plain chart exceeds the memory limit.
    """
    forest: Forest = query.subject
    shape = ChartShape.of(forest.grammar, len(forest), query.counted)
    return _searcher(shape, shape.compiled.levelled(forest.scores), options)


def _searcher(shape: ChartShape, scores: Scores, options: PlanOptions, speed: float = 1.0) -> ChartSearcher:
    """Prepare a search; `speed`: operations of a plain pass per nanosecond. Caps do not matter."""
    layout = ChartLayout.plain(shape.compiled.rules, shape.words, options.limit)
    return ChartSearcher(layout, scores, shape.in_users_order(shape.shifts), _CELL * speed)


class TreeOutline:
    """What is known of the chart of a query before its tables are laid out: the least time that it takes.

    Finding the items of a chart takes no longer than a plain pass, and their number says what a pass and a
    full chart take at least. Every part of them is counted, not timed.

    Raises BudgetError if the search for the items exceeds the memory limit.
    """

    def __init__(self, query: Query[TreeStatistic], options: PlanOptions) -> None:
        forest: Forest = query.subject
        self._query, self._options = query, options
        self._shape = ChartShape.of(forest.grammar, len(forest), query.carried)
        self._scores = self._shape.compiled.levelled(forest.scores)
        self._items = live_items(self._shape, self._scores, options.limit)
        self._chart = outline_of(self._shape, self._items, query.window)

    @cached_property
    def searcher(self) -> ChartSearcher:
        """The search by bounds for the query."""
        return _searcher(self._shape, self._scores, self._options, self._speed)

    @property
    def early(self) -> bool:
        """Whether a search begins before the chart is planned: with one statistic, a plan takes no time."""
        return len(self._shape.statistics) > 1

    def plan(self) -> TreePlan:
        """Plan the full chart, once only."""
        return TreePlan(self._shape, self._items, self._options, self._query.window, self._chart)

    def work(
        self, plan: TreePlan | None = None, spent: float = 0.0, searches: int = 1, share: float = _SHARE
    ) -> float:
        """Return how much work searches may take: a share of the time of the chart, as far as it is known.

        In operations of plain passes, and less what has been `spent` before; 0 if that is too little for most
        searches. Setting up a search takes no longer than a pass.
        """
        setup = self._pass_time + _CALL
        before = setup + spent / self._speed if spent else 0.0
        time = share * (_CALL + _PLANNING * self._pass_time + self._chart_time(plan)) - setup - before
        passes = int(time / self._pass_time)
        return float(passes) * self._plain_operations if passes >= _FEWEST * searches else 0.0

    @property
    def _speed(self) -> float:
        return self._plain_operations / self._pass_time

    @cached_property
    def _plain_operations(self) -> float:
        return ChartLayout.plain(self._shape.compiled.rules, self._shape.words, np.inf).operations

    @cached_property
    def _pass_time(self) -> float:
        spans, paths = self._shape.shifts.shape[1], len(self._shape.compiled.rules.chains)
        return float(_ROW * self._items.rows + (_ENTRY * self._shape.symbols + _PATH * paths) * spans)

    def _chart_time(self, plan: TreePlan | None) -> float:
        splits, groups = self._chart.least_splits, self._chart.least_groups
        least = _SPLIT * splits * self._shape.symbols + _GROUP * groups * len(self._shape.statistics)
        if plan is None:
            return least
        return least + _JOINED * plan.layout.joined + _OPERATION * plan.operations


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeBoundsCertificate(BoundsCertificate):
    """Why a tree is optimal, by prices and a budget; print it to read it.

    Attributes
    ----------
    optimal, claim, score, promised, allowance, tally
        As for :class:`tallytree.Certificate`.
    counted, parts, passes
        As for a labelling that was found by bounds.
    chart : ChartPrice
        The cost of each pass.
    evidence : BoundsEvidence or None
        What was proven about which question, for :func:`tallytree.testing.check_bounds`; not pickled.
    """

    noun: ClassVar[str] = "tree"
    evaluated: ClassVar[str] = "added up again from its rules and words"

    chart: ChartPrice
    evidence: BoundsEvidence | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, ({f.name: getattr(self, f.name) for f in fields(self) if f.name != "evidence"},)

    def _costs(self) -> str:
        return f"  over the chart of {counted(self.chart.words, 'word')}, of " + (
            f"{readable_count(self.chart.operations)} operations each"
        )


def _restored(content: dict[str, Any]) -> TreeBoundsCertificate:
    return TreeBoundsCertificate(**content)


class BoundedTrees(BoundedTable):
    """The remaining tallies for one question about the trees of a sentence."""

    noun = "tree"
    _none_left = "no tree is left"

    @cached_property
    def _shape(self) -> ChartShape:
        forest: Forest = self.query.subject
        return ChartShape.of(forest.grammar, len(forest), self.query.counted)

    @cached_property
    def _chart_scores(self) -> Scores:
        return self._shape.compiled.levelled(self.query.subject.scores)

    def _kept_bytes(self, answer: Parse) -> int:
        return kept_bytes(answer)

    def _decoded(self, row: int) -> Derivation:
        steps = steps_of(self.found.labelling(int(self._cells[row])))
        return derivation(self._shape.compiled, steps, self.query.subject.words)

    def _certified(
        self, row: int, decoded: Any, score: float, claim: Claim, value: float | None = None
    ) -> Parse:
        self._check_allowed(row)
        promised = score, self.tallies[row].tolist()
        exact, allowance, named = certify_derivation(self.query, self._chart_scores, decoded, promised)
        evidence = self.evidence
        proof = TreeBoundsCertificate(
            optimal=claim.optimal,
            claim=claim.words("tree"),
            score=exact,
            promised=score,
            allowance=allowance,
            tally=dict(zip(named._fields, named, strict=True)),
            counted=evidence.names,
            parts=evidence.parts,
            passes=evidence.passes,
            chart=ChartPrice.of(self._layout, self._shape.symbols),
            evidence=evidence,
        )
        return Parse(score if value is None else value, exact, named, decoded.tree, proof)

    @cached_property
    def _layout(self) -> ChartLayout:
        return ChartLayout.plain(self._shape.compiled.rules, self._shape.words, np.inf)
