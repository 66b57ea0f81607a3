"""The grammar of formulas, read by recursive descent into postfix instructions.

The grammar, by increasing precedence; comparisons may be chained, ``2 <= ones <= 5``::

    formula    = both  { "or" both }
    both       = negation { "and" negation }
    negation   = "not" negation | comparison
    comparison = sum { ("<" | "<=" | ">" | ">=" | "==" | "!=") sum }
    sum        = product { ("+" | "-") product }
    product    = sign { ("*" | "/") sign }
    sign       = ("-" | "+") sign | power
    power      = atom [ "**" sign ]
    atom       = number | name | function "(" formula { "," formula } ")" | "(" formula ")"

Names that are not made of letters, digits and ``_`` are quoted, as in ``'B-NP' >= 2``; double quotes and
backticks also work.
Text, nesting and instructions are limited, so that no input can take much time or memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Literal, NamedTuple, NoReturn

from tallytree.errors import ModelError

Kind = Literal["number", "truth"]
Instruction = tuple[str, float | str | None]
"""An operation, with its operand for ``number`` and ``name``."""

LONGEST_TEXT = 100_000
MOST_INSTRUCTIONS = 20_000
DEEPEST = 40

RELATIONS = ("<", "<=", ">", ">=", "==", "!=")
FUNCTIONS: dict[str, tuple[int, int]] = {  # the smallest and the largest number of arguments
    "abs": (1, 1),
    "exp": (1, 1),
    "log": (1, 1),
    "max": (1, MOST_INSTRUCTIONS),
    "min": (1, MOST_INSTRUCTIONS),
    "where": (3, 3),
}
ONLY_IN_PYTHON = ("regular", "valid_bio", "valid_bioes")
"""Constraints on the labelling as a whole, which formulas do not have."""
QUOTES = "'\"`"
RESERVED = frozenset({"and", "or", "not", "inf", *FUNCTIONS})

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<quoted>'[^'\x00-\x1f\x7f-\x9f]+'|\"[^\"\x00-\x1f\x7f-\x9f]+\"|`[^`\x00-\x1f\x7f-\x9f]+`)"
    r"|(?P<foreign>=[<>]|<>|&&?|\|\|?|!(?!=)|=(?!=)|[~^≤≥≠])"
    r"|(?P<sign>\*\*|<=|>=|==|!=|[-+*/()<>,]))",
    re.ASCII,
)
_MEMBERSHIP = re.compile(r"(not\s+)?in\s*\(")
INSTEAD = {
    "=": "==",
    "=>": ">=",
    "=<": "<=",
    "<>": "!=",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "^": "**",
    "&": "and",
    "&&": "and",
    "AND": "and",
    "|": "or",
    "||": "or",
    "OR": "or",
    "!": "not",
    "~": "not",
    "if": "where(condition, a, b)",
}
"""What to write instead of operators of other languages."""


class Token(NamedTuple):
    """A token of a formula, and its position."""

    kind: str  # number, name, quoted, sign or end
    text: str
    at: int


class Parser:
    """Recursive descent, one method per line of the grammar; each returns the kind of what it read."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > LONGEST_TEXT:
            raise ModelError(f"the formula has {len(text)} characters; the limit is {LONGEST_TEXT}")
        self.tokens = self._tokens()
        self.next = 0
        self.depth = 0
        self.code: list[Instruction] = []

    def _tokens(self) -> list[Token]:
        tokens, at = [], 0
        while match := TOKEN.match(self.text, at):
            kind = str(match.lastgroup)
            text = match[kind][1:-1] if kind == "quoted" else match[kind]
            tokens.append(Token(kind, text, match.start(kind)))
            if kind == "foreign":
                self._refuse(match.start(kind), f"{text!r} has no meaning in a formula{_instead(text)}")
            at = match.end()
        rest = self.text[at:].lstrip()
        if rest:
            self._refuse(len(self.text) - len(rest), _unreadable(rest))
        return [*tokens, Token("end", "", len(self.text.rstrip()))]

    def whole(self) -> Kind:
        """Read the whole text."""
        kind = self._formula()
        if self._peek().kind != "end":
            self._expected("an operator or the end", self._spaced())
        return kind

    def _spaced(self) -> str:
        """Explain comparisons if Python's `in` was meant, and quotes if a name with spaces may have been."""
        before, here = self.tokens[self.next - 1], self.tokens[self.next]
        membership = _MEMBERSHIP.match(self.text, here.at)
        if membership and before.kind in ("name", "quoted"):
            name = self.text[before.at : here.at].strip()
            relation, word = ("!=", "and") if membership[1] else ("==", "or")
            return f"; write {name} {relation} 2 {word} {name} {relation} 3"
        first = last = self.next
        while first and self.tokens[first - 1].kind == "name":
            first -= 1
        while self.tokens[last].kind == "name":
            last += 1
        words = " ".join(token.text for token in self.tokens[first:last])
        return f"; quote a name with spaces: '{words}'" if first < self.next < last else ""

    def _formula(self) -> Kind:
        self.depth += 1
        if self.depth > DEEPEST:
            self._refuse(self._peek().at, f"the formula is nested more than {DEEPEST} levels deep")
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
                self._refuse(at, f"the formula is nested more than {DEEPEST} levels deep")
            at = self._peek().at
            self._need("number", self._sign(), at, "'**'")
            self.depth -= 1
            self._emit("**")
        return kind

    def _atom(self) -> Kind:
        token = self._peek()
        if token.kind == "number":
            self.next += 1
            self._emit("number", _number(token.text))
        elif token.kind == "quoted":
            self.next += 1
            self._emit("name", token.text)
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

    def _named(self, token: Token) -> None:
        if token.text in FUNCTIONS:
            self._refuse(token.at, f"'{token.text}' is a function; write {token.text}(…)")
        if token.text == "inf":
            self._emit("number", float("inf"))
        else:
            self._emit("name", token.text)

    def _call(self, function: Token) -> Kind:
        """Read arguments; the minimum or maximum of many is taken pairwise, so that the stack stays short."""
        name = function.text
        if name not in FUNCTIONS:
            known = "the functions are abs, exp, log, max, min and where"
            if name in ONLY_IN_PYTHON:
                known = f"write the constraint in Python: tt.{name}(…) & …"
            self._refuse(function.at, f"'{name}' is not a function; {known}")
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

    def _peek(self) -> Token:
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

    def _expected(self, what: str, hint: str = "") -> NoReturn:
        token = self._peek()
        got = f"'{token.text}'" if token.text else "the end"
        self._refuse(token.at, f"expected {what}, got {got}{_instead(token.text) or hint}")

    def _refuse(self, at: int, why: str) -> NoReturn:
        around = self.text if len(self.text) <= 60 else f"{self.text[max(0, at - 25) : at + 25]}…"
        raise ModelError(f'"{around}", character {at + 1}: {why}')


def _unreadable(rest: str) -> str:
    """Say why no token begins here."""
    if rest[0] not in QUOTES:
        return f"{rest[0]!r} has no meaning in a formula"
    if rest[0] not in rest[1:]:
        return f"{rest[0]!r} has no closing quote"
    return "a name in quotes must not be empty, nor contain line ends or other control characters"


def _instead(text: str) -> str:
    return f"; write {INSTEAD[text]}" if text in INSTEAD else ""


def _number(text: str) -> float:
    """Read a number: a double, or an integer if no double has its value."""
    number = float(text)
    exact = text.isdigit() and 2**53 <= number < math.inf
    return int(text) if exact and int(text) != number else number
