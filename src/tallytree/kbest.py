"""More labellings than one: the k best, the best outside a set, and the best that differ from each other.

The tables of one upward pass hold the best score of every cell, so the second best labelling, the third and
so on are found one by one (``docs/decisions/0008-k-best.md``). To leave a labelling ``y'`` out, or to keep
away from it, is a constraint on the number of mismatches with it: ``Δ(y, y') >= 1``, ``Δ(y, y') >= m``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.answers.certificate import OUTSIDE
from tallytree.answers.objective import Objective
from tallytree.answers.solution import Solution, tally_type
from tallytree.answers.tally_table import Where
from tallytree.errors import InfeasibleError, ModelError
from tallytree.model.model import Model, checked_model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.budget import Budget
from tallytree.planning.options import Keywords, Options, read_options
from tallytree.reductions.reduction import Reduction, as_reduction
from tallytree.solving import answered, ask
from tallytree.statistics.constraints import And, Constraint, as_constraint
from tallytree.statistics.recipes import mismatches
from tallytree.statistics.statistic import Recipe, Statistic, read_by

__all__ = ["diverse_k_best", "exclude", "iter_best", "k_best"]

_KEY_BYTES = 140  # what CPython takes for the key of a dictionary, besides its bytes

Labelling = Solution | ArrayLike
Method = Literal["statistics", "ranking"]
Distance = Callable[[NDArray[np.int64]], Statistic | Recipe]


@overload
def iter_best(
    model: Model | Reduction,
    statistics: Iterable[Statistic | Recipe] = (),
    objective: Objective | None = None,
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
    objective: Objective | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    **options: Unpack[Keywords],
) -> Iterator[Any]:
    """Go through the labellings in order of score or value, best first, each found when it is asked for.

    Parameters
    ----------
    model : Model or Reduction
        The factor graph; or a reduction, whose labellings come back as those of the original model.
    statistics : iterable of Statistic or Recipe
        What the objective gets and the solutions' tallies show.
    objective : callable, optional
        ``H(score, *tallies)``, as for :func:`solve`; by default the score. Labellings of value ``-inf`` are
        left out.
    where : Constraint, optional
        Only labellings that satisfy it.
    fixed, allowed : mapping, optional
        As for :func:`solve`: the state that a variable must take, the states it may take.
    order, memory_limit, layout, threads
        As for :func:`profile`.

    Yields
    ------
    Solution
        No labelling comes twice and none is left out. Equal values come in an order that is always the same.
        Scores that differ by rounding alone, as two sums of the same numbers may, count as equal.

    Raises
    ------
    BudgetError
        Not all tables fit ``memory_limit``; or, when the next labelling is asked for, the search does not fit
        any more: it keeps what it has met, and so grows with every labelling.

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
    objective: Objective | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    keep: bool = False,
    **options: Unpack[Keywords],
) -> Iterator[Any]:
    """Go through labellings or trees as :func:`iter_best` does; where there are none, say why.

    Parameters
    ----------
    model, statistics, objective, where, fixed, allowed
        As for :func:`iter_best`.
    keep : bool
        Whether what comes is kept, and counts towards the memory limit.

    Raises
    ------
    InfeasibleError
        Nothing satisfies the constraint.
    """
    chosen = read_options(options, "iter_best", single=False)
    return answered(ask(model, statistics, where, fixed, allowed), chosen).ranked(objective, keep=keep)


