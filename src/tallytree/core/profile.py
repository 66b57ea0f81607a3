"""The profile: the best score for every attainable tally, ``μ(l) = max { F(y) : G(y) = l }``.

One upward pass makes it; after that any objective ``H(score, tally)``, any constraint and any single tally is
a look-up followed by a decode. ``H`` must not decrease in the score: then the optimum of ``H(F(y), G(y))`` is
attained at some ``(μ(l), l)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.core import html
from tallytree.core.blocks import read_only
from tallytree.core.certificate import BEST, IN_ORDER, SAME_TALLY
from tallytree.core.elimination import Order
from tallytree.core.expressions import Constraint, as_constraint
from tallytree.core.messages import Backend, Messages, downward, pass_messages
from tallytree.core.model import Model
from tallytree.core.objective import Objective, evaluate_objective
from tallytree.core.plan import Mode, Plan, bind, plan_of
from tallytree.core.question import Question
from tallytree.core.ranking import Ranked, by_objective, by_score
from tallytree.core.reduction import Reduction, as_reduction
from tallytree.core.restriction import Allowed, Fixed
from tallytree.core.solution import Solution, certified, lifted, unique_names
from tallytree.core.statistics import Recipe, Statistic
from tallytree.errors import InfeasibleError, ModelError

__all__ = ["Profile", "nearest_tallies", "profile"]

Where = Constraint | None
Root = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Cells of the last table, with their tallies and scores."""

_NONE_LEFT = (
    "every labelling is forbidden by a -inf factor, the model's own or one from fixed= or allowed=: the "
    "model has no solution"
)


