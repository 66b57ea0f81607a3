"""A problem: a model, statistics of it, and a question, all of which fit into a file.

The objective ``H(score, tallies)`` and the constraint are formulas in ``score``, in the names of the
statistics, and in named parameters, which can be given other values later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.objective import Objective
from tallytree.answers.profile import Profile
from tallytree.answers.solution import Solution
from tallytree.answers.tallies import tally_type
from tallytree.errors import BudgetError, ModelError
from tallytree.io.constraints import as_constraint_of, as_text
from tallytree.io.formulas import Formula, is_name
from tallytree.kbest import k_best
from tallytree.model.model import Model, checked_model
from tallytree.planning.plan import Plan
from tallytree.planning.precision import Precision
from tallytree.planning.query import bind
from tallytree.solving import plan, profile, solve
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Recipe, Statistic

MOST_OPERATIONS = 1e12
"""What a problem may cost unless more is allowed: some minutes, or a quarter of an hour."""


class Parameter(NamedTuple):
    """A named number of the formulas, and the range in which it makes sense, where that is known."""

    value: float
    low: float | None = None
    high: float | None = None


@final
class ProblemFile:
    """What a problem file holds: a model, its statistics, an objective and a constraint.

    Parameters
    ----------
    model : Model
        The factor graph.
    statistics : iterable of Statistic or Recipe
        What is tallied. Each has a name of its own that can stand in a formula.
    objective : str or Formula, optional
        What to maximise, a formula in ``score``, statistics and parameters; by default the score. It must not
        decrease in the score.
    where : str, Formula or Constraint, optional
        What must hold.
    parameters : mapping of str to number or Parameter, optional
        The values of the other names in the formulas.

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
        parameters: Mapping[str, float | Parameter] | None = None,
    ) -> None:
        self.model = checked_model(model)
        self.statistics = bind(model, statistics)
        self.parameters = {name: _parameter(name, given) for name, given in (parameters or {}).items()}
        self._check_names()
        self.objective = None if objective is None else self._formula(objective, "objective")
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
        """What must hold, as a constraint on the statistics."""
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
            raise ModelError(f"there is no parameter {unknown[0]!r}; the parameters are {known}")
        changed = {
            name: parameter._replace(value=values.get(name, parameter.value))
            for name, parameter in self.parameters.items()
        }
        return ProblemFile(self.model, self.statistics, self.objective, where=self.where, parameters=changed)

    def function(self, statistics: Iterable[Statistic]) -> Objective | None:
        """Return the objective as a function of the score and the tallies of these statistics, in order."""
        formula, names, values = self.objective, [s.name for s in statistics], self.values
        if formula is None:
            return None

        def objective(score: NDArray[np.float64], *tallies: NDArray[np.int64]) -> NDArray[Any]:
            return formula({**values, "score": score, **dict(zip(names, tallies, strict=True))})

        return objective

    # --- the questions ------------------------------------------------------------------------------------

    def plan(
        self,
        *,
        memory_limit: float | None = None,
        operation_limit: float | None = MOST_OPERATIONS,
        precision: Precision = "double",
    ) -> Plan:
        """Plan what :meth:`solve` runs.

        Parameters
        ----------
        memory_limit : float, optional
            Bytes; by default half of the machine's memory.
        operation_limit : float, optional
            The most add-max operations; None for any number.
        precision : {"double", "single"}
            As for :func:`tallytree.plan`.

        Raises
        ------
        BudgetError
            One of the limits is passed. Nothing has been run.
        """
        made = plan(
            self.model, self.read, where=self.constraint, memory_limit=memory_limit, precision=precision
        )
        return self._affordable(made, operation_limit)

    def solve(
        self,
        *,
        memory_limit: float | None = None,
        operation_limit: float | None = MOST_OPERATIONS,
        precision: Precision = "double",
    ) -> Solution:
        """Find the best labelling; its tally has all statistics of the problem.

        Parameters
        ----------
        memory_limit, operation_limit, precision
            As for :meth:`plan`.

        Raises
        ------
        InfeasibleError
            No labelling satisfies the constraint.
        BudgetError
            One of the limits is passed.
        """
        self.plan(memory_limit=memory_limit, operation_limit=operation_limit, precision=precision)
        found = solve(
            self.model,
            self.read,
            self.function(self.read),
            where=self.constraint,
            memory_limit=memory_limit,
            precision=precision,
        )
        return self._tallied(found)

    def profile(
        self, *, memory_limit: float | None = None, operation_limit: float | None = MOST_OPERATIONS
    ) -> Profile:
        """Compute the best score for every tally of all statistics, whatever the constraint.

        Parameters
        ----------
        memory_limit, operation_limit : float, optional
            As for :meth:`plan`.
        """
        made = plan(self.model, self.statistics, memory_limit=memory_limit)
        return profile(self.model, self.statistics, plan=self._affordable(made, operation_limit))

    def k_best(
        self, k: int, *, memory_limit: float | None = None, operation_limit: float | None = MOST_OPERATIONS
    ) -> list[Solution]:
        """Return the k best labellings in order; fewer if there are fewer.

        Parameters
        ----------
        k : int
            How many.
        memory_limit, operation_limit : float, optional
            As for :meth:`plan`.
        """
        self.plan(memory_limit=memory_limit, operation_limit=operation_limit)
        objective = self.function(self.read)
        found = k_best(self.model, k, self.read, objective, where=self.constraint, memory_limit=memory_limit)
        return [self._tallied(solution) for solution in found]

    # --- inside -------------------------------------------------------------------------------------------

    def _check_names(self) -> None:
        taken = {"score": "the score"}
        named = [
            *((s.name, "statistic") for s in self.statistics),
            *((p, "parameter") for p in self.parameters),
        ]
        for name, what in named:
            if not is_name(name):
                raise ModelError(
                    f"the {what} {name!r} cannot be named in a formula; use letters, digits and _, as "
                    "statistic.named('chunks') does"
                )
            if name in taken:
                raise ModelError(f"the {what} {name!r} has the name of {taken[name]}; names must be distinct")
            taken[name] = f"another {what}"

    def _as_text(self, where: str | Formula | Constraint) -> str | Formula:
        if isinstance(where, Constraint):
            return as_text(where.on(self.model), {s: s.name for s in self.statistics})
        return where

    def _formula(self, given: str | Formula, what: str) -> Formula:
        try:
            formula = given if isinstance(given, Formula) else Formula(given)
        except ModelError as error:
            raise ModelError(f"{what}: {error}") from None
        wanted = {"objective": "number", "where": "truth"}[what]
        if formula.kind != wanted:
            hint = (
                "a number, such as score - ones" if wanted == "number" else "a condition, such as ones >= 2"
            )
            raise ModelError(f"{what} must be {hint}; got '{formula.text}'")
        known = {*self.names, *self.parameters, *(["score"] if what == "objective" else [])}
        for name in formula.names:
            if name not in known:
                raise ModelError(_unknown(name, what, known))
        return formula

    def _affordable(self, made: Plan, limit: float | None) -> Plan:
        formula = 0 if self.objective is None else len(self.objective.code) * made.tallies
        if limit is not None and made.operations + formula > limit:
            raise BudgetError(
                f"the plan takes {made.operations + formula:.3g} operations, and operation_limit is "
                f"{limit:.3g}; allow more if you have the time, cap a statistic, or use fewer\n{made}"
            )
        return made

    def _tallied(self, solution: Solution) -> Solution:
        """Add the statistics that the question did not read."""
        tally = tally_type(self.names)(*(s.tally(solution.assignment) for s in self.statistics))
        return solution.retold(self.model, solution.assignment, solution.value, solution.score, tally)

    def __repr__(self) -> str:
        parts = [repr(self.model), f"statistics=({', '.join(self.names)})"]
        if self.objective is not None:
            parts.append(f"objective={self.objective.text!r}")
        if self.where is not None:
            parts.append(f"where={self.where.text!r}")
        return f"ProblemFile({', '.join(parts)})"