@overload
def k_best(
    model: Model | Reduction,
    k: int | None = None,
    statistics: Iterable[Statistic | Recipe] = (),
    objective: Objective | None = None,
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
    objective: Objective | None = None,
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
        How many; all of them by default.
    statistics, objective, where, fixed, allowed, order, memory_limit, layout, threads
        As for :func:`iter_best`. The list counts towards the memory limit.

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
    try:
        best = ranked(
            model, statistics, objective, where=where, fixed=fixed, allowed=allowed, keep=True, **options
        )
    except InfeasibleError:
        return []
    return list(islice(best, count))


def exclude(
    model: Model | Reduction,
    outputs: Iterable[Labelling],
    statistics: Iterable[Statistic | Recipe] = (),
    objective: Objective | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    method: Method | None = None,
    **options: Unpack[Keywords],
) -> Solution:
    """Find the best labelling outside a given set.

    Parameters
    ----------
    model : Model or Reduction
        The factor graph; or a reduction.
    outputs : iterable of labelling or Solution
        What to leave out; repeats are welcome.
    statistics, objective, where, fixed, allowed, memory_limit
        As for :func:`solve`.
    method : {"ranking", "statistics"}, optional
        ``ranking``, the default, goes through the labellings in order until one is outside: at most one more
        than there are outputs. ``statistics`` carries one mismatch statistic per output, capped at 1: at most
        one more tally in each table than there are outputs, times those of the other statistics.

    Raises
    ------
    InfeasibleError
        No labelling is left.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> tt.exclude(model, [[1, 1, 1], [0, 1, 1]]).assignment
    array([1, 0, 1])
    >>> ones = tt.count(model, state=1)
    >>> tt.exclude(model, [[0, 0, 1]], [ones], lambda score, k: score - 3 * k).assignment
    array([0, 0, 0])
    """
    if method not in (None, "ranking", "statistics"):
        raise ModelError(f"method must be 'ranking' or 'statistics', got {method!r}")
    reduction = as_reduction(model, fixed, allowed)
    chosen = read_options(options, "exclude", single=False)
    unwanted = _unwanted(reduction.original, outputs, Budget(chosen.plan.limit))
    if method == "statistics":
        listed = [np.frombuffer(key, dtype=np.int32) for key in unwanted]
        found = _outside(reduction, listed, statistics, objective, where, chosen)
        return found.claiming(OUTSIDE, among=where, rank=len(unwanted))
    held = sum(len(key) + _KEY_BYTES for key in unwanted)
    beside = chosen._replace(plan=chosen.plan._replace(beside=held))
    ranking: Iterator[Solution] = iter(())
    with suppress(InfeasibleError):
        ranking = answered(ask(reduction, statistics, where), beside).ranked(objective)
    for solution in ranking:
        if _key(solution.assignment) not in unwanted:
            return solution.claiming(OUTSIDE, rank=len(unwanted))
    raise InfeasibleError(_none_left(len(unwanted), where, objective))


def _unwanted(model: Model, outputs: Iterable[Labelling], budget: Budget) -> dict[bytes, None]:
    """Return the labellings to leave out, each once and in order, as the bytes of their states."""
    keys: dict[bytes, None] = {}
    for output in outputs:
        key = _key(_encoded(model, output))
        if key not in keys:
            budget.hold(len(key) + _KEY_BYTES, f"the {len(keys) + 1:,} labellings to leave out")
            keys[key] = None
    return keys


def _key(assignment: NDArray[np.int64]) -> bytes:
    return assignment.astype(np.int32).tobytes()


def _outside(
    reduction: Reduction,
    outputs: Sequence[NDArray[Any]],
    statistics: Iterable[Statistic | Recipe],
    objective: Objective | None,
    where: Where,
    options: Options,
) -> Solution:
    """Solve with one mismatch at least to each output; show the tally without these statistics."""
    original, shown = reduction.original, [reduction.bound(s) for s in statistics]
    wanted = None if where is None else as_constraint(where).mapped(reduction.bound)
    outside = [mismatches(original, y, name=f"outside_{i}", cap=1) >= 1 for i, y in enumerate(outputs)]
    hidden = () if wanted is None else tuple(s for s in read_by(wanted) if s not in shown)
    constraint = _all([*([] if wanted is None else [wanted]), *outside])
    try:
        found: Solution = answered(ask(reduction, shown, constraint), options).best(objective)
    except InfeasibleError as error:
        raise InfeasibleError(_none_left(len(outputs), where, objective)) from error
    names, count = found.tally._fields, len(shown) + len(hidden)
    tally = tally_type(names[:count])(*found.tally[:count])
    return Solution(found.value, found.score, tally, found.assignment, original, found.proof)


def _none_left(count: int, where: Where, objective: Objective | None) -> str:
    constraint = "" if where is None else f" that satisfies '{where}'"
    refused = "" if objective is None else ", or the objective is -inf at all that are"
    return f"no labelling{constraint} is left outside the {count} excluded ones{refused}"


def diverse_k_best(
    model: Model,
    k: int,
    distance: int | Sequence[int],
    *,
    statistic: Distance | None = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    **options: Unpack[Keywords],
) -> list[Solution]:
    """Return k labellings, each the best of those that are far enough from all before it.

    Parameters
    ----------
    model : Model
        The factor graph.
    k : int
        How many; the list is shorter where no labelling is far enough any more.
    distance : int or sequence of int
        The least distance to every labelling before it; in a sequence, the first number is for the second
        labelling, the next for the third and so on.
    statistic : callable, optional
        Gives the statistic that measures the distance to a labelling (an integer array); by default the
        number of variables that differ.
    fixed, allowed : mapping, optional
        As for :func:`solve`.
    memory_limit : float, optional
        As for :func:`profile`. The i-th labelling needs a table of up to ``(distance + 1)**(i - 1)`` tallies.

    Returns
    -------
    list of Solution
        The tally of each has its distances to those before it.

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
    """
    model = checked_model(model).restricted(fixed, allowed)
    count = whole_number(k, "k", least=0)
    least = _distances(distance, count)
    chosen = read_options(options, "diverse_k_best", single=False)
    measure = statistic or (lambda labelling: mismatches(model, labelling))
    found: list[Solution] = []
    away: list[Statistic] = []
    try:
        for rank in range(count):
            constraint = _all([one >= least[rank - 1] for one in away])
            found.append(answered(ask(model, (), constraint), chosen).best())
            away.append(measure(found[-1].assignment).on(model).named(f"distance_{rank + 1}"))
    except InfeasibleError:
        pass
    return found


def _distances(distance: int | Sequence[int], count: int) -> list[int]:
    """Return one distance for each labelling but the first."""
    if isinstance(distance, Iterable):
        listed = [whole_number(m, "a distance", least=1) for m in distance]
        if len(listed) < count - 1:
            raise ModelError(
                f"{count} labellings need {count - 1} distances, one for each but the first; "
                f"got {len(listed)}"
            )
        return listed
    return [whole_number(distance, "a distance", least=1)] * max(count - 1, 0)


def _all(constraints: Sequence[Constraint]) -> Constraint | None:
    if len(constraints) > 1:
        return And(tuple(constraints))
    return constraints[0] if constraints else None


def _encoded(model: Model, output: Labelling) -> NDArray[np.int64]:
    labelling: Any = output.assignment if isinstance(output, Solution) else output
    return np.ascontiguousarray(model.encode(labelling), dtype=np.int64).reshape(-1)


def whole_number(value: object, noun: str, *, least: int) -> int:
    """Refuse what is no integer, or too small."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"{noun} must be an integer, got {value!r}") from None
    if number < least:
        raise ModelError(f"{noun} must be at least {least}, got {number}")
    return number