class Profile:
    """The best score for every attainable tally, and the labellings behind them.

    Made by :func:`profile`. Safe to read from several threads. Pickles without its tables; they are computed
    again when a labelling is first asked for.

    Attributes
    ----------
    model : Model
        The model that was solved.
    reduction : Reduction
        How its labellings are read: to the model itself, unless the profile was made of a reduction.
    statistics : tuple of Statistic
    plan : Plan
    tallies : (S, P) int64 array
        The attainable tallies in lexicographic order.
    scores : (S,) float64 array
        The best score of each.
    """

    def __init__(
        self,
        model: Model,
        statistics: Sequence[Statistic],
        plan: Plan,
        backend: Backend = "native",
        *,
        shown: Sequence[Statistic] | None = None,
        asked: Where = None,
        reduction: Reduction | None = None,
    ) -> None:
        messages = pass_messages(plan, model, statistics, backend=backend)
        self._fill(model, statistics, plan, backend, shown, asked, reduction, messages, messages.root())

    @classmethod
    def without_tables(
        cls,
        model: Model,
        statistics: Sequence[Statistic],
        plan: Callable[[], Plan],
        root: Root,
        *,
        shown: Sequence[Statistic] | None = None,
        asked: Where = None,
        reduction: Reduction | None = None,
    ) -> Profile:
        """Make a profile of root cells, tallies and scores that are known; the rest is made when needed."""
        profile = cls.__new__(cls)
        profile._fill(model, statistics, plan, "native", shown, asked, reduction, None, root)
        return profile

    def _fill(
        self,
        model: Model,
        statistics: Sequence[Statistic],
        plan: Plan | Callable[[], Plan],
        backend: Backend,
        shown: Sequence[Statistic] | None,
        asked: Where,
        reduction: Reduction | None,
        messages: Messages | None,
        root: Root,
    ) -> None:
        self.model = model
        self.reduction = Reduction.identity(model) if reduction is None else reduction
        self.statistics = tuple(statistics)
        self._plan = plan
        self._shown = shown  # what the tally of a solution has, where it is not what the messages carry
        self._asked = asked  # the constraint that this profile is there to answer
        self.backend = backend
        self._names = unique_names(tuple([s.name for s in self.statistics]))
        self._messages = messages
        self._lock = Lock()
        self._cells, tallies, scores = root
        self.tallies, self.scores = read_only(tallies), read_only(scores)

    @property
    def plan(self) -> Plan:
        """The plan of the messages."""
        if not isinstance(self._plan, Plan):
            self._plan = self._plan()
        return self._plan

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the statistics, made unique."""
        return self._names

    def __len__(self) -> int:
        """Return the number of attainable tallies."""
        return len(self.scores)

    def best(self, objective: Objective | None = None, *, where: Where = None) -> Solution:
        """Find the labelling that maximises an objective, subject to a constraint.

        Parameters
        ----------
        objective : callable, optional
            ``H(score, *tallies)``, elementwise over NumPy arrays and not decreasing in the score. By default
            the score itself: plain MAP.
        where : Constraint, optional
            Built from the profile's statistics, as ``(ones >= 2) & (ones <= 5)``.

        Returns
        -------
        Solution
            Among equal values the lexicographically first tally is taken.

        Raises
        ------
        InfeasibleError
            No labelling satisfies the constraint.
        ObjectiveError
            The objective gave nan, is not elementwise, or decreases in the score.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
        >>> ones = tt.count(model, state=1, name="ones")
        >>> prof = tt.profile(model, [ones])
        >>> prof.best().assignment
        array([1, 1, 1])
        >>> prof.best(lambda score, k: score - 3 * k).assignment
        array([0, 0, 1])
        >>> prof.best(where=ones <= 2).tally
        Tally(ones=2)
        """
        row, value = self.best_row(objective, where=where)
        return self._solution(row, self._reason(BEST, where, objective), value)

    def best_row(self, objective: Objective | None = None, *, where: Where = None) -> tuple[int, float]:
        """Return the row of ``tallies`` that :meth:`best` takes, and its value; nothing is decoded."""
        return self._best_rows(1, objective, where)[0]

    def top(self, count: int, objective: Objective | None = None, *, where: Where = None) -> list[Solution]:
        """Return the best labelling of each of the best tallies, best first; fewer if there are fewer.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.array([[0., 1], [0, 2]]), np.zeros((2, 2)))
        >>> [s.score for s in tt.profile(model, [tt.count(state=1)]).top(2)]
        [3.0, 2.0]
        """
        if count < 1:
            raise ModelError(f"the number of tallies must be at least 1, got {count}")
        reasons = chain([self._reason(BEST, where, objective)], repeat((SAME_TALLY,)))
        found = self._best_rows(count, objective, where)
        return [
            self._solution(row, reason, value) for (row, value), reason in zip(found, reasons, strict=False)
        ]

    def _best_rows(self, count: int, objective: Objective | None, where: Where) -> list[tuple[int, float]]:
        chosen = self._allowed(where)
        scores, tallies = (
            (self.scores, self.tallies)
            if chosen is None
            else (
                self.scores[chosen],
                self.tallies[chosen],
            )
        )
        values = scores if objective is None else evaluate_objective(objective, scores, tallies, self._names)
        if count == 1:
            order = [int(values.argmax())]
        else:
            order = np.argsort(-values, kind="stable")[:count].tolist()
        if values[order[0]] == -np.inf:
            raise InfeasibleError(
                "the objective is -inf at every attainable tally, so no labelling is acceptable; "
                f"the attainable tallies are {self._some_tallies()}"
            )
        rows = order if chosen is None else chosen[order].tolist()
        return [(row, float(values[i])) for row, i in zip(rows, order, strict=True) if values[i] > -np.inf]

    def ranked(self, objective: Objective | None = None, *, where: Where = None) -> Iterator[Solution]:
        """Go through all labellings in order of value, best first, each found when it is asked for.

        Parameters
        ----------
        objective, where
            As for :meth:`best`, whose answer comes first. Labellings of value ``-inf`` are left out.

        Raises
        ------
        InfeasibleError
            No labelling satisfies the constraint.
        BudgetError
            The plan does not keep all tables.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.array([[0., 1], [0, 2]]), np.zeros((2, 2)))
        >>> ones = tt.count(model, state=1, name="ones")
        >>> for solution in tt.profile(model, [ones]).ranked(where=ones <= 1):
        ...     print(solution.score, solution.assignment)
        2.0 [0 1]
        1.0 [1 0]
        0.0 [0 0]
        """
        rows = self.allowed(where)
        if objective is None:
            found = self._search(rows)
        else:
            found = self._by_objective(objective, rows)
        reason = self._reason(IN_ORDER, where, objective)
        return (
            self._certified(int(rows[r.position]), r.assignment, r.score, (*reason, rank), r.value)
            for rank, r in enumerate(found)
        )

    def _search(self, rows: NDArray[np.int64]) -> Iterator[Ranked]:
        with self._lock:
            return by_score(self._loaded(), self._cells[rows], self.plan)

    def _by_objective(self, objective: Objective, rows: NDArray[np.int64]) -> Iterator[Ranked]:
        def values(scores: NDArray[np.float64], chosen: NDArray[np.int64]) -> NDArray[np.float64]:
            return evaluate_objective(objective, scores, self.tallies[chosen], self._names)

        self._search(rows[:0])  # refused now where it would be refused later
        return by_objective(
            lambda position: self._search(rows[[position]]),
            values(self.scores[rows], rows).tolist(),
            lambda position, score: float(values(np.array([score]), rows[[position]])[0]),
        )

    def at(self, *tally: int, **named: int) -> Solution:
        """Return the best labelling with exactly this tally, in order or by name.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.array([[0., 1], [0, 2]]), np.zeros((2, 2)))
        >>> prof = tt.profile(model, [tt.count(state=1, name="ones")])
        >>> prof.at(1).assignment, prof.at(ones=1).score
        (array([0, 1]), 2.0)
        """
        return self._solution(self._row(tally, named))

    def max_marginals(self, *tally: int, **named: int) -> list[NDArray[np.float64]]:
        """Return, for each variable and state, the best score of a labelling with it; given a tally or not.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.array([[0., 1], [0, 2]]), np.zeros((2, 2)))
        >>> prof = tt.profile(model, [tt.count(state=1)])
        >>> prof.max_marginals()
        [array([2., 3.]), array([1., 3.])]
        >>> prof.max_marginals(1)
        [array([2., 1.]), array([1., 2.])]
        """
        rows = self._allowed(None) if not tally and not named else [self._row(tally, named)]
        with self._lock:
            messages = self._loaded()
            weights = np.full(len(messages.values), -np.inf)
            weights[self._cells if rows is None else self._cells[rows]] = 0.0
            scores = downward(messages, weights, self.model, self.plan)
        ends = np.cumsum(self.model.cardinalities)
        tables = np.split(scores, ends[:-1]) if len(ends) else []
        return self.reduction.fold(tables, np.maximum, -np.inf)

    def row(self, row: int) -> Solution:
        """Return the best labelling with the tally of a row of ``tallies``."""
        return self._solution(range(len(self))[row])

    def allowed(self, where: Where = None) -> NDArray[np.int64]:
        """Return the rows of ``tallies`` that satisfy a constraint.

        Raises
        ------
        InfeasibleError
            No labelling satisfies it.
        """
        rows = self._allowed(where)
        return np.arange(len(self)) if rows is None else rows

    # --- inside -------------------------------------------------------------------------------------------

    def _row(self, tally: tuple[int, ...], named: dict[str, int]) -> int:
        wanted = self._wanted(tally, named)
        rows = np.flatnonzero((self.tallies == wanted).all(axis=1))
        if not len(rows):
            raise InfeasibleError(
                f"no labelling has the tally {dict(zip(self._names, wanted.tolist(), strict=True))}; "
                f"the nearest attainable ones are {self._nearest(wanted)}"
            )
        return int(rows[0])

    def _wanted(self, tally: tuple[int, ...], named: dict[str, int]) -> NDArray[np.int64]:
        unknown = [name for name in named if name not in self._names]
        values = dict(zip(self._names, tally, strict=False))
        twice = [name for name in named if name in values]
        values.update(named)
        if unknown or twice or len(tally) > len(self._names) or len(values) < len(self._names):
            raise ModelError(
                f"a tally has one integer for each of ({', '.join(self._names)}), in order or by name; "
                f"got {tally} and {named}"
            )
        array = np.array([values[name] for name in self._names])
        if array.size and array.dtype.kind not in "iu":
            raise ModelError(f"a tally is made of integers, got {[values[name] for name in self._names]}")
        return array.astype(np.int64)

    def _nearest(self, wanted: NDArray[np.int64], count: int = 3) -> str:
        distance = np.abs(self.tallies - wanted).sum(axis=1)
        return self._listed(np.argsort(distance, kind="stable")[:count])

    def _some_tallies(self, count: int = 6) -> str:
        return self._listed(np.arange(min(count, len(self)))) + (", …" if len(self) > count else "")

    def _listed(self, rows: NDArray[Any]) -> str:
        return ", ".join(str(tuple(row)) for row in self.tallies[rows].tolist()) or "none"

    def _allowed(self, where: Where) -> NDArray[np.int64] | None:
        """Return the rows that satisfy a constraint; None for all."""
        if not len(self):
            raise InfeasibleError(_NONE_LEFT)
        if where is None:
            return None
        columns = {statistic: self.tallies[:, i] for i, statistic in enumerate(self.statistics)}
        constraint = as_constraint(where).mapped(
            lambda term: term if term in columns else self.reduction.pull(term)
        )
        missing = [s.name for s in constraint.statistics if s not in columns]
        if missing:
            raise ModelError(
                f"the constraint '{constraint}' reads {', '.join(missing)}, which this profile does not "
                f"carry (it has {', '.join(self._names) or 'no statistics'}); make the profile with it, or "
                "use tallytree.solve(model, where=…), which adds what is missing"
            )
        rows = np.flatnonzero(constraint.holds(columns))
        if not len(rows):
            raise InfeasibleError(
                f"no labelling satisfies '{constraint}'; "
                f"{nearest_tallies(self._names, self.tallies, constraint.violation(columns))}"
            )
        return rows

    def _reason(self, claim: str, where: Where, objective: Objective | None) -> tuple[Any, ...]:
        """Return what a proof has besides the plan and the score: the claim, the constraint, the noun."""
        among = where if self._asked is None else self._asked
        return claim, among, "score" if objective is None else "value"

    def _solution(
        self, row: int, reason: tuple[Any, ...] = (SAME_TALLY,), value: float | None = None
    ) -> Solution:
        assignment, score = self._decode(int(self._cells[row])), float(self.scores[row])
        return self._certified(row, assignment, score, reason, value)

    def _certified(
        self,
        row: int,
        assignment: NDArray[np.int64],
        score: float,
        reason: tuple[Any, ...],
        value: float | None = None,
    ) -> Solution:
        tally = self.tallies[row].tolist()
        found = certified(
            self.model,
            self.statistics,
            assignment,
            score,
            tally,
            self._shown,
            value=value,
            proof=(self._plan, score, *reason),
        )
        return lifted(found, self.reduction, self.statistics if self._shown is None else self._shown)

    def _decode(self, cell: int) -> NDArray[np.int64]:
        with self._lock:  # decoding may load a segment of the tables
            return self._loaded().decode(cell)

    def _loaded(self) -> Messages:
        if self._messages is None:
            self._messages = pass_messages(self.plan, self.model, self.statistics, backend=self.backend)
        return self._messages

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_messages": None, "_lock": None}  # no tables: they can be had again

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())
        self.tallies, self.scores = read_only(self.tallies), read_only(self.scores)

    def _repr_html_(self) -> str:
        """Show the profile in a notebook: the curve of a single statistic, and the best tallies."""
        title = f"<b>{len(self)} tallies</b>"
        if not len(self):
            return title
        best = np.argsort(-self.scores, kind="stable")[:10]
        lines = [[*self.tallies[row].tolist(), f"{self.scores[row]:.6g}"] for row in best]
        drawn = html.curve(self.tallies[:, 0].tolist(), self.scores.tolist()) if len(self._names) == 1 else ""
        more = f"<i>the {len(best)} best of {len(self)}</i>" if len(self) > len(best) else ""
        return f"{title}<br>{drawn}{html.rows([*self._names, 'score'], lines)}{more}"

    def __repr__(self) -> str:
        return f"Profile({len(self)} tallies of ({', '.join(self._names)}))"


def nearest_tallies(names: tuple[str, ...], tallies: NDArray[np.int64], missed: NDArray[Any]) -> str:
    """Return the tallies that miss a constraint by least, for the end of an error."""
    rows = np.argsort(np.broadcast_to(missed, len(tallies)), kind="stable")[:3]
    named = (zip(names, row, strict=True) for row in tallies[rows].tolist())
    shown = ("(" + ", ".join(f"{name}={value}" for name, value in pairs) + ")" for pairs in named)
    return f"the nearest attainable tallies are {', '.join(shown)}"


def profile(
    model: Model | Reduction,
    statistics: Iterable[Statistic | Recipe] = (),
    *,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    plan: Plan | None = None,
    order: Order | None = None,
    memory_limit: float | None = None,
    tallies: Mode = "auto",
    backend: Backend = "native",
) -> Profile:
    """Compute the best score for every attainable tally, in one upward pass.

    Parameters
    ----------
    model : Model or Reduction
        The factor graph; or a reduction, whose labellings come back as those of the original model.
    statistics : iterable of Statistic or Recipe
        What to tally: statistics of the model, and a reduction's own.
    fixed, allowed : mapping, optional
        The state that a variable must take, the states it may take: the profile of
        ``model.restricted(fixed, allowed)``.
    plan : Plan, optional
        One made before for a model of this shape and the same statistics.
    order, memory_limit, tallies
        As for :func:`plan`, where none is given.
    backend : {"native", "reference"}
        The compiled executor, or the NumPy reference: slow, to learn from and to test against.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> prof = tt.profile(model, [tt.count(state=1)])
    >>> prof.tallies.ravel(), prof.scores
    (array([0, 1, 2, 3]), array([0., 4., 6., 7.]))
    """
    reduction = as_reduction(model, fixed, allowed)
    bound = bind(reduction, statistics)
    if plan is None:
        every = Question(bound, None)
        plan = plan_of(reduction.model, every, order=order, memory_limit=memory_limit, tallies=tallies)
    else:
        plan.check(reduction.model, bound)
    return Profile(reduction.model, bound, plan, backend, reduction=reduction)
