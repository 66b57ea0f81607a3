"""Regular expressions over labels.

===================  ========================================================================
``B-NP``             a label: anything without spaces and without the special characters below
``'PRP$'``, ``"."``  a label in quotes: any text; a backslash escapes the next character
``.``                any label
``[B-NP B-VP]``      one of these labels
``[^ O ]``           any label except these
``a b``              one after the other
``a | b``            either
``a* a+ a?``         any number, at least one, at most one
``a{2} a{2,} a{,3}`` a number of times: exactly, at least, at most; ``a{2,3}`` in between
``( )``              a group; an empty one is the empty sequence
===================  ========================================================================

A pattern must match the whole sequence. It is parsed by recursive descent into an :class:`Nfa`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, NoReturn

from tallytree.errors import BudgetError, ModelError
from tallytree.transducers.automata import ANY, MOST_STATES, Automaton, Labels, Nfa

_TOKENS = re.compile(  # possessive quantifiers, so that there is no backtracking
    r"""\s*+(?: (?P<count>\{\s*+(?P<least>\d*+)\s*+(?P<comma>,?+)\s*+(?P<most>\d*+)\s*+\})
              | (?P<sign>[|*+?().\[\]^])
              | '(?P<single>(?:[^'\\]|\\.)*+)' | "(?P<double>(?:[^"\\]|\\.)*+)"
              | (?P<label>[^\s|*+?().\[\]^{}'"]++) )""",
    re.VERBOSE | re.DOTALL,
)

_LONGEST_COUNT = 9  # digits
_SHOWN = 200  # characters of a pattern in an error

_Build = Callable[["_Writer", int], int]
"""Adds the moves of an expression from a state on, and returns the state where it ends."""


class _Token(NamedTuple):
    kind: str  # "sign", "label", "count" or "end"
    text: str
    place: int
    least: int = 0
    most: int | None = None

    @property
    def ends_sequence(self) -> bool:
        return self.kind == "end" or (self.kind == "sign" and self.text in "|)")


class _Writer:
    """Writes the moves of an :class:`Nfa`."""

    def __init__(self) -> None:
        self.nfa = Nfa()
        self.count = 1

    def state(self) -> int:
        self.count += 1
        if self.count > 5 * MOST_STATES:
            raise BudgetError(
                f"the pattern needs more than {5 * MOST_STATES:,} states; use smaller counts in {{m,n}}"
            )
        return self.count - 1

    def move(self, source: int, labels: Labels | None, target: int | None = None) -> int:
        end = self.state() if target is None else target
        self.nfa.moves.append((source, labels, end))
        return end


@lru_cache(maxsize=64)
def compiled(pattern: str) -> Automaton:
    """Return the automaton of a pattern.

    Examples
    --------
    >>> chunks = compiled("(O | B-NP I-NP*)*")
    >>> chunks.run(["O", "B-NP", "I-NP"]), chunks.run(["O", "I-NP"])
    ((), None)
    >>> compiled("(O | B")
    Traceback (most recent call last):
    tallytree.errors.ModelError: the pattern '(O | B' is invalid at its end: expected ')'. ...
    """
    if not isinstance(pattern, str):
        raise ModelError(f"a pattern must be a string such as '(O | B-NP I-NP*)*', got {pattern!r}")
    writer = _Writer()
    try:
        writer.nfa.accepting = {_Parser(pattern).whole()(writer, 0)}
    except RecursionError:
        raise ModelError("the groups of the pattern are nested too deeply; use fewer parentheses") from None
    return writer.nfa.determinised()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.tokens = _tokens(pattern)
        self.at = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    def whole(self) -> _Build:
        build = self.alternatives()
        if self.token.kind != "end":
            self.refuse("unmatched ')'")
        return build

    def alternatives(self) -> _Build:
        branches: list[_Build] = []
        alone: list[str] = []  # branches of a single label are combined into one move
        while True:
            if self.token.kind == "label" and self.tokens[self.at + 1].ends_sequence:
                alone.append(self.token.text)
                self.at += 1
            else:
                branches.append(self.sequence())
            if not self.took("|"):
                break
        if alone:
            branches.append(_reading(Labels(frozenset(alone))))
        return branches[0] if len(branches) == 1 else _either(branches)

    def sequence(self) -> _Build:
        parts = []
        while not self.token.ends_sequence:
            parts.append(self.repeated())
        return _one_after_the_other(parts)

    def repeated(self) -> _Build:
        build = self.single()
        while True:
            token = self.token
            if token.kind == "count":
                self.at += 1
                build = _repeated(build, token.least, token.most)
            elif token.kind == "sign" and token.text in _REPEATS:
                self.at += 1
                build = _repeated(build, *_REPEATS[token.text])
            else:
                return build

    def single(self) -> _Build:
        token = self.token
        if token.kind == "label":
            self.at += 1
            return _reading(Labels(frozenset({token.text})))
        if self.took("."):
            return _reading(ANY)
        if self.took("("):
            build = self.alternatives()
            self.expect(")")
            return build
        if not self.took("["):
            self.refuse("expected a label, '.', '(' or '['")
        return _reading(self.choice())

    def choice(self) -> Labels:
        negated, names = self.took("^"), []
        while self.token.kind == "label":
            names.append(self.token.text)
            self.at += 1
        if not names:
            self.refuse("expected a label")
        self.expect("]")
        return Labels(frozenset(names), negated)

    def took(self, sign: str) -> bool:
        present = self.token.kind == "sign" and self.token.text == sign
        self.at += present
        return present

    def expect(self, sign: str) -> None:
        if not self.took(sign):
            self.refuse(f"expected {sign!r}")

    def refuse(self, reason: str) -> NoReturn:
        raise _invalid(self.pattern, self.token.place, reason)


_REPEATS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def _tokens(pattern: str) -> list[_Token]:
    tokens, at, end = [], 0, len(pattern.rstrip())
    while at < end:
        match = _TOKENS.match(pattern, at)
        if match is None:
            raise _invalid(pattern, at + len(pattern[at:]) - len(pattern[at:].lstrip()), "")
        tokens.append(_token(pattern, match))
        at = match.end()
    return [*tokens, _Token("end", "", end)]


def _token(pattern: str, match: re.Match[str]) -> _Token:
    kind = match.lastgroup or ""
    place = match.end() - len(match.group().lstrip())
    if match["count"] is not None:
        return _counted(pattern, match, place)
    if kind in ("single", "double"):
        return _Token("label", re.sub(r"\\(.)", r"\1", match[kind], flags=re.DOTALL), place)
    return _Token(kind, match[kind], place)


def _counted(pattern: str, match: re.Match[str], place: int) -> _Token:
    least, most = match["least"], match["most"]
    if not least and not most:
        raise _invalid(pattern, place, "expected a number, as in {2}, {2,}, {,3} or {2,3}")
    fewest = _number(least)
    largest = _number(most) if most else None if match["comma"] else fewest
    if largest is not None and largest < fewest:
        raise _invalid(pattern, place, f"{fewest} is more than {largest}")
    return _Token("count", match["count"], place, fewest, largest)


def _number(digits: str) -> int:
    """Read a count; counts beyond any limit on states are not distinguished."""
    known = digits.lstrip("0")
    return int(known or 0) if len(known) < _LONGEST_COUNT else 10**_LONGEST_COUNT


def _invalid(pattern: str, place: int, reason: str) -> ModelError:
    where = f"before {_shown(pattern[place:])!r}" if place < len(pattern.rstrip()) else "at its end"
    return ModelError(
        f"the pattern {_shown(pattern)!r} is invalid {where}{': ' if reason else ''}{reason}. "
        "Put labels with special characters in quotes; the special characters are | * + ? ( ) { } [ ^ ] and ."
    )


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# --- the moves of each kind of expression -------------------------------------------------------------------


def _reading(labels: Labels) -> _Build:
    return lambda writer, start: writer.move(start, labels)


def _one_after_the_other(parts: list[_Build]) -> _Build:
    def build(writer: _Writer, start: int) -> int:
        for part in parts:
            start = part(writer, start)
        return start

    return build


def _either(branches: list[_Build]) -> _Build:
    def build(writer: _Writer, start: int) -> int:
        end = writer.state()
        for branch in branches:
            # a separate state, so that a repetition in one branch does not lead into another
            writer.move(branch(writer, writer.move(start, None)), None, end)
        return end

    return build


def _repeated(part: _Build, least: int, most: int | None) -> _Build:
    def build(writer: _Writer, start: int) -> int:
        for _ in range(least):  # each with a separate state, so that large counts reach the limit
            start = part(writer, writer.move(start, None))
        if most is None:
            again = writer.move(start, None)
            writer.move(part(writer, again), None, again)
            return writer.move(again, None)
        end = writer.state()
        for _ in range(most - least):
            writer.move(start, None, end)
            start = part(writer, writer.move(start, None))
        return writer.move(start, None, end)

    return build
