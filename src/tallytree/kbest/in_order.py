"""Labellings in order of score or value, each computed on demand.

The tables of one upward pass hold the best score of every cell, so the second best labelling, the third and
so on can be found one by one (``docs/decisions/0008-k-best.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Unpack, overload

from tallytree.answers.listed import Answers
from tallytree.answers.objective import Objective, as_objective
from tallytree.answers.solution import Solution
from tallytree.answers.tally_table import TallyTable, Where
from tallytree.bounding.answering import answered
from tallytree.errors import BudgetError, InfeasibleError
from tallytree.kbest.bounded import best_by_bounds
from tallytree.model.inputs import whole_number
from tallytree.model.model import Model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.options import Keywords, read_options
from tallytree.reductions.reduction import Reduction
from tallytree.solving import ask
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import counted


@overload
def iter_best(
    model: Model | Reduction,
    statistics: Iterable[Statistic | Recipe] = (),
    objective: Objective | str | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    **options: Unpack[Keywords],
) -> Iterator[Solution]: ...
@overload
def iter_best(model: Any, *arguments: Any, **keywords: Any) -> Iterator[Any]: ...
def iter_best(
    model: Any,
    statistics: Iterable[Any] = (),
    objective: Objective | str | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    **options: Unpack[Keywords],
) -> Iterator[Any]:
    """Iterate over the labellings in order of score or value, best first, computing each on demand.

    Parameters
    ----------
    model : Model or Reduction
        The factor graph; or a reduction, whose labellings are returned in terms of the original model.
    statistics : iterable of Statistic or Recipe
        The arguments of the objective after the score; they also appear in the tallies of the solutions.
    objective : callable or str, optional
        ``H(score, *tallies)``, as for :func:`solve`; the score by default. Labellings of value ``-inf`` are
        left out.
    where : Constraint or str, optional
        Only labellings that satisfy this constraint, which may be a string with the names of the statistics.
    fixed, allowed : mapping, optional
        As for :func:`solve`: the state that a variable must take, or the states it may take.
    **options
        ``order``, ``memory_limit``, ``layout`` and ``threads``, as for :func:`profile`.

    Yields
    ------
    Solution
        Every labelling exactly once. The order of equal values is deterministic. Scores that differ only by
        rounding, as two sums of the same numbers may, count as equal.

    Raises
    ------
    BudgetError
        The tables exceed ``memory_limit``; or, while iterating, the search does. It stores what it visits,
        and so grows with every labelling.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> ones = tt.count(model, state=1)
    >>> for solution in tt.iter_best(model, where=ones == 2):
    ...     print(solution.score, solution.assignment)
    6.0 [0 1 1]
    5.0 [1 0 1]
    3.0 [1 1 0]
    """
    try:
        return ranked(model, statistics, objective, where=where, fixed=fixed, allowed=allowed, **options)
    except InfeasibleError:
        return iter(())


def ranked(
    model: Any,
    statistics: Iterable[Any] = (),
    objective: Objective | str | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    keep: bool = False,
    **options: Unpack[Keywords],
) -> Iterator[Any]:
    """Iterate over the labellings or trees in order of score or value, best first.

    Parameters
    ----------
    model : Model, Reduction or Forest
        The factor graph, or the parse forest of a sentence.
    statistics, objective, where, fixed, allowed, **options
        As for :func:`tallytree.iter_best`.
    keep : bool
        Whether the results are kept by the caller, so that they count towards the memory limit.

    Raises
    ------
    InfeasibleError
        No labelling or tree satisfies the constraint.
    """
    chosen = read_options(options, iter_best, single=False)
    query = ask(model, statistics, where, fixed, allowed)
    return answered(query, chosen.with_every_table()).ranked(objective, keep=keep)


@overload
def k_best(
    model: Model | Reduction,
    k: int | None = None,
    statistics: Iterable[Statistic | Recipe] = (),
    objective: Objective | str | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    **options: Unpack[Keywords],
) -> list[Solution]: ...
@overload
def k_best(model: Any, *arguments: Any, **keywords: Any) -> list[Any]: ...
def k_best(
    model: Any,
    k: int | None = None,
    statistics: Iterable[Any] = (),
    objective: Objective | str | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    **options: Unpack[Keywords],
) -> list[Any]:
    """Return the k best labellings in order; fewer if there are fewer.

    Parameters
    ----------
    model : Model or Reduction
        The factor graph; or a reduction.
    k : int, optional
        The number of labellings; the list is empty for 0. All of them by default, which is 2 to the power of
        the number of variables if each has two states. ``operation_limit`` limits such lists, too.
    statistics, objective, where, fixed, allowed
        As for :func:`iter_best`.
    **options
        As for :func:`iter_best`. The list counts towards the memory limit. With a constraint and without an
        objective, also ``strategy``, as for :func:`solve`: if the tables would be large, bounds remove
        states that none of the k best labellings can have. ``operation_limit`` limits the operations of the
        tables and of the list, with one for each variable of each labelling.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> [solution.score for solution in tt.k_best(model, 4)]
    [7.0, 6.0, 5.0, 4.0]
    >>> len(tt.k_best(model))
    8
    """
    count = None if k is None else whole_number(k, "k", least=0)
    chosen = read_options(options, k_best, single=False, one=True)
    try:
        query = ask(model, statistics, where, fixed, allowed)
        function = as_objective(objective, query.read)
        if count is not None and function is None and where is not None:
            found = best_by_bounds(query, count, chosen)
            if found is not None:
                return Answers(found)
        table = answered(query, chosen.with_every_table())
        best = islice(table.ranked(function, keep=True), count)
    except InfeasibleError:
        return Answers()
    return Answers(best if chosen.operation_limit is None else _within(best, table, chosen.operation_limit))


def _within(best: Iterable[Any], table: TallyTable[Any], limit: float) -> Iterator[Any]:
    """Yield the labellings as long as they are within the limit: one operation for each variable of each."""
    most = (limit - table.plan.operations) // max(len(table.query.subject), 1)
    for found, solution in enumerate(best):
        if found >= most:
            raise BudgetError(
                f"{counted(found, 'labelling')} found, but listing all takes more operations than "
                f"operation_limit, which is {limit:.3g}; raise operation_limit, or ask for fewer labellings"
            )
        yield solution
