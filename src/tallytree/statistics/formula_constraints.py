"""Formulas as constraints: comparisons of integer combinations of statistics, joined by and, or, not.

The instructions of a formula run over three kinds of values: numbers, ``Linear`` combinations of statistics,
and constraints. Numbers are doubles, or integers beyond the range where doubles are exact: bounds are exact.
Non-linear conditions raise an error; they belong in the objective, which sees every tally.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tallytree.errors import ModelError
from tallytree.model.blocks import LARGEST_INTEGER
from tallytree.statistics.constraints import And, Constraint, Or, as_constraint
from tallytree.statistics.formulas import (
    ARRAYS,
    Formula,
    checked_formula,
    execute,
    minus_hint,
    name_in_formula,
)
from tallytree.statistics.linear import Comparison, Linear, Term
from tallytree.statistics.statistic import Statistic
from tallytree.values import nearest

EXACT = 2**53
"""Up to here doubles represent all integers."""

Value = Any  # float, int, Linear or Constraint: the parser guarantees that each is where it belongs


def as_constraint_of(
    formula: Formula, statistics: Sequence[Term], parameters: Mapping[str, float]
) -> Constraint:
    """Return the constraint for a formula.

    Raises ModelError if it compares anything but integer combinations of statistics.

    Examples
    --------
    >>> a = Statistic([((0,), [0, 1])], name="a")
    >>> b = Statistic([((1,), [0, 1])], name="b")
    >>> as_constraint_of(Formula("not (2*a - b > low) or a == 1"), [a, b], {"low": 0.5})
    (2*a - b <= 0) | (a == 1)
    """
    values: dict[str, Value] = {s.name: s.linear() for s in statistics}
    result: Constraint = execute(formula.code, _OPERATIONS, _literal, {**parameters, **values})
    return result


def as_condition(where: object, statistics: Term | Iterable[Term]) -> Constraint:
    """Return a constraint, converting a string with names of statistics.

    Raises ModelError if the string is not a condition or uses other names.

    Examples
    --------
    >>> a = Statistic([((0,), [0, 1])], name="a")
    >>> as_condition("a >= 1 or a == -2", [a])
    (a >= 1) | (a == -2)
    """
    if not isinstance(where, str):
        return as_constraint(where)
    terms = (statistics,) if isinstance(statistics, Term) else tuple(statistics)
    known: dict[str, Term] = {}
    formula = Formula(where)
    for term in terms:
        if known.setdefault(term.name, term) != term and term.name in formula.names:
            raise ModelError(
                f"where={where!r} uses {term.name!r}, but two statistics have this name; rename one"
            )
    _check_infinity(f"where={where!r}", formula, known, "statistic")
    if not terms:
        raise ModelError(
            f"where={where!r} uses statistics by name, but none are given; pass statistics=, for example "
            "[tt.count(state=1, name='ones')], or a constraint such as tt.count(state=1) >= 2"
        )
    return as_constraint_of(checked_formula(formula, "where", known), terms, {})


def as_condition_on(
    what: str,
    formula: Formula,
    terms: Sequence[Term],
    labels: Collection[str],
    count: Callable[[str], Term],
    noun: str = "label",
) -> Constraint:
    """Return the constraint for a formula over statistics and labels; a label stands for its count.

    Raises ModelError if the formula, given as `what`, is not a condition or uses what is not a `noun`.

    Examples
    --------
    >>> a = Statistic([((0,), [0, 1])], name="a")
    >>> ones = lambda label: Statistic([((1,), [0, 1])], name=label)
    >>> as_condition_on("where", Formula("a <= 'B-NP'"), [a], ["B-NP", "O"], ones)
    a - B-NP <= 0
    >>> as_condition_on("where", Formula("'B-MP' >= 1"), [], ["B-NP", "O"], ones)
    Traceback (most recent call last):
    tallytree.errors.ModelError: where uses 'B-MP', which is not a label; did you mean 'B-NP'?
    """
    if formula.kind != "truth":
        raise ModelError(f"{what} takes a condition, such as O >= 2; got {formula.text!r}")
    named = {term.name for term in terms}
    known = [*sorted(named), *labels]
    _check_infinity(what, formula, known, "label" if "inf" in labels else "count")
    for name in formula.names:
        if name not in known:
            near = nearest(name, known)
            hint = f"; did you mean {near!r}?" if near else f"; the names are {', '.join(known)}"
            hint = minus_hint(formula.text, known) or hint
            raise ModelError(f"{what} uses {name!r}, which is not a {noun}{hint}")
    read = [count(name) for name in formula.names if name not in named]
    return as_constraint_of(formula, [*terms, *read], {})


def _check_infinity(what: str, formula: Formula, known: Collection[str], noun: str) -> None:
    """Raise an error for a formula with infinity, if that is also the name of something."""
    if "inf" in known and ("number", math.inf) in formula.code:
        raise ModelError(f"{what} uses 'inf', the name of a {noun}, but it is infinity; quote or rename it")


def as_text(constraint: Constraint, names: Mapping[Statistic, str]) -> str:
    """Write a constraint as a formula.

    Examples
    --------
    >>> a = Statistic([((0,), [0, 1])], name="a")
    >>> as_text((2 * a >= 1) & (a != 3), {a: "a"})
    '(2*a >= 1) and (a != 3)'
    """
    if isinstance(constraint, Comparison):
        missing = [term.name for term in constraint.statistics if term not in names]
        if missing:
            raise ModelError(
                f"the constraint '{constraint}' uses {', '.join(missing)}, which is not one of the "
                "statistics of the problem; add it"
            )
        renamed = Linear(
            (s.named(name_in_formula(names[s], "the statistic")), c)
            for s, c in constraint.terms
            if isinstance(s, Statistic)
        )
        return f"{renamed} {constraint.relation} {constraint.bound}"
    assert isinstance(constraint, (And, Or))
    word = " and " if isinstance(constraint, And) else " or "
    return word.join(f"({as_text(part, names)})" for part in constraint.parts)


# --- the operations -----------------------------------------------------------------------------------------


def _literal(number: float) -> float:
    return number


def _is_whole(number: float) -> bool:
    return isinstance(number, int) or number.is_integer()


def _whole(number: float, what: str, limit: float = math.inf) -> int:
    if not (_is_whole(number) and abs(number) < limit):
        size = f" below {limit:.4g}" if limit < math.inf else ""
        hint = "" if _is_whole(number) else "; multiply both sides to get rid of fractions"
        raise ModelError(f"in a constraint, {what} must be an integer{size}, got {number!r}{hint}")
    return int(number)


def _linear(value: Value) -> Linear:
    return value if isinstance(value, Linear) else Linear((), _whole(value, "what is added to statistics"))


def _checked(linear: Linear) -> Linear:
    for term, c in linear.terms:
        _whole(c, f"the coefficient of {term.name}", LARGEST_INTEGER)
    return linear


_ON_INTEGERS: dict[str, Callable[..., int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "**": operator.pow,
    "negate": operator.neg,
    "abs": abs,
    "min": min,
    "max": max,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _on_numbers(operation: str, *values: float) -> float:
    """Compute with doubles, or with integers if doubles cannot represent them."""
    with np.errstate(all="ignore"):
        result = float(ARRAYS[operation](*map(np.float64, values)))
    large = abs(result) >= EXACT or any(isinstance(value, int) for value in values)
    exact = operation in _ON_INTEGERS and not (operation == "**" and values[1] < 0)
    if exact and large and math.isfinite(result) and all(map(_is_whole, values)):
        return _ON_INTEGERS[operation](*map(int, values))  # at most 1,024 bits, since a double is finite
    return result


def _add(a: Value, b: Value) -> Value:
    return _checked(_linear(a) + _linear(b))


def _subtract(a: Value, b: Value) -> Value:
    return _checked(_linear(a) - _linear(b))


def _multiply(a: Value, b: Value) -> Value:
    if isinstance(a, Linear) and isinstance(b, Linear):
        raise ModelError(
            f"({a}) * ({b}) is not linear; in a constraint, statistics can only be scaled by integers. "
            f"{_INSTEAD}"
        )
    number, linear = (b, a) if isinstance(a, Linear) else (a, b)
    return _checked(linear * _whole(number, "the coefficient of a statistic", LARGEST_INTEGER))


_INSTEAD = "Move the condition into the objective, as in where(condition, score, -inf)"
_LINEAR: dict[str, Callable[..., Value]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "negate": lambda a: -a,
}


def _arithmetic(operation: str) -> Callable[..., Value]:
    def apply(*values: Value) -> Value:
        if not any(isinstance(value, (Linear, Constraint)) for value in values):
            return _on_numbers(operation, *values)
        if operation == "/":
            raise ModelError(
                "in a constraint, statistics can only be combined with integers; multiply out: 'a == 2' "
                "instead of 'a / 2 == 1'"
            )
        if operation not in _LINEAR:
            raise ModelError(
                f"'{operation}' of statistics is not linear, so it cannot be used in a constraint. {_INSTEAD}"
            )
        return _LINEAR[operation](*values)

    return apply


_MIRRORED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "==": "==", "!=": "!="}
_COMPARED: dict[str, Callable[[Linear, Any], Constraint]] = {
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _always(truth: bool) -> Constraint:
    return Linear((), 0) <= (0 if truth else -1)


def _relation(relation: str) -> Callable[[Value, Value], Constraint]:
    def compare(a: Value, b: Value) -> Constraint:
        if not isinstance(a, Linear) and not isinstance(b, Linear):
            return _always(bool(_on_numbers(relation, a, b)))
        if not isinstance(a, Linear):
            return _with_number(b, _MIRRORED[relation], a)
        if not isinstance(b, Linear):
            return _with_number(a, relation, b)
        return _COMPARED[relation](_checked(a - b), 0)

    return compare


def _with_number(left: Linear, relation: str, bound: float) -> Constraint:
    """Compare with any number: tallies are integers, so ``a <= 2.5`` is ``a <= 2``, ``a == 2.5`` is false."""
    if math.isnan(bound):
        raise ModelError(f"'{left} {relation} nan' is meaningless: a bound of the constraint is not a number")
    if math.isinf(bound):
        return _always(bool(_on_numbers(relation, 0.0, bound)))
    if _is_whole(bound):
        return _COMPARED[relation](left, int(bound))
    if relation == "!=":
        return _always(True)
    if relation == "==":  # false, in terms that an error message can show
        return (left <= math.floor(bound)) & (left >= math.ceil(bound))
    return left <= math.floor(bound) if relation in ("<", "<=") else left >= math.ceil(bound)


_OPERATIONS: dict[str, Callable[..., Value]] = {
    **{operation: _arithmetic(operation) for operation in ARRAYS},
    **{relation: _relation(relation) for relation in _MIRRORED},
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "not": lambda a: ~a,
}
