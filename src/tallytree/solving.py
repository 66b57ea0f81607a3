"""The main functions: each one checks a query, plans it, runs the plan and returns the answer.

``solve``, ``profile``, ``distribution`` and ``plan`` work on models and forests alike: an engine
(:mod:`tallytree.running.engine`) implements message passing for each kind of input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Unpack, overload

from tallytree.answers.distribution import Distribution
from tallytree.answers.graphs import GRAPHS
from tallytree.answers.nearest import unsatisfiable
from tallytree.answers.objective import Objective, as_objective
from tallytree.answers.profile import Profile
from tallytree.answers.solution import Solution
from tallytree.answers.tally_table import TallyTable, Where
from tallytree.bounding.answering import answered, check_operations
from tallytree.bounding.question import Question
from tallytree.errors import BudgetError, InfeasibleError
from tallytree.model.model import Model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.options import Keywords, Options, read_options
from tallytree.planning.plan import Plan
from tallytree.planning.query import Query
from tallytree.reductions.reduction import Reduction
from tallytree.running.engine import engine_of, register_engine
from tallytree.statistics.statistic import Recipe, Statistic

register_engine(GRAPHS, Model, Reduction)


@overload
def solve(
    model: Model | Reduction,
    statistics: Iterable[Statistic | Recipe] = (),
    objective: Objective | str | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    **options: Unpack[Keywords],
) -> Solution: ...
@overload
def solve(model: Any, *arguments: Any, **keywords: Any) -> Any: ...
def solve(
    model: Any,
    statistics: Iterable[Any] = (),
    objective: Objective | str | None = None,
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    **options: Unpack[Keywords],
) -> Any:
    """Find the labelling, or the tree, that maximises an objective, subject to a constraint.

    Parameters
    ----------
    model : Model, Reduction or Forest
        The factor graph; or a reduction, whose labellings are returned in terms of the original model; or the
        parse forest of a sentence.
    statistics : iterable of Statistic or Recipe
        The statistics passed to the objective after the score, in order.
    objective : callable or str, optional
        ``H(score, *tallies)``; the score by default. A string is a formula in ``score`` and the names of the
        statistics, as in a problem file: ``objective="score - 2*abs(ones - 3)"``.
    where : Constraint or str, optional
        The constraint to satisfy. It may use statistics that are not in ``statistics``. A string can only
        use those in ``statistics``, by name, as in a problem file: ``where="2 <= ones <= 5 or ones == 0"``.
    fixed : mapping of variable to state, optional
        The state that each given variable must take; variables and states by name or number.
    allowed : mapping of variable to list of states, optional
        The states that each given variable may take.
    **options
        ``order``, ``memory_limit``, ``layout``, ``backend`` and ``threads``, as for :func:`profile`. With
        ``precision="single"``, tables take half the memory and about half the time; the solution is then
        optimal up to a proven :attr:`Solution.gap`.

        ``strategy="full"`` computes the best score for every tally. ``"bounds"`` rules out nearly all tallies
        by bounds and computes only the rest. It is exact as well, and much faster on large problems, but
        supports only one to three statistics; other problems are solved in full. ``"auto"``, the default,
        uses bounds if the tables do not fit in memory, and tries them first if the tables would take long.

        ``operation_limit`` is the maximum number of add-max operations, for tables as well as for a search
        by bounds, which makes at least one short pass. There is no limit by default.

    Returns
    -------
    Solution
        Or a :class:`tallytree.parsing.Parse`, for a forest.

    Raises
    ------
    InfeasibleError
        No labelling satisfies the constraint. The message lists the nearest attainable tallies.
    BudgetError
        The tables do not fit in memory or take too many operations. If a search by bounds reached a limit,
        the error has its ``bound``, and ``best``, the best labelling found.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> tt.solve(model, where=tt.count(state=1) == 1).assignment
    array([0, 0, 1])
    >>> tt.solve(model, where=tt.count(state=1) == 1, fixed={2: 0}).assignment
    array([0, 1, 0])
    >>> tt.solve(model, [tt.count(state=1, name="ones")], where="ones == 1").assignment
    array([0, 0, 1])
    >>> tt.solve(model, [tt.count(state=1, name="ones")], "score - 3*ones").value
    1.0
    """
    query = ask(model, statistics, where, fixed, allowed)
    chosen = read_options(options, solve, one=True)
    function = as_objective(objective, query.read)
    return best_of(answered(query, chosen, partial(Question, objective=function)), function)


def ask(
    model: Any,
    statistics: Iterable[Any] = (),
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
) -> Query[Any]:
    """Return a checked query about a model or a forest, bound to it."""
    if not all(given is None or (isinstance(given, Mapping) and not given) for given in (fixed, allowed)):
        return engine_of(model).query(model, statistics, where, fixed=fixed, allowed=allowed)
    return engine_of(model).query(model, statistics, where)


def best_of(table: TallyTable[Any], objective: Objective | None = None) -> Any:
    """Look up and decode the optimum; if nothing satisfies the constraint, report the nearest tallies."""
    try:
        return table.best(objective)
    except InfeasibleError:
        if table.query.constraint is None or table.satisfiable:
            raise
    raise unsatisfiable(table.query, table.plan.options, table.noun)


@overload
def profile(
    model: Model | Reduction,
    statistics: Iterable[Statistic | Recipe] = (),
    *,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    plan: Plan | None = None,
    **options: Unpack[Keywords],
) -> Profile: ...
@overload
def profile(model: Any, *arguments: Any, **keywords: Any) -> Any: ...
def profile(
    model: Any,
    statistics: Iterable[Any] = (),
    *,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    plan: Any = None,
    **options: Unpack[Keywords],
) -> Any:
    """Compute the best score for every attainable tally in one upward pass.

    Parameters
    ----------
    model : Model, Reduction or Forest
        The factor graph; or a reduction, whose labellings are returned in terms of the original model; or the
        parse forest of a sentence.
    statistics : iterable of Statistic or Recipe
        The statistics to tally, of the model or of the reduction.
    fixed, allowed : mapping, optional
        The state that a variable must take, or the states it may take. Gives the profile of
        ``model.restricted(fixed, allowed)``.
    plan : Plan, optional
        A plan made for a model of the same shape and the same statistics.
    **options
        ``order``, ``memory_limit``, ``layout`` and ``precision``, as for :func:`plan`, if no plan is given;
        ``operation_limit``, the maximum number of add-max operations.
        In single precision, ``scores`` are upper bounds, and the :attr:`Solution.gap` of a solution bounds
        how much better any other labelling could be.

        ``backend`` is ``"native"``, the compiled executor, or ``"reference"``, a slow NumPy implementation
        for learning and testing. ``threads`` defaults to one for small problems and to the number of
        processors for large ones; the result is bitwise identical.

    Returns
    -------
    Profile
        Or a :class:`tallytree.parsing.TreeProfile`, for a forest.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> prof = tt.profile(model, [tt.count(state=1)])
    >>> prof.tallies.ravel(), prof.scores
    (array([0, 1, 2, 3]), array([0., 4., 6., 7.]))
    """
    chosen = read_options(options, profile, limited=True)
    query = ask(model, statistics, None, fixed, allowed)
    return engine_of(model).profile(query, _planned(query, plan, chosen), chosen.run)


@overload
def distribution(
    model: Model | Reduction,
    statistics: Iterable[Statistic | Recipe] = (),
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    plan: Plan | None = None,
    **options: Unpack[Keywords],
) -> Distribution: ...
@overload
def distribution(model: Any, *arguments: Any, **keywords: Any) -> Any: ...
def distribution(
    model: Any,
    statistics: Iterable[Any] = (),
    *,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    plan: Any = None,
    **options: Unpack[Keywords],
) -> Any:
    """Compute the exact distribution of the tally under ``p(y) ∝ exp(F(y))``, optionally given a constraint.

    Parameters
    ----------
    model, statistics, fixed, allowed, **options
        As for :func:`profile`.
    where : Constraint or str, optional
        The labellings to consider, as for :func:`solve`: probabilities, samples and marginals are then
        conditional on this constraint. Tallies that it rules out are not computed, so ``where="ones == 5"``
        is faster than asking the full distribution for a tally.
    plan : Plan, optional
        A plan made for a model of the same shape, the same statistics and the same constraint.

    Returns
    -------
    Distribution
        Or a :class:`tallytree.parsing.TreeDistribution`, for a forest.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    >>> d = tt.distribution(model, [tt.count(state=1)])
    >>> d.probabilities, d.counts
    (array([0.25, 0.5 , 0.25]), (1, 2, 1))
    >>> tt.distribution(model, where=tt.count(state=1) >= 1).marginals()[0]
    array([0.33333333, 0.66666667])
    """
    chosen = read_options(options, distribution, single=False, limited=True).with_every_table()
    query = ask(model, statistics, where, fixed, allowed)
    try:
        made = _planned(query, plan, chosen)
    except BudgetError as error:  # without advice on single answers, which have no probabilities
        raise BudgetError(error.cause) if error.cause else error from None
    try:
        return engine_of(model).distribution(query, made, chosen.run)
    except InfeasibleError:
        if query.constraint is None:
            raise
    raise unsatisfiable(query, made.options, "tree" if query.reduction is None else "labelling")


def _planned(query: Query[Any], plan: Any, options: Options) -> Any:
    """Return the given plan if it fits, or make a new one."""
    if plan is None:
        plan = engine_of(query.subject).plan(query, options.plan)
    else:
        plan.check(query.subject, query.carried, query.window)
    check_operations(plan, options.operation_limit)
    return plan


@overload
def plan(
    model: Model | Reduction,
    statistics: Iterable[Statistic | Recipe] = (),
    *,
    where: Where = None,
    **options: Unpack[Keywords],
) -> Plan: ...
@overload
def plan(model: Any, *arguments: Any, **keywords: Any) -> Any: ...
def plan(
    model: Any, statistics: Iterable[Any] = (), *, where: Where = None, **options: Unpack[Keywords]
) -> Any:
    """Plan a profile, or what :func:`solve` would run, without running it.

    Parameters
    ----------
    model : Model, Reduction or Forest
        The model to plan for; only its scopes and cardinalities are used.
    statistics : iterable of Statistic or Recipe
        The statistics to carry in the messages.
    where : Constraint or str, optional
        Plan what :func:`solve` would run for this constraint: its statistics are combined and capped, and
        tallies that it rules out are dropped. Such a plan is for inspection only; it cannot be passed to
        :func:`profile`.
    **options
        ``order`` is an elimination order, a clique tree, or the name of a heuristic: ``min-fill``,
        ``min-degree``, ``min-weight``, ``natural``, ``sweep``, ``min-tally`` or ``min-open``. By default
        several are tried and the cheapest is kept.

        ``memory_limit`` is in bytes; by default half of the memory of the machine (or of its control group).

        ``layout`` is how tallies are stored: ``"rows"``, ``"cells"``, or ``"auto"`` (default), whichever is
        smaller.

        ``precision="single"`` halves the memory of the tables and takes about half the time; scores become
        upper bounds, and solutions have a proven :attr:`Solution.gap`.

    Raises
    ------
    BudgetError
        The plan exceeds the memory limit. Nothing has been allocated.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.zeros((40, 3)), np.zeros((3, 3)))
    >>> ones = tt.count(model, state=1)
    >>> print(tt.plan(model, [ones]))  # doctest: +ELLIPSIS
    plan for 40 variables and 1 statistic (count_1)
      width τ = 1, degree ν = 3, tallies R = 41 (rows)
      ... steps, ... add-max operations
    ...
    """
    query = ask(model, statistics, where)
    return engine_of(model).plan(query, read_options(options, plan).plan)
