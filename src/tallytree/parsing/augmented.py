"""Loss-augmented parsing: the tree that most violates the margin, exactly.

The chart carries what the loss counts, and the objective is looked up at its root. Two short cuts change no
answer: under margin scaling a linear loss is added to the scores; and where some tree reaches a value
already, only trees that score enough to reach it too need be looked at.
"""

from __future__ import annotations

import numpy as np

from tallytree.answers.tally_table import Where
from tallytree.losses.base import Line, Loss
from tallytree.losses.path import MarginPath, checked_range
from tallytree.losses.scaling import Scaling, checked_margin, scaled
from tallytree.parsing.forest import Forest
from tallytree.parsing.pruning import pruned_plan
from tallytree.parsing.question import AugmentedParse, TreeLossQuestion
from tallytree.parsing.solve import best_of, checked_statistics, feasible_rows, inquire, pose
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
    asked = inquire(forest, question.counted.statistics, where)
    plan = pruned_plan(question, asked, [at], memory_limit) if prune else asked.plan(memory_limit)
    return question.answer(best_of(asked.posed(plan), question.objective(at), where), at)


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
    asked = inquire(forest, question.counted.statistics, where)
    plan = pruned_plan(question, asked, margins, memory_limit) if prune else asked.plan(memory_limit)
    posed = asked.posed(plan)
    rows, scores, tallies = feasible_rows(posed, where)
    losses = np.broadcast_to(question.counted.value(*tallies[:, : asked.seen].T), scores.shape)
    constants = scaled(question.scaling, losses, scores - question.truth_score, 0.0)

    def tree_on(line: int, margin: float) -> AugmentedParse:
        return question.answer(posed.profile.row(int(rows[line])), margin)

    return MarginPath(losses, constants, *margins, tree_on)


def _folded(
    question: TreeLossQuestion, line: Line, margin: float, where: Where, memory_limit: float | None
) -> AugmentedParse:
    """Add the loss to the scores: it is a sum over spans, as the score is."""
    changed = question.gaining(line, margin, question.forest.scores)
    read = () if where is None else as_constraint(where).statistics
    if where is None:
        found = changed.best()
    else:
        found = best_of(pose(changed, (), where, memory_limit=memory_limit), None, where)
    unfolded = question.unfolded(found, where, checked_statistics(question.forest, read))
    return question.answer(unfolded, margin)
