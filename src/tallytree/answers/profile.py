"""The profile: the best score for every attainable tally, ``μ(l) = max { F(y) : G(y) = l }``.

One upward pass computes it; after that, any objective ``H(score, tally)``, constraint or single tally is
a look-up followed by a decode. ``H`` must be non-decreasing in the score: then the optimum of
``H(F(y), G(y))`` is attained at some ``(μ(l), l)``. In single precision the table holds upper bounds on
``μ(l)``, and each solution has a gap between the bound and its own value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tallytree import html
from tallytree.answers.certificate import BEST, Claim
from tallytree.answers.objective import Objective
from tallytree.answers.ranking import Batch, Ranked, batches, drawn
from tallytree.answers.root_table import GraphTable
from tallytree.answers.solution import Certifier, Decoded, Solution, kept_bytes
from tallytree.answers.tallies import Tally
from tallytree.answers.tally_table import SAME, TallyTable, Where
from tallytree.errors import ObjectiveError
from tallytree.model.model import Model
from tallytree.planning.budget import Budget
from tallytree.planning.options import Backend, RunOptions
from tallytree.planning.plan import Plan
from tallytree.planning.precision import Precision, excess
from tallytree.planning.query import Query
from tallytree.reductions.reduction import Reduction
from tallytree.running.engine import InOrder
from tallytree.running.graphs import GraphMessages, in_order, pass_downward, pass_upward
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Statistic

_DEFAULTS = RunOptions()

Made = Callable[[int], Solution]
"""Returns the solution at a position of a batch."""


class Profile(GraphTable, TallyTable[Solution]):
    """The best score for every attainable tally, and the labellings that attain them.

    Returned by :func:`profile`. Thread-safe for reading. Pickled without its tables, which are recomputed
    when a labelling is first requested.

    Attributes
    ----------
    model : Model
        The model that was solved.
    reduction : Reduction
        How labellings map to the original model: the identity, unless the profile is of a reduction.
    statistics : tuple of Statistic
        The statistics that were counted, in order.
    plan : Plan
        The plan of the upward pass.
    tallies : (S, P) int64 array
        The attainable tallies in lexicographic order.
    scores : (S,) float64 array
        The best score for each tally; in single precision an upper bound on it, and solutions have a gap.
    precision : {"double", "single"}
        The precision of the messages.
    """

    _none_left = (
        "every labelling is forbidden by a -inf factor of the model or by fixed= or allowed=, so the "
        "model has no solution"
    )

    _certify: Certifier | None = None  # created with the first answer

    @classmethod
    def of(cls, model: Model, statistics: Sequence[Statistic], plan: Plan) -> Profile:
        """Run a plan on a model."""
        reduction = Reduction.identity(model)
        return cls(Query(model, tuple(statistics), reduction=reduction), plan)

    @property
    def backend(self) -> Backend:
        """The backend that passed the messages."""
        return self._options.backend

    @property
    def precision(self) -> Precision:
        """``"double"``: the scores are exact; ``"single"``: they are upper bounds."""
        precision: Precision = self.plan.precision
        return precision

    def max_marginals(self, *tally: Tally, **named: int) -> list[NDArray[np.float64]] | NDArray[np.float64]:
        """Return the best score of a labelling for each state of each variable, optionally given a tally.

        The tally is given as for :meth:`at`. Returns an array of shape (M, N), or (rows, columns, N) for
        grids; if variables differ in their number of states, a list with one array per variable.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.array([[0., 1], [0, 2]]), np.zeros((2, 2)))
        >>> prof = tt.profile(model, [tt.count(state=1)])
        >>> prof.max_marginals()
        array([[2., 3.],
               [1., 3.]])
        >>> prof.max_marginals(1)
        array([[2., 1.],
               [1., 2.]])
        """
        rows = self._allowed(None) if not tally and not named else [self._row(tally, named)]
        with self._lock:
            messages = self._loaded()
            weights = np.full(len(messages.values), -np.inf)
            weights[self._cells if rows is None else self._cells[rows]] = 0.0
            scores = pass_downward(messages, weights, self.model, self.plan)
        ends = np.cumsum(self.model.cardinalities)
        tables = np.split(scores, ends[:-1]) if len(ends) else []
        return self.reduction.original.arranged(self.reduction.fold(tables, np.maximum, -np.inf))

    # --- inside -------------------------------------------------------------------------------------------

    def released(self) -> Self:
        """Return the same profile without tables and plan, which are recomputed when needed."""
        light = super().released()
        if isinstance(self._plan, Plan):
            light._plan = self._plan.again()
            light._certify = None
        return light

    def with_all_tables(self) -> Self:
        """Return the same profile for decoding many labellings: with all tables if they fit."""
        if self.plan.segments == 1 or not self.plan.every_table:
            return self
        whole = copy(self)
        whole._options = self._options._replace(every_table=True)
        return whole

    def _bound(self, where: Constraint) -> Constraint:
        known = set(self.statistics)
        return where.mapped(lambda term: term if term in known else self.reduction.pull(term))

    def in_batches(self, where: Where = None) -> Iterator[tuple[NDArray[np.float64], Made]]:
        """Iterate over batches of labellings, in order of score.

        Yields the scores of a batch, according to the messages, and a function that returns the solution at a
        position of the batch.
        """
        rows, budget = self.rows_where(where), Budget(self.plan.limit, self.plan.every_table_bytes)
        for batch in batches(self._found(rows, budget)):
            yield batch[0], partial(self._made, rows, batch)

    def _made(self, rows: NDArray[np.int64], batch: Batch, place: int) -> Solution:
        scores, positions, labels = batch
        return self._certified(int(rows[positions[place]]), labels[place].copy(), float(scores[place]), SAME)

    def _search(self, rows: NDArray[np.int64], budget: Budget) -> Iterator[Ranked]:
        return drawn(self._found(rows, budget))

    def _found(self, rows: NDArray[np.int64], budget: Budget) -> InOrder:
        with self._lock:
            return in_order(self._loaded(), self._cells[rows], self.plan, budget)

    def _kept_bytes(self, answer: Solution) -> int:
        return kept_bytes(answer.assignment.nbytes, len(answer.tally))

    def _answer(
        self, row: int, claim: Claim = SAME, value: float | None = None, objective: Objective | None = None
    ) -> Solution:
        solution = super()._answer(row, claim, value)
        if self.plan.precision == "double":
            return solution
        return self._with_gap(solution, row, value if claim.text == BEST else None, objective)

    def _with_gap(
        self, solution: Solution, row: int, bound: float | None, objective: Objective | None
    ) -> Solution:
        """Return a labelling with its own value, and its gap to a bound on all values or on its score."""
        most = float(self.scores[row])
        value = float(self.values(objective, np.array([solution.score]), self.tallies[[row]])[0])
        if value == -np.inf:
            raise ObjectiveError(
                f"the objective is -inf at {solution.score:.10g}, the score of the labelling found, but "
                f"not at {most:.10g}, the upper bound: single precision cannot decide whether a labelling is "
                "acceptable; remove precision='single'"
            )
        gap = excess(most, solution.score) if bound is None else excess(bound, value)
        return solution.bounded(value, gap)

    def _certified(
        self, row: int, decoded: Any, score: float, claim: Claim, value: float | None = None
    ) -> Solution:
        if self._certify is None:
            self._certify = Certifier(self.query, self.plan, self.precision == "single")
        return self._certify(Decoded(decoded, score, self.tallies[row].tolist(), value), claim)

    def _decoded(self, row: int) -> NDArray[np.int64]:
        with self._lock:  # decoding may load a segment of the tables
            labels: NDArray[np.int64] = self._loaded().decode(int(self._cells[row]))
            return labels

    def _run(self) -> GraphMessages:
        return pass_upward(self.plan, self.model, self._options)

    def _repr_html_(self) -> str:
        """Show the profile in a notebook: the curve of a single statistic, and the best tallies."""
        noun = "score" if self.precision == "double" else "upper bound of the score"
        return html.ranking("Profile", self._names, self.tallies, self.scores, noun)
