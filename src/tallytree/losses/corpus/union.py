"""A corpus as one model: the union of its parts, and a loss counted over all of them.

A question about it is answered by bounds, like one about a single model: at given prices the best
labelling of each part is found separately, and few parts have more than one tally within the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import AnyCertificate, Claim, Proof
from tallytree.answers.solution import Solution
from tallytree.answers.tallies import tally_type
from tallytree.bounding import BoundedTable, Question, bounded
from tallytree.bounding.certificate import BoundsEvidence
from tallytree.bounding.strategy import known_so_far
from tallytree.losses.corpus.search import Report
from tallytree.losses.nodes import NodeLoss
from tallytree.losses.query import GraphLossQuery
from tallytree.losses.quotients import quotient
from tallytree.losses.scaling import Scaling
from tallytree.losses.solution import AugmentedSolution
from tallytree.model.blocks import Block
from tallytree.planning.budget import Budget
from tallytree.planning.options import Options, PlanOptions
from tallytree.planning.orders import Order
from tallytree.planning.query import Query, graph_query
from tallytree.planning.search_price import program_for
from tallytree.reductions.reduction import Reduction
from tallytree.reductions.union import Union, union
from tallytree.statistics.statistic import Statistic

_TRUTH_BYTES = 24  # of each variable: the truth as an array and a tuple, and where a search starts
_PROGRAM_BYTES, _PROGRAMS = 6_000, 2.5  # of the programs of a model, besides and in terms of their steps

TOGETHER = "no labellings of all models together have a higher value"
_CLAIM = Claim(TOGETHER)


class Found(NamedTuple):
    """The labellings of all parts, their total counts, and the proof that they are optimal.

    `hits`: the true and false positives of each part, counted by definition.
    """

    solutions: tuple[AugmentedSolution, ...]
    hits: list[tuple[int, int]]
    tally: NDArray[np.int64]
    report: Report
    certificate: AnyCertificate | None


class Corpus:
    """Models with their truths, and a loss counted over all of them."""

    def __init__(self, parts: Sequence[GraphLossQuery], budget: Budget) -> None:
        self.parts = parts
        self.truth_score = float(sum(part.truth_score for part in parts))
        self.whole = _whole_loss([part.loss for part in parts])
        what, size = f"one model of the {len(parts):,} models", sum(map(_bytes_beside, parts))
        budget.hold(size, what)
        document = _document(parts)
        self._apart = document is None  # whether each part has a model of its own that is solved
        self._union, self._query = document or _side_by_side(parts)
        budget.hold(machine_bytes(self._query), what)

    def search(self, scaling: Scaling, margin: float, budget: Budget) -> Found | None:
        """Find the best labellings by bounds; None if this is not supported.

        Raises BudgetError if the memory limit is reached; the message says what is known.
        """
        value, truth = self.whole.value, self._truth()
        question = Question(scaling, margin, self.truth_score, value, quotient(self.whole), truth)
        plan = PlanOptions(self._order(budget), budget.limit, beside=budget.held)
        table = bounded(self._query, question, Options(plan))
        if table is None or not len(table):
            return None
        if table.ended:
            raise known_so_far(None, table, remedy="Raise memory_limit=")
        # If several tallies cost nothing, the search does not say which of them is meant; any will do.
        if not table.finished and not (scaling == "slack" and table.value >= 0):
            return None
        return self._answered(table, question)

    def _order(self, budget: Budget) -> Order | None:
        """Return the orders of the parts, concatenated; a chain has its own."""
        if self._union.linked:
            return None
        starts, orders, known = self._union.starts.tolist(), [], set()
        for part in self.parts:
            program = program_for(part.query.subject, part.query.read, None)
            orders.append(program.order)
            if program not in known:  # it is cached, with one for the natural order
                known.add(program)
                budget.hold(_PROGRAM_BYTES + _PROGRAMS * program.bytes, "the programs of all models")
        return tuple(np.concatenate([o + at for o, at in zip(orders, starts, strict=False)]).tolist())

    def _truth(self) -> NDArray[np.int64] | None:
        """Return the truths of all parts, if the parts are solved as they are."""
        if self._query.reduction is None or not self._query.reduction.trivial:
            return None
        return np.concatenate([part.truth for part in self.parts])

    def _answered(self, table: BoundedTable, question: Question) -> Found:
        values = question.values(table.scores, table.tallies, len(self._query.read))
        best = table.row(int(values.argmax())).claiming(TOGETHER)
        labellings = self._union.split(best.assignment)
        if self._apart:
            labellings = [part.reduction.lift(y) for part, y in zip(self.parts, labellings, strict=True)]
        each = map(partial(_solution, table.evidence), self.parts, labellings)
        solutions, hits = zip(*each, strict=True)
        counted = prod(most - least + 1 for least, most in (s.extent for s in self._query.read))
        found = table.found
        report = Report(counted, len(found.proven), len(found.passes), len(table), cells=found.cells)
        return Found(solutions, list(hits), np.array(best.tally), report, best.certificate)


def _side_by_side(parts: Sequence[GraphLossQuery]) -> tuple[Union, Query[Statistic]]:
    """Return one query about the models that are solved for all parts."""
    whole = union([part.query.subject for part in parts], (s for part in parts for s in part.query.read))
    counted = zip(*(part.query.read for part in parts), strict=True)
    statistics = tuple(whole.statistic(each) for each in counted)
    return whole, Query(whole.model, statistics, reduction=Reduction.identity(whole.model))


def _document(parts: Sequence[GraphLossQuery]) -> tuple[Union, Query[Statistic]] | None:
    """Return one query about all chains as one document; None if they have different states."""
    loss, model = parts[0].loss, parts[0].model
    assert isinstance(loss, NodeLoss)
    kind = type(loss)
    if defining(kind, "reduce_all") is not defining(kind, "reduce") or model.alike is None:
        return None
    if any(part.model.states != model.states or part.model.alike != model.alike for part in parts):
        return None
    whole = union([part.model for part in parts], states=model.states)
    if not whole.linked:
        return None
    reduction = loss.reduce_all(whole.model, [part.loss for part in parts])
    return None if reduction is None else (whole, graph_query(reduction, reduction.statistics))


def defining(kind: type, name: str) -> Any:
    """Return the class that a method of a class comes from."""
    return next(base for base in kind.__mro__ if name in vars(base))


def _solution(
    evidence: BoundsEvidence, part: GraphLossQuery, labels: NDArray[np.int64]
) -> tuple[AugmentedSolution, tuple[int, int]]:
    """Return the labelling of one part, and its true and false positives, counted by definition."""
    loss: Any = part.loss
    score = part.model.score(labels)
    tp, fp = loss.hits(labels)
    tally = tally_type(loss.counted)(*(tp if name == "tp" else fp for name in loss.counted))
    value = float(loss.of_counts(np.array(tp), np.array(fp), loss.size))
    proof = Proof(evidence, score, _CLAIM)
    solution = Solution(value + score - part.truth_score, score, tally, labels, part.model, proof)
    return AugmentedSolution(solution, value, part.truth_score), (tp, fp)


def _bytes_beside(part: GraphLossQuery) -> int:
    """Return what a part adds to the union: its model, its truth, and counts, which it has itself, too."""
    model, loss = part.model, part.loss
    assert isinstance(loss, NodeLoss)
    states = int(model.cardinalities.sum()) if model.alike is None else len(model) * model.alike
    counts = 2 * 8 * len(loss.counted) * states
    return _bytes(model.blocks) + counts + _TRUTH_BYTES * len(model)


def machine_bytes(query: Query[Statistic]) -> int:
    """Return the size of a model that is solved in place of another one, and of what is counted on it."""
    if query.reduction is None or query.reduction.trivial:
        return 0
    return _bytes(query.subject.blocks) + sum(_bytes(statistic.blocks) for statistic in query.read)


def _bytes(blocks: Iterable[Block]) -> int:
    return sum(block.tables.nbytes + block.scopes.nbytes for block in blocks)


def _whole_loss(losses: Sequence[Any]) -> NodeLoss:
    """Return the loss of all truths together, as a function of summed tallies: that of their total size."""
    whole: NodeLoss = copy(losses[0])
    vars(whole)["size"] = sum(loss.size for loss in losses)
    return whole
