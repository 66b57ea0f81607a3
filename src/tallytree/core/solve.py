"""One call from a model to an optimal labelling, with what is known of the question put to use.

The statistics that only the constraint reads are capped where it cannot tell larger tallies apart (``>= m``
needs a cap of m; ``<=``, ``==``, ``!= b`` need b + 1), and tallies that can no longer satisfy the constraint
are never computed. Both are exact: the objective never sees what was capped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tallytree.core.elimination import Order
from tallytree.core.expressions import And, Comparison, Constraint, Or, Term, as_constraint
from tallytree.core.messages import Backend
from tallytree.core.model import Model
from tallytree.core.objective import Objective
from tallytree.core.plan import Mode, Plan, bind
from tallytree.core.profile import Profile, Where
from tallytree.core.solution import Solution
from tallytree.core.statistics import Recipe, Statistic, read_by
from tallytree.errors import InfeasibleError

__all__ = ["Posed", "pose", "solve"]

Bounds = tuple[int | None, int | None]
Window = dict[int, Bounds]


def solve(
    model: Model,
    statistics: Iterable[Statistic | Recipe] = (),
    objective: Objective | None = None,
    *,
    where: Where = None,
    order: Order | None = None,
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
    asked = pose(
        model, statistics, where, order=order, memory_limit=memory_limit, tallies=tallies, backend=backend
    )
    return asked.profile.best(asked.narrowed(objective), where=asked.remaining)


class Posed(NamedTuple):
    """The profile that answers a question, what is left of the constraint, and how many statistics H gets."""

    profile: Profile
    remaining: Where
    seen: int

    def narrowed(self, objective: Objective | None) -> Objective | None:
        """Keep from the objective the statistics that only the constraint brought in."""
        if objective is None or len(self.profile.statistics) == self.seen:
            return objective
        return lambda score, *tally: objective(score, *tally[: self.seen])


def pose(
    model: Model,
    statistics: Iterable[Statistic | Recipe],
    where: Where,
    *,
    order: Order | None = None,
    memory_limit: float | None = None,
    tallies: Mode = "auto",
    backend: Backend = "native",
) -> Posed:
    """Make the profile of the statistics and of those that only the constraint reads, capped and pruned.

    Raises
    ------
    InfeasibleError
        No attainable tally is left.
    """
    seen = bind(model, statistics)
    question = _Question(seen, None if where is None else as_constraint(where).on(model))
    plan = Plan(
        model,
        question.carried,
        order=order,
        memory_limit=memory_limit,
        tallies=tallies,
        window=question.window,
    )
    found = Profile(model, question.carried, plan, backend, reported_caps=question.caps)
    if not len(found) and where is not None:
        raise InfeasibleError(
            f"no labelling satisfies '{where}': no attainable tally of "
            f"({', '.join(s.name for s in question.carried)}) is left once it is applied"
        )
    # only native layouts know windows, and only steps are cut by them: a model of no variables has none
    windowed = question.all_windowed and backend == "native" and len(model) > 0
    return Posed(found, None if windowed else question.remaining, len(seen))


class _Question:
    """What a constraint asks of the messages, and what is left of it once they have answered.

    ``window`` is the range that each statistic must lie in whatever the others are; ``carried`` are the
    statistics of the objective and those that only the constraint reads, capped where it cannot tell larger
    tallies apart; ``remaining`` is the constraint in terms of them, ``all_windowed`` whether the window says
    as much.
    """

    def __init__(self, seen: tuple[Statistic, ...], constraint: Constraint | None) -> None:
        hidden = () if constraint is None else tuple(s for s in read_by(constraint) if s not in seen)
        self.asked = (*seen, *hidden)
        self.caps = [s.cap for s in self.asked]
        self.window: Window = {}
        self.carried = self.asked
        self.remaining = constraint
        self.all_windowed = constraint is None
        if constraint is None:
            return
        self._numbers = {id(s): i for i, s in enumerate(self.asked)}
        self.all_windowed = self._narrow(constraint)
        thresholds = self._thresholds(constraint, len(seen))
        self.carried = tuple(
            s if thresholds.get(i) is None else s.capped(thresholds[i]) for i, s in enumerate(self.asked)
        )
        self.remaining = self._rewritten(constraint)

    def _number(self, term: Term) -> int:
        found = self._numbers.get(id(term))
        return next(i for i, s in enumerate(self.asked) if s == term) if found is None else found

    def _narrow(self, constraint: Constraint) -> bool:
        """Put the ranges that a constraint implies into the window; say whether they are all that it says."""
        if isinstance(constraint, And):
            said = [self._narrow(part) for part in constraint.parts]  # every part, whatever the others say
            return all(said)
        if (
            not isinstance(constraint, Comparison)
            or len(constraint.terms) != 1
            or constraint.relation == "!="
        ):
            return False
        (term, factor), bound = constraint.terms[0], constraint.bound
        number = self._number(term)
        low, high = self.window.get(number, (None, None))
        if constraint.relation in (">=", "=="):
            least = min(-(-bound // factor), 2**62 - 1)
            low = least if low is None else max(least, low)
        if constraint.relation in ("<=", "=="):
            most = max(bound // factor, 1 - 2**62)
            high = most if high is None else min(most, high)
        self.window[number] = (low, high)
        return True

    def _thresholds(self, constraint: Constraint, seen: int) -> dict[int, int | None]:
        """Return the least cap of each hidden statistic that no comparison can tell from none.

        None where a combination reads it, where it has a cap of its own, or where the window ends anyway.
        """
        thresholds: dict[int, int | None] = {}
        for comparison in _comparisons(constraint):
            for term, _ in comparison.terms:
                number = self._number(term)
                if number < seen:
                    continue
                free = len(comparison.terms) == 1 and self.caps[number] is None
                free = free and abs(_threshold(comparison)) < 2**62
                ends = self.window.get(number, (None, None))[1] is not None
                known = thresholds.get(number, _threshold(comparison))
                if not free or ends or known is None:
                    thresholds[number] = None
                else:
                    thresholds[number] = max(known, _threshold(comparison))
        return thresholds

    def _rewritten(self, constraint: Constraint) -> Constraint:
        """Return the constraint in terms of the statistics that are carried."""
        if isinstance(constraint, Comparison):
            terms = tuple((self.carried[self._number(term)], factor) for term, factor in constraint.terms)
            return Comparison(terms, constraint.relation, constraint.bound)
        assert isinstance(constraint, (And, Or))
        return type(constraint)(tuple(map(self._rewritten, constraint.parts)))


def _comparisons(constraint: Constraint) -> Iterator[Comparison]:
    if isinstance(constraint, Comparison):
        yield constraint
    elif isinstance(constraint, (And, Or)):
        for part in constraint.parts:
            yield from _comparisons(part)


def _threshold(comparison: Comparison) -> int:
    """Return the number from which on all tallies answer a comparison ``c·G ? b`` (c > 0) alike."""
    (_, factor), bound = comparison.terms[0], comparison.bound
    if comparison.relation == ">=":
        return -(-bound // factor)
    return bound // factor + 1
