"""Problems passed to a native batch, and the results passed back to them.

A problem says what to compute (:meth:`Problem.hand_over`) and makes its answer from the labelling
found (:meth:`Problem.answer`). Everything in between is native; only objectives are called back.
Similar problems are passed together, as a :class:`Bulk`: the Python work per problem
is what keeps threads waiting. A problem without an answer is solved again on its own (:meth:`Problem.alone`),
which raises an error that says why, so that error messages are in one place.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import BEST, Claim
from tallytree.answers.objective import Objective
from tallytree.answers.profile import Profile
from tallytree.answers.solution import Certifier, Decoded, Solution
from tallytree.answers.tally_table import Where
from tallytree.bulk.by_bounds import STRATEGIES, allowed_tallies, evidence
from tallytree.bulk.held import Held
from tallytree.bulk.labellings import Labellings
from tallytree.errors import ModelError, PerformanceWarning, TallytreeError
from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.planning.budget import Budget, thread_count
from tallytree.planning.carried import tally_limits
from tallytree.planning.options import PlanOptions, Strategy, read_options
from tallytree.planning.orders import skeleton
from tallytree.planning.plan import MODES
from tallytree.planning.planner import plan_graph
from tallytree.planning.query import Query, graph_query
from tallytree.planning.table_programs import table_programs
from tallytree.reductions.reduction import Reduction
from tallytree.running.engine import Root
from tallytree.statistics.statistic import Recipe, Statistic

Errors = Literal["raise", "return"]


def check_errors(errors: Errors) -> None:
    """Raise an error if the argument ``errors=`` of a public function is invalid."""
    if errors not in ("raise", "return"):
        raise ModelError(f"errors must be 'raise' or 'return', got {errors!r}")


_NO_CELLS = np.zeros(0, dtype=np.int64)


class BatchOptions(NamedTuple):
    """What all problems of a batch have in common."""

    plan: PlanOptions
    threads: int | None
    errors: Errors
    strategy: Strategy = "auto"

    @classmethod
    def read(
        cls, keywords: Mapping[str, Any], errors: Errors, function: Callable[..., Any], one: bool = False
    ) -> BatchOptions:
        """Read the keyword arguments of a public function."""
        check_errors(errors)
        if "operation_limit" in keywords:
            name = function.__name__
            raise TypeError(f"{name}() has no operation_limit=; use memory_limit= to limit a batch")
        options = read_options(keywords, function, single=False, one=one)
        return cls(options.plan, options.run.threads, errors, options.strategy)


class Problem(Protocol):
    """One problem of a batch."""

    @property
    def model(self) -> Any:
        """The model, as given."""

    @property
    def objective(self) -> Objective | None:
        """The objective to maximise; requested after the problem was passed on."""

    @property
    def count(self) -> int:
        """The number of best tallies to decode."""

    @property
    def apart(self) -> bool:
        """Whether it must be solved on its own."""

    def hand_over(self, batch: Batch) -> Query[Statistic]:
        """Add the problem to a batch, and return what its objective is evaluated on."""

    def answer(self, found: Any, options: BatchOptions) -> Any:
        """Make the answer from a profile, or from labellings, of the model that was passed on."""

    def alone(self, options: BatchOptions) -> Any:
        """Solve the problem on its own."""


class Bulk(Protocol):
    """Similar problems of a batch."""

    @property
    def models(self) -> Sequence[Model]:
        """Their models."""

    @property
    def numbers(self) -> Sequence[int]:
        """The indices of these problems in the batch."""

    def hand_over(self, batch: Batch) -> None:
        """Add all of them to a batch, in order."""

    def answers(self, found: Labellings, options: BatchOptions) -> Mapping[int, Any]:
        """Make the answers of those that have labellings, numbered from 0 like the items."""

    def problem(self, index: int) -> Problem:
        """Return one of them by itself."""


class Batch:
    """Problems passed to a native batch, and their answers.

    Items of the native batch have positions: first those of the bulks, then those of the other problems.

    `problems`: those passed one by one, with their indices in the batch, in order. `options`: what they
    have in common. `bulks`: the others.
    """

    def __init__(
        self, problems: Mapping[int, Problem], options: BatchOptions, bulks: Sequence[Bulk] = ()
    ) -> None:
        self.options, self.threads = options, thread_count(options.threads)
        self.handle = native.Batch(MODES[options.plan.layout], options.plan.limit)
        self._skeletons: dict[Any, tuple[native.Skeleton, Any]] = {}
        self._queries: dict[Any, tuple[Query[Statistic], Any, Any]] = {}
        self._sets: dict[Any, tuple[native.TallySet | None, Any, Any]] = {}
        self._apart = {number: problem for number, problem in problems.items() if problem.apart}
        self._bulks, self.held = bulks, Held(options.plan.limit, problems.values(), bulks)
        self._first = sum(len(bulk.numbers) for bulk in bulks)  # the position of the first other problem
        self._problems: list[tuple[int, Problem, Query[Statistic]]] = []
        self._values: dict[int, list[float]] = {}  # of the chosen labellings
        self._answers: dict[int, Any] = {}
        for bulk in bulks:
            bulk.hand_over(self)
        for number, problem in problems.items():
            if number in self._apart:
                continue
            try:
                self._problems.append((number, problem, problem.hand_over(self)))
            except TallytreeError as error:
                self._fail(number, error)
            self.held.check()

    def solve(self) -> list[Any]:
        """Find the best labellings of each problem."""
        self._reserve()
        self.handle.run(self.threads, self._choose)
        found, first, missing = Labellings(*self.handle.labellings()), 0, dict(self._apart)
        for bulk in self._bulks:
            last = first + len(bulk.numbers)
            answers = bulk.answers(found.part(first, last), self.options)
            for index, number in enumerate(bulk.numbers):
                self._answers[number] = answers.get(index)
                if index not in answers:
                    missing[number] = bulk.problem(index)
            first = last
        count = len(self._problems)
        others = found.part(first, first + count).each(self._values)
        return self._gathered(map(others.get, range(count)), missing)

    def profile(self) -> list[Any]:
        """Compute the profile of each problem."""
        budget = self._reserve()
        try:
            self.handle.profile(self.threads)
        except native.BudgetExceededError as error:
            what = f"the profiles of a batch of {len(self._problems):,} problems"
            raise budget.exceeded(what, error.bytes) from None
        return self._gathered(self._profiles(), {})

    def _reserve(self) -> Budget:
        """Subtract the memory of problems and answers from the limit; the rest is for the runs."""
        self.handle.hold(self.held.budget.held)
        self._leave_the_rest()
        return self.held.budget

    def _leave_the_rest(self) -> None:
        """Leave what is not held yet to the problems that are solved from now on."""
        plan = self.options.plan
        if plan.memory_limit is not None:
            self.options = self.options._replace(plan=plan._replace(memory_limit=self.held.budget.room))

    # --- in ------------------------------------------------------------------------------------------------

    def ask(
        self, reduction: Reduction, statistics: Iterable[Statistic | Recipe], where: Where
    ) -> Query[Statistic]:
        """Make a query; it is bound once for all models with the same variables and states."""
        for statistic in statistics:
            if isinstance(statistic, Statistic):
                self.held.own(statistic.blocks)
        if not reduction.trivial:
            return graph_query(reduction, statistics, where)
        model = reduction.model
        key = model.key[0], model.shape, model.states, model.variables, id(statistics), id(where)
        found = self._queries.get(key)
        if found is None:
            query = graph_query(reduction, statistics, where)
            if query.reduction is not reduction:  # the constraint leads to another model
                return query
            found = self._queries[key] = query, statistics, where  # kept alive, so that ids stay unique
        return found[0].about(reduction)

    def add(self, query: Query[Statistic], objective: Objective | None) -> None:
        """Add a problem; its statistics have separate tables."""
        model = query.subject
        self.held.made(query)
        recounted = [block for s in query.recounted for block in s.blocks]
        listed = None if objective is not None or query.windowed else self._allowed(query)
        self.handle.add(
            self._table_program(query),
            [block.tables for s in query.carried for block in s.blocks],
            *tally_limits(query.carried, query.window),
            [block.tables for block in model.blocks],
            [block.scopes for block in recounted],
            [block.tables for block in recounted],
            objective is not None or not (query.windowed or listed),
            STRATEGIES[self.options.strategy],
            listed,
        )

    def _allowed(self, query: Query[Statistic]) -> native.TallySet | None:
        """Return the tallies that a constraint allows, cached by the identity of its statistics."""
        key = id(query.carried), id(query.remaining)
        if key not in self._sets:  # kept with what it is made from, so that ids stay unique
            self._sets[key] = allowed_tallies(query), query.carried, query.remaining
        return self._sets[key][0]

    def skeleton(self, model: Model, carried: tuple[Statistic, ...]) -> native.Skeleton:
        """Return the skeleton of a model and statistics, whatever their entries."""
        return self._known(
            (model.key, id(carried)), carried, lambda: skeleton(model, carried, self.options.plan.order)
        )

    def _table_program(self, query: Query[Statistic]) -> native.Skeleton:
        """Return the program of a query's table, as a plan has it."""
        model, carried, window, order = query.subject, query.carried, query.window, self.options.plan.order
        key = model.key, id(carried), tuple(window.items())
        return self._known(key, carried, lambda: table_programs(model, carried, window, order)[0])

    def _known(self, key: Any, carried: Any, make: Callable[[], native.Skeleton]) -> native.Skeleton:
        """Return what is made once for a key with the identity of statistics, which are kept with it."""
        found = self._skeletons.get(key)
        if found is None:
            found = self._skeletons[key] = make(), carried
        return found[0]

    # --- meanwhile -----------------------------------------------------------------------------------------

    def _choose(self, place: int, tallies: NDArray[np.int64], scores: NDArray[np.float64]) -> list[int]:
        """Return the rows of a root to decode; none if the problem has no answer."""
        place -= self._first
        _, problem, query = self._problems[place]
        table = self._profile(query, (_NO_CELLS, tallies, scores))
        try:
            chosen = table.best_rows(problem.count, problem.objective)
        except TallytreeError:
            return []
        self._values[place] = [value for _, value in chosen]
        return [row for row, _ in chosen]

    def _profile(self, query: Query[Statistic], root: Root) -> Profile:
        return Profile(query, partial(plan_graph, query, self.options.plan), root=root)

    # --- out -----------------------------------------------------------------------------------------------

    def _profiles(self) -> Iterator[Profile | None]:
        """Iterate over the computed roots; None for a problem that was rejected."""
        refused = set(self.handle.refused["item"].tolist())
        for place, (_, _, query) in enumerate(self._problems):
            yield None if place in refused else self._profile(query, self.handle.take_root(place))

    def _gathered(self, found: Iterator[Any], missing: dict[int, Problem]) -> list[Any]:
        """Return the answers of all problems; those without one are solved on their own, to say why."""
        waiting: dict[int, tuple[Problem, Any]] = {n: (problem, None) for n, problem in missing.items()}
        for (number, problem, _), one in zip(self._problems, found, strict=True):
            waiting[number] = problem, one
        answered_alone = set()
        for number in sorted(waiting):
            problem, one = waiting[number]
            try:
                if one is None:
                    self._answers[number] = problem.alone(self.options)
                    self._hold_alone(number)
                    answered_alone.add(number)
                else:
                    self._answers[number] = problem.answer(one, self.options)
            except TallytreeError as error:
                self._fail(number, error)
        self._warn_about_refused(answered_alone)
        return [self._answers[number] for number in range(len(self._answers))]

    def _hold_alone(self, number: int) -> None:
        """Count the answer of a problem that was solved on its own, besides what the batch keeps of it."""
        if number not in self._apart:
            self.held.searched(self._answers[number])
            self._leave_the_rest()

    def _warn_about_refused(self, answered_alone: set[int]) -> None:
        """Warn about problems that exceeded the limit in the batch, but not on their own."""
        numbers = [number for bulk in self._bulks for number in bulk.numbers]
        numbers += [number for number, _, _ in self._problems]
        refused = self.handle.refused["item"].tolist()
        slow = answered_alone.intersection(numbers[place] for place in refused)
        if slow:
            warnings.warn(
                f"{len(slow)} of the {len(numbers)} problems of the batch, the first of them problem "
                f"{min(slow)}, exceeded memory_limit together and were solved one by one, which is slower; "
                "raise memory_limit=",
                PerformanceWarning,
                stacklevel=4,
            )

    def _fail(self, number: int, error: TallytreeError) -> None:
        """Store an error in place of an answer, or raise it."""
        if self.options.errors == "raise":
            error.add_note(f"(problem {number} of the batch)")
            raise error
        self._answers[number] = error


def solution_of(
    query: Query[Statistic], found: Decoded, noun: str, options: BatchOptions, claim: str = BEST
) -> Solution:
    """Certify a labelling, and translate it to the original model."""
    if found.bounded:
        shown: Callable[[], Any] = partial(evidence, query, options.plan, found.score)
    else:
        shown = partial(plan_graph, query, options.plan)
    certify = Certifier(query, shown)
    return certify(found, Claim(claim, query.where, noun))
