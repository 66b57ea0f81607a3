"""Look-ups in the table of best scores by tally, ``μ(l) = max { F(y) : G(y) = l }``.

Shared by profiles of labellings and of trees: once the table is computed, any objective
``H(score, tally)``, constraint or single tally is a look-up followed by a decode. ``H`` must be
non-decreasing in the score: then the optimum of ``H(F(y), G(y))`` is attained at some ``(μ(l), l)``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from copy import copy
from itertools import chain, repeat
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import BEST, IN_ORDER, SAME_TALLY, Claim
from tallytree.answers.listed import Answers, Shown
from tallytree.answers.objective import Objective, as_objective, evaluate_objective
from tallytree.answers.ranking import Ranked, Ranking, by_objective
from tallytree.answers.root_table import RootTable
from tallytree.answers.tallies import Tally, nearest_tallies, unsatisfied
from tallytree.deprecation import warn_renamed
from tallytree.errors import InfeasibleError, ModelError
from tallytree.planning.budget import Budget
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.formula_constraints import as_condition

Where = Constraint | str | None
Answer = TypeVar("Answer", bound=Shown)

SAME = Claim(SAME_TALLY)  # the claim of a look-up: the best labelling with one tally


class TallyTable(RootTable, Generic[Answer]):
    """The best score for every attainable tally, and the labellings or trees that attain them."""

    scores: NDArray[np.float64]  # (S,): the best score of each
    _remaining: Constraint | None = None  # the part of the constraint not handled by the messages
    _none_left: ClassVar[str]

    def _fill(self, values: NDArray[np.float64]) -> None:
        query, cut = self.query, self._options.backend == "native"
        self._remaining = None if query.windowed and cut else query.remaining
        self.scores = values

    @abstractmethod
    def _bound(self, where: Constraint) -> Constraint:
        """Return a constraint in terms of the statistics."""

    @abstractmethod
    def _decoded(self, row: int) -> Any:
        """Decode the tables for the tally of a row."""

    @abstractmethod
    def _certified(
        self, row: int, decoded: Any, score: float, claim: Claim, value: float | None = None
    ) -> Answer:
        """Return the decoded and certified answer for a row."""

    @abstractmethod
    def _search(self, rows: NDArray[np.int64], budget: Budget) -> Iterator[Ranked]:
        """Iterate over everything with the tally of one of the rows, by score."""

    def released(self) -> Self:
        """Return the same without the tables of the messages, which are recomputed when needed."""
        return copy(self)

    @abstractmethod
    def _kept_bytes(self, answer: Answer) -> int:
        """Return the size of an answer that is kept."""

    def _answer(
        self, row: int, claim: Claim = SAME, value: float | None = None, objective: Objective | None = None
    ) -> Answer:
        """Return the best answer with the tally of a row, chosen by the value of an objective."""
        return self._certified(row, self._decoded(row), float(self.scores[row]), claim, value)

    def _claim(self, text: str, where: Where, objective: Objective | None) -> Claim:
        """Return the claim of an answer."""
        condition = as_condition(where, self.statistics) if isinstance(where, str) else where
        among = condition if self.query.where is None else self.query.where
        return Claim(text, among, "score" if objective is None else "value")

    def best(self, objective: Objective | str | None = None, *, where: Where = None) -> Answer:
        """Find the labelling that maximises an objective, subject to a constraint.

        Parameters
        ----------
        objective : callable or str, optional
            ``H(score, *tallies)``, elementwise over NumPy arrays and non-decreasing in the score; or a
            formula in ``score`` and the names of the statistics, such as ``"score - 2*ones"``. By default
            the score itself: plain MAP. A value of ``-inf`` excludes a tally; nan and ``+inf`` raise an
            error.
        where : Constraint or str, optional
            A constraint on the profile's statistics, such as ``(ones >= 2) & (ones <= 5)``, or a string with
            their names, such as ``"2 <= ones <= 5"``.

        Returns
        -------
        Solution
            Ties are broken in favour of the lexicographically first tally.

        Raises
        ------
        InfeasibleError
            No labelling satisfies the constraint.
        ObjectiveError
            The objective returned nan or inf, is not elementwise, or decreases in the score.

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
        >>> prof.best(where="ones <= 2").tally
        Tally(ones=2)
        """
        function = as_objective(objective, self.query.read)
        ((row, value),) = self.best_rows(1, function, where)
        return self._answer(row, self._claim(BEST, where, function), value, function)

    def best_row(self, objective: Objective | str | None = None, *, where: Where = None) -> tuple[int, float]:
        """Return the row of ``tallies`` that :meth:`best` chooses, and its value, without decoding."""
        return self.best_rows(1, objective, where)[0]

    def top(
        self, count: int, objective: Objective | str | None = None, *, where: Where = None
    ) -> list[Answer]:
        """Return the best labelling of each of the best tallies, best first; fewer if there are fewer.

        As for :meth:`best`, there has to be one, so that the number is at least 1.

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
        function = as_objective(objective, self.query.read)
        claims = chain([self._claim(BEST, where, function)], repeat(SAME))
        return Answers(
            self._answer(row, claim, value, function)
            for (row, value), claim in zip(self.best_rows(count, function, where), claims, strict=False)
        )

    def best_rows(
        self, count: int, objective: Objective | str | None = None, where: Where = None
    ) -> list[tuple[int, float]]:
        """Return the rows of ``tallies`` that :meth:`top` chooses, and their values, without decoding."""
        chosen, function = self._allowed(where), as_objective(objective, self.query.read)
        if chosen is None:
            values = self.values(function, self.scores, self.tallies)
        else:
            values = self.values(function, self.scores[chosen], self.tallies[chosen])
        order = [int(values.argmax())] if count == 1 else np.argsort(-values, kind="stable")[:count].tolist()
        if values[order[0]] == -np.inf:
            raise InfeasibleError(
                f"the objective is -inf at every attainable tally, so no {self.noun} is acceptable; "
                f"the attainable tallies are {self._some_tallies()}"
            )
        rows = order if chosen is None else chosen[order].tolist()
        return [(row, float(values[i])) for row, i in zip(rows, order, strict=True) if values[i] > -np.inf]

    def ranked(
        self, objective: Objective | str | None = None, *, where: Where = None, keep: bool = False
    ) -> Iterator[Answer]:
        """Iterate over all labellings in order of value, best first, computing each on demand.

        Parameters
        ----------
        objective, where
            As for :meth:`best`, which gives the first one. Labellings of value ``-inf`` are left out.
        keep : bool
            Whether the caller keeps all results, as in a list, so that they count towards the memory limit.

        Raises
        ------
        InfeasibleError
            No labelling satisfies the constraint.
        BudgetError
            The plan does not keep all tables, or the search has exceeded the memory limit.

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
        rows, budget = self.rows_where(where), Budget(self.plan.limit, self.plan.every_table_bytes)
        function = as_objective(objective, self.query.read)
        if function is None:
            ranking = self._search(rows, budget)
        else:
            ranking = self._by_objective(function, rows, budget)
        _, among, noun, *_ = self._claim(IN_ORDER, where, function)
        answers = Ranking(
            self._certified(int(rows[position]), found, score, Claim(IN_ORDER, among, noun, rank), value)
            for rank, (value, score, position, found) in enumerate(ranking)
        )
        return self._counted(answers, budget) if keep else answers

    def _counted(self, answers: Iterator[Answer], budget: Budget) -> Iterator[Answer]:
        for rank, answer in enumerate(answers, 1):
            if (size := self._kept_bytes(answer)) > budget.room:
                raise budget.exceeded(f"a list of the {rank:,} best", size)
            budget.held += size
            yield answer

    def _by_objective(
        self, objective: Objective, rows: NDArray[np.int64], budget: Budget
    ) -> Iterator[Ranked]:
        self._search(rows[:0], budget)  # raise errors now rather than later
        return by_objective(
            lambda position: self._search(rows[[position]], budget),
            self.values(objective, self.scores[rows], self.tallies[rows]).tolist(),
            lambda position, score: float(
                self.values(objective, np.array([score]), self.tallies[rows[[position]]])[0]
            ),
        )

    def values(
        self, objective: Objective | None, scores: NDArray[np.float64], tallies: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Evaluate an objective, which is passed only the statistics that it reads."""
        if objective is None:
            return scores
        read = len(self.query.read)
        if read < len(self._names):  # the rest is only for the constraint
            tallies = tallies[:, :read]
        return evaluate_objective(objective, scores, tallies, self._names[:read])

    def at(self, *tally: Tally, **named: int) -> Answer:
        """Return the best labelling with exactly this tally, given in order or by name.

        A sequence or a mapping, such as ``{"B-NP": 2}``, is also accepted.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.array([[0., 1], [0, 2]]), np.zeros((2, 2)))
        >>> prof = tt.profile(model, [tt.count(state=1, name="ones")])
        >>> prof.at(1).assignment, prof.at(ones=1).score, prof.at({"ones": 1}).score
        (array([0, 1]), 2.0, 2.0)
        """
        return self._answer(self._row(tally, named))

    def row(self, row: int) -> Answer:
        """Return the best labelling with the tally of a row of ``tallies``."""
        return self._answer(range(len(self))[row])

    def rows_where(self, where: Where = None) -> NDArray[np.int64]:
        """Return the rows of ``tallies`` that satisfy a constraint.

        Raises
        ------
        InfeasibleError
            No labelling satisfies it.
        """
        rows = self._allowed(where)
        return np.arange(len(self)) if rows is None else rows

    def allowed(self, where: Where = None) -> NDArray[np.int64]:
        """Return the same as :meth:`rows_where`; deprecated."""
        warn_renamed("TallyTable.allowed", "rows_where", stacklevel=3)
        return self.rows_where(where)

    @property
    def satisfiable(self) -> bool:
        """Whether anything satisfies the query's constraint, regardless of the objective."""
        if self._remaining is None or not len(self):
            return len(self) > 0
        columns = dict(zip(self.statistics, self.tallies.T, strict=True))
        return bool(self._remaining.holds(columns).any())

    # --- inside -------------------------------------------------------------------------------------------

    def _listed(self, rows: NDArray[Any]) -> str:
        return ", ".join(map(str, map(tuple, self.tallies[rows].tolist()))) or "none"

    def _some_tallies(self, count: int = 6) -> str:
        return self._listed(np.arange(min(count, len(self)))) + (", …" if len(self) > count else "")

    @property
    def _carried_names(self) -> str:
        caps = [getattr(s, "cap", None) for s in self.statistics]
        named = zip(self._names, caps, strict=True)
        shown = [name if cap is None else f"{name} capped at {cap}" for name, cap in named]
        return ", ".join(shown) or "no statistics"

    def _allowed(self, where: Where) -> NDArray[np.int64] | None:
        """Return the rows that satisfy a constraint, or None for all."""
        if not len(self):
            raise InfeasibleError(self._none_left)
        if where is None and self._remaining is None:
            return None
        constraint = self._constraint(where)
        columns: dict[Any, Any] = dict(zip(self.statistics, self.tallies.T, strict=True))
        missing = [s.name for s in constraint.statistics if s not in columns]
        if missing:
            raise ModelError(
                f"the constraint '{constraint}' uses {', '.join(missing)}, which this profile does not "
                f"carry (it has {self._carried_names}); add it to the profile, or use solve(…, where=…), "
                "which adds missing statistics"
            )
        rows = np.flatnonzero(constraint.holds(columns))
        if not len(rows):
            missed = constraint.violation(columns)
            near = nearest_tallies(self._names, self.tallies, missed, constraint.statistics)
            raise unsatisfied(self.noun, constraint, near)
        return rows

    def _constraint(self, where: Where) -> Constraint:
        """Return the rest of the query's constraint joined with the one given now."""
        if where is None:
            assert self._remaining is not None
            return self._remaining
        constraint = self._bound(as_condition(where, self.statistics))
        return constraint if self._remaining is None else self._remaining & constraint
