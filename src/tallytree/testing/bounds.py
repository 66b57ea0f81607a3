"""Verification of the certificate of a search by bounds: a proof from the definitions that nothing is better.

Let ``v`` be the value of the answer, and ``y`` a labelling with the tally ``l``. At the prices ``λ`` of a
part, ``y`` has ``F(y) + λ·l = A - regret(y)``. So

- if ``l`` is in the box of no part, ``F(y) <= A - λ·l`` for every pass, and with the smallest of these scores
  the tally must not be better than ``v``;
- if it is in the box of a part and the regret is above the budget ``D``, a score of ``A - D - λ·l`` must
  not be better than ``v`` (scores below the sum of the smallest entries of all factors need not be checked);
- if it is in the box and the regret is within the budget, each state of ``y`` has a max-marginal of at
  least ``A - D`` at the prices. A model with no other states has ``y`` among its labellings, and the full
  table of that model must have nothing better than ``v``. For trees, the same holds with the items of a
  chart instead of states.

Every ``A`` is recomputed, by plain inference with the prices in the scores. Nothing here depends on how the
search went.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import Proof
from tallytree.answers.solution import Solution
from tallytree.answers.tally_table import TallyTable
from tallytree.bounding.certificate import BoundsEvidence, Part
from tallytree.bounding.question import as_seen, tallies_of
from tallytree.bounding.sentences import SentenceEvidence
from tallytree.model.model import Model
from tallytree.model.rounding import lowest_score, rounding, rounding_bound
from tallytree.parsing.bounded import TreeBoundsCertificate, chart_searcher
from tallytree.parsing.forest import Forest
from tallytree.parsing.items import ChartShape, Marginals, max_marginals
from tallytree.parsing.parse import Parse
from tallytree.parsing.plan import TreePlan
from tallytree.parsing.profile import TreeProfile
from tallytree.parsing.statistics import TreeStatistic
from tallytree.planning.options import PlanOptions, RunOptions
from tallytree.planning.plan import Plan
from tallytree.planning.query import Query
from tallytree.reductions.reading import read_through
from tallytree.running.bounds import Wanted
from tallytree.running.graphs import pass_upward
from tallytree.solving import ask, plan, profile
from tallytree.statistics.statistic import Statistic
from tallytree.testing.sentences import check_sentences

MOST_TALLIES = 1 << 21
"""Of larger boxes, this many tallies are sampled."""

Prices = tuple[float, ...]


def check_bounds(solution: Solution | Parse) -> None:
    """Verify the proof of a solution by bounds, by plain inference on models with prices in their scores.

    The numbers of the certificate are recomputed, and so is the proof: tallies outside the boxes cannot
    be better, nor labellings beyond the budgets, and those within a budget are covered by a full table
    over the few states that they can have. Of boxes with more than two million tallies, a sample is checked.

    Parameters
    ----------
    solution : Solution or Parse
        Found with ``strategy="bounds"``, and not read from a file: it must include its proof.

    Raises
    ------
    AssertionError
        With the numbers that do not agree.
    BudgetError
        The budget leaves too many states for a full table.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> check_bounds(tt.solve(model, where=tt.count(state=1) == 1, strategy="bounds"))
    """
    if isinstance(solution, Parse):
        told = (
            solution.certificate.evidence if isinstance(solution.certificate, TreeBoundsCertificate) else None
        )
        assert told is not None, "this tree was not found by bounds, or was read from a file"
        _TreeChecker(solution, told).check()
        return
    evidence = solution.proof.rests_on() if isinstance(solution.proof, Proof) else None
    if isinstance(evidence, SentenceEvidence):
        check_sentences(solution, evidence)
        return
    assert isinstance(evidence, BoundsEvidence), "this solution was not found by bounds"
    _ModelChecker(solution, evidence).check()


class _Checker(ABC):
    """The proof, for what can be passed over with prices."""

    def __init__(self, value: float, evidence: BoundsEvidence) -> None:
        self.evidence = evidence
        assert evidence.parts, "the certificate has no part"
        everything = [*evidence.passes, *((part.prices, part.most) for part in evidence.parts)]
        self.passes = dict(everything)
        largest = max(abs(most) for most in self.passes.values())
        slips = max(4 * self._rounding(prices) for prices in self.passes)
        self.allowance = slips + 1e-12 * (largest + abs(value))

    def check(self) -> None:
        """Recompute the numbers, and prove the answer again."""
        self.check_passes()
        self.check_outside()
        self.check_attained()
        for part in self.evidence.parts:
            self.check_beyond(part)
            self.check_within(part)

    @abstractmethod
    def _rounding(self, prices: Prices) -> float:
        """Return what rounding can change in a score with these prices."""

    @abstractmethod
    def _maximum(self, prices: Prices) -> float:
        """Return the maximum of the score with these prices."""

    @abstractmethod
    def _attained(self) -> tuple[float, list[int]] | None:
        """Return the score of the answer, and its tally; None if it is about something else."""

    @property
    @abstractmethod
    def _lowest(self) -> float:
        """A score that nothing is below."""

    @abstractmethod
    def _left(self, prices: Prices, least: float) -> TallyTable[Any]:
        """Return a full table of at least everything that reaches a score with these prices."""

    # --- the numbers ----------------------------------------------------------------------------------------

    def check_passes(self) -> None:
        """Recompute the maxima at all prices."""
        for prices, said in self.passes.items():
            most = self._maximum(prices)
            assert abs(most - said) <= self.allowance, (
                f"at the prices {prices} the maximum is {most!r}, the certificate says {said!r}"
            )

    def check_attained(self) -> None:
        """Check the answer itself against the budgets of the parts that contain it.

        Boxes overlap in only one case: a tally without loss under slack scaling has its own part.
        """
        known = self._attained()
        if known is None:
            return
        score, tally = known
        self._check_value(score, tally)
        within = []
        for part in self.evidence.parts:
            regret = part.most - score - float(np.dot(part.prices, tally))
            assert regret >= -self.allowance, (
                f"the solution is {-regret!r} above the maximum of the certificate"
            )
            if all(a <= t <= b for a, t, b in zip(part.low, tally, part.high, strict=True)):
                within.append(regret <= part.budget + self.allowance)
        assert any(within) or not within, "the regret of the solution is beyond the budget of its part"

    def _check_value(self, score: float, tally: list[int]) -> None:
        evidence = self.evidence
        seen = as_seen(np.array([tally]), evidence.query).seen
        (value,) = evidence.question.values(np.array([score]), seen, len(evidence.query.read)).tolist()
        assert abs(value - evidence.value) <= 1e-9 * (1 + abs(value)) + self.allowance, (
            f"the solution has the value {value!r}, the certificate says {evidence.value!r}"
        )

    # --- the proof ------------------------------------------------------------------------------------------

    def check_outside(self) -> None:
        """Tallies in no box of a part: the passes rule them out."""
        box = self.evidence.box
        sums = _drawn(box)
        for part in self.evidence.parts:
            inside = ((sums >= part.low) & (sums <= part.high)).all(axis=1)
            sums = sums[~inside]
        self._check_bounded(sums, self._most(sums), "lies outside all boxes")

    def check_beyond(self, part: Part) -> None:
        """Labellings in the box whose regret is above the budget: their scores are too low."""
        sums = _drawn(Wanted(part.low, part.high))
        scores = np.minimum(part.most - part.budget - sums @ np.array(part.prices), self._most(sums))
        self._check_bounded(sums, scores, f"can lie beyond the budget {part.budget!r}")

    def check_within(self, part: Part) -> None:
        """Labellings within the budget: a full table over the states, or items, that they can have."""
        table = self._left(part.prices, part.most - max(part.budget, 0.0) - 2 * self.allowance)
        inside = ((table.tallies >= part.low) & (table.tallies <= part.high)).all(axis=1)
        self._check_values(table.tallies[inside], table.scores[inside], "was not examined")

    def _most(self, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return an upper bound on the score of labellings with each tally, from all passes."""
        scores = np.full(len(sums), np.inf)
        for prices, most in self.passes.items():
            np.minimum(scores, most - sums @ np.array(prices), out=scores)
        return scores

    def _check_bounded(self, sums: NDArray[np.int64], scores: NDArray[np.float64], where: str) -> None:
        """Check tallies whose scores are bounded above, and not below those of all labellings."""
        possible = scores - 2 * self.allowance >= self._lowest
        self._check_values(sums[possible], scores[possible], where)

    def _check_values(self, sums: NDArray[np.int64], scores: NDArray[np.float64], where: str) -> None:
        """Check that no tally is better than the answer with such a score, up to rounding."""
        query, question = self.evidence.query, self.evidence.question
        tallies = as_seen(sums, query)
        rows = np.flatnonzero(tallies.allowed & (scores > -np.inf))
        if not len(rows):
            return
        lowered = scores[rows] - 2 * self.allowance
        values = question.values(lowered, tallies.seen[rows], len(query.read))
        values = np.broadcast_to(values, lowered.shape)
        worst = int(values.argmax())
        slack = 1e-9 * (1 + abs(self.evidence.value)) + self.allowance
        assert values[worst] <= self.evidence.value + slack, (
            f"the tally {sums[rows[worst]].tolist()} {where}, and with the score {scores[rows[worst]]!r} its "
            f"value is {values[worst]!r}, above {self.evidence.value!r}"
        )


