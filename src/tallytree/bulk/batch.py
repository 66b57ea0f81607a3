"""Many problems at once: planned, run, decoded and evaluated natively, spread over threads.

Python binds the statistics of each problem and passes it on. The rest is native and runs without the GIL:
layout, messages and, for :func:`solve_batch`, decoding and evaluating the labelling; only objectives
are called back. Problems of the same shape share a skeleton, threads reuse memory from one problem to the
next, and the most expensive problem starts first. Each problem has the labelling that it would have on its
own, by a full table, whatever the number of threads; with a constraint, a search by bounds may find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, Unpack

from tallytree.answers.objective import Objective, as_objective
from tallytree.answers.tally_table import Where
from tallytree.bounding.answering import answered
from tallytree.bulk.jobs import Batch, BatchOptions, Errors, solution_of
from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.options import Keywords, Options
from tallytree.planning.query import Query
from tallytree.reductions.reduction import Reduction, as_reduction
from tallytree.solving import ask, best_of
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import counted

Statistics = Iterable[Statistic | Recipe]


def one_each(given: Any, count: int, name: str, kind: Any, noun: str = "model") -> Iterable[Any]:
    """Return an argument for each problem: a single value is for all of them, a sequence has one for each.

    `noun`: what a problem is called in errors.
    """
    if given is None or isinstance(given, kind):
        return repeat(given, count)
    if not isinstance(given, (list, tuple)):
        raise ModelError(f"{name} must be one for all {noun}s or a list with one per {noun}, got {given!r}")
    if len(given) != count:
        raise ModelError(
            f"{name} has {counted(len(given), 'entry')} for {counted(count, noun)}; give one per {noun}, or "
            "one for all"
        )
    return given


def statistics_each(given: Any, count: int) -> Iterable[Statistics]:
    """Return the statistics of each model: a single list of statistics is for all of them."""
    some = [given] if isinstance(given, (Statistic, Recipe)) else list(given)
    if some and all(isinstance(one, (list, tuple)) for one in some):
        return one_each(some, count, "statistics", Statistic)
    return repeat(some, count)


def profile_batch(
    models: Iterable[Model | Reduction],
    statistics: Statistics | Sequence[Statistics] = (),
    *,
    fixed: Fixed | Sequence[Fixed | None] | None = None,
    allowed: Allowed | Sequence[Allowed | None] | None = None,
    errors: Errors = "raise",
    **options: Unpack[Keywords],
) -> list[Any]:
    """Compute the profiles of many models on several threads.

    Parameters
    ----------
    models : iterable of Model or Reduction
        The factor graphs, of any shape; those of the same shape share a skeleton.
    statistics : iterable of Statistic or Recipe, or of one list of them per model
        The statistics to tally.
    fixed, allowed : mapping or sequence of mappings, optional
        As for :func:`profile`, for all models or one per model.
    errors : {"raise", "return"}
        Raise the first error, or return errors in place of the answers. Invalid arguments are always
        raised, before any problem is solved.
    **options
        ``order``, ``memory_limit`` and ``layout``, as for :func:`plan`. The limit is for the whole batch,
        including about 4 kB for each problem and its answer; problems run in parallel only as far as they
        fit together. ``threads`` defaults to the number of processors; the answers do not depend on
        it.

    Returns
    -------
    list of Profile
        Each as returned by :func:`profile`, but without its tables: the first labelling requested from it
        passes the messages again. :func:`solve_batch` decodes while the tables are in memory.

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
    problems = {
        number: _ProfileOf(*arguments)
        for number, *arguments in zip(
            range(len(every)),
            every,
            statistics_each(statistics, len(every)),
            one_each(fixed, len(every), "fixed", Mapping),
            one_each(allowed, len(every), "allowed", Mapping),
            strict=True,
        )
    }
    return Batch(problems, BatchOptions.read(options, errors, profile_batch)).profile()


def solve_batch(
    models: Iterable[Model | Reduction],
    statistics: Statistics | Sequence[Statistics] = (),
    objective: Objective | str | Sequence[Objective | str | None] | None = None,
    *,
    where: Where | Sequence[Where] = None,
    fixed: Fixed | Sequence[Fixed | None] | None = None,
    allowed: Allowed | Sequence[Allowed | None] | None = None,
    errors: Errors = "raise",
    **options: Unpack[Keywords],
) -> list[Any]:
    """Solve many models on several threads.

    Parameters
    ----------
    models, statistics, fixed, allowed, errors
        As for :func:`profile_batch`.
    objective : callable or str, or a sequence with one per model, optional
        ``H(score, *tallies)``, or a formula, as for :func:`solve`; the score by default. A function is
        called from several threads, one at a time.
    where : Constraint, or a sequence with one per model, optional
        As for :func:`solve`.
    **options
        As for :func:`profile_batch`; and ``strategy``: "full" computes full tables, "bounds" searches without
        them, and "auto", the default, chooses what is likely to be faster. Objectives always need full
        tables.

    Returns
    -------
    list of Solution
        Each with the labelling that :func:`solve` returns with ``strategy="full"``, in the order of the
        models; its value may differ by rounding. With "bounds", a different labelling of the same value may
        be found. With ``errors="return"``, a :class:`TallytreeError` in place of each answer that failed.

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
    problems = {
        number: _SolutionOf(*arguments)
        for number, *arguments in zip(
            range(len(every)),
            every,
            statistics_each(statistics, len(every)),
            one_each(fixed, len(every), "fixed", Mapping),
            one_each(allowed, len(every), "allowed", Mapping),
            one_each(objective, len(every), "objective", (Callable, str)),
            one_each(where, len(every), "where", (Constraint, str)),
            strict=True,
        )
    }
    return Batch(problems, BatchOptions.read(options, errors, solve_batch, one=True)).solve()


# --- one problem --------------------------------------------------------------------------------------------


class _ProfileOf:
    """The arguments of :func:`profile`."""

    objective: Any = None
    where: Where = None
    count = 1
    apart = False

    def __init__(
        self,
        model: Model | Reduction,
        statistics: Statistics,
        fixed: Fixed | None,
        allowed: Allowed | None,
    ) -> None:
        self.model, self.statistics, self.fixed, self.allowed = model, statistics, fixed, allowed

    def hand_over(self, batch: Batch) -> Query[Statistic]:
        reduction = as_reduction(self.model, self.fixed, self.allowed)
        self._query = batch.ask(reduction, self.statistics, self.where)
        self.objective = as_objective(self.objective, self._query.read)
        batch.add(self._query, self.objective)
        return self._query

    def answer(self, found: Any, options: BatchOptions) -> Any:
        return found

    def alone(self, options: BatchOptions) -> Any:
        query = ask(self.model, self.statistics, self.where, self.fixed, self.allowed)
        return answered(query, Options(options.plan))


class _SolutionOf(_ProfileOf):
    """The arguments of :func:`solve`: those of :func:`profile`, an objective and a constraint."""

    def __init__(self, *arguments: Any) -> None:
        *others, self.objective, self.where = arguments
        super().__init__(*others)

    def answer(self, found: Any, options: BatchOptions) -> Any:
        noun = "score" if self.objective is None else "value"
        return solution_of(self._query, found[0], noun, options)

    def alone(self, options: BatchOptions) -> Any:
        return best_of(super().alone(options), self.objective)