def _parameter(name: str, given: float | Parameter) -> Parameter:
    parameter = given if isinstance(given, Parameter) else Parameter(given)
    try:
        numbers = [float(number) for number in parameter if number is not None]
        right = all(np.isfinite(numbers))
    except (TypeError, ValueError, OverflowError):
        right = False
    if not right:
        raise ModelError(f"the parameter {name!r} is {given!r}; its value and range must be finite numbers")
    low, high = parameter.low, parameter.high
    if low is not None and high is not None and low > high:
        raise ModelError(f"the parameter {name!r} has an empty range, {low} to {high}")
    return Parameter(*(None if number is None else _exact(number) for number in parameter))  # type: ignore[arg-type]


def _exact(number: float) -> float:
    """Return a number as a double, or as an integer where no double has its value."""
    return number if isinstance(number, int) and number != float(number) else float(number)


def _unknown(name: str, what: str, known: set[str]) -> str:
    names = ", ".join(sorted(known)) or "none"
    if name == "score":
        return (
            f"{what} reads the score, but a constraint is about statistics ({names}); for a range of scores "
            "see tallytree.score_between, or use an objective such as where(score >= 3, score, -inf)"
        )
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {names}"
    return f"{what} reads {name!r}, which is neither a statistic nor a parameter; {hint}"
