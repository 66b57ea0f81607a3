"""Sentences in columns: the files of the CoNLL shared tasks, and CoNLL-U.

One token per line, its columns separated by whitespace, and an empty line between sentences; in CoNLL-U ten
columns separated by tabs, and comments that begin with ``#``. A file is read line by line into **blocks**,
the lines between two empty ones, with the positions of the tokens among them; so a file can be written again
with everything in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO, TextIOWrapper
from typing import NamedTuple, TextIO

from tallytree.errors import BudgetError, ModelError
from tallytree.io.files import EXPANSION, check_path, no_text
from tallytree.io.files import Source as Bytes
from tallytree.planning.budget import default_memory_limit
from tallytree.values import counted

Row = tuple[str, ...]
"""The columns of a token."""

Source = str | os.PathLike[str] | TextIO | Bytes

LONGEST_LINE = 1 << 20
"""More than any token needs."""

_SPACES = " \t\r\n\f\v"  # and no others: a token may contain a non-breaking space
_BETWEEN = re.compile(f"[{_SPACES}]+")
_NUMBER = re.compile(r"\d+([-.]\d+)?", re.ASCII)
_SKIPPED = "-DOCSTART-"


class Block(NamedTuple):
    """The lines of a sentence, without line ends; which of them are tokens, and their columns."""

    lines: list[str]
    places: list[int]
    rows: list[Row]
    source: str = "the text"
    start: int = 1  # the number of the first line

    def place(self, token: int) -> str:
        """Return the place of a token, for messages."""
        return f"line {self.start + self.places[token]} of {self.source}"


# --- what users call ----------------------------------------------------------------------------------------


def read_conll(source: Source, *, comments: str | None = None) -> list[list[Row]]:
    r"""Read sentences in columns.

    Parameters
    ----------
    source : path, text file or Source
        The file to read; UTF-8.
    comments : str, optional
        Lines that begin with this are skipped, as are lines that begin with ``-DOCSTART-``.

    Returns
    -------
    list of list of tuple
        A list of tokens for each sentence; each token is a tuple of columns.

    Raises
    ------
    ModelError
        A line has a different number of columns than the first one; the message gives the line.
    BudgetError
        The file is too large for memory; :func:`iter_conll` reads one sentence at a time.

    Examples
    --------
    >>> import io
    >>> read_conll(io.StringIO("the DT B-NP\ncat NN I-NP\n\nyes UH O\n"))
    [[('the', 'DT', 'B-NP'), ('cat', 'NN', 'I-NP')], [('yes', 'UH', 'O')]]
    """
    return [block.rows for block in plain_blocks(source, comments=comments, whole=True) if block.rows]


def iter_conll(source: Source, *, comments: str | None = None) -> Iterator[list[Row]]:
    """Iterate over the sentences of a file, one at a time, so that it need not fit in memory."""
    return (block.rows for block in plain_blocks(source, comments=comments) if block.rows)


class Token(NamedTuple):
    """A token of a CoNLL-U file: the ten columns; ``_`` means empty."""

    id: str
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    head: str
    deprel: str
    deps: str
    misc: str


def read_conllu(source: Source, *, words_only: bool = True) -> list[list[Token]]:
    r"""Read sentences in the CoNLL-U format of Universal Dependencies.

    Parameters
    ----------
    source : path, text file or Source
        The file to read; UTF-8.
    words_only : bool
        Skip the lines of multiword tokens (``3-4``) and of empty nodes (``5.1``).

    Examples
    --------
    >>> import io
    >>> line = "\t".join(["1", "cats", "cat", "NOUN", "NNS", "_", "0", "root", "_", "_"])
    >>> sentences = read_conllu(io.StringIO("# text = cats\n" + line + "\n"))
    >>> sentences[0][0].form, sentences[0][0].upos
    ('cats', 'NOUN')
    """
    blocks = conllu_blocks(source, words_only=words_only, whole=True)
    return [[Token(*row) for row in block.rows] for block in blocks if block.rows]


# --- blocks -------------------------------------------------------------------------------------------------


def plain_blocks(source: Source, *, comments: str | None = None, whole: bool = False) -> Iterator[Block]:
    """Iterate over the blocks of a file in columns; ``whole``: all will be kept, and must fit in memory."""
    width: int | None = None
    with _opened(source) as (file, name):

        def row(number: int, text: str) -> Row | None:
            nonlocal width
            if text.startswith(_SKIPPED) or (comments is not None and text.startswith(comments)):
                return None
            columns = tuple(_BETWEEN.split(text.strip(_SPACES)))
            width = len(columns) if width is None else width
            if len(columns) != width:
                raise ModelError(
                    f"line {number} of {name} has {counted(len(columns), 'column')}, but earlier lines "
                    f"have {width}: {_short(text.strip())}"
                )
            return columns

        yield from _blocks(file, name, row, whole)


def conllu_blocks(source: Source, *, words_only: bool = True, whole: bool = False) -> Iterator[Block]:
    """Iterate over the blocks of a CoNLL-U file."""
    with _opened(source) as (file, name):

        def row(number: int, text: str) -> Row | None:
            if text.startswith("#"):
                return None
            columns = tuple(text.split("\t"))
            if len(columns) != len(Token._fields):
                raise ModelError(
                    f"line {number} of {name} has {counted(len(columns), 'column')} separated by tabs "
                    f"instead of 10: {_short(text)}"
                )
            if not _NUMBER.fullmatch(columns[0]):
                raise ModelError(
                    f"line {number} of {name} begins with {_short(columns[0])}, which is not the number of a "
                    "word (3), of a multiword token (3-4) or of an empty node (5.1)"
                )
            return columns if columns[0].isdecimal() or not words_only else None

        yield from _blocks(file, name, row, whole)


def _blocks(
    file: Iterable[str], name: str, row_of: Callable[[int, str], Row | None], whole: bool
) -> Iterator[Block]:
    most, size = default_memory_limit() / EXPANSION, 0
    block = Block([], [], [], name)
    for number, line in enumerate(_lines(file, name), 1):
        size += len(line)
        if size > most:
            raise BudgetError(
                f"{'the sentences' if whole else 'a sentence'} of {name} up to line {number} could take "
                f"{EXPANSION} times {size} bytes, which is more than half of the memory of this machine"
            )
        text = line.rstrip("\r\n")
        if text.strip(_SPACES):
            block = block if block.lines else block._replace(start=number)
            row = row_of(number, text)
            if row is not None:
                block.places.append(len(block.lines))
                block.rows.append(row)
            block.lines.append(text)
        elif block.lines:
            yield block
            block, size = Block([], [], [], name), size if whole else 0
    if block.lines:
        yield block


# --- lines --------------------------------------------------------------------------------------------------


@contextmanager
def _opened(source: Source) -> Iterator[tuple[Iterable[str], str]]:
    if isinstance(source, Bytes):
        yield TextIOWrapper(BytesIO(source.data), encoding="utf-8-sig"), source.name
    elif isinstance(source, (str, os.PathLike)):
        check_path(source)
        with open(source, encoding="utf-8-sig") as file:
            yield file, os.fspath(source)
    else:
        yield source, str(getattr(source, "name", "the file"))


def _lines(file: Iterable[str], name: str) -> Iterator[str]:
    """Iterate over lines; raise an error for binary data and lines that are too long."""
    readline = getattr(file, "readline", None)
    lines = iter(file) if readline is None else iter(lambda: readline(LONGEST_LINE + 1), "")
    number = 0
    while True:
        try:
            line = next(lines, None)
        except UnicodeDecodeError as error:
            raise no_text(name, error, number) from None  # buffered text has no line ends
        if not line:
            return
        if not isinstance(line, str):
            raise ModelError(f"{name} returns bytes; open it as text, with encoding='utf-8'")
        number += 1
        if len(line) > LONGEST_LINE:
            raise ModelError(f"line {number} of {name} has more than {LONGEST_LINE} characters")
        yield line


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…")
