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
from tallytree.core.solution import Solution
from tallytree.core.statistics import Recipe, Statistic, read_by
from tallytree.errors import InfeasibleError

__all__ = ["solve"]

Bounds = tuple[int | None, int | None]
Window = dict[int, Bounds]


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
    question = _Question(seen, None if where is None else as_constraint(where).on(model))
    plan = Plan(
        model, question.carried, order=order, memory_limit=memory_limit, tallies=tallies, window=question.window
    )
    found = Profile(model, question.carried, plan, backend, reported_caps=question.caps)
    if not len(found) and where is not None:
        raise InfeasibleError(
            f"no labelling satisfies '{where}': no attainable tally of "
            f"({', '.join(s.name for s in question.carried)}) is left once it is applied"
        )
    narrowed = objective
    if objective is not None and len(question.carried) > len(seen):
        narrowed = _narrowed(objective, len(seen))
    return found.best(narrowed, where=question.remaining)


def _narrowed(objective: Objective, count: int) -> Objective:
    """Keep from the objective the statistics that only the constraint brought in."""

    def narrowed(score: object, *tally: object) -> object:
        return objective(score, *tally[:count])

    return narrowed


class _Question:
    """What a constraint asks of the messages, and what is left of it once they have answered.

    ``window`` is the range that each statistic must lie in whatever the others are; ``carried`` are the
    statistics of the objective and those that only the constraint reads, capped where it cannot tell larger
    tallies apart; ``remaining`` is the constraint in terms of them, None if the window says it all.
    """

    def __init__(self, seen: tuple[Statistic, ...], constraint: Constraint | None) -> None:
        hidden = () if constraint is None else tuple(s for s in read_by(constraint) if s not in seen)
        asked = (*seen, *hidden)
        self.caps = [s.cap for s in asked]
        self.window: Window = {}
        self.carried = asked
        self.remaining = constraint
        if constraint is None:
            return
        all_windowed = _narrow(self.window, constraint, asked)
        swap = {s: _capped(s, constraint, self.window.get(len(seen) + i)) for i, s in enumerate(hidden)}
        self.carried = (*seen, *swap.values())
        self.remaining = None if all_windowed else _rewritten(constraint, swap)


# --- what the constraint allows -------------------------------------------------------------------------------


def _comparisons(constraint: Constraint) -> Iterator[Comparison]:
    if isinstance(constraint, Comparison):
        yield constraint
    elif isinstance(constraint, (And, Or)):
        for part in constraint.parts:
            yield from _comparisons(part)


def _capped(statistic: Statistic, constraint: Constraint, bounds: Bounds | None) -> Statistic:
    """Cap a statistic where no comparison can tell the cap from more, if the window does not end before."""
    readers = [c for c in _comparisons(constraint) if statistic in c.statistics]
    bounded = bounds is not None and bounds[1] is not None
    if bounded or statistic.cap is not None or any(len(c.terms) > 1 for c in readers):
        return statistic
    return statistic.capped(max(_threshold(c) for c in readers))


def _threshold(comparison: Comparison) -> int:
    """Return the number from which on all tallies answer a comparison ``c·G ? b`` (c > 0) alike."""
    (_, factor), bound = comparison.terms[0], comparison.bound
    if comparison.relation == ">=":
        return -(-bound // factor)
    return bound // factor + 1


def _rewritten(constraint: Constraint, swap: dict[Statistic, Statistic]) -> Constraint:
    if isinstance(constraint, Comparison):
        terms = tuple((swap.get(term, term), factor) for term, factor in constraint.terms)  # type: ignore[call-overload]
        return Comparison(terms, constraint.relation, constraint.bound)
    assert isinstance(constraint, (And, Or))
    return type(constraint)(tuple(_rewritten(part, swap) for part in constraint.parts))


def _narrow(window: Window, constraint: Constraint, statistics: Sequence[Statistic]) -> bool:
    """Put the ranges that a constraint implies into the window; say whether they are all that it says."""
    if isinstance(constraint, And):
        return all([_narrow(window, part, statistics) for part in constraint.parts])
    if not isinstance(constraint, Comparison) or len(constraint.terms) != 1 or constraint.relation == "!=":
        return False
    (term, factor), bound = constraint.terms[0], constraint.bound
    position = next(i for i, s in enumerate(statistics) if s == term)
    low, high = window.get(position, (None, None))
    if constraint.relation in (">=", "=="):
        low = max(-(-bound // factor), -(2**62) if low is None else low)
    if constraint.relation in ("<=", "=="):
        high = min(bound // factor, 2**62 if high is None else high)
    window[position] = (low, high)
    return True
