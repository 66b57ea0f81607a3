"""One call from a model to an optimal labelling, with what is known of the question put to use.

The messages carry what :class:`Question` makes of the constraint, and the objective gets its own statistics
only; the tally of the solution has all that were asked for, as the user wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.core.elimination import Order
from tallytree.core.expressions import Constraint
from tallytree.core.infeasible import nearest
from tallytree.core.messages import Backend
from tallytree.core.model import Model
from tallytree.core.objective import Objective, called
from tallytree.core.plan import Mode, bind, plan_of
from tallytree.core.profile import Profile, Where
from tallytree.core.question import Question
from tallytree.core.reduction import Reduction, as_reduction, meet
from tallytree.core.restriction import Allowed, Fixed
from tallytree.core.solution import Solution
from tallytree.core.statistics import Recipe, Statistic
from tallytree.errors import InfeasibleError

__all__ = ["Posed", "best_of", "pose", "solve"]


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
    order, memory_limit, tallies, backend
        As for :func:`profile`.

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
    )
    return best_of(asked, objective, where)


class Posed(NamedTuple):
    """The profile that answers a question, what is left of the constraint, and how many statistics H gets.

    The constraint itself is there in terms of the model that was solved.
    """

    profile: Profile
    remaining: Where
    seen: int
    constraint: Constraint | None

    def best(self, objective: Objective | None) -> Solution:
        """Return the best labelling."""
        return self.profile.best(self._narrowed(objective), where=self.remaining)

    def top(self, count: int, objective: Objective | None) -> list[Solution]:
        """Return the best labelling of each of the best tallies."""
        return self.profile.top(count, self._narrowed(objective), where=self.remaining)

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the rows of the profile that satisfy the constraint, with their scores and tallies."""
        rows = self.profile.allowed(self.remaining)
        return rows, self.profile.scores[rows], self.profile.tallies[rows]

    def ranked(self, objective: Objective | None) -> Iterator[Solution]:
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
        return asked.best(objective)
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
) -> Posed:
    """Make the profile of the statistics and of what the constraint needs; it is empty if nothing is left."""
    reduction, constraint = meet(as_reduction(model), where)
    seen = bind(reduction, statistics)
    question = Question(seen, constraint)
    plan = plan_of(reduction.model, question, order=order, memory_limit=memory_limit, tallies=tallies)
    shown = None if question.carried is question.asked else question.asked
    found = Profile(
        reduction.model, question.carried, plan, backend, shown=shown, asked=where, reduction=reduction
    )
    # only native layouts know windows, and only steps are cut by them: a model of no variables has none
    windowed = question.all_windowed and backend == "native" and len(reduction.model) > 0
    return Posed(found, None if windowed else question.remaining, len(seen), constraint)
