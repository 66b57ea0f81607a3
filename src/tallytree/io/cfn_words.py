"""The words of a ``.cfn`` file and its brackets, as a tree.

Commas, colons and quotes are optional, all brackets are equivalent, and a line that begins with ``#`` is a
comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tallytree.errors import ModelError
from tallytree.io.files import Source, decoded

DEEPEST = 32

_TOKEN = re.compile(r'(?m)[\s,:]+|^#[^\n]*|"(?P<quoted>[^"\n]*)"|(?P<sign>[][{}])|(?P<plain>[^\s,:\[\]{}"]+)')


class Word(NamedTuple):
    """A word of the file and its position."""

    text: str
    line: int


class Group(NamedTuple):
    """Everything between two brackets."""

    items: tuple[Item, ...]
    line: int


Item = Word | Group


def tree(origin: Source) -> Group:
    """Read the single group that makes up a file."""
    text = decoded(origin)
    open_groups: list[tuple[list[Item], int]] = [([], 1)]
    for kind, word, line in _tokens(text, origin.name):
        if kind != "sign":
            open_groups[-1][0].append(Word(word, line))
        elif word in "[{":
            open_groups.append(([], line))
            if len(open_groups) > DEEPEST:
                raise ModelError(f"{origin.name}, line {line}: brackets nested over {DEEPEST} levels deep")
        elif len(open_groups) == 1:
            raise ModelError(f"{origin.name}, line {line}: unmatched closing bracket {word!r}")
        else:
            items, start = open_groups.pop()
            open_groups[-1][0].append(Group(tuple(items), start))
    if len(open_groups) > 1:
        raise ModelError(f"{origin.name}, line {open_groups[-1][1]}: this bracket is never closed")
    whole = open_groups[0][0]
    if len(whole) != 1 or not isinstance(whole[0], Group):
        raise ModelError(f"{origin.name}: expected one pair of brackets around everything")
    return whole[0]


def _tokens(text: str, name: str) -> Iterator[tuple[str, str, int]]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ModelError(f"{name}, line {line}: a quote is not closed on its line")
        if match.lastgroup is not None:
            yield match.lastgroup, match[match.lastgroup], line
        line += text.count("\n", at, match.end())
        at = match.end()
