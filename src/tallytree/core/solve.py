"""One call from a model to an optimal labelling, with what is known of the question put to use.

The statistics that only the constraint reads are capped where it cannot tell larger tallies apart (``>= m``
needs a cap of m; ``<=``, ``==``, ``!= b`` need b + 1), and tallies that can no longer satisfy the constraint
are never computed. Both are exact: the objective never sees what was capped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from numpy.typing import ArrayLike

from tallytree.core.expressions import And, Comparison, Constraint, Or, as_constraint
from tallytree.core.messages import Backend
from tallytree.core.model import Model
from tallytree.core.objective import Objective
from tallytree.core.plan import Mode, Plan, bind
from tallytree.core.profile import Profile, Where
from tallytree.core.solution import Solution, tally_type, unique_names
from tallytree.core.statistics import Recipe, Statistic, read_by
from tallytree.errors import InfeasibleError

__all__ = ["solve"]

Window = dict[int, tuple[int | None, int | None]]


def solve(
    model: Model,
    statistics: Iterable[Statistic | Recipe] = (),
    objective: Objective | None = None,
    *,
    where: Where = None,
    order: str | ArrayLike | None = None,
    memory_limit: float | None = None,
    tallies: Mode = "auto",
    backend: Backend = "native",
) -> Solution:
    """Find the labelling that maximises an objective, subject to a constraint.

    Parameters
    ----------
    model : Model
        The factor graph.
    statistics : iterable of Statistic or Recipe
        What the objective gets, in order.
    objective : callable, optional
        ``H(score, *tallies)``; by default the score.
    where : Constraint, optional
        It may read statistics that the objective does not get.
    order, memory_limit, tallies, backend
        As for :func:`profile`.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> tt.solve(model, where=tt.count(state=1) == 1).assignment
    array([0, 0, 1])
    """
    seen = bind(model, statistics)
    constraint = None if where is None else as_constraint(where).on(model)
    hidden = () if constraint is None else tuple(s for s in read_by(constraint) if s not in seen)
    carried, asked = _carried(seen, hidden, constraint)
    window = {} if constraint is None else _window(constraint, (*seen, *hidden))
    plan = Plan(model, carried, order=order, memory_limit=memory_limit, tallies=tallies, window=window)
    found = Profile(model, carried, plan, backend)
    if constraint is not None and not len(found):
        raise InfeasibleError(
            f"no labelling satisfies '{constraint}': no attainable tally of "
            f"({', '.join(s.name for s in (*seen, *hidden))}) is left once it is applied"
        )
    narrowed = None if objective is None else _narrowed(objective, len(seen))
    best = found.best(narrowed, where=asked)
    return best if not hidden else _reported(best, (*seen, *hidden))


def _narrowed(objective: Objective, count: int) -> Objective:
    """Keep from the objective the statistics that only the constraint brought in."""

    def narrowed(score: object, *tally: object) -> object:
        return objective(score, *tally[:count])

    return narrowed


def _reported(best: Solution, statistics: Sequence[Statistic]) -> Solution:
    """Report tallies uncapped, as the user knows the statistics."""
    names = unique_names(tuple(s.name for s in statistics))
    tally = tally_type(names)(*(s.tally(best.assignment) for s in statistics))
    return Solution(best.value, best.score, tally, best.assignment.copy(), best.model)


# --- what the constraint allows -------------------------------------------------------------------------------


def _comparisons(constraint: Constraint) -> Iterator[Comparison]:
    if isinstance(constraint, Comparison):
        yield constraint
    elif isinstance(constraint, (And, Or)):
        for part in constraint.parts:
            yield from _comparisons(part)


def _cap(statistic: Statistic, comparisons: Sequence[Comparison]) -> int | None:
    """Return the least cap that no comparison can tell from none; None where there is none."""
    readers = [c for c in comparisons if statistic in c.statistics]
    if statistic.cap is not None or any(len(c.terms) > 1 for c in readers):
        return None
    needed = [_threshold(c) for c in readers]
    return max(needed, default=None)


def _threshold(comparison: Comparison) -> int:
    """Return the number from which on all tallies answer a comparison ``c·G ? b`` (c > 0) alike."""
    (_, factor), bound = comparison.terms[0], comparison.bound
    if comparison.relation == ">=":
        return -(-bound // factor)
    return bound // factor + 1


def _carried(
    seen: tuple[Statistic, ...], hidden: tuple[Statistic, ...], constraint: Where
) -> tuple[tuple[Statistic, ...], Where]:
    """Return the statistics to carry, hidden ones capped, and the constraint in terms of them."""
    if constraint is None:
        return seen, None
    comparisons = list(_comparisons(constraint))
    swap: dict[Statistic, Statistic] = {}
    for statistic in hidden:
        cap = _cap(statistic, comparisons)
        swap[statistic] = statistic if cap is None else statistic.capped(cap)
    return (*seen, *swap.values()), _rewritten(constraint, swap)


def _rewritten(constraint: Constraint, swap: dict[Statistic, Statistic]) -> Constraint:
    if isinstance(constraint, Comparison):
        terms = tuple((swap.get(term, term), factor) for term, factor in constraint.terms)  # type: ignore[call-overload]
        return Comparison(terms, constraint.relation, constraint.bound)
    assert isinstance(constraint, (And, Or))
    return type(constraint)(tuple(_rewritten(part, swap) for part in constraint.parts))


def _window(constraint: Constraint, statistics: Sequence[Statistic]) -> Window:
    """Return the range that each statistic must lie in whatever the others are."""
    window: Window = {}
    parts = constraint.parts if isinstance(constraint, And) else (constraint,)
    for part in parts:
        if not isinstance(part, Comparison) or len(part.terms) != 1 or part.relation == "!=":
            continue
        (term, factor), bound = part.terms[0], part.bound
        position = statistics.index(term)  # type: ignore[arg-type]
        low, high = window.get(position, (None, None))
        if part.relation in (">=", "=="):
            least = -(-bound // factor)
            low = least if low is None else max(low, least)
        if part.relation in ("<=", "=="):
            most = bound // factor
            high = most if high is None else min(high, most)
        window[position] = (low, high)
    return window
