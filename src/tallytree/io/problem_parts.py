"""Checks of the parts of a problem file: parameters and names, and what a relaxation needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tallytree.errors import ModelError
from tallytree.statistics.formulas import Formula, name_in_formula


class Parameter(NamedTuple):
    """A named number in formulas, and its sensible range, if known."""

    value: float
    low: float | None = None
    high: float | None = None


def as_parameter(name: str, given: float | Parameter | Mapping[str, float]) -> Parameter:
    """Return a parameter with its range, which may be given as in a problem file; values must be finite.

    Examples
    --------
    >>> as_parameter("weight", {"value": 1, "low": 0, "high": 4})
    Parameter(value=1.0, low=0.0, high=4.0)
    """
    if isinstance(given, Mapping) and {"value"} <= set(given) <= set(Parameter._fields):
        given = Parameter(**given)
    parameter = given if isinstance(given, Parameter) else Parameter(given)  # type: ignore[arg-type]
    try:
        numbers = [float(number) for number in parameter if number is not None]
        right = all(np.isfinite(numbers))
    except (TypeError, ValueError, OverflowError):
        right = False
    if not right:
        shown = parameter.value if parameter[1:] == (None, None) else tuple(parameter)
        raise ModelError(
            f"the parameter {name!r} is {shown!r}; expected a finite number, "
            "or tallytree.io.Parameter(value, low, high) with finite numbers, or a mapping {'value': …, "
            "'low': …, 'high': …}"
        )
    low, high = parameter.low, parameter.high
    if low is not None and high is not None and low > high:
        raise ModelError(f"the parameter {name!r} has an empty range, {low} to {high}")
    return Parameter(*(None if number is None else _exact(number) for number in parameter))  # type: ignore[arg-type]


def _exact(number: float) -> float:
    """Return a number as a double, or as an integer if no double has its value."""
    return number if isinstance(number, int) and number != float(number) else float(number)


def check_names(statistics: Iterable[str], parameters: Iterable[str]) -> None:
    """Check that every name is valid in formulas and has a single meaning."""
    taken = {"score": "score"}
    named = [
        *((name, "statistic") for name in statistics),
        *((name, "parameter") for name in parameters),
    ]
    for name, what in named:
        name_in_formula(name, f"the {what}")
        if name in taken:
            other = {"score": "the score", what: f"another {what}"}.get(taken[name], f"a {taken[name]}")
            raise ModelError(f"the {what} {name!r} is also the name of {other}; names must be distinct")
        taken[name] = what


def check_relaxable(objective: Formula | None, where: Formula | None) -> None:
    """Raise an error for a problem that a relaxation cannot bound; it names what is in the way."""
    obstacles = [] if where is not None else ["no constraint (give one)"]
    if objective is not None:
        obstacles.append(f"the objective {objective.text!r} (give the objective 'score' to drop it)")
    if obstacles:
        both = " and ".join(obstacles)
        raise ModelError(
            f"a relaxation bounds the best score under a constraint, but this problem has {both}"
        )
