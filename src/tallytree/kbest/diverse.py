"""Diverse labellings.

Keeping away from a labelling ``y'`` is a constraint on the number of mismatches with it: ``Δ(y, y') >= m``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.listed import Answers
from tallytree.answers.solution import Solution
from tallytree.answers.tally_table import Where
from tallytree.bounding.answering import answered
from tallytree.bounding.question import Question
from tallytree.errors import BudgetError, InfeasibleError, ModelError
from tallytree.model.inputs import whole_number
from tallytree.model.model import Model, checked_model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.options import Keywords, read_options
from tallytree.planning.query import bind
from tallytree.solving import ask, best_of
from tallytree.statistics.constraints import all_of
from tallytree.statistics.formula_constraints import as_condition
from tallytree.statistics.recipes import mismatches
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import counted

Distance = Callable[[NDArray[np.int64]], Statistic | Recipe]


def diverse_k_best(
    model: Model,
    k: int,
    distance: int | Sequence[int],
    statistics: Iterable[Statistic | Recipe] = (),
    *,
    where: Where = None,
    statistic: Distance | None = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    **options: Unpack[Keywords],
) -> list[Solution]:
    """Return k labellings, each the best among those far enough from all previous ones.

    Parameters
    ----------
    model : Model
        The factor graph.
    k : int
        The number of labellings; fewer are returned if no further labelling is far enough, and none for 0.
    distance : int or sequence of int
        The minimum distance to every earlier labelling; in a sequence, the first number is for the second
        labelling, the next for the third and so on.
    statistics : iterable of Statistic or Recipe
        Shown in the tallies, before the distances.
    where : Constraint or str, optional
        All labellings satisfy this, as for :func:`solve`.
    statistic : callable, optional
        Returns the statistic that measures the distance to a labelling (an integer array); by default the
        number of variables that differ.
    fixed, allowed : mapping, optional
        As for :func:`solve`.
    **options
        ``order``, ``memory_limit``, ``layout`` and ``threads``, as for :func:`profile`. The i-th
        labelling needs a table of up to ``(distance + 1)**(i - 1)`` tallies. ``strategy``, as for
        :func:`solve`: up to the fourth labelling, large tables are avoided by bounds.

    Returns
    -------
    list of Solution
        The tally of each ends with its distances to the earlier ones.

    Raises
    ------
    InfeasibleError
        No labelling satisfies the constraint.
    BudgetError
        A labelling is too expensive to keep away from the earlier ones, which are ``found`` of the error.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> for solution in tt.diverse_k_best(model, 3, distance=2):
    ...     print(solution.score, solution.assignment, tuple(solution.tally))
    7.0 [1 1 1] ()
    4.0 [0 0 1] (2,)
    2.0 [0 1 0] (2, 2)
    >>> two = tt.count(state=1) == 2
    >>> [solution.assignment.tolist() for solution in tt.diverse_k_best(model, 3, distance=2, where=two)]
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    model = checked_model(model).restricted(fixed, allowed)
    count = whole_number(k, "k", least=0)
    least = _distances(distance, count)
    chosen = read_options(options, diverse_k_best, single=False, one=True)
    measure = statistic or (lambda labelling: mismatches(model, labelling))
    shown = bind(model, statistics)
    given = [] if where is None else [as_condition(where, shown)]
    found: Answers[Solution] = Answers()
    away: list[Statistic] = []
    try:
        for rank in range(count):
            constraint = all_of([*given, *(one >= least[rank - 1] for one in away)])
            table = answered(ask(model, shown, constraint), chosen, Question)
            found.append(table.best() if found else best_of(table))  # only the first error is for people
            away.append(measure(found[-1].assignment.reshape(-1)).on(model).named(f"distance_{rank + 1}"))
    except InfeasibleError:
        if given and not found:
            raise
    except BudgetError as error:
        if not found:
            raise
        raise _too_many(found, error) from None
    return found


def _too_many(found: Answers[Solution], error: BudgetError) -> BudgetError:
    """Return the error for a labelling that is too expensive to keep away from those found before."""
    cause = str(error).splitlines()[0].split(". ")[0]
    exceeded = BudgetError(
        f"{counted(len(found), 'labelling')} found, but not the next: its distance to each of them is one "
        f"more statistic, and {cause}. Ask for fewer labellings, or for a smaller distance"
    )
    exceeded.bound, exceeded.best = error.bound, error.best  # of a search that reached its limit
    exceeded.found = found
    return exceeded


def _distances(distance: int | Sequence[int], count: int) -> list[int]:
    """Return one distance for each labelling except the first."""
    if isinstance(distance, Iterable):
        listed = [whole_number(m, "a distance", least=1) for m in distance]
        if len(listed) < count - 1:
            raise ModelError(
                f"{count} labellings need {count - 1} distances, one for each except the first; "
                f"got {len(listed)}"
            )
        return listed
    return [whole_number(distance, "a distance", least=1)] * max(count - 1, 0)
