"""Questions about the trees of a forest: profiles, objectives, constraints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.objective import Objective
from tallytree.answers.tally_table import Where, nearest_tallies
from tallytree.errors import BudgetError, InfeasibleError, ModelError
from tallytree.parsing.forest import Forest
from tallytree.parsing.parse import Parse
from tallytree.parsing.plan import TreePlan, plan_trees
from tallytree.parsing.profile import TreeProfile
from tallytree.parsing.statistics import TreeStatistic
from tallytree.planning.query import Question
from tallytree.solving import Posed
from tallytree.statistics.constraints import Constraint, as_constraint

__all__ = [
    "TreeInquiry",
    "best_of",
    "checked_statistics",
    "feasible_rows",
    "inquire",
    "plan",
    "pose",
    "profile",
    "solve",
]

Statistics = Iterable[TreeStatistic]


def profile(forest: Forest, statistics: Statistics = (), *, memory_limit: float | None = None) -> TreeProfile:
    """Compute the best score for every attainable tally, in one pass over the chart.

    Parameters
    ----------
    forest : Forest
        A sentence with a grammar.
    statistics : iterable of TreeStatistic
        What to tally.
    memory_limit : float, optional
        Bytes. By default half of the machine's (or the control group's) memory.

    Examples
    --------
    >>> import tallytree as tt
    >>> grammar = tt.parsing.Grammar(
    ...     {("S", "NP", "VP"): 0.0, ("VP", "VB", "NP"): -0.5},
    ...     {("NP", "NN"): -0.1, ("VP", "VB"): -0.9},
    ...     {"NN": {"fish": -1.0, "eat": -9.0}, "VB": {"fish": -3.0, "eat": -1.0}},
    ...     root="S",
    ... )
    >>> forest = tt.parsing.Forest(grammar, "fish eat fish")
    >>> found = tt.parsing.profile(forest, [tt.parsing.count("NP", name="nps")])
    >>> found.tallies.ravel(), found.best().tally
    (array([2]), Tally(nps=2))
    """
    made = plan_trees(forest, checked_statistics(forest, statistics), memory_limit=memory_limit)
    return TreeProfile(made, forest)


def plan(
    forest: Forest,
    statistics: Statistics = (),
    *,
    where: Where = None,
    memory_limit: float | None = None,
) -> TreePlan:
    """Plan a profile, or with ``where`` what :func:`solve` would run, without building the chart.

    Raises
    ------
    BudgetError
        It does not fit the memory limit. Nothing of the chart has been allocated.
    """
    return inquire(forest, statistics, where).plan(memory_limit)


def solve(
    forest: Forest,
    statistics: Statistics = (),
    objective: Objective | None = None,
    *,
    where: Where = None,
    memory_limit: float | None = None,
) -> Parse:
    """Find the tree that maximises an objective, subject to a constraint.

    Parameters
    ----------
    forest : Forest
        A sentence with a grammar.
    statistics : iterable of TreeStatistic
        What the objective gets, in order.
    objective : callable, optional
        ``H(score, *tallies)``; by default the score.
    where : Constraint, optional
        It may read statistics that the objective does not get.
    memory_limit : float, optional
        As for :func:`profile`.

    Raises
    ------
    InfeasibleError
        No tree satisfies the constraint.
    """
    return best_of(pose(forest, statistics, where, memory_limit=memory_limit), objective, where)


class TreeInquiry(NamedTuple):
    """A question about the trees of a forest, before any chart is built."""

    forest: Forest
    question: Question[TreeStatistic]
    seen: int  # how many statistics the objective gets
    where: Where

    def plan(self, memory_limit: float | None = None) -> TreePlan:
        """Plan the chart, with all items that are part of some tree."""
        carried, window = self.question.carried, self.question.window
        return plan_trees(self.forest, carried, window=window, memory_limit=memory_limit)

    def posed(self, made: TreePlan) -> Posed:
        """Build the chart; return what it leaves to be asked."""
        question = self.question
        shown = None if question.carried is question.asked else question.asked
        remaining = None if question.all_windowed else question.remaining
        found = TreeProfile(made, self.forest, shown=shown, asked=self.where)
        return Posed(found, remaining, self.seen, question.constraint)


def inquire(forest: Forest, statistics: Statistics, where: Where) -> TreeInquiry:
    """Check a question, and put the constraint in terms of what the chart carries."""
    constraint = None if where is None else as_constraint(where)
    seen = checked_statistics(forest, statistics)
    if constraint is not None:
        checked_statistics(forest, constraint.statistics)
    return TreeInquiry(forest, Question(seen, constraint), len(seen), where)


def pose(
    forest: Forest,
    statistics: Statistics,
    where: Where,
    *,
    memory_limit: float | None = None,
) -> Posed:
    """Make the profile of the statistics and of what the constraint needs; empty if nothing is left."""
    asked = inquire(forest, statistics, where)
    return asked.posed(asked.plan(memory_limit))


def best_of(asked: Posed, objective: Objective | None, where: Where) -> Parse:
    """Return the best tree; where the constraint leaves none, say what comes nearest."""
    try:
        found: Parse = asked.best(objective)
        return found
    except InfeasibleError:
        _explain_none(asked, where)
        raise


def feasible_rows(
    asked: Posed, where: Where
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the rows of the profile that satisfy the constraint, with their scores and tallies."""
    try:
        return asked.rows()
    except InfeasibleError:
        _explain_none(asked, where)
        raise


def _explain_none(asked: Posed, where: Where) -> None:
    """Raise an error that says what comes nearest, if it is the constraint that leaves no tree."""
    if asked.constraint is not None and not asked.satisfiable:
        raise InfeasibleError(f"no tree satisfies '{where}'{_nearest(asked, asked.constraint)}") from None


def _nearest(asked: Posed, constraint: Constraint) -> str:
    """Return which tallies come nearest, for the end of an error."""
    statistics = constraint.statistics
    try:
        every = profile(asked.profile.model, statistics, memory_limit=asked.profile.plan.limit)  # type: ignore[arg-type]
    except BudgetError:
        return ""
    if not len(every):
        return ": the grammar has no tree for the sentence"
    missed = constraint.violation(dict(zip(statistics, every.tallies.T, strict=True)))
    return f"; {nearest_tallies(every.names, every.tallies, missed)}"


def checked_statistics(forest: Forest, statistics: Iterable[object]) -> tuple[TreeStatistic, ...]:
    """Refuse what is no forest, or no statistic of trees."""
    if not isinstance(forest, Forest):
        raise ModelError(f"trees are those of a tallytree.parsing.Forest, got {forest!r}")
    checked = (statistics,) if isinstance(statistics, TreeStatistic) else tuple(statistics)
    for statistic in checked:
        if not isinstance(statistic, TreeStatistic):
            raise ModelError(
                "statistics of trees are made by tallytree.parsing.count, true_positives and so on; got "
                f"{statistic!r}"
            )
    kept = tuple(s for s in checked if isinstance(s, TreeStatistic))
    for statistic in kept:
        if statistic.length not in (None, len(forest.words)):
            raise ModelError(
                f"{statistic.name} compares with a truth of {statistic.length} words, the sentence has "
                f"{len(forest.words)}"
            )
    return kept
