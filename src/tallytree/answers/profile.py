"""The profile: the best score for every attainable tally, ``μ(l) = max { F(y) : G(y) = l }``.

One upward pass makes it; after that any objective ``H(score, tally)``, any constraint and any single tally is
a look-up followed by a decode. ``H`` must not decrease in the score: then the optimum of ``H(F(y), G(y))`` is
attained at some ``(μ(l), l)``. In single precision the table holds upper bounds of ``μ(l)``, and what is
found comes with the gap between the bound and its own value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree import html
from tallytree.answers.certificate import BEST, SAME_TALLY
from tallytree.answers.objective import Objective, evaluate_objective
from tallytree.answers.ranking import Ranked, by_score
from tallytree.answers.solution import Solution, certified, lifted, unique_names
from tallytree.answers.tally_table import TallyTable, Where, nearest_tallies
from tallytree.errors import ObjectiveError
from tallytree.model.model import Model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.orders import Order
from tallytree.planning.plan import Mode, Plan, bind, plan_of
from tallytree.planning.precision import Precision, excess
from tallytree.planning.query import Question
from tallytree.reductions.reduction import Reduction, as_reduction
from tallytree.running.graphs import Backend, Messages, downward, pass_messages
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import read_only

__all__ = ["Profile", "Where", "nearest_tallies", "profile"]

Root = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Cells of the last table, with their tallies and scores."""


class Profile(TallyTable[Solution]):
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
        The best score of each; in single precision an upper bound of it, and solutions have a gap.
    precision : {"double", "single"}
        Of the messages.
    """

    _threads: int | None = None
    _none_left = (
        "every labelling is forbidden by a -inf factor, the model's own or one from fixed= or allowed=: the "
        "model has no solution"
    )

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
        threads: int | None = None,
    ) -> None:
        self._threads = threads
        messages = pass_messages(plan, model, statistics, backend=backend, threads=threads)
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
    def precision(self) -> Precision:
        """Whether the scores are the best ones, ``"double"``, or upper bounds of them, ``"single"``."""
        return self.plan.precision

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

    # --- inside -------------------------------------------------------------------------------------------

    def _bound(self, where: Constraint) -> Constraint:
        known = set(self.statistics)
        return where.mapped(lambda term: term if term in known else self.reduction.pull(term))

    def _search(self, rows: NDArray[np.int64]) -> Iterator[Ranked]:
        with self._lock:
            return by_score(self._loaded(), self._cells[rows], self.plan)

    def _reason(self, claim: str, where: Where, objective: Objective | None) -> tuple[Any, ...]:
        """Return what a proof has besides the plan and the score: the claim, the constraint, the noun."""
        among = where if self._asked is None else self._asked
        return claim, among, "score" if objective is None else "value"

    def _answer(
        self,
        row: int,
        reason: tuple[Any, ...] = (SAME_TALLY,),
        value: float | None = None,
        objective: Objective | None = None,
    ) -> Solution:
        found = self._solution(row, reason, value)
        if self.precision == "double":
            return found
        return self._with_gap(found, row, value if reason[0] == BEST else None, objective)

    def _with_gap(
        self, found: Solution, row: int, bound: float | None, objective: Objective | None
    ) -> Solution:
        """Return a labelling with its own value, and how far a bound is: of all values, or of its score."""
        value, most = found.score, float(self.scores[row])
        if objective is not None:
            score, tally = np.array([found.score]), self.tallies[[row]]
            value = float(evaluate_objective(objective, score, tally, self._names)[0])
        if value == -np.inf:
            raise ObjectiveError(
                f"the objective is -inf at {found.score:.10g}, the score of the labelling found, but "
                f"not at {most:.10g}, the upper bound: single precision cannot tell whether a labelling is "
                "acceptable; leave out precision='single'"
            )
        return found.bounded(value, excess(most, found.score) if bound is None else excess(bound, value))

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
            bounds=self.precision == "single",
        )
        return lifted(found, self.reduction, self.statistics if self._shown is None else self._shown)

    def _decode(self, cell: int) -> NDArray[np.int64]:
        with self._lock:  # decoding may load a segment of the tables
            return self._loaded().decode(cell)

    def _loaded(self) -> Messages:
        if self._messages is None:
            self._messages = pass_messages(
                self.plan, self.model, self.statistics, backend=self.backend, threads=self._threads
            )
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
        noun = "score" if self.precision == "double" else "upper bound of the score"
        return f"{title}<br>{drawn}{html.rows([*self._names, noun], lines)}{more}"

    def __repr__(self) -> str:
        return f"Profile({len(self)} tallies of ({', '.join(self._names)}))"


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
    threads: int | None = None,
    precision: Precision = "double",
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
    order, memory_limit, tallies, precision
        As for :func:`plan`, where none is given. In single precision ``scores`` are upper bounds, and every
        solution says by its :attr:`~Solution.gap` how much better another one could be.
    backend : {"native", "reference"}
        The compiled executor, or the NumPy reference: slow, to learn from and to test against.
    threads : int, optional
        By default one, and for large problems as many as there are processors. The result is the same, bit
        for bit.

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
        plan = plan_of(
            reduction.model,
            every,
            order=order,
            memory_limit=memory_limit,
            tallies=tallies,
            precision=precision,
        )
    else:
        plan.check(reduction.model, bound)
    return Profile(reduction.model, bound, plan, backend, reduction=reduction, threads=threads)
