"""Look-ups in the best scores by tally, ``μ(l) = max { F(y) : G(y) = l }``.

What a profile of labellings and one of trees have in common: once the table is there, any objective
``H(score, tally)``, any constraint and any single tally is a look-up followed by a decode. ``H`` must not
decrease in the score: then the optimum of ``H(F(y), G(y))`` is attained at some ``(μ(l), l)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import BEST, IN_ORDER, SAME_TALLY
from tallytree.answers.objective import Objective, evaluate_objective
from tallytree.answers.ranking import Ranked, by_objective
from tallytree.errors import InfeasibleError, ModelError
from tallytree.statistics.constraints import Constraint, as_constraint

__all__ = ["TallyTable", "Where", "nearest_tallies"]

Where = Constraint | None
Found = TypeVar("Found")


class TallyTable(ABC, Generic[Found]):
    """The best score for every attainable tally, and what stands behind them.

    Attributes
    ----------
    statistics : tuple of statistics
    tallies : (S, P) int64 array
        The attainable tallies in lexicographic order.
    scores : (S,) float64 array
        The best score of each.
    """

    model: Any  # what is asked about
    statistics: tuple[Any, ...]
    tallies: NDArray[np.int64]
    scores: NDArray[np.float64]
    _names: tuple[str, ...]

    _noun: ClassVar[str] = "labelling"
    _none_left: ClassVar[str]

    @property
    @abstractmethod
    def plan(self) -> Any:
        """What was run."""

    @abstractmethod
    def _bound(self, where: Constraint) -> Constraint:
        """Return a constraint in terms of the statistics."""

    @abstractmethod
    def _reason(self, claim: str, where: Where, objective: Objective | None) -> tuple[Any, ...]:
        """Return what an answer is the best of, for its proof."""

    @abstractmethod
    def _solution(
        self, row: int, reason: tuple[Any, ...] = (SAME_TALLY,), value: float | None = None
    ) -> Found:
        """Return the best with the tally of a row."""

    @abstractmethod
    def _certified(
        self, row: int, assignment: Any, score: float, reason: tuple[Any, ...], value: float | None = None
    ) -> Found:
        """Return what was decoded for a row, checked."""

    @abstractmethod
    def _search(self, rows: NDArray[np.int64]) -> Iterator[Ranked]:
        """Go through what has the tally of one of the rows, by score."""

    def _answer(
        self,
        row: int,
        reason: tuple[Any, ...] = (SAME_TALLY,),
        value: float | None = None,
        objective: Objective | None = None,
    ) -> Found:
        """Return the best with the tally of a row, found with a value of an objective."""
        return self._solution(row, reason, value)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the statistics, made unique."""
        return self._names

    def __len__(self) -> int:
        """Return the number of attainable tallies."""
        return len(self.scores)

    def best(self, objective: Objective | None = None, *, where: Where = None) -> Found:
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
        return self._answer(row, self._reason(BEST, where, objective), value, objective)

    def best_row(self, objective: Objective | None = None, *, where: Where = None) -> tuple[int, float]:
        """Return the row of ``tallies`` that :meth:`best` takes, and its value; nothing is decoded.

        Where the scores are upper bounds, so is the value.
        """
        return self._best_rows(1, objective, where)[0]

    def top(self, count: int, objective: Objective | None = None, *, where: Where = None) -> list[Found]:
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
            self._answer(row, reason, value, objective)
            for (row, value), reason in zip(found, reasons, strict=False)
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
                f"the objective is -inf at every attainable tally, so no {self._noun} is acceptable; "
                f"the attainable tallies are {self._some_tallies()}"
            )
        rows = order if chosen is None else chosen[order].tolist()
        return [(row, float(values[i])) for row, i in zip(rows, order, strict=True) if values[i] > -np.inf]

    def ranked(self, objective: Objective | None = None, *, where: Where = None) -> Iterator[Found]:
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

    def _by_objective(self, objective: Objective, rows: NDArray[np.int64]) -> Iterator[Ranked]:
        def values(scores: NDArray[np.float64], chosen: NDArray[np.int64]) -> NDArray[np.float64]:
            return evaluate_objective(objective, scores, self.tallies[chosen], self._names)

        self._search(rows[:0])  # refused now where it would be refused later
        return by_objective(
            lambda position: self._search(rows[[position]]),
            values(self.scores[rows], rows).tolist(),
            lambda position, score: float(values(np.array([score]), rows[[position]])[0]),
        )

    def at(self, *tally: int, **named: int) -> Found:
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
        return self._answer(self._row(tally, named))

    def row(self, row: int) -> Found:
        """Return the best labelling with the tally of a row of ``tallies``."""
        return self._answer(range(len(self))[row])

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
                f"no {self._noun} has the tally {dict(zip(self._names, wanted.tolist(), strict=True))}; "
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
            raise InfeasibleError(self._none_left)
        if where is None:
            return None
        constraint = self._bound(as_constraint(where))
        columns: dict[Any, Any] = dict(zip(self.statistics, self.tallies.T, strict=True))
        missing = [s.name for s in constraint.statistics if s not in columns]
        if missing:
            raise ModelError(
                f"the constraint '{constraint}' reads {', '.join(missing)}, which this profile does not "
                f"carry (it has {', '.join(self._names) or 'no statistics'}); make the profile with it, or "
                "use solve(…, where=…), which adds what is missing"
            )
        rows = np.flatnonzero(constraint.holds(columns))
        if not len(rows):
            raise InfeasibleError(
                f"no {self._noun} satisfies '{constraint}'; "
                f"{nearest_tallies(self._names, self.tallies, constraint.violation(columns))}"
            )
        return rows


def nearest_tallies(names: tuple[str, ...], tallies: NDArray[np.int64], missed: NDArray[Any]) -> str:
    """Return the tallies that miss a constraint by least, for the end of an error."""
    rows = np.argsort(np.broadcast_to(missed, len(tallies)), kind="stable")[:3]
    named = (zip(names, row, strict=True) for row in tallies[rows].tolist())
    shown = ("(" + ", ".join(f"{name}={value}" for name, value in pairs) + ")" for pairs in named)
    return f"the nearest attainable tallies are {', '.join(shown)}"
