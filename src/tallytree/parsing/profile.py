"""The profile of a forest: the best tree for every attainable tally of some statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import SAME_TALLY
from tallytree.answers.objective import Objective
from tallytree.answers.ranking import Ranked, drawn
from tallytree.answers.solution import tally_type, unique_names
from tallytree.answers.tally_table import TallyTable, Where
from tallytree.errors import ModelError, TallytreeError
from tallytree.parsing.derivation import steps_score, steps_tree
from tallytree.parsing.forest import Forest
from tallytree.parsing.parse import Parse, Reason, tree_certificate
from tallytree.parsing.plan import TreePlan
from tallytree.parsing.statistics import TreeStatistic
from tallytree.running.charts import Backend, ChartMessages, NativeChart, Scores
from tallytree.statistics.constraints import Constraint
from tallytree.trees import Tree
from tallytree.values import read_only

__all__ = ["TreeProfile"]


class _Derivation(NamedTuple):
    """What a chart decodes: steps, and the tree that they make."""

    steps: NDArray[np.int32]
    tree: Tree


class TreeProfile(TallyTable[Parse]):
    """The best score for every attainable tally, and the trees behind them.

    Made by :func:`tallytree.parsing.profile`; looked up as a :class:`tallytree.Profile` is, with
    :class:`Parse` for answers.

    Attributes
    ----------
    model : Forest
    statistics : tuple of TreeStatistic
    plan : TreePlan
    tallies : (S, P) int64 array
        The attainable tallies in lexicographic order.
    scores : (S,) float64 array
        The best score of each.
    """

    _noun = "tree"
    _none_left = (
        "the grammar has no tree for the sentence: rules are missing, or scores of -inf forbid every tree"
    )

    def __init__(
        self,
        plan: TreePlan,
        forest: Forest,
        *,
        shown: Sequence[TreeStatistic] | None = None,
        asked: Where = None,
        backend: Backend = "native",
    ) -> None:
        self.model = forest
        self.statistics = plan.statistics
        self._plan = plan
        self._shown = shown  # what the tally of a parse has, where it is not what the chart carries
        self._asked = asked  # the constraint that this profile is there to answer
        self._names = unique_names(tuple(s.name for s in self.statistics))
        self._backend: Backend = backend
        self._scores: Scores | None = None  # of the chart's rules
        self._run: ChartMessages | None = None
        self._cells, tallies, scores = plan.root(self._loaded())
        self.tallies, self.scores = read_only(tallies), read_only(scores)

    @property
    def plan(self) -> TreePlan:
        """The plan of the chart."""
        return self._plan

    # --- inside -------------------------------------------------------------------------------------------

    def _bound(self, where: Constraint) -> Constraint:
        return where

    def _chart_scores(self) -> Scores:
        if self._scores is None:
            self._scores = self.plan.compiled.levelled(self.model.scores)
        return self._scores

    def _loaded(self) -> ChartMessages:
        if self._run is None:
            self._run = self.plan.run(self._chart_scores(), backend=self._backend)
        return self._run

    def _search(self, rows: NDArray[np.int64]) -> Iterator[Ranked]:
        """Go through trees by score; one that has several derivations comes with the best of them."""
        run, seen = self._loaded(), set[Tree]()
        if not isinstance(run, NativeChart):
            raise ModelError("trees in order come from the native executor; leave out backend=")
        for found in drawn(run.in_order(self._cells[rows])):
            derived = self._derivation(found.assignment)
            if derived.tree not in seen:
                seen.add(derived.tree)
                yield found._replace(assignment=derived)

    def _reason(self, claim: str, where: Where, objective: Objective | None) -> Reason:
        among = where if self._asked is None else self._asked
        return claim, among, "score" if objective is None else "value"

    def _solution(self, row: int, reason: Reason = (SAME_TALLY,), value: float | None = None) -> Parse:
        derived = self._derivation(self._loaded().decode(int(self._cells[row])))
        return self._certified(row, derived, float(self.scores[row]), reason, value)

    def _derivation(self, steps: NDArray[Any]) -> _Derivation:
        return _Derivation(steps, steps_tree(self.plan.compiled, steps, self.model.words))

    def _certified(
        self, row: int, assignment: Any, score: float, reason: Reason, value: float | None = None
    ) -> Parse:
        """Check a derivation: its tally, counted on the tree, and its score, added up from its steps."""
        steps, tree = assignment
        exact, allowance = steps_score(self._chart_scores(), steps)
        promised, found = self.tallies[row].tolist(), [s.tally(tree) for s in self.statistics]
        if found != promised or not abs(exact - score) <= allowance:
            raise TallytreeError(
                f"the certificate failed: the chart promises score {score!r} and tally {promised}, the tree "
                f"{tree} has {exact!r} and {found}. This is a bug in tallytree; please report it"
            )
        names, tally = self._names, found
        if self._shown is not None:
            names = unique_names(tuple(s.name for s in self._shown))
            tally = [s.tally(tree) for s in self._shown]
        named = tally_type(names)(*tally)
        pruning = self.plan.floor, self.plan.prices
        proof = tree_certificate(reason, exact, score, allowance, named, self.plan.price, *pruning)
        return Parse(score if value is None else value, exact, named, tree, proof)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run": None, "_scores": None}

    def __repr__(self) -> str:
        return f"TreeProfile({len(self)} tallies of ({', '.join(self._names)}))"
