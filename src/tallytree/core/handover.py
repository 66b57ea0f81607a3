"""Problems handed over to a native batch, and what it found given back to them.

A problem says what is to be computed (:meth:`Problem.hand_over`) and makes its answer of the labelling that
was found (:meth:`Problem.answer`). Between the two everything is native; only objectives are called back. A
problem without an answer is solved again on its own (:meth:`Problem.alone`), which raises the error that says
why: there is one place that words errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tallytree.core.certificate import BEST
from tallytree.core.elimination import Order, skeleton
from tallytree.core.model import Model
from tallytree.core.objective import Objective
from tallytree.core.plan import Mode, checked_mode, default_memory_limit, plan_of, tally_limits
from tallytree.core.profile import Profile, Root
from tallytree.core.solution import Evaluation, Solution, certified, lifted
from tallytree.core.solve import Inquiry
from tallytree.core.statistics import Statistic
from tallytree.core.threads import thread_count
from tallytree.errors import ModelError, TallytreeError
from tallytree.kernels import native

__all__ = ["Batch", "Errors", "Labelling", "Options", "Problem", "solution_of"]

Errors = Literal["raise", "return"]

_NO_CELLS = np.zeros(0, dtype=np.int64)


class Options(NamedTuple):
    """What all problems of a batch have in common."""

    order: Order | None
    memory_limit: float | None
    tallies: Mode
    threads: int | None
    errors: Errors

    @property
    def of_plan(self) -> dict[str, Any]:
        """Those that a plan takes."""
        return {"order": self.order, "memory_limit": self.memory_limit, "tallies": self.tallies}


class Labelling(NamedTuple):
    """What a batch found for a problem."""

    assignment: NDArray[np.int64]
    score: float  # as the messages have it
    tally: list[int]
    evaluation: Evaluation
    value: float | None  # of the objective, or of the loss together with the score
    loss: float  # with the truth's score, where there is a table of losses
    truth_score: float


class Problem(Protocol):
    """One problem of a batch."""

    @property
    def objective(self) -> Objective | None:
        """What to maximise; asked for after the problem was handed over."""

    def hand_over(self, batch: Batch) -> Inquiry | None:
        """Add the problem to a batch, and return what its objective is asked about."""

    def answer(self, found: Labelling, options: Options) -> Any:
        """Make the answer of a labelling of the model that was handed over."""

    def alone(self, options: Options) -> Any:
        """Solve the problem on its own."""


class Batch:
    """Problems handed over to a native batch, and their answers gathered from it."""

    def __init__(self, problems: Sequence[Any], options: Options) -> None:
        if options.errors not in ("raise", "return"):
            raise ModelError(f"errors must be 'raise' or 'return', got {options.errors!r}")
        self.problems = problems
        self.options = options
        self.threads = thread_count(options.threads)
        limit = default_memory_limit() if options.memory_limit is None else float(options.memory_limit)
        self.handle = native.Batch(checked_mode(options.tallies), limit)
        self._skeletons: dict[Any, tuple[native.Skeleton, Any]] = {}
        self._numbers: list[int] = []  # of the problems in the native batch
        self._inquiries: list[Inquiry | None] = []
        self._values: dict[int, float] = {}  # of what was chosen
        self._answers: list[Any] = [None] * len(problems)
        self._hand_over()

    def solve(self) -> list[Any]:
        """Find the best labelling of each problem."""
        self.handle.run(self.threads, self._choose)
        return self._gathered(self._labellings())

    def profile(self) -> list[Any]:
        """Compute the profile of each problem."""
        self.handle.run(self.threads, None)
        return self._gathered(self._profiles())

    # --- in ------------------------------------------------------------------------------------------------

    def _hand_over(self) -> None:
        for number, problem in enumerate(self.problems):
            try:
                inquiry = problem.hand_over(self)
            except TallytreeError as error:
                self._fail(number, error)
            else:
                self._numbers.append(number)
                self._inquiries.append(inquiry)

    def add(self, inquiry: Inquiry, objective: Objective | None) -> None:
        """Add a problem; its statistics have tables of their own."""
        model, question = inquiry.model, inquiry.question
        shown = [block for s in inquiry.shown or () for block in s.blocks]
        self.handle.add(
            self.skeleton(model, question.carried),
            [block.tables for s in question.carried for block in s.blocks],
            *tally_limits(question.carried, question.window),
            [block.tables for block in model.blocks],
            [block.scopes for block in shown],
            [block.tables for block in shown],
            objective is not None or not inquiry.windowed,
        )

    def skeleton(self, model: Model, carried: tuple[Statistic, ...]) -> native.Skeleton:
        """Return the skeleton of a model and statistics, which are the same if they are one object."""
        key = model.key, id(carried)
        found = self._skeletons.get(key)
        if found is None:  # kept with its statistics, so that no others get their number
            found = self._skeletons[key] = skeleton(model, carried, self.options.order), carried
        return found[0]

    # --- meanwhile -----------------------------------------------------------------------------------------

    def _choose(self, place: int, tallies: NDArray[np.int64], scores: NDArray[np.float64]) -> int:
        """Return the row of a root that is to be decoded; -1 where the problem has no answer."""
        inquiry = self._inquiries[place]
        assert inquiry is not None
        posed = inquiry.posed(self._profile(inquiry, (_NO_CELLS, tallies, scores)))
        try:
            row, self._values[place] = posed.best_row(self.problems[self._numbers[place]].objective)
        except TallytreeError:
            return -1
        return row

    def _profile(self, inquiry: Inquiry, root: Root) -> Profile:
        make_plan = partial(plan_of, inquiry.model, inquiry.question, **self.options.of_plan)
        return Profile.without_tables(
            inquiry.model, inquiry.question.carried, make_plan, root, **inquiry.context
        )

    # --- out -----------------------------------------------------------------------------------------------

    def _profiles(self) -> Iterator[Profile | None]:
        """Go through the roots that were computed; None for a problem that was refused."""
        rows, cells, tallies, scores = self.handle.roots()
        refused, at, tally_at = set(self.handle.refused), 0, 0
        for place, (inquiry, count) in enumerate(zip(self._inquiries, rows.tolist(), strict=True)):
            assert inquiry is not None
            width = len(inquiry.question.carried)
            some = slice(at, at + count)
            table = tallies[tally_at : tally_at + count * width].reshape(count, width)
            root = cells[some].copy(), table.copy(), scores[some].copy()
            at, tally_at = at + count, tally_at + count * width
            yield None if place in refused else self._profile(inquiry, root)

    def _labellings(self) -> Iterator[Labelling | None]:
        """Go through the labellings that were decoded; None for a problem that has none."""
        assignments, tallies, sums, sizes, numbers = self.handle.labellings()
        tallies, sums = tallies.tolist(), sums.tolist()
        at = tally_at = sum_at = 0
        for place, ((length, width, blocks), known) in enumerate(
            zip(sizes.tolist(), numbers.tolist(), strict=True)
        ):
            if width < 0:
                yield None
                continue
            score, got, magnitude, terms, value, loss, truth_score = known
            end, tally_end, sum_end = at + length, tally_at + width, sum_at + blocks
            evaluation = got, magnitude, int(terms), sums[sum_at:sum_end]
            yield Labelling(
                assignments[at:end].copy(),
                score,
                tallies[tally_at:tally_end],
                evaluation,
                self._values.get(place) if self._inquiries[place] else value,
                loss,
                truth_score,
            )
            at, tally_at, sum_at = end, tally_end, sum_end

    def _gathered(self, found: Iterator[Any]) -> list[Any]:
        """Return the answers of all problems, those without one solved on their own: that says why."""
        for number, one in zip(self._numbers, found, strict=True):
            problem = self.problems[number]
            try:
                self._answers[number] = (
                    problem.alone(self.options) if one is None else problem.answer(one, self.options)
                )
            except TallytreeError as error:
                self._fail(number, error)
        return self._answers

    def _fail(self, number: int, error: TallytreeError) -> None:
        """Put an error in the place of an answer, or raise it."""
        if self.options.errors == "raise":
            error.add_note(f"(problem {number} of the batch)")
            raise error
        self._answers[number] = error


def solution_of(inquiry: Inquiry, found: Labelling, noun: str, options: Options) -> Solution:
    """Check a labelling of an inquiry's model, and bring it back to the original one."""
    assignment, score, tally, evaluation, value, *_ = found
    make_plan = partial(plan_of, inquiry.model, inquiry.question, **options.of_plan)
    carried, shown = inquiry.question.carried, inquiry.shown
    checked = certified(
        inquiry.model,
        carried,
        assignment,
        score,
        tally,
        shown,
        value=value,
        evaluation=evaluation,
        proof=(make_plan, score, BEST, inquiry.where, noun),
    )
    return lifted(checked, inquiry.reduction, carried if shown is None else shown)
