"""The profile of a forest: the best tree for every attainable tally of some statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import Claim
from tallytree.answers.certification import certify
from tallytree.answers.ranking import Ranked, drawn
from tallytree.answers.tallies import tally_type, unique_names
from tallytree.answers.tally_table import TallyTable
from tallytree.errors import ModelError
from tallytree.parsing.compiled import Compiled
from tallytree.parsing.derivation import steps_score, steps_tree
from tallytree.parsing.forest import Forest
from tallytree.parsing.parse import Parse, tree_certificate
from tallytree.parsing.statistics import TreeStatistic
from tallytree.planning.budget import Budget
from tallytree.planning.query import Query
from tallytree.running.charts import ChartMessages, NativeChart, Scores
from tallytree.running.engine import Root
from tallytree.statistics.constraints import Constraint
from tallytree.trees import Tree

# Sizes in CPython of a string in a set, a tree node, and an answer.
_TEXT_BYTES, _NODE_BYTES, _PARSE_BYTES = 120, 280, 1200


class Derivation(NamedTuple):
    """A decoded derivation: its steps, and its tree."""

    steps: NDArray[np.int32]
    tree: Tree


def derivation(compiled: Compiled, steps: NDArray[np.int32], words: Sequence[str]) -> Derivation:
    """Return a derivation with its tree."""
    return Derivation(steps, steps_tree(compiled, steps, words))


def certify_derivation(
    query: Query[TreeStatistic], scores: Scores, found: Derivation, promised: tuple[float, list[int]]
) -> tuple[float, float, Any]:
    """Certify a derivation: its tally is counted on the tree, its score is added up from its steps.

    `promised`: the score and the tally according to the chart. Returns the score, what rounding allows, and
    the reported tally.
    """
    exact, allowance = steps_score(scores, found.steps)
    certify(
        promised,
        (exact, [s.tally(found.tree) for s in query.carried]),
        allowance,
        source="the chart promises",
        thing=found.tree,
        report="This is a bug in tallytree; please report it with the grammar",
    )
    reported = query.reported
    named = tally_type(unique_names(tuple(s.name for s in reported)))
    return exact, allowance, named(*(s.tally(found.tree) for s in reported))


def kept_bytes(answer: Parse) -> int:
    """Return the size of a parse."""
    return _PARSE_BYTES + _NODE_BYTES * sum(1 for _ in answer.tree.nodes())


class TreeProfile(TallyTable[Parse]):
    """The best score for every attainable tally, and the trees that attain them.

    Returned by :func:`tallytree.parsing.profile`; it has the methods of :class:`tallytree.Profile`, with
    :class:`Parse` objects as answers.

    Attributes
    ----------
    model : Forest
        The trees of the sentence.
    statistics : tuple of TreeStatistic
        The statistics that were counted, in order.
    plan : TreePlan
        The plan of the chart.
    tallies : (S, P) int64 array
        The attainable tallies in lexicographic order.
    scores : (S,) float64 array
        The best score for each tally.
    """

    noun = "tree"
    _none_left = (
        "the grammar has no tree for the sentence: rules are missing, or scores of -inf forbid every tree"
    )

    @property
    def model(self) -> Forest:
        """The forest."""
        forest: Forest = self.query.subject
        return forest

    # --- inside -------------------------------------------------------------------------------------------

    def _bound(self, where: Constraint) -> Constraint:
        return where

    @cached_property
    def _chart_scores(self) -> Scores:
        scores: Scores = self.plan.compiled.levelled(self.model.scores)
        return scores

    def _run(self) -> ChartMessages:
        messages: ChartMessages = self.plan.run(self._chart_scores, backend=self._options.backend)
        return messages

    def _root(self) -> Root:
        root: Root = self.plan.root(self._loaded())
        return root

    def _search(self, rows: NDArray[np.int64], budget: Budget) -> Iterator[Ranked]:
        """Iterate over trees by score; for a tree with several derivations, the best one is used."""
        run, seen = self._loaded(), set[str]()
        if not isinstance(run, NativeChart):
            raise ModelError("trees in order need the native executor; remove backend=")
        for found in drawn(run.in_order(self._cells[rows], budget)):
            derived = self._derivation(found.assignment)
            text = str(derived.tree)
            if text not in seen:
                seen.add(text)
                budget.hold(len(text) + _TEXT_BYTES, f"the {len(seen):,} trees found so far")
                yield found._replace(assignment=derived)

    def _kept_bytes(self, answer: Parse) -> int:
        return kept_bytes(answer)

    def _decoded(self, row: int) -> Derivation:
        return self._derivation(self._loaded().decode(int(self._cells[row])))

    def _derivation(self, steps: NDArray[Any]) -> Derivation:
        return derivation(self.plan.compiled, steps, self.model.words)

    def _certified(
        self, row: int, decoded: Derivation, score: float, claim: Claim, value: float | None = None
    ) -> Parse:
        promised = score, self.tallies[row].tolist()
        exact, allowance, named = certify_derivation(self.query, self._chart_scores, decoded, promised)
        proof = tree_certificate(claim, exact, score, allowance, named, self.plan.price)
        return Parse(score if value is None else value, exact, named, decoded.tree, proof)
