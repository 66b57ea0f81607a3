"""Many problems at once: planned, run, decoded and evaluated natively, spread over threads.

Python binds the statistics of each problem and hands it over. The rest is native and runs without the GIL:
layout, messages and, for :func:`solve_batch`, decoding and the evaluation of the labelling; only an objective
is called back. Problems of one shape share a skeleton, a thread uses the memory of one problem for the next,
and the costliest problem starts first. A problem is answered as it would be on its own, bit for bit, whatever
the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tallytree.core.certificate import BEST
from tallytree.core.elimination import Order, skeleton
from tallytree.core.expressions import Constraint
from tallytree.core.model import Model
from tallytree.core.objective import Objective
from tallytree.core.plan import Mode, Plan, checked_mode, default_memory_limit, plan_of, tally_limits
from tallytree.core.profile import Profile, Root, Where, profile
from tallytree.core.question import Question
from tallytree.core.reduction import Reduction, as_reduction
from tallytree.core.restriction import Allowed, Fixed
from tallytree.core.solution import Solution, certified, lifted
from tallytree.core.solve import Inquiry, inquire, solve
from tallytree.core.statistics import Recipe, Statistic
from tallytree.errors import ModelError, TallytreeError
from tallytree.kernels import native

__all__ = [
    "Errors",
    "Found",
    "Nodes",
    "Options",
    "Problem",
    "one_each",
    "profile_batch",
    "solve_all",
    "solve_batch",
]

Errors = Literal["raise", "return"]
Statistics = Iterable[Statistic | Recipe]

Nodes = tuple[list[bool], int, NDArray[np.int64], native.LossTable]
"""For each statistic whether it counts what is right; the background; the truth; the losses of tallies."""

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


class Found(NamedTuple):
    """A labelling of an inquiry's model; its loss and the truth's score where there is a table of losses."""

    solution: Solution
    loss: float
    truth_score: float


class Problem(Protocol):
    """One problem of a batch."""

    @property
    def objective(self) -> Objective | None:
        """What to maximise."""

    @property
    def nodes(self) -> Nodes | None:
        """What to count and to maximise natively, where the statistics compare variables with a truth."""

    def question(self, inquiry: Inquiry) -> Question[Statistic]:
        """Return the question itself: what is handed over may only have its shape."""

    def inquire(self) -> Inquiry:
        """Bind everything to the model; comes before the objective is asked for."""

    def answer(self, found: Found) -> Any:
        """Make the answer of a labelling of the inquiry's model."""

    def alone(self, options: Options) -> Any:
        """Solve it on its own: where the batch finds nothing, this raises the error that says why."""


# --- the batch ----------------------------------------------------------------------------------------------


def profile_batch(
    models: Iterable[Model | Reduction],
    statistics: Statistics | Sequence[Statistics] = (),
    *,
    fixed: Fixed | Sequence[Fixed | None] | None = None,
    allowed: Allowed | Sequence[Allowed | None] | None = None,
    order: Order | None = None,
    memory_limit: float | None = None,
    tallies: Mode = "auto",
    threads: int | None = None,
    errors: Errors = "raise",
) -> list[Any]:
    """Compute the profiles of many models, on several threads.

    Parameters
    ----------
    models : iterable of Model or Reduction
        The factor graphs, of any shapes; those of one shape share a skeleton.
    statistics : iterable of Statistic or Recipe, or of one list of them per model
        What to tally.
    fixed, allowed : mapping or sequence of mappings, optional
        As for :func:`profile`, for all models or one per model.
    order, memory_limit, tallies
        As for :func:`plan`. Problems run side by side only as far as the limit lets them together.
    threads : int, optional
        By default as many as there are processors. The answers do not depend on it.
    errors : {"raise", "return"}
        Raise the error of the first problem that has one, or put errors in the places of the answers.

    Returns
    -------
    list of Profile
        Each as :func:`profile` would make it, without its tables: the first labelling that is asked of it
        passes its messages again. :func:`solve_batch` decodes while the tables are there.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> scores = np.array([[0., 1], [0, 2], [0, 4]])
    >>> models = [tt.Model.chain(scores[:length], np.zeros((2, 2))) for length in (1, 2, 3)]
    >>> for profile in tt.profile_batch(models, [tt.count(state=1)]):
    ...     print(profile.scores)
    [0. 1.]
    [0. 2. 3.]
    [0. 4. 6. 7.]
    """
    every = list(models)
    problems = [
        _ProfileOf(*arguments)
        for arguments in zip(
            every,
            _statistics_each(statistics, len(every)),
            one_each(fixed, len(every), "fixed", Mapping),
            one_each(allowed, len(every), "allowed", Mapping),
            strict=True,
        )
    ]
    batch = _Batch(problems, Options(order, memory_limit, tallies, threads, errors))
    batch.handle.run(batch.threads, None)
    return batch.gathered(batch.profiles())