class _ModelChecker(_Checker):
    def __init__(self, solution: Solution, evidence: BoundsEvidence) -> None:
        self.solution = solution
        self._plan: Plan | None = None  # all models with prices have the same shape
        self._reaches = [_reach(s) for s in evidence.statistics]
        self._blocks = evidence.model.blocks
        super().__init__(solution.value, evidence)

    def _rounding(self, prices: Prices) -> float:
        return rounding(self._blocks, sum(abs(p) * r for p, r in zip(prices, self._reaches, strict=True)))

    @property
    def _lowest(self) -> float:
        return lowest_score(self._blocks)

    def _maximum(self, prices: Prices) -> float:
        priced = self._priced(prices)
        self._plan = self._plan or plan(priced)
        return float(pass_upward(self._plan, priced).root()[2][0])

    def _attained(self) -> tuple[float, list[int]] | None:
        evidence, labels = self.evidence, self.solution.assignment
        if evidence.model.key != self.solution.model.key:
            return None
        return evidence.model.score(labels), [statistic.tally(labels) for statistic in evidence.statistics]

    def _left(self, prices: Prices, least: float) -> TallyTable[Any]:
        priced = self._priced(prices)
        marginals = priced.by_variable(profile(priced).max_marginals())
        kept = [np.flatnonzero(table >= least) for table in marginals]
        places = np.arange(len(kept), dtype=np.int32)
        sizes = np.array([len(states) for states in kept], dtype=np.int32)
        model = Model.from_blocks(sizes, read_through(self._blocks, places, kept))
        counted = [
            Statistic.from_blocks(read_through(s.blocks, places, kept), s.name, cardinalities=sizes)
            for s in self.evidence.statistics
        ]
        return profile(model, counted)

    def _priced(self, prices: Prices) -> Model:
        """Return the model with the priced statistics as additional factors."""
        counted = [
            block.with_tables(price * block.tables)
            for statistic, price in zip(self.evidence.statistics, prices, strict=True)
            for block in statistic.blocks
        ]
        return Model.from_blocks(self.evidence.model.cardinalities, [*self._blocks, *counted])


