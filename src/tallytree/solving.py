"""One call from a model to an optimal labelling, with what is known of the question put to use.

The messages carry what :class:`Question` makes of the constraint, and the objective gets its own statistics
only; the tally of the solution has all that were asked for, as the user wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.nearest import nearest
from tallytree.answers.objective import Objective, called
from tallytree.answers.profile import Profile
from tallytree.answers.solution import Solution
from tallytree.answers.tally_table import TallyTable, Where
from tallytree.errors import InfeasibleError
from tallytree.model.model import Model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.orders import Order
from tallytree.planning.plan import Mode, bind, plan_of
from tallytree.planning.precision import Precision
from tallytree.planning.query import Question
from tallytree.reductions.reduction import Reduction, as_reduction, meet
from tallytree.running.graphs import Backend
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Recipe, Statistic

__all__ = ["Inquiry", "Posed", "best_of", "inquire", "pose", "solve"]


def solve(
    model: Model | Reduction,
    statistics: Iterable[Statistic | Recipe] = (),
    objective: Objective | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    order: Order | None = None,
    memory_limit: float | None = None,
    tallies: Mode = "auto",
    backend: Backend = "native",
    threads: int | None = None,
    precision: Precision = "double",
) -> Solution:
    """Find the labelling that maximises an objective, subject to a constraint.

    Parameters
    ----------
    model : Model or Reduction
        The factor graph; or a reduction, whose labellings come back as those of the original model.
    statistics : iterable of Statistic or Recipe
        What the objective gets, in order.
    objective : callable, optional
        ``H(score, *tallies)``; by default the score.
    where : Constraint, optional
        It may read statistics that the objective does not get.
    fixed : mapping of variable to state, optional
        The state that a variable must take; variables and states by name or number.
    allowed : mapping of variable to list of states, optional
        The states that a variable may take.
    order, memory_limit, tallies, backend, threads
        As for :func:`profile`.
    precision : {"double", "single"}
        ``"single"`` halves the memory of the tables and takes about half of the time. The solution is then
        optimal up to its :attr:`~Solution.gap`, which is proven.

    Raises
    ------
    InfeasibleError
        No labelling satisfies the constraint; the text names the attainable tallies that come nearest.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> tt.solve(model, where=tt.count(state=1) == 1).assignment
    array([0, 0, 1])
    >>> tt.solve(model, where=tt.count(state=1) == 1, fixed={2: 0}).assignment
    array([0, 1, 0])
    """
    asked = pose(
        as_reduction(model, fixed, allowed),
        statistics,
        where,
        order=order,
        memory_limit=memory_limit,
        tallies=tallies,
        backend=backend,
        threads=threads,
        precision=precision,
    )
    return best_of(asked, objective, where)


class Posed(NamedTuple):
    """The profile that answers a question, what is left of the constraint, and how many statistics H gets.

    The constraint itself is there in terms of the model that was solved.
    """

    profile: TallyTable[Any]
    remaining: Where
    seen: int
    constraint: Constraint | None

    def best(self, objective: Objective | None) -> Any:
        """Return the best labelling."""
        return self.profile.best(self._narrowed(objective), where=self.remaining)

    def best_row(self, objective: Objective | None) -> tuple[int, float]:
        """Return the row of the profile that :meth:`best` takes, and its value."""
        return self.profile.best_row(self._narrowed(objective), where=self.remaining)

    def top(self, count: int, objective: Objective | None) -> list[Any]:
        """Return the best labelling of each of the best tallies."""
        return self.profile.top(count, self._narrowed(objective), where=self.remaining)

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the rows of the profile that satisfy the constraint, with their scores and tallies."""
        rows = self.profile.allowed(self.remaining)
        return rows, self.profile.scores[rows], self.profile.tallies[rows]

    def ranked(self, objective: Objective | None) -> Iterator[Any]:
        """Go through the labellings, best first."""
        return self.profile.ranked(self._narrowed(objective), where=self.remaining)

    @property
    def satisfiable(self) -> bool:
        """Whether some labelling satisfies the constraint, whatever the objective says of it."""
        if self.remaining is None or not len(self.profile):
            return len(self.profile) > 0
        columns = dict(zip(self.profile.statistics, self.profile.tallies.T, strict=True))
        return bool(self.remaining.holds(columns).any())

    def _narrowed(self, objective: Objective | None) -> Objective | None:
        """Keep from the objective the statistics that only the constraint brought in."""
        if objective is None or len(self.profile.statistics) == self.seen:
            return objective
        names = self.profile.names[: self.seen]
        return lambda score, *tally: called(objective, names, score, *tally[: self.seen])


def best_of(asked: Posed, objective: Objective | None, where: Where) -> Solution:
    """Return the best labelling; where the constraint leaves none, say what comes nearest."""
    try:
        found: Solution = asked.best(objective)
        return found
    except InfeasibleError:
        if asked.constraint is None or asked.satisfiable:
            raise
    model, plan = asked.profile.model, asked.profile.plan
    near = nearest(model, asked.constraint, order=plan.options[0], memory_limit=plan.limit)
    raise InfeasibleError(f"no labelling satisfies '{where}'; {near}")


def pose(
    model: Model | Reduction,
    statistics: Iterable[Statistic | Recipe],
    where: Where,
    *,
    order: Order | None = None,
    memory_limit: float | None = None,
    tallies: Mode = "auto",
    backend: Backend = "native",
    threads: int | None = None,
    precision: Precision = "double",
) -> Posed:
    """Make the profile of the statistics and of what the constraint needs; it is empty if nothing is left."""
    inquiry = inquire(model, statistics, where)
    plan = plan_of(
        inquiry.model,
        inquiry.question,
        order=order,
        memory_limit=memory_limit,
        tallies=tallies,
        precision=precision,
    )
    found = Profile(
        inquiry.model, inquiry.question.carried, plan, backend, threads=threads, **inquiry.context
    )
    return inquiry.posed(found)


class Inquiry(NamedTuple):
    """A question about a model, before any message is passed."""

    reduction: Reduction
    question: Question[Statistic]
    seen: int
    where: Where
    constraint: Constraint | None  # in terms of the model that is solved

    @property
    def model(self) -> Model:
        """The model that is solved."""
        return self.reduction.model

    @property
    def shown(self) -> tuple[Statistic, ...] | None:
        """What the tally of a solution has, where it is not what the messages carry."""
        return None if self.question.carried is self.question.asked else self.question.asked

    @property
    def context(self) -> dict[str, Any]:
        """What a profile has to know besides the statistics that it carries."""
        return {"shown": self.shown, "asked": self.where, "reduction": self.reduction}

    @property
    def windowed(self) -> bool:
        """Whether a native layout leaves nothing of the constraint.

        Only steps are cut by a window, and a model of no variables has none.
        """
        return self.question.remaining is None or (self.question.all_windowed and len(self.model) > 0)

    def posed(self, found: Profile) -> Posed:
        """Return what the profile of the carried statistics leaves to be asked."""
        done = self.windowed and found.backend == "native"
        return Posed(found, None if done else self.question.remaining, self.seen, self.constraint)


def inquire(model: Model | Reduction, statistics: Iterable[Statistic | Recipe], where: Where) -> Inquiry:
    """Bind statistics and constraint to a model, or carry them over to a reduction's."""
    reduction, constraint = meet(as_reduction(model), where)
    seen = bind(reduction, statistics)
    return Inquiry(reduction, Question(seen, constraint), len(seen), where, constraint)
