"""Sentences in columns: the files of the CoNLL shared tasks, and CoNLL-U.

One token a line, its columns separated by white space, and an empty line between sentences; in CoNLL-U ten
columns separated by tabs, and comments that begin with ``#``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TextIO

from tallytree.errors import ModelError

__all__ = ["Row", "Token", "iter_conll", "read_conll", "read_conllu"]

Row = tuple[str, ...]
"""The columns of a token."""

Source = str | os.PathLike[str] | TextIO


def read_conll(source: Source, *, comments: str | None = None) -> list[list[Row]]:
    r"""Read sentences in columns.

    Parameters
    ----------
    source : path or text file
        Where to read from; UTF-8.
    comments : str, optional
        Lines that begin so are left out, as are lines that begin with ``-DOCSTART-``.

    Returns
    -------
    list of list of tuple
        For each sentence its tokens, each a tuple of columns.

    Raises
    ------
    ModelError
        A line has another number of columns than the first one; the text names it.

    Examples
    --------
    >>> import io
    >>> read_conll(io.StringIO("the DT B-NP\ncat NN I-NP\n\nyes UH O\n"))
    [[('the', 'DT', 'B-NP'), ('cat', 'NN', 'I-NP')], [('yes', 'UH', 'O')]]
    """
    return list(iter_conll(source, comments=comments))


def iter_conll(source: Source, *, comments: str | None = None) -> Iterator[list[Row]]:
    """Go through the sentences of a file, one at a time, so that it need not fit into memory."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, encoding="utf-8") as file:
            yield from _sentences(file, os.fspath(source), comments)
    else:
        yield from _sentences(source, getattr(source, "name", "the file"), comments)


def _sentences(lines: Iterable[str], name: str, comments: str | None) -> Iterator[list[Row]]:
    sentence: list[Row] = []
    width = None
    for number, line in enumerate(lines, 1):
        if (comments is not None and line.startswith(comments)) or line.startswith("-DOCSTART-"):
            continue
        columns = tuple(line.split())
        if not columns:
            if sentence:
                yield sentence
                sentence = []
            continue
        width = len(columns) if width is None else width
        if len(columns) != width:
            raise ModelError(
                f"line {number} of {name} has {len(columns)} columns and those before have {width}: "
                f"{line.strip()!r}"
            )
        sentence.append(columns)
    if sentence:
        yield sentence


class Token(NamedTuple):
    """A token of a CoNLL-U file: the ten columns; ``_`` stands for nothing."""

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
    source : path or text file
        Where to read from; UTF-8.
    words_only : bool
        Leave out the lines of multiword tokens (``3-4``) and of empty nodes (``5.1``).

    Examples
    --------
    >>> import io
    >>> line = "\t".join(["1", "cats", "cat", "NOUN", "NNS", "_", "0", "root", "_", "_"])
    >>> sentences = read_conllu(io.StringIO("# text = cats\n" + line + "\n"))
    >>> sentences[0][0].form, sentences[0][0].upos
    ('cats', 'NOUN')
    """
    if isinstance(source, (str, os.PathLike)):
        with open(source, encoding="utf-8") as file:
            return list(_tokens(file, os.fspath(source), words_only))
    return list(_tokens(source, getattr(source, "name", "the file"), words_only))


def _tokens(lines: Iterable[str], name: str, words_only: bool) -> Iterator[list[Token]]:
    sentence: list[Token] = []
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if text.startswith("#"):
            continue
        if not text.strip():
            if sentence:
                yield sentence
                sentence = []
            continue
        columns = text.split("\t")
        if len(columns) != len(Token._fields):
            raise ModelError(
                f"line {number} of {name} has {len(columns)} columns separated by tabs, not 10: {text!r}"
            )
        if not words_only or columns[0].isdecimal():
            sentence.append(Token(*columns))
    if sentence:
        yield sentence
