"""Formulas: arithmetic on named numbers, from untrusted text.

The parser (``formula_parser.py``) converts a formula to postfix instructions for a stack machine. So a long
formula needs no recursion, and the same instructions run over NumPy arrays, over constraints
(``formula_constraints.py``) and in a browser. All numbers are doubles, so nothing can grow, and names only
refer to numbers given by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.statistics.formula_parser import QUOTES, RESERVED, TOKEN, Instruction, Kind, Parser
from tallytree.values import Frozen, nearest, set_once


def _power(base: Any, exponent: Any) -> Any:
    """Raise to a power according to IEEE 754.

    For a single exponent of 0.5 NumPy takes the square root, which is nan at -inf, where the power is inf.
    """
    shape = np.broadcast_shapes(np.shape(base), np.shape(exponent))
    several = shape or (1,)
    powers = np.power(np.broadcast_to(base, several).copy(), np.broadcast_to(exponent, several).copy())
    return powers if shape else powers[0]


ARRAYS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": _power,
    "negate": np.negative,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "min": np.minimum,
    "max": np.maximum,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "where": np.where,
}
"""The NumPy function for each operation."""

ARITIES: dict[str, int] = {
    **dict.fromkeys(ARRAYS, 2),
    **dict.fromkeys(("negate", "not", "abs", "exp", "log"), 1),
    "where": 3,
}


_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_HYPHENED = re.compile(r"[A-Za-z]\w*(?:-[A-Za-z]\w*)+", re.ASCII)


def is_name(text: str) -> bool:
    """Whether a text is a name in a formula without quotes."""
    match = TOKEN.fullmatch(text)
    return bool(match and match["name"] == text) and text not in RESERVED


def is_number(text: str) -> bool:
    """Whether a text is a number in a formula."""
    match = TOKEN.fullmatch(text.lstrip("+-"))
    return bool(match and match["number"])


def quoted_name(name: str) -> str:
    """Return a name as a formula has it, in double quotes if need be: messages quote formulas by single ones.

    Examples
    --------
    >>> quoted_name("chunks"), quoted_name("B-NP")
    ('chunks', '"B-NP"')
    """
    if is_name(name):
        return name
    return f"'{name}'" if '"' in name else f'"{name}"'


def name_in_formula(name: str, what: str) -> str:
    """Return a name as a formula has it: quoted if need be; ``what`` is for the error.

    Examples
    --------
    >>> name_in_formula("chunks", "the statistic"), name_in_formula("B-NP", "the statistic")
    ('chunks', "'B-NP'")
    """
    if is_name(name):
        return name
    for quote in QUOTES:
        match = TOKEN.fullmatch(f"{quote}{name}{quote}")
        if match and match["quoted"]:
            return match[0]
    raise ModelError(
        f"{what} {name!r} is not a valid name in a formula, even with quotes; use letters, digits and _, "
        "as in 'chunks'"
    )


@final
class Formula(Frozen):
    """A parsed formula.

    `text`: arithmetic (``+ - * / **``), comparisons, ``and``, ``or``, ``not``, and the functions ``min``,
    ``max``, ``abs``, ``exp``, ``log`` and ``where(condition, a, b)``; ``inf`` is infinity. Names that are not
    made of letters, digits and ``_`` are quoted: ``'B-NP' >= 2``. Raises ModelError if the text is not a
    valid formula; the message says where.

    Examples
    --------
    >>> loss = Formula("1 - 2*tp/(12 + tp + fp)")
    >>> loss.names
    ('tp', 'fp')
    >>> loss({"tp": [0, 6], "fp": [0, 0]}).round(3).tolist()
    [1.0, 0.333]
    >>> Formula("system(tp)")
    Traceback (most recent call last):
    tallytree.errors.ModelError: "system(tp)", character 1: 'system' is not a function; the functions are abs,
    exp, log, max, min and where
    """

    __slots__ = ("code", "kind", "names", "text")

    text: str
    code: tuple[Instruction, ...]  # the instructions, in postfix order
    kind: Kind  # what it evaluates to
    names: tuple[str, ...]  # the names it reads, in order of first use

    def __init__(self, text: str) -> None:
        parser = Parser(text)
        set_once(self, "kind", parser.whole())
        set_once(self, "text", text)
        set_once(self, "code", tuple(parser.code))
        names = dict.fromkeys(str(argument) for operation, argument in self.code if operation == "name")
        set_once(self, "names", tuple(names))

    def __call__(self, values: Mapping[str, ArrayLike]) -> NDArray[Any]:
        """Evaluate on arrays, elementwise; divisions by zero and the like give inf or nan silently."""
        numbers = {name: np.asarray(values[name], dtype=np.float64) for name in self.names}
        with np.errstate(all="ignore"):
            return np.asarray(execute(self.code, ARRAYS, np.float64, numbers))

    def __reduce__(self) -> tuple[type[Formula], tuple[str]]:
        return Formula, (self.text,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self.code == other.code

    def __hash__(self) -> int:
        return hash(self.code)

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"


def execute(
    code: Sequence[Instruction],
    operations: Mapping[str, Callable[..., Any]],
    number: Callable[[Any], Any],
    values: Mapping[str, Any],
) -> Any:
    """Run postfix instructions: ``number`` converts literals, ``values`` maps names."""
    stack: list[Any] = []
    for operation, argument in code:
        if operation == "number":
            stack.append(number(argument))
        elif operation == "name":
            stack.append(values[str(argument)])
        else:
            at = len(stack) - ARITIES[operation]
            stack[at:] = [operations[operation](*stack[at:])]
    (result,) = stack
    return result


def checked_formula(
    given: str | Formula, what: Literal["objective", "where"], names: Collection[str]
) -> Formula:
    """Read a formula and check its kind and its names."""
    if not isinstance(given, (str, Formula)):
        raise ModelError(f"{what} must be a formula, as a string; got {given!r}")
    try:
        formula = given if isinstance(given, Formula) else Formula(given)
    except ModelError as error:
        raise ModelError(f"{what}: {error}") from None
    wanted = {"objective": "number", "where": "truth"}[what]
    if formula.kind != wanted:
        hint = "a number, such as score - ones" if wanted == "number" else "a condition, such as ones >= 2"
        raise ModelError(f"{what} must be {hint}; got '{formula.text}'")
    known = {*names, "score"} if what == "objective" else set(names)
    for name in formula.names:
        if name not in known:
            message = _unknown(name, what, known) + minus_hint(formula.text, known)
            raise ModelError(message.replace("?. ", "? "))
    return formula


def minus_hint(text: str, known: Collection[str]) -> str:
    """Explain the hyphen if a name such as B-NP may have been meant, of which no part is known."""
    for found in _HYPHENED.findall(_QUOTED.sub(" ", text)):
        if not any(part in known for part in found.split("-")):
            return f". In a formula, - means minus; quote the name {found}: '{found}'"
    return ""


def _unknown(name: str, what: str, known: set[str]) -> str:
    names = ", ".join(sorted(known)) or "none"
    if name == "score":
        return (
            f"{what} uses the score, but a constraint can only use statistics and parameters ({names}); "
            "for a range of scores, use tallytree.score_between, or an objective such as "
            "where(score >= 3, score, -inf)"
        )
    near = nearest(name, sorted(known))
    hint = f"did you mean {near!r}?" if near else f"available are {names}"
    return f"{what} uses {name!r}, which is neither a statistic nor a parameter; {hint}"
