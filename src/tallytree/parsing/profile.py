"""The profile of a forest: the best tree for every attainable tally of some statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.core.blocks import read_only
from tallytree.core.expressions import Constraint
from tallytree.core.lookup import TallyTable, Where
from tallytree.core.objective import Objective
from tallytree.core.ranking import Ranked, drawn
from tallytree.core.solution import tally_type, unique_names
from tallytree.errors import TallytreeError
from tallytree.kernels import native
from tallytree.parsing.derivation import steps_score, steps_tree
from tallytree.parsing.forest import Forest, Parse
from tallytree.parsing.plan import TreePlan
from tallytree.parsing.statistics import TreeStatistic

__all__ = ["TreeProfile"]

_EPSILON = float(np.finfo(np.float64).eps)


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

    def __init__(self, plan: TreePlan, *, shown: Sequence[TreeStatistic] | None = None) -> None:
        self.model: Forest = plan.forest
        self.statistics = plan.statistics
        self._plan = plan
        self._shown = shown
        self._names = unique_names(tuple(s.name for s in self.statistics))
        self._run: native.ChartRun | None = plan.run()
        self._cells, tallies, scores = plan.root(self._run)
        self.tallies, self.scores = read_only(tallies), read_only(scores)

    @property
    def plan(self) -> TreePlan:
        """The plan of the chart."""
        return self._plan

    def ranked(self, objective: Objective | None = None, *, where: Where = None) -> Iterator[Parse]:
        """Go through all trees in order of value, best first, each found when it is asked for, each once."""
        return _distinct(super().ranked(objective, where=where))

    # --- inside -------------------------------------------------------------------------------------------

    def _bound(self, where: Constraint) -> Constraint:
        return where

    def _loaded(self) -> native.ChartRun:
        if self._run is None:
            self._run = self.plan.run()
        return self._run

    def _search(self, rows: NDArray[np.int64]) -> Iterator[Ranked]:
        return drawn(native.ChartKBest(self._loaded(), self._cells[rows]))

    def _reason(self, claim: str, where: Where, objective: Objective | None) -> tuple[Any, ...]:
        return ()  # a parse does not keep its proof

    def _solution(self, row: int, reason: tuple[Any, ...] = (), value: float | None = None) -> Parse:
        steps = self._loaded().decode(int(self._cells[row]))
        return self._certified(row, steps, float(self.scores[row]), reason, value)

    def _certified(
        self, row: int, assignment: Any, score: float, reason: tuple[Any, ...], value: float | None = None
    ) -> Parse:
        """Check a derivation: its tally, counted on the tree, and its score, added up from its steps."""
        tree = steps_tree(self.plan.compiled, assignment, self.model.words)
        exact, magnitude = steps_score(self.plan.scores, assignment)
        promised, found = self.tallies[row].tolist(), [s.tally(tree) for s in self.statistics]
        if found != promised or not abs(exact - score) <= _EPSILON * (4 + len(assignment)) * magnitude:
            raise TallytreeError(
                f"the certificate failed: the chart promises score {score!r} and tally {promised}, the tree "
                f"{tree} has {exact!r} and {found}. This is a bug in tallytree; please report it"
            )
        names, tally = self._names, found
        if self._shown is not None:
            names = unique_names(tuple(s.name for s in self._shown))
            tally = [s.tally(tree) for s in self._shown]
        return Parse(score if value is None else value, exact, tally_type(names)(*tally), tree)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_run": None}

    def __repr__(self) -> str:
        return f"TreeProfile({len(self)} tallies of ({', '.join(self._names)}))"


def _distinct(found: Iterator[Parse]) -> Iterator[Parse]:
    """Leave out trees that came before: a tree may have several derivations."""
    seen = set()
    for parse in found:
        if parse.tree not in seen:
            seen.add(parse.tree)
            yield parse
