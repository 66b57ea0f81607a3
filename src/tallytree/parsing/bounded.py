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
from tallytree.parsing.items import ChartShape
from tallytree.parsing.parse import ChartPrice, Parse
from tallytree.parsing.plan import TreePlan
from tallytree.parsing.profile import Derivation, certify_derivation, derivation, kept_bytes
from tallytree.parsing.statistics import TreeStatistic
from tallytree.planning.budget import readable_count
from tallytree.planning.charts import ChartLayout
from tallytree.planning.options import PlanOptions
from tallytree.planning.query import Query
from tallytree.running.chart_bounds import ChartSearcher, steps_of
from tallytree.running.charts import Scores
from tallytree.values import counted

# Measured in plain passes:
_PLANNING = 5  # what it takes to find the items of a full chart, at least
_TABLE = (1.5, 0.4)  # what an operation of a full chart takes, with one statistic and with several, at least
_FEWEST = 6  # a search with fewer is not worth beginning after planning
_SHARE = 1 / 2  # of the time of a full chart that searches may take before

_BANDS = 1e5  # work of small bands
_TINY, _SHORT, _LONG = 8, 12, 25  # words of sentences
_SYMBOLS = 1000  # of large grammars


def chart_searcher(query: Query[TreeStatistic], options: PlanOptions) -> ChartSearcher:
    """Prepare a search for trees.

    Raises BudgetError if a plain chart exceeds the memory limit.
    """
    forest: Forest = query.subject
    shape = ChartShape.of(forest.grammar, len(forest), query.counted)
    layout = ChartLayout.plain(shape.compiled.rules, shape.words, options.limit)
    return ChartSearcher(layout, shape.compiled.levelled(forest.scores), shape.in_users_order(shape.shifts))


def trial_work(query: Query[TreeStatistic], options: PlanOptions, plan: TreePlan | None = None) -> float:
    """Return how much work a search may take before the full chart is planned; given a plan, before it runs.

    Most searches make fewer passes than it takes to find the items of a full chart. But the chart of a short
    sentence, or with a large grammar, whose symbols are rare, may take little besides, and a constraint may
    take many passes: then the chart is planned first.
    """
    forest, several = query.subject, len(query.carried) > 1
    operations = forest.price.operations * max((s.levels for s in query.carried), default=1)
    words, rare = len(forest), len(forest.grammar.symbols) > _SYMBOLS
    if query.constraint is None:
        first = 0.0 if words < _TINY else 6 + words / 5
    elif words < _SHORT or (rare and (several or words < _LONG)):
        first = 0.0
    else:
        first = min(12.0, 3 + words / 4) if several else min(8.0, 4 + words / 10)
    if plan is None:
        return float(first and first * operations + _BANDS)
    whole = _PLANNING + _TABLE[several] * plan.operations / operations
    passes = _SHARE * whole - first
    return float(passes * operations + _BANDS) if passes >= _FEWEST else 0.0


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
