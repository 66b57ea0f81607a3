"""A problem: a model, its statistics, an objective and a constraint, which can be stored in a file.

The objective ``H(score, tallies)`` and the constraint are formulas in ``score``, the names of the
statistics, and named parameters, whose values can be changed later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import Any, Literal, final

from tallytree.answers.distribution import Distribution
from tallytree.answers.objective import Objective, formula_objective, is_plain_score
from tallytree.answers.profile import Profile
from tallytree.answers.solution import Solution
from tallytree.answers.tallies import tally_type
from tallytree.answers.tally_table import Where
from tallytree.bounding import Question, answered, check_operations, price_of
from tallytree.errors import BudgetError, ModelError
from tallytree.io.problem_parts import Parameter, as_parameter, check_names, check_relaxable
from tallytree.kbest import diverse_k_best, k_best
from tallytree.model.model import Model, checked_model
from tallytree.planning.options import Options, PlanOptions, Strategy, read_options
from tallytree.planning.orders import Order
from tallytree.planning.plan import Plan
from tallytree.planning.planner import plan_graph
from tallytree.planning.precision import Precision
from tallytree.planning.query import Query, bind
from tallytree.planning.search_price import SearchPrice
from tallytree.relaxation import Relaxation, relax
from tallytree.solving import ask, best_of, distribution, profile
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.formula_constraints import as_constraint_of, as_text
from tallytree.statistics.formulas import Formula, checked_formula
from tallytree.statistics.statistic import Recipe, Statistic

MOST_OPERATIONS = 1e12
"""The default operation limit: from some minutes to a quarter of an hour."""


@final
class ProblemFile:
    """The content of a problem file: a model, its statistics, an objective and a constraint.

    Parameters
    ----------
    model : Model
        The factor graph.
    statistics : iterable of Statistic or Recipe
        The statistics to tally. Each needs a distinct name that is valid in formulas.
    objective : str or Formula, optional
        The formula to maximise, in ``score``, statistics and parameters; the score by default, and
        ``"score"`` is the same as none. It must be non-decreasing in the score.
    where : str, Formula or Constraint, optional
        The constraint to satisfy.
    parameters : mapping of str to number, Parameter or mapping, optional
        The values of the other names, with a range if given as ``{"value": …, "low": …, "high": …}``.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> chain = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> problem = tt.io.ProblemFile(
    ...     chain,
    ...     [tt.count(state=1, name="ones")],
    ...     objective="score - weight * abs(ones - 1)",
    ...     where="ones >= 1",
    ...     parameters={"weight": 2.5},
    ... )
    >>> problem.solve()
    Solution(value=4, score=4, tally=(ones=1))
    >>> problem.with_parameters(weight=0).solve()
    Solution(value=7, score=7, tally=(ones=3))
    """

    model: Model
    statistics: tuple[Statistic, ...]
    objective: Formula | None
    where: Formula | None
    parameters: Mapping[str, Parameter]

    def __init__(
        self,
        model: Model,
        statistics: Iterable[Statistic | Recipe] = (),
        objective: str | Formula | None = None,
        *,
        where: str | Formula | Constraint | None = None,
        parameters: Mapping[str, float | Parameter | Mapping[str, float]] | None = None,
    ) -> None:
        self.model = checked_model(model)
        self.statistics = bind(model, statistics)
        self.parameters = {name: as_parameter(name, given) for name, given in (parameters or {}).items()}
        check_names(self.names, self.parameters)
        formula = None if objective is None else self._formula(objective, "objective")
        self.objective = None if formula is None or is_plain_score(formula) else formula
        self.where = None if where is None else self._formula(self._as_text(where), "where")

    # --- the parts ----------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the statistics."""
        return tuple(s.name for s in self.statistics)

    @property
    def values(self) -> dict[str, float]:
        """The values of the parameters."""
        return {name: parameter.value for name, parameter in self.parameters.items()}

    @cached_property
    def constraint(self) -> Constraint | None:
        """The constraint on the statistics."""
        if self.where is None:
            return None
        try:
            return as_constraint_of(self.where, self.statistics, self.values)
        except ModelError as error:
            raise ModelError(f"where: {error}") from None

    @cached_property
    def read(self) -> tuple[Statistic, ...]:
        """The statistics that the objective reads."""
        names = () if self.objective is None else self.objective.names
        return tuple(s for s in self.statistics if s.name in names)

    def with_parameters(self, **values: float) -> ProblemFile:
        """Return the same problem with other values of some parameters."""
        unknown = [name for name in values if name not in self.parameters]
        if unknown:
            known = ", ".join(self.parameters) or "none"
            raise ModelError(f"unknown parameter {unknown[0]!r}; the parameters are {known}")
        changed = {
            name: parameter._replace(value=values.get(name, parameter.value))
            for name, parameter in self.parameters.items()
        }
        return ProblemFile(self.model, self.statistics, self.objective, where=self.where, parameters=changed)

    def function(self, statistics: Iterable[Statistic]) -> Objective | None:
        """Return the objective as a function of the score and the tallies of these statistics, in order."""
        if self.objective is None:
            return None
        return formula_objective(self.objective, [s.name for s in statistics], self.values)

    # --- the questions ------------------------------------------------------------------------------------

    def plan(
        self,
        *,
        memory_limit: float | None = None,
        operation_limit: float | None = MOST_OPERATIONS,
        precision: Precision = "double",
        order: Order | None = None,
    ) -> Plan:
        """Plan what :meth:`solve` would run.

        Parameters
        ----------
        memory_limit : float, optional
            In bytes; by default half of the machine's memory.
        operation_limit : float, optional
            The maximum number of add-max operations, 10**12 by default; None for no limit.
        precision : {"double", "single"}
            As for :func:`tallytree.plan`.
        order : str or sequence of int, optional
            As for :func:`tallytree.plan`.

        Raises
        ------
        BudgetError
            A limit is exceeded. Nothing has been run.
        """
        given = {"memory_limit": memory_limit, "precision": precision, "order": order}
        return self._planned(ask(self.model, self.read, self.constraint), given, operation_limit)

    def search_price(self, *, order: Order | None = None) -> SearchPrice | None:
        """Return the expected cost of :meth:`solve` by bounds; None if bounds are not supported."""
        return price_of(ask(self.model, self.read, self.constraint), Options(PlanOptions(order=order)))

    def solve(
        self,
        *,
        memory_limit: float | None = None,
        operation_limit: float | None = MOST_OPERATIONS,
        precision: Precision = "double",
        order: Order | None = None,
        strategy: Strategy = "auto",
    ) -> Solution:
        """Find the best labelling; its tally has all statistics of the problem.

        Parameters
        ----------
        memory_limit, operation_limit, precision, order
            As for :meth:`plan`.
        strategy : {"auto", "full", "bounds"}
            As for :func:`tallytree.solve`. A problem whose tables exceed the limits is solved by bounds,
            unless it is ``"full"``.

        Raises
        ------
        InfeasibleError
            No labelling satisfies the constraint.
        BudgetError
            A limit is exceeded.
        """
        given = {"memory_limit": memory_limit, "precision": precision, "order": order}
        limits = {"strategy": strategy, "operation_limit": operation_limit}
        options = read_options(given | limits, self.solve, one=True)
        objective = self.function(self.read)
        question = partial(Question, objective=objective, row_operations=self._row_operations)
        query = ask(self.model, self.read, self.constraint)
        return self._tallied(best_of(answered(query, options, question), objective))

    def profile(
        self,
        *,
        memory_limit: float | None = None,
        operation_limit: float | None = MOST_OPERATIONS,
        order: Order | None = None,
    ) -> Profile:
        """Compute the best score for every tally of all statistics, regardless of the constraint.

        Parameters
        ----------
        memory_limit, operation_limit, order
            As for :meth:`plan`.
        """
        given = {"memory_limit": memory_limit, "order": order}
        made = self._planned(ask(self.model, self.statistics), given, operation_limit)
        return profile(self.model, self.statistics, plan=made)

    def distribution(
        self,
        *,
        where: Where = None,
        memory_limit: float | None = None,
        operation_limit: float | None = MOST_OPERATIONS,
        order: Order | None = None,
    ) -> Distribution:
        """Compute the probability of every tally of all statistics under ``p(y) ∝ exp(score)``.

        The objective is ignored, and so is the constraint of the problem unless it is given again.

        Parameters
        ----------
        where : Constraint or str, optional
            Probabilities are conditional on this, as for :func:`tallytree.distribution`; for example
            ``problem.constraint``.
        memory_limit, operation_limit, order
            As for :meth:`plan`.
        """
        limits = {"memory_limit": memory_limit, "operation_limit": operation_limit, "order": order}
        made = self.distribution_plan(where=where, **limits)
        return distribution(self.model, self.statistics, where=where, plan=made)

    def distribution_plan(self, *, where: Where = None, **limits: Any) -> Plan:
        """Plan what :meth:`distribution` would run."""
        options = PlanOptions(**limits, every_table=True)
        made = plan_graph(ask(self.model, self.statistics, where), options)
        check_operations(made, options.operation_limit)
        return made

    def k_best(
        self,
        k: int,
        *,
        distance: int | None = None,
        memory_limit: float | None = None,
        operation_limit: float | None = MOST_OPERATIONS,
        order: Order | None = None,
    ) -> list[Solution]:
        """Return the k best labellings in order; fewer if there are fewer.

        Parameters
        ----------
        k : int
            The number of labellings.
        distance : int, optional
            The minimum number of variables in which each differs from all earlier ones: a diverse list. It is
            ordered by score, so the problem must not have an objective.
        memory_limit, operation_limit, order
            As for :meth:`plan`.
        """
        limits = {"memory_limit": memory_limit, "order": order, "operation_limit": operation_limit}
        asked: dict[str, Any] = {"where": self.constraint, **limits}
        if distance is None:
            solutions = k_best(self.model, k, self.read, self.function(self.read), **asked)
        elif self.objective is None:
            try:
                solutions = diverse_k_best(self.model, k, distance, self.read, **asked)
            except BudgetError as error:
                error.found = [self._tallied(solution) for solution in error.found]
                raise
        else:
            raise ModelError(
                "a diverse list is ordered by score, but this problem has an objective; remove the distance, "
                "or give the objective 'score'"
            )
        return [self._tallied(solution) for solution in solutions]

    def relax(
        self, *, iterations: int = 200, memory_limit: float | None = None, order: Order | None = None
    ) -> Relaxation:
        """Bound the best score under the constraint, without carrying tallies.

        Parameters
        ----------
        iterations : int
            The maximum number of MAP problems to solve.
        memory_limit, order
            As for :meth:`plan`.
        """
        check_relaxable(self.objective, self.where)
        assert self.constraint is not None
        limits: dict[str, Any] = {"memory_limit": memory_limit, "order": order}
        return relax(self.model, self.statistics, where=self.constraint, iterations=iterations, **limits)

    def _as_text(self, where: str | Formula | Constraint) -> str | Formula:
        if isinstance(where, Constraint):
            return as_text(where.on(self.model), {s: s.name for s in self.statistics})
        return where

    def _formula(self, given: str | Formula, what: Literal["objective", "where"]) -> Formula:
        return checked_formula(given, what, {*self.names, *self.parameters})

    @property
    def _row_operations(self) -> int:
        """The cost of the objective for one tally."""
        return 0 if self.objective is None else len(self.objective.code)

    def _planned(self, query: Query[Statistic], given: dict[str, Any], limit: float | None) -> Plan:
        """Plan a query within an operation limit, which includes the objective."""
        made = plan_graph(query, PlanOptions(**given, operation_limit=limit))
        check_operations(made, limit, self._row_operations)
        return made

    def _tallied(self, solution: Solution) -> Solution:
        """Add the statistics that the solver did not need."""
        tally = tally_type(self.names)(*(s.tally(solution.assignment) for s in self.statistics))
        return solution.retold(self.model, solution.assignment, solution.value, solution.score, tally)

    def __repr__(self) -> str:
        parts = [repr(self.model), f"statistics=({', '.join(self.names)})"]
        formulas = {"objective": self.objective, "where": self.where}
        parts += [f"{name}={formula.text!r}" for name, formula in formulas.items() if formula is not None]
        return f"ProblemFile({', '.join(parts)})"