class _TreeChecker(_Checker):
    def __init__(self, parse: Parse, evidence: BoundsEvidence) -> None:
        self.parse = parse
        query: Query[Any] = evidence.query
        self._forest: Forest = query.subject
        self._counted: tuple[TreeStatistic, ...] = query.counted
        self._shape = ChartShape.of(self._forest.grammar, len(self._forest), self._counted)
        self._scores = self._shape.compiled.levelled(self._forest.scores)
        self._searched = chart_searcher(query, PlanOptions())
        super().__init__(parse.value, evidence)

    def _rounding(self, prices: Prices) -> float:
        ends = zip(prices, self._searched.ends, strict=True)
        size = self._searched.magnitude + sum(abs(p) * max(abs(a), abs(b)) for p, (a, b) in ends)
        return float(rounding_bound(8 * len(self._forest), size))

    @property
    def _lowest(self) -> float:
        return -self._searched.magnitude

    def _maximum(self, prices: Prices) -> float:
        return float(self._marginals(prices).best.max())

    def _attained(self) -> tuple[float, list[int]]:
        tree = self.parse.tree
        return self._forest.score(tree), [s.tally(tree) for s in self._counted]

    def _left(self, prices: Prices, least: float) -> TallyTable[Any]:
        kept = TreePlan(self._shape, self._marginals(prices).above(least))
        return TreeProfile(ask(self._forest, self._counted), kept, RunOptions())

    def _marginals(self, prices: Prices) -> Marginals:
        return max_marginals(self._shape, self._scores, np.inf, tuple(-price for price in prices))


def _drawn(box: Wanted) -> NDArray[np.int64]:
    """Return all tallies of a box, or a sample of a large one."""
    if box.tallies <= MOST_TALLIES:
        return tallies_of(box)
    ends = box.low, np.array(box.high) + 1
    return np.random.default_rng(0).integers(*ends, size=(MOST_TALLIES, len(box.low)))


def _reach(statistic: Statistic) -> int:
    """Return an upper bound on all sums of the magnitudes of its entries."""
    return sum(len(block) * int(np.abs(block.tables).max(initial=0)) for block in statistic.blocks)