def solve_batch(
    models: Iterable[Model | Reduction],
    statistics: Statistics | Sequence[Statistics] = (),
    objective: Objective | Sequence[Objective | None] | None = None,
    *,
    where: Where | Sequence[Where] = None,
    fixed: Fixed | Sequence[Fixed | None] | None = None,
    allowed: Allowed | Sequence[Allowed | None] | None = None,
    order: Order | None = None,
    memory_limit: float | None = None,
    tallies: Mode = "auto",
    threads: int | None = None,
    errors: Errors = "raise",
) -> list[Any]:
    """Find the labellings that maximise objectives of many models, on several threads.

    Parameters
    ----------
    models, statistics, fixed, allowed, order, memory_limit, tallies, threads, errors
        As for :func:`profile_batch`.
    objective : callable, or a sequence with one per model, optional
        ``H(score, *tallies)``; by default the score. It is called from several threads, one at a time.
    where : Constraint, or a sequence with one per model, optional
        As for :func:`solve`.

    Returns
    -------
    list of Solution
        Each as :func:`solve` would give it, in the order of the models; with ``errors="return"`` a
        :class:`TallytreeError` in the place of one that could not be had.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> scores = np.array([[0., 1], [0, 2], [0, 4]])
    >>> models = [tt.Model.chain(scores[:length], np.zeros((2, 2))) for length in (1, 2, 3)]
    >>> ones = tt.count(state=1, name="ones")
    >>> [s.assignment.tolist() for s in tt.solve_batch(models, where=ones == 1)]
    [[1], [0, 1], [0, 0, 1]]
    >>> tt.solve_batch(models, where=ones == 2, errors="return")[0]  # doctest: +ELLIPSIS
    InfeasibleError("no labelling satisfies 'ones == 2'; the nearest attainable tallies are (ones=1)...")
    """
    every = list(models)
    problems = [
        _SolutionOf(*arguments)
        for arguments in zip(
            every,
            _statistics_each(statistics, len(every)),
            one_each(fixed, len(every), "fixed", Mapping),
            one_each(allowed, len(every), "allowed", Mapping),
            one_each(objective, len(every), "objective", Callable),
            one_each(where, len(every), "where", Constraint),
            strict=True,
        )
    ]
    return solve_all(problems, Options(order, memory_limit, tallies, threads, errors))


def solve_all(problems: Sequence[Problem], options: Options) -> list[Any]:
    """Solve problems as a batch."""
    batch = _Batch(problems, options)
    batch.handle.run(batch.threads, batch.choose)
    return batch.gathered(batch.solutions())


# --- one problem --------------------------------------------------------------------------------------------


class _ProfileOf(NamedTuple):
    model: Model | Reduction
    statistics: Statistics
    fixed: Fixed | None
    allowed: Allowed | None
    objective: None = None
    nodes: None = None

    def question(self, inquiry: Inquiry) -> Question[Statistic]:
        return inquiry.question

    def inquire(self) -> Inquiry:
        return inquire(as_reduction(self.model, self.fixed, self.allowed), self.statistics, None)

    def answer(self, found: Profile) -> Profile:
        return found

    def alone(self, options: Options) -> Profile:
        return profile(self.model, self.statistics, fixed=self.fixed, allowed=self.allowed, **options.of_plan)


