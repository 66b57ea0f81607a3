"""Formulas: arithmetic on named numbers, from text that a stranger may have written.

The grammar, from loose to tight; a comparison may be a chain, ``2 <= ones <= 5``::

    formula    = both  { "or" both }
    both       = negation { "and" negation }
    negation   = "not" negation | comparison
    comparison = sum { ("<" | "<=" | ">" | ">=" | "==" | "!=") sum }
    sum        = product { ("+" | "-") product }
    product    = sign { ("*" | "/") sign }
    sign       = ("-" | "+") sign | power
    power      = atom [ "**" sign ]
    atom       = number | name | function "(" formula { "," formula } ")" | "(" formula ")"

A formula is kept in postfix order, as instructions for a stack. So a long formula needs no recursion, and the
same instructions run over NumPy arrays, over constraints (``constraints.py``) and in a browser. All numbers
are doubles: nothing can grow. Text, nesting and instructions are limited, and no name means anything but a
number that the caller gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.core.blocks import Frozen, set_once
from tallytree.errors import ModelError

__all__ = ["ARITIES", "ARRAYS", "Formula", "Instruction", "execute", "is_name"]

Kind = Literal["number", "truth"]
Instruction = tuple[str, float | str | None]
"""An operation, with what it pushes where it is ``number`` or ``name``."""

LONGEST_TEXT = 100_000
MOST_INSTRUCTIONS = 20_000
DEEPEST = 40

RELATIONS = ("<", "<=", ">", ">=", "==", "!=")
FUNCTIONS: dict[str, tuple[int, int]] = {  # the least and the largest number of arguments
    "abs": (1, 1),
    "exp": (1, 1),
    "log": (1, 1),
    "max": (1, MOST_INSTRUCTIONS),
    "min": (1, MOST_INSTRUCTIONS),
    "where": (3, 3),
}
RESERVED = frozenset({"and", "or", "not", "inf", *FUNCTIONS})

ARRAYS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
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
"""What each operation does to arrays."""

ARITIES: dict[str, int] = {
    **dict.fromkeys(ARRAYS, 2),
    **dict.fromkeys(("negate", "not", "abs", "exp", "log"), 1),
    "where": 3,
}

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>\*\*|<=|>=|==|!=|[-+*/()<>,]))"
)


def is_name(text: str) -> bool:
    """Whether a text can name a statistic or a parameter in a formula."""
    match = _TOKEN.fullmatch(text)
    return bool(match and match["name"] == text) and text not in RESERVED


@final
class Formula(Frozen):
    """A formula that has been read.

    Parameters
    ----------
    text : str
        Arithmetic (``+ - * / **``), comparisons, ``and``, ``or``, ``not``, and the functions ``min``,
        ``max``, ``abs``, ``exp``, ``log`` and ``where(condition, a, b)``; ``inf`` is infinity.

    Attributes
    ----------
    code : tuple of (operation, argument)
        The instructions, in postfix order.
    kind : {"number", "truth"}
        What it evaluates to.
    names : tuple of str
        The names it reads, in order of first use.

    Raises
    ------
    ModelError
        The text is no formula; the message says where.

    Examples
    --------
    >>> loss = Formula("1 - 2*tp/(12 + tp + fp)")
    >>> loss.names
    ('tp', 'fp')
    >>> loss({"tp": [0, 6], "fp": [0, 0]}).round(3).tolist()
    [1.0, 0.333]
    >>> Formula("system(tp)")
    Traceback (most recent call last):
    tallytree.errors.ModelError: "system(tp)", character 1: 'system' is no function; there are abs, exp, log,
    max, min and where
    """

    __slots__ = ("code", "kind", "names", "text")

    text: str
    code: tuple[Instruction, ...]
    kind: Kind
    names: tuple[str, ...]

    def __init__(self, text: str) -> None:
        parser = _Parser(text)
        set_once(self, "kind", parser.whole())
        set_once(self, "text", text)
        set_once(self, "code", tuple(parser.code))
        names = dict.fromkeys(str(argument) for operation, argument in self.code if operation == "name")
        set_once(self, "names", tuple(names))

    def __call__(self, values: Mapping[str, ArrayLike]) -> NDArray[Any]:
        """Evaluate on arrays, elementwise; divisions by zero and the like give inf and nan, silently."""
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
    """Run postfix instructions: ``number`` makes literals, ``values`` has the names."""
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


# --- reading ------------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: str  # number, name, sign or end
    text: str
    at: int


class _Parser:
    """Recursive descent, one method for each line of the grammar; each returns the kind of what it read."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST_TEXT:
            raise ModelError(f"a formula has {len(text)} characters; the most are {LONGEST_TEXT}")
        self.tokens = self._tokens()
        self.next = 0
        self.depth = 0
        self.code: list[Instruction] = []

    def _tokens(self) -> list[_Token]:
        tokens, at = [], 0
        while match := _TOKEN.match(self.text, at):
            kind = str(match.lastgroup)
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            at = match.end()
        rest = self.text[at:].lstrip()
        if rest:
            self._refuse(len(self.text) - len(rest), f"{rest[0]!r} has no meaning in a formula")
        return [*tokens, _Token("end", "", len(self.text.rstrip()))]

    def whole(self) -> Kind:
        """Read the whole text."""
        kind = self._formula()
        if self._peek().kind != "end":
            self._expected("an operator or the end")
        return kind

    def _formula(self) -> Kind:
        self.depth += 1
        if self.depth > DEEPEST:
            self._refuse(self._peek().at, f"the formula is nested more than {DEEPEST} deep")
        kind = self._joined("or", lambda: self._joined("and", self._negation))
        self.depth -= 1
        return kind

    def _joined(self, word: str, part: Callable[[], Kind]) -> Kind:
        at, kind = self._peek().at, part()
        while self._take(word):
            self._need("truth", kind, at, f"'{word}'")
            at = self._peek().at
            self._need("truth", part(), at, f"'{word}'")
            self._emit(word)
        return kind

    def _negation(self) -> Kind:
        odd, any_at_all = False, False
        while self._take("not"):
            odd, any_at_all = not odd, True
        at = self._peek().at
        kind = self._comparison()
        if any_at_all:
            self._need("truth", kind, at, "'not'")
        if odd:
            self._emit("not")
        return kind

    def _comparison(self) -> Kind:
        at, kind = self._peek().at, self._sum()
        right: list[Instruction] = []
        while relation := self._take(*RELATIONS):
            if not right:
                self._need("number", kind, at, f"'{relation}'")
            self.code.extend(right)  # a < b < c is a < b and b < c
            at, start = self._peek().at, len(self.code)
            self._need("number", self._sum(), at, f"'{relation}'")
            chained, right = bool(right), self.code[start:]
            self._emit(relation)
            if chained:
                self._emit("and")
        return "truth" if right else kind

    def _sum(self) -> Kind:
        return self._arithmetic(self._product, "+", "-")

    def _product(self) -> Kind:
        return self._arithmetic(self._sign, "*", "/")

    def _arithmetic(self, part: Callable[[], Kind], *signs: str) -> Kind:
        at, kind = self._peek().at, part()
        while sign := self._take(*signs):
            self._need("number", kind, at, f"'{sign}'")
            at = self._peek().at
            self._need("number", part(), at, f"'{sign}'")
            self._emit(sign)
        return kind

    def _sign(self) -> Kind:
        negative, any_at_all = False, False
        while sign := self._take("-", "+"):
            negative, any_at_all = negative != (sign == "-"), True
        at, kind = self._peek().at, self._power()
        if any_at_all:
            self._need("number", kind, at, "a sign")
        if negative:
            self._emit("negate")
        return kind

    def _power(self) -> Kind:
        at, kind = self._peek().at, self._atom()
        if self._take("**"):
            self._need("number", kind, at, "'**'")
            self.depth += 1
            if self.depth > DEEPEST:
                self._refuse(at, f"the formula is nested more than {DEEPEST} deep")
            at = self._peek().at
            self._need("number", self._sign(), at, "'**'")
            self.depth -= 1
            self._emit("**")
        return kind

    def _atom(self) -> Kind:
        token = self._peek()
        if token.kind == "number":
            self.next += 1
            self._emit("number", float(token.text))
        elif self._take("("):
            kind = self._formula()
            self._close()
            return kind
        elif token.kind == "name" and token.text not in ("and", "or", "not"):
            self.next += 1
            if self._take("("):
                return self._call(token)
            self._named(token)
        else:
            self._expected("a number, a name or '('")
        return "number"

    def _named(self, token: _Token) -> None:
        if token.text in FUNCTIONS:
            self._refuse(token.at, f"'{token.text}' is a function; write {token.text}(…)")
        if token.text == "inf":
            self._emit("number", float("inf"))
        else:
            self._emit("name", token.text)

    def _call(self, function: _Token) -> Kind:
        """Read arguments; the least or largest of many is taken two by two, so the stack stays short."""
        name = function.text
        if name not in FUNCTIONS:
            known = "abs, exp, log, max, min and where"
            self._refuse(function.at, f"'{name}' is no function; there are {known}")
        least, most = FUNCTIONS[name]
        count = 0
        while count == 0 or self._take(","):
            at = self._peek().at
            wanted: Kind = "truth" if name == "where" and count == 0 else "number"
            self._need(wanted, self._formula(), at, f"{name}(…)")
            count += 1
            if most > 3 and count > 1:
                self._emit(name)
        self._close()
        if not least <= count <= most:
            self._refuse(function.at, f"{name}(…) takes {least} argument{'s' * (least > 1)}, got {count}")
        if most <= 3:
            self._emit(name)
        return "number"

    # --- small things -------------------------------------------------------------------------------------

    def _peek(self) -> _Token:
        return self.tokens[self.next]

    def _take(self, *texts: str) -> str:
        token = self._peek()
        if token.kind in ("sign", "name") and token.text in texts:
            self.next += 1
            return token.text
        return ""

    def _close(self) -> None:
        if not self._take(")"):
            self._expected("')'")

    def _emit(self, operation: str, argument: float | str | None = None) -> None:
        self.code.append((operation, argument))
        if len(self.code) > MOST_INSTRUCTIONS:
            self._refuse(self._peek().at, f"the formula has more than {MOST_INSTRUCTIONS} operations")

    def _need(self, wanted: Kind, got: Kind, at: int, by: str) -> None:
        if wanted != got:
            names = {"number": "a number", "truth": "a condition, such as ones >= 2"}
            self._refuse(at, f"{by} needs {names[wanted]} here, not a {got.replace('truth', 'condition')}")

    def _expected(self, what: str) -> NoReturn:
        token = self._peek()
        got = f"'{token.text}'" if token.text else "the end"
        self._refuse(token.at, f"expected {what}, got {got}")

    def _refuse(self, at: int, why: str) -> NoReturn:
        around = self.text if len(self.text) <= 60 else f"{self.text[max(0, at - 25) : at + 25]}…"
        raise ModelError(f'"{around}", character {at + 1}: {why}')
