"""Reading text files word by word, as needed for the competition formats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from tallytree.errors import ModelError
from tallytree.io.files import EXPANSION, Readable, source

LONGEST_WHOLE = 18
MOST_WHOLE = 10**LONGEST_WHOLE
LONGEST_INTEGER = 20
MOST_INTEGER = 10**LONGEST_INTEGER


class Words:
    """The words of a file, taken one by one. Positions are computed only for error messages."""

    def __init__(self, place: Readable, expansion: int = EXPANSION) -> None:
        self.path, self.data = source(place, expansion)
        self.words = self.data.split()
        self.at = 0

    @property
    def left(self) -> int:
        """The number of remaining words."""
        return len(self.words) - self.at

    def word(self, expected: str) -> bytes:
        """Take the next word."""
        if not self.left:
            self.refuse(self.at, expected)
        self.at += 1
        return self.words[self.at - 1]

    def whole(self, expected: str, low: int = 0, high: int = MOST_WHOLE, hint: str = "") -> int:
        """Take an integer from ``low`` to ``high``, without a sign."""
        word = self.word(expected)
        if not (word.isdigit() and len(word) <= LONGEST_WHOLE and low <= int(word) <= high):
            self.refuse(self.at - 1, expected, hint)
        return int(word)

    def integer(self, expected: str, low: int = -MOST_INTEGER, high: int = MOST_INTEGER) -> int:
        """Take an integer, with or without a sign, from ``low`` to ``high``."""
        word = self.word(expected)
        digits = word[1:] if word[:1] in (b"-", b"+") else word
        if not (digits.isdigit() and len(digits) <= LONGEST_INTEGER and low <= int(word) <= high):
            self.refuse(self.at - 1, expected)
        return int(word)

    def length(self, things: str, each: int = 1) -> int:
        """Take a count of things, for each of which at least ``each`` words must follow."""
        high = max(self.left - 1, 0) // each
        cut = "; is it cut off?" if self.left and self.words[self.at].isdigit() else ""
        return self.whole(f"the number of {things}, at most {high} by the length of the file", 0, high, cut)

    def finish(self) -> None:
        """Raise an error if words are left."""
        if self.left:
            self.refuse(self.at, "the end of the file")

    def refuse(self, at: int, expected: str, hint: str = "") -> NoReturn:
        """Raise the error for word number ``at``, which may be the end of the file."""
        got = "the end of the file" if at >= len(self.words) else _shown(self.words[at])
        line, column = self._position(at)
        raise ModelError(f"{self.path}, line {line}, column {column}: expected {expected}, got {got}{hint}")

    @contextmanager
    def blamed(self, at: int) -> Iterator[None]:
        """Prefix an error with the position of word number ``at``."""
        try:
            yield
        except ModelError as error:
            line, column = self._position(at)
            raise ModelError(f"{self.path}, line {line}, column {column}: {error}") from None

    def _position(self, at: int) -> tuple[int, int]:
        offset = len(self.data)
        for number, match in enumerate(re.finditer(rb"\S+", self.data)):
            if number == at:
                offset = match.start()
                break
        return self.data.count(b"\n", 0, offset) + 1, offset - self.data.rfind(b"\n", 0, offset)


def _shown(word: bytes) -> str:
    text = word.decode("ascii", "backslashreplace")
    return f"'{text}'" if len(text) <= 40 else f"'{text[:40]}…'"
