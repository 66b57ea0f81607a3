"""The best labelling outside a given set.

Excluding a labelling ``y'`` is a constraint on the number of mismatches with it: ``Δ(y, y') >= 1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.answers.certificate import OUTSIDE
from tallytree.answers.objective import Objective
from tallytree.answers.solution import Solution
from tallytree.answers.tallies import tally_type
from tallytree.answers.tally_table import Where
from tallytree.bounding.answering import answered
from tallytree.errors import InfeasibleError, ModelError
from tallytree.model.model import Model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.budget import Budget
from tallytree.planning.options import Keywords, Options, read_options
from tallytree.planning.query import listed_statistics
from tallytree.reductions.reduction import Reduction, as_reduction
from tallytree.solving import ask
from tallytree.statistics.constraints import all_of, as_constraint
from tallytree.statistics.formula_constraints import as_condition
from tallytree.statistics.recipes import mismatches
from tallytree.statistics.statistic import Recipe, Statistic, read_by

Labelling = Solution | ArrayLike
Method = Literal["statistics", "ranking"]

_KEY_BYTES = 140  # size of a dictionary key in CPython, besides its bytes


def exclude(
    model: Model | Reduction,
    outputs: Iterable[Labelling],
    statistics: Iterable[Statistic | Recipe] = (),
    objective: Objective | str | None = None,
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
        The labellings to exclude; duplicates are allowed.
    statistics, objective, where, fixed, allowed, **options
        As for :func:`solve`.
    method : {"ranking", "statistics"}, optional
        ``ranking``, the default, goes through the labellings in order until one is outside the set: at most
        one more than there are outputs. ``statistics`` carries one mismatch statistic per output, capped at
        1: every table has at most one more tally than there are outputs, times those of the other statistics.

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
    statistics = listed_statistics(statistics)
    if isinstance(where, str):
        where = as_condition(where, statistics)
    chosen = read_options(options, exclude, single=False)
    unwanted = _unwanted(reduction.original, outputs, Budget(chosen.plan.limit))
    if method == "statistics":
        listed = [np.frombuffer(key, dtype=np.int32) for key in unwanted]
        found = _outside(reduction, listed, statistics, objective, where, chosen)
        return found.claiming(OUTSIDE, among=where, rank=len(unwanted))
    held = sum(len(key) + _KEY_BYTES for key in unwanted)
    beside = chosen._replace(plan=chosen.plan._replace(beside=held))
    ranking: Iterator[Solution] = iter(())
    with suppress(InfeasibleError):
        ranking = answered(ask(reduction, statistics, where), beside.with_every_table()).ranked(objective)
    for solution in ranking:
        if _key(solution.assignment) not in unwanted:
            return solution.claiming(OUTSIDE, rank=len(unwanted))
    raise InfeasibleError(_none_left(len(unwanted), where, objective))


def _unwanted(model: Model, outputs: Iterable[Labelling], budget: Budget) -> dict[bytes, None]:
    """Return the labellings to exclude, without duplicates and in order, as the bytes of their states."""
    keys: dict[bytes, None] = {}
    for output in outputs:
        key = _key(_encoded(model, output))
        if key not in keys:
            budget.hold(len(key) + _KEY_BYTES, f"the {len(keys) + 1:,} labellings to exclude")
            keys[key] = None
    return keys


def _key(assignment: NDArray[np.int64]) -> bytes:
    return assignment.astype(np.int32).tobytes()


def _outside(
    reduction: Reduction,
    outputs: Sequence[NDArray[Any]],
    statistics: Iterable[Statistic | Recipe],
    objective: Objective | str | None,
    where: Where,
    options: Options,
) -> Solution:
    """Solve with at least one mismatch with each output; the tally is shown without these statistics."""
    original, shown = reduction.original, [reduction.bound(s) for s in statistics]
    wanted = None if where is None else as_constraint(where).mapped(reduction.bound)
    outside = [mismatches(original, y, name=f"outside_{i}", cap=1) >= 1 for i, y in enumerate(outputs)]
    hidden = () if wanted is None else tuple(s for s in read_by(wanted) if s not in shown)
    constraint = all_of([*([] if wanted is None else [wanted]), *outside])
    try:
        found: Solution = answered(ask(reduction, shown, constraint), options).best(objective)
    except InfeasibleError as error:
        raise InfeasibleError(_none_left(len(outputs), where, objective)) from error
    names, count = found.tally._fields, len(shown) + len(hidden)
    tally = tally_type(names[:count])(*found.tally[:count])
    return Solution(found.value, found.score, tally, found.assignment, original, found.proof)


def _none_left(count: int, where: Where, objective: Objective | str | None) -> str:
    constraint = "" if where is None else f" that satisfies '{where}'"
    refused = "" if objective is None else ", or the objective is -inf at all of them"
    return f"no labelling{constraint} is left outside the {count} excluded ones{refused}"


def _encoded(model: Model, output: Labelling) -> NDArray[np.int64]:
    labelling: Any = output.assignment if isinstance(output, Solution) else output
    return np.ascontiguousarray(model.encode(labelling), dtype=np.int64).reshape(-1)