class _SolutionOf(NamedTuple):
    model: Model | Reduction
    statistics: Statistics
    fixed: Fixed | None
    allowed: Allowed | None
    objective: Objective | None
    where: Where
    nodes: None = None

    def question(self, inquiry: Inquiry) -> Question[Statistic]:
        return inquiry.question

    def inquire(self) -> Inquiry:
        return inquire(as_reduction(self.model, self.fixed, self.allowed), self.statistics, self.where)

    def answer(self, found: Found) -> Solution:
        return found.solution

    def alone(self, options: Options) -> Solution:
        model, statistics, fixed, allowed, objective, where, _ = self
        return solve(
            model, statistics, objective, where=where, fixed=fixed, allowed=allowed, **options.of_plan
        )


# --- all of them --------------------------------------------------------------------------------------------


class _Item:
    """A problem that has been handed over, and the value of what was chosen for it."""

    __slots__ = ("inquiry", "noun", "number", "value")

    def __init__(self, number: int, inquiry: Inquiry, noun: str) -> None:
        self.number = number
        self.inquiry = inquiry
        self.noun = noun
        self.value: float | None = None


class _Batch:
    """Problems handed over to a native batch, and their answers gathered from it."""

    def __init__(self, problems: Sequence[Any], options: Options) -> None:
        if options.errors not in ("raise", "return"):
            raise ModelError(f"errors must be 'raise' or 'return', got {options.errors!r}")
        self.problems = problems
        self.options = options
        self.threads = _threads(options.threads)
        limit = default_memory_limit() if options.memory_limit is None else float(options.memory_limit)
        self.handle = native.Batch(checked_mode(options.tallies), limit)
        self.items: list[_Item] = []
        self.skeletons: dict[Any, native.Skeleton] = {}
        self.answers: list[Any] = [None] * len(problems)
        for number in range(len(problems)):
            self._put(number, partial(self._hand_over, number))

    def _put(self, number: int, answer: Callable[[], Any]) -> None:
        """Put an answer or an error in its place, or raise the error."""
        try:
            self.answers[number] = answer()
        except TallytreeError as error:
            if self.options.errors == "raise":
                error.add_note(f"(problem {number} of the batch)")
                raise
            self.answers[number] = error

    def _hand_over(self, number: int) -> None:
        problem = self.problems[number]
        inquiry = problem.inquire()
        if problem.nodes is None:
            self._add(inquiry, problem.objective is not None)
        else:
            right, background, truth, losses = problem.nodes
            tables = [block.tables for block in inquiry.model.blocks]
            self.handle.add_nodes(self._skeleton(inquiry), right, background, truth, losses, tables)
        plain = problem.objective is None and problem.nodes is None
        self.items.append(_Item(number, inquiry, "score" if plain else "value"))

    def _add(self, inquiry: Inquiry, has_objective: bool) -> None:
        model, question = inquiry.model, inquiry.question
        shown = [block for s in inquiry.shown or () for block in s.blocks]
        self.handle.add(
            self._skeleton(inquiry),
            [block.tables for s in question.carried for block in s.blocks],
            *tally_limits(question.carried, question.window),
            [block.tables for block in model.blocks],
            [block.scopes for block in shown],
            [block.tables for block in shown],
            has_objective or not inquiry.windowed,
        )

    def _skeleton(self, inquiry: Inquiry) -> native.Skeleton:
        carried = inquiry.question.carried
        key = inquiry.model.key, id(carried)  # the inquiries are kept, so no other tuple has the same number
        found = self.skeletons.get(key)
        if found is None:
            found = self.skeletons[key] = skeleton(inquiry.model, carried, self.options.order)
        return found

    def choose(self, place: int, tallies: NDArray[np.int64], scores: NDArray[np.float64]) -> int:
        """Return the row of a root that is to be decoded; -1 where the problem has no answer."""
        item = self.items[place]
        posed = item.inquiry.posed(self._profile(item.inquiry, (_NO_CELLS, tallies, scores)))
        try:
            row, item.value = posed.best_row(self.problems[item.number].objective)
        except TallytreeError:
            return -1
        return row

    def _profile(self, inquiry: Inquiry, root: Root) -> Profile:
        make_plan = partial(plan_of, inquiry.model, inquiry.question, **self.options.of_plan)
        return Profile.without_tables(
            inquiry.model, inquiry.question.carried, make_plan, root, **inquiry.context
        )

    def _plan(self, item: _Item) -> Callable[[], Plan]:
        return partial(_planned, self.problems[item.number], item.inquiry, self.options)

    def profiles(self) -> Iterator[tuple[int, Profile | None]]:
        """Go through the roots that were computed; None for a problem that was refused."""
        rows, cells, tallies, scores = self.handle.roots()
        refused, at, tally_at = set(self.handle.refused), 0, 0
        for place, (item, count) in enumerate(zip(self.items, rows.tolist(), strict=True)):
            width = len(item.inquiry.question.carried)
            some = slice(at, at + count)
            table = tallies[tally_at : tally_at + count * width].reshape(count, width)
            root = cells[some].copy(), table.copy(), scores[some].copy()
            at, tally_at = at + count, tally_at + count * width
            yield item.number, None if place in refused else self._profile(item.inquiry, root)

    def solutions(self) -> Iterator[tuple[int, Found | None]]:
        """Go through the labellings that were decoded; None for a problem that has none."""
        assignments, promises = self.handle.labellings()
        at = 0
        for item, promise in zip(self.items, promises, strict=True):
            if promise is None:
                yield item.number, None
                continue
            inquiry, (score, tally, loss, truth_score, evaluation) = item.inquiry, promise
            end = at + len(inquiry.model)
            assignment, at = assignments[at:end].copy(), end
            found = certified(
                inquiry.model,
                inquiry.question.carried,
                assignment,
                score,
                tally,
                inquiry.shown,
                value=item.value,
                evaluation=evaluation,
                proof=(self._plan(item), score, BEST, inquiry.where, item.noun),
            )
            original = lifted(found, inquiry.reduction, inquiry.shown or inquiry.question.carried)
            yield item.number, Found(original, loss, truth_score)

    def gathered(self, found: Iterator[tuple[int, Any]]) -> list[Any]:
        """Return the answers of all problems, those without one solved on their own: that says why."""
        for number, one in found:
            problem = self.problems[number]
            self._put(
                number, partial(problem.alone, self.options) if one is None else partial(problem.answer, one)
            )
        return self.answers


def _planned(problem: Problem, inquiry: Inquiry, options: Options) -> Plan:
    return plan_of(inquiry.model, problem.question(inquiry), **options.of_plan)


def _threads(threads: int | None) -> int:
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ModelError(f"threads must be a positive integer or None, got {threads!r}")
    return threads


# --- arguments for all problems, or one for each ------------------------------------------------------------


def one_each(given: Any, count: int, name: str, kind: Any) -> Iterable[Any]:
    """Return an argument for each problem: one of a kind is for all of them, a sequence has one for each."""
    if given is None or isinstance(given, kind):
        return repeat(given, count)
    if not isinstance(given, (list, tuple)):
        raise ModelError(f"{name} must be one for all models or a list with one for each, got {given!r}")
    if len(given) != count:
        raise ModelError(
            f"{name} has {len(given)} entries for {count} models; give one for each, or one for all"
        )
    return given


def _statistics_each(given: Any, count: int) -> Iterable[Statistics]:
    """Return the statistics of each model: one list of statistics is for all of them."""
    some = [given] if isinstance(given, (Statistic, Recipe)) else list(given)
    if some and all(isinstance(one, (list, tuple)) for one in some):
        return one_each(some, count, "statistics", Statistic)
    return repeat(some, count)
