"""A corpus as one model: its parts side by side, and a loss of what is counted over all of them.

One question about it is answered by bounds, as one about a single model is: at given prices the best
labelling of each part is found by itself, and few parts have more than one tally within the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import AnyCertificate, Claim
from tallytree.answers.solution import Decoded, certified
from tallytree.bounding import BoundedTable, Question, bounded
from tallytree.bounding.certificate import BoundsEvidence
from tallytree.bounding.strategy import known_so_far
from tallytree.losses.corpus.search import Report
from tallytree.losses.nodes import NodeLoss
from tallytree.losses.query import GraphLossQuery
from tallytree.losses.quotients import quotient
from tallytree.losses.scaling import Scaling
from tallytree.losses.solution import AugmentedSolution
from tallytree.planning.budget import Budget
from tallytree.planning.options import Options, PlanOptions
from tallytree.planning.orders import Order
from tallytree.planning.query import Query
from tallytree.planning.search_price import program_for
from tallytree.reductions.reduction import Reduction
from tallytree.reductions.union import union
from tallytree.running.graphs import evaluated

TOGETHER = "no labellings of all models together have a higher value"


class Found(NamedTuple):
    """The labellings of all parts, what they count together, and why they are the best."""

    solutions: tuple[AugmentedSolution, ...]
    tally: NDArray[np.int64]
    report: Report
    certificate: AnyCertificate | None


class Corpus:
    """Models with their truths, and a loss that is counted over all of them."""

    def __init__(self, parts: Sequence[GraphLossQuery], budget: Budget) -> None:
        self.parts = parts
        self.truth_score = float(sum(part.truth_score for part in parts))
        self._whole = whole_loss([part.loss for part in parts])
        subjects = [part.query.subject for part in parts]
        size = sum(block.tables.nbytes + block.scopes.nbytes for one in subjects for block in one.blocks)
        budget.hold(2 * size, f"one model of the {len(parts):,} models")
        self._union = union(subjects, (s for part in parts for s in part.query.read))
        counted = zip(*(part.query.read for part in parts), strict=True)
        statistics = tuple(self._union.statistic(each) for each in counted)
        model = self._union.model
        self._query = Query(model, statistics, reduction=Reduction.identity(model))

    def search(self, scaling: Scaling, margin: float, budget: Budget) -> Found | None:
        """Find the best labellings by bounds; None where that cannot be asked.

        Raises BudgetError: the memory came to an end; the text says what is known.
        """
        value, truth = self._whole.value, self._truth()
        question = Question(scaling, margin, self.truth_score, value, quotient(self._whole), truth)
        plan = PlanOptions(self._order(), budget.limit, beside=budget.held)
        table = bounded(self._query, question, Options(plan))
        if table is None or not len(table):
            return None
        if table.ended:
            raise known_so_far(None, table)
        # With several tallies that cost nothing the search does not say which of them is meant; any will do.
        if not table.finished and not (scaling == "slack" and table.value >= 0):
            return None
        return self._answered(table, question)

    def _order(self) -> Order | None:
        """Return the orders of the parts, one after the other; a chain has its own."""
        if self._union.linked:
            return None
        starts = self._union.starts.tolist()
        orders = [program_for(part.query.subject, part.query.read, None).order for part in self.parts]
        return tuple(np.concatenate([o + at for o, at in zip(orders, starts, strict=False)]).tolist())

    def _truth(self) -> NDArray[np.int64] | None:
        """Return the truths of all parts, where the parts are solved as they are."""
        starts = [part.start for part in self.parts]
        known = [start for start in starts if start is not None]
        return np.concatenate(known) if len(known) == len(starts) else None

    def _answered(self, table: BoundedTable, question: Question) -> Found:
        values = question.values(table.scores, table.tallies, len(self._query.read))
        best = table.row(int(values.argmax())).claiming(TOGETHER)
        labellings = self._union.split(best.assignment)
        evidence = table.evidence
        solutions = tuple(map(partial(_solution, evidence), self.parts, labellings))
        counted = prod(most - least + 1 for least, most in (s.extent for s in self._query.read))
        found = table.found
        report = Report(counted, len(found.proven), len(found.passes), len(table), cells=found.cells)
        assert best.certificate is not None
        return Found(solutions, np.array(best.tally), report, best.certificate)


def _solution(evidence: BoundsEvidence, part: GraphLossQuery, labels: NDArray[np.int64]) -> AugmentedSolution:
    """Return the labelling of one part: the best with its tally, or those of all could be better."""
    evaluation = evaluated(part.query.subject, part.query.carried, labels)
    found = Decoded(labels, evaluation[0], (), None, evaluation, certified=True)
    return part.augmented(certified(part.query, found, evidence, Claim(TOGETHER)), "margin", 1.0)


def whole_loss(losses: Sequence[Any]) -> NodeLoss:
    """Return the loss of all truths together, in terms of summed tallies: that of one, with their size."""
    whole: NodeLoss = copy(losses[0])
    vars(whole)["size"] = sum(loss.size for loss in losses)
    return whole
