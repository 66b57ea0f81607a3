"""The tallies that a search by bounds could not rule out: usually one, more if values are equal.

To an objective it is a table of best scores like any other, except that other tallies are missing: its
optimum is the overall optimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import BEST, Claim
from tallytree.answers.ranking import Ranked
from tallytree.answers.solution import Certifier, Decoded, kept_bytes
from tallytree.answers.tally_table import TallyTable
from tallytree.bounding.alternatives import Several
from tallytree.bounding.certificate import BoundsEvidence, Part
from tallytree.bounding.question import Question
from tallytree.errors import CertificateError, ModelError
from tallytree.planning.budget import Budget
from tallytree.planning.orders import Order
from tallytree.planning.query import Query
from tallytree.running.bounds import Found, Wanted
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Statistic


class BoundedTable(TallyTable[Any]):
    """The remaining tallies for one question."""

    _none_left = "no labelling is left"

    def __init__(
        self,
        query: Query[Statistic],
        counted: tuple[Statistic, ...],
        found: Found | Several,
        asked: tuple[Question, Wanted],
        order: Order | None = None,
    ) -> None:
        self.counted, self.found, self.asked, self.order = counted, found, asked, order
        self.passes = tuple((tuple(prices), most) for prices, most in found.passes)
        self.bound, self.value = found.bound, found.value
        caps = [np.iinfo(np.int64).max if s.cap is None else s.cap for s in query.carried]
        tallies = np.minimum(found.tallies, np.array(caps, dtype=np.int64))
        rows = _best_of_each(tallies, found.scores)
        super().__init__(query, None, root=(rows, tallies[rows], found.scores[rows]))

    @property
    def cells(self) -> NDArray[np.int64]:
        """For each row, the index of its candidate in the search."""
        return self._cells

    @property
    def finished(self) -> bool:
        """Whether the search finished: otherwise the table holds what was found, which may not be optimal."""
        return self.found.finished

    @property
    def ended(self) -> bool:
        """Whether it reached a limit of work or memory."""
        return self.found.ended

    def knowing(
        self, bound: float, value: float, passes: Sequence[tuple[tuple[float, ...], float]]
    ) -> BoundedTable:
        """Return the same with the bound and best value of an objective, and all its passes."""
        self.bound, self.value, self.passes = bound, value, tuple(passes)
        return self

    def continued(self, question: Question) -> Question:
        """Return the question that starts from what an unfinished search has found."""
        prices = np.array(self.passes[-1][0]) if self.passes else None
        if not len(self):
            return question._replace(prices=prices)
        best = self._cells[int(self._values(question).argmax())]
        return question._replace(start=self.found.labelling(int(best)), prices=prices)

    def best_known(self, question: Question) -> Any:
        """Return the best labelling that an unfinished search has found, with its gap."""
        if self.value == -np.inf or not len(self):
            return None
        values = self._values(question)
        row = int(values.argmax())
        found = self._answer(row, Claim(BEST, self.query.where, "value", optimal=False))
        return found.bounded(float(values[row]) + question.offset, max(self.bound - float(values[row]), 0.0))

    def _fill(self, values: NDArray[np.float64]) -> None:
        self.scores = values  # of tallies that the constraint allows

    def _run(self) -> Any:
        raise ModelError("a search by bounds has no tables; use profile instead")

    @property
    def evidence(self) -> BoundsEvidence:
        """What was proven."""
        parts = tuple(
            Part(tuple(prices), most, tuple(low), tuple(high), budget, cells)
            for prices, most, low, high, budget, cells in self.found.proven
        )
        value = float(self._values(self.asked[0]).max(initial=-np.inf))
        shown = parts, self.passes, self.asked, value, self.order
        return BoundsEvidence(self.query, self._names, *shown)

    def _values(self, question: Question) -> NDArray[np.float64]:
        return question.values(self.scores, self.tallies, len(self.query.read))

    def _bound(self, where: Constraint) -> Constraint:
        raise ModelError("a search by bounds answers a single question; use profile instead")

    def _search(self, rows: NDArray[np.int64], budget: Budget) -> Iterator[Ranked]:
        raise ModelError("a search by bounds has a single answer; use profile instead")

    def _kept_bytes(self, answer: Any) -> int:
        return kept_bytes(answer.assignment.nbytes, len(answer.tally))

    def _decoded(self, row: int) -> Any:
        return self.found.labelling(int(self._cells[row]))

    def _certified(
        self, row: int, decoded: Any, score: float, claim: Claim, value: float | None = None
    ) -> Any:
        self._check_allowed(row)
        found = Decoded(decoded, score, self.tallies[row].tolist(), value)
        return Certifier(self.query, self.evidence)(found, claim)

    def _check_allowed(self, row: int) -> None:
        """Check the constraint on the tally: unlike for full tables, it was not checked before."""
        constraint, tally = self.query.remaining, self.tallies[row : row + 1].T
        if constraint is None:
            return
        columns: dict[Any, Any] = dict(zip(self.statistics, tally, strict=True))
        if not np.all(constraint.holds(columns)):
            raise CertificateError(
                f"the certificate failed: a search by bounds returned the tally "
                f"{self.tallies[row].tolist()}, which does not satisfy '{constraint}'. This is a bug in "
                "tallytree; please report it with the model"
            )


def _best_of_each(tallies: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return one row per tally, the one with the best score: caps merge several tallies into one."""
    order = np.lexsort((-scores, *tallies.T[::-1]))
    ordered = tallies[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return order[new]
