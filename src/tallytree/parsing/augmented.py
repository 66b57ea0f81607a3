"""Loss-augmented parsing: the tree that most violates the margin, exactly.

The chart carries what the loss counts, and the objective is looked up at its root. Two short cuts change no
answer: under margin scaling a linear loss is added to the scores; and where some tree reaches a value
already, only trees that score enough to reach it too need be looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.tally_table import TallyTable, Where
from tallytree.losses.base import Line, Loss
from tallytree.losses.path import MarginPath, checked_range
from tallytree.losses.scaling import Scaling, checked_margin, scaled
from tallytree.parsing.forest import Forest
from tallytree.parsing.pruning import pruned_plan
from tallytree.parsing.question import AugmentedParse, TreeLossQuestion
from tallytree.parsing.statistics import checked_statistics
from tallytree.planning.options import PlanOptions, RunOptions
from tallytree.running.engine import engine_of
from tallytree.solving import ask, best_of, solve
from tallytree.statistics.constraints import as_constraint

__all__ = ["loss_augmented", "loss_augmented_path"]


def loss_augmented(
    forest: Forest,
    loss: Loss,
    scaling: Scaling = "margin",
    *,
    margin: float = 1.0,
    where: Where = None,
    memory_limit: float | None = None,
    prune: bool = True,
) -> AugmentedParse:
    """Find the tree that most violates the margin.

    Parameters
    ----------
    forest : Forest
        A sentence with a grammar.
    loss : Loss
        Bound to a tree, as ``tallytree.losses.FBeta(tree)``.
    scaling : {"margin", "slack"}
        Maximise ``loss(y) + F(y) - F(truth)``, or ``loss(y)·(1 + F(y) - F(truth))``.
    margin : float
        In the place of the factor 1 of the loss, or of the 1 in the brackets.
    where : Constraint, optional
        Only trees that satisfy it.
    memory_limit : float, optional
        As for :func:`profile`.
    prune : bool
        Whether to leave out items whose trees all score too little to be the answer. It changes only what
        the answer costs.

    Raises
    ------
    ModelError
        The truth is no tree of the grammar; or the loss can be negative, with slack scaling.
    InfeasibleError
        No tree satisfies the constraint.

    Examples
    --------
    >>> import tallytree as tt
    >>> rules = {("N", "N", "N"): -1.0}
    >>> forest = tt.parsing.Forest(tt.parsing.Grammar(rules, {}, {"N": {"a": 0.0}}, root="N"), "a a a")
    >>> truth = tt.parsing.parse_tree("(N (N a) (N (N a) (N a)))")
    >>> found = tt.parsing.loss_augmented(forest, tt.losses.FBeta(truth), "slack")
    >>> str(found.tree), found.loss, found.value
    ('(N (N (N a) (N a)) (N a))', 0.5, 0.5)
    """
    question, at = TreeLossQuestion(forest, loss, scaling), checked_margin(margin)
    if question.line is not None:
        return _folded(question, question.line, at, where, memory_limit)
    table = _table(question, where, [at], memory_limit, prune)
    return question.answer(best_of(table, question.objective(at)), at)


def loss_augmented_path(
    forest: Forest,
    loss: Loss,
    low: float = 0.0,
    high: float = np.inf,
    scaling: Scaling = "margin",
    *,
    where: Where = None,
    memory_limit: float | None = None,
    prune: bool = True,
) -> MarginPath[AugmentedParse]:
    """Find the tree that most violates the margin, for every margin λ in a range, in one pass.

    Maximises ``λ·loss(y) + F(y) - F(truth)``, or ``loss(y)·(λ + F(y) - F(truth))``. As a function of λ the
    optimum is convex and made of straight pieces, one tree to each.

    Parameters
    ----------
    low, high : float
        The range of margins; ``high`` may be infinite, and then nothing can be pruned.
    forest, loss, scaling, where, memory_limit, prune
        As for :func:`loss_augmented`.

    Examples
    --------
    >>> import tallytree as tt
    >>> rules = {("N", "N", "N"): -1.0, ("N", "M", "N"): -1.0, ("M", "N", "N"): -1.5}
    >>> forest = tt.parsing.Forest(tt.parsing.Grammar(rules, {}, {"N": {"a": 0.0}}, root="N"), "a a a")
    >>> truth = tt.parsing.parse_tree("(N (N a) (N (N a) (N a)))")
    >>> path = tt.parsing.loss_augmented_path(forest, tt.losses.FalsePositives(truth), 0, 5)
    >>> path, str(path.at(1.0).tree)
    (MarginPath(1 pieces from 0 to 5), '(N (N (N a) (N a)) (N a))')
    """
    margins = checked_range(low, high)
    question = TreeLossQuestion(forest, loss, scaling)
    table = _table(question, where, margins, memory_limit, prune)
    rows = _feasible_rows(table)
    scores, tallies = table.scores[rows], table.tallies[rows]
    losses = np.broadcast_to(question.counted.value(*tallies[:, : len(table.query.read)].T), scores.shape)
    constants = scaled(question.scaling, losses, scores - question.truth_score, 0.0)

    def tree_on(line: int, margin: float) -> AugmentedParse:
        return question.answer(table.row(int(rows[line])), margin)

    return MarginPath(losses, constants, *margins, tree_on)


def _table(
    question: TreeLossQuestion,
    where: Where,
    margins: Sequence[float],
    memory_limit: float | None,
    prune: bool,
) -> TallyTable[Any]:
    """Plan the chart, without hopeless items if asked to, and build it."""
    options = PlanOptions(memory_limit=memory_limit)
    query = ask(question.forest, question.counted.statistics, where)
    engine = engine_of(question.forest)
    plan = pruned_plan(question, query, margins, options) if prune else engine.plan(query, options)
    table: TallyTable[Any] = engine.profile(query, plan, RunOptions())
    return table


def _feasible_rows(table: TallyTable[Any]) -> NDArray[np.int64]:
    """Return the rows that satisfy the constraint; where there are none, say what comes nearest."""
    if not table.satisfiable:
        best_of(table)
    return table.rows_where()


def _folded(
    question: TreeLossQuestion, line: Line, margin: float, where: Where, memory_limit: float | None
) -> AugmentedParse:
    """Add the loss to the scores: it is a sum over spans, as the score is."""
    changed = question.gaining(line, margin, question.forest.scores)
    read = () if where is None else as_constraint(where).statistics
    found = changed.best() if where is None else solve(changed, where=where, memory_limit=memory_limit)
    unfolded = question.unfolded(found, where, checked_statistics(read, len(question.forest)))
    return question.answer(unfolded, margin)
