"""Reading and writing sentences: columns, CoNLL-U, and raw text with one sentence per line.

The input is copied to the output, including comments, with an additional column (or, in CoNLL-U, with one
filled in).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

from tallytree.cli.exits import UsageError
from tallytree.cli.inputs import standard_input
from tallytree.cli.text import for_terminal, visible
from tallytree.errors import InfeasibleError, ModelError, TallytreeError
from tallytree.io.conll import Block, Row, Token, conllu_blocks, plain_blocks
from tallytree.io.files import replacing_text
from tallytree.values import counted

Format = Literal["columns", "conllu", "text"]
FORMATS: tuple[Format, ...] = ("columns", "conllu", "text")

_PLACES: dict[Format, dict[str, int]] = {
    "columns": {"word": 0, "tag": 1},
    "conllu": {"word": 1, "tag": 3},
    "text": {"word": 0},
}
LAST = -1
_AS_TEXT = ", or use --format text for one sentence per line"
_SHOWN = 8  # words of a sentence in messages


class Task(NamedTuple):
    """What a labeller was trained for; stored in the file of the model."""

    name: str
    reads: tuple[str, ...]  # the columns used for features: ``word``, possibly ``tag``
    format: Format  # of the training data
    column: int  # the column of the labels, from 0; -1 for the last column
    columns: int = 0  # of the training data, if it is in columns; 0 if it is not known

    @classmethod
    def of(cls, notes: Any, path: str) -> Task:
        """Read the task of a model."""
        try:
            task = cls(notes["name"], tuple(notes["reads"]), notes["format"], int(notes["column"]))
            task = task._replace(columns=int(notes.get("columns", 0)))
            right = (
                task.name in ("tag", "chunk")
                and task.reads in (("word",), ("word", "tag"))
                and task.format in FORMATS
                and task.column >= LAST
            )
        except (KeyError, TypeError, ValueError):
            right = False
        if not right:
            raise ModelError(
                f"{path} is not a tagger or chunker: train one with `tallytree train`, or in Python as "
                "SequenceSVM or SequenceCRF with features=WindowFeatures()"
            )
        return task

    @classmethod
    def of_columns(cls, name: str, columns: int, path: str) -> Task:
        """Return the task of a model that was saved in Python and reads this many columns."""
        reads = ("word", "tag")[:columns]
        if columns > len(reads):
            raise ModelError(
                f"the features of {path} read {columns} columns, but `tallytree {name}` reads words and tags "
                "only; predict in Python"
            )
        return cls(name, reads, "columns", column_of(None, name, "columns"))

    def rows(self, block: Block, kind: Format) -> list[Row]:
        """Return the columns used for features."""
        places = _PLACES[kind]
        missing = [what for what in self.reads if what not in places]
        if missing:
            raise ModelError(
                f"this model needs a {missing[0]} for each word, which raw text does not have; use columns"
            )
        if kind == "columns" and 0 < self.columns < len(block.rows[0]):
            raise ModelError(
                f"{block.place(0)}: there are {len(block.rows[0])} columns, but the model was trained on "
                f"{self.columns} (with the labels): {' '.join(block.rows[0])!r}; write one "
                f"{' and its '.join(self.reads)} per line{_AS_TEXT if self.reads == ('word',) else ''}"
            )
        columns = [_column(block, places[what], what) for what in self.reads]
        return list(zip(*columns, strict=True))

    def labels(self, block: Block, kind: Format, advice: str) -> list[str]:
        """Return the labels in a file; `advice`: what to do if they are not there."""
        if kind == "text":
            raise ModelError("raw text has no labels to train on or to compare with; use columns")
        return _column(block, self._of_labels(kind), "label", advice)

    def place(self, kind: Format) -> str:
        """Return where the labels of a file are, for messages."""
        column = self._of_labels(kind)
        return "the last column" if column == LAST else f"column {column + 1}"

    def _of_labels(self, kind: Format) -> int:
        return self.target if kind == "conllu" else self.column

    @property
    def target(self) -> int:
        """The column of CoNLL-U that is filled in."""
        return self.column if self.format == "conllu" else _PLACES["conllu"]["tag"]


def hint(row: Row, advice: str) -> str:
    """Return what to do about a missing or wrong label in a row, after the error."""
    if len(row) == 1:
        return "; columns are separated by spaces or tabs"
    return f"; {advice}" if advice else ""


def _column(block: Block, place: int, what: str, advice: str = "") -> list[str]:
    """Return one column of a sentence."""
    for token, row in enumerate(block.rows):
        if place >= len(row):
            there = "there is one column" if len(row) == 1 else f"there are {len(row)} columns"
            raise ModelError(
                f"{block.place(token)}: the {what} should be in column {place + 1}, but {there}: "
                f"{' '.join(row)!r}{hint(row, advice)}"
            )
    return [row[place] for row in block.rows]


def column_of(text: str | None, name: str, kind: Format) -> int:
    """Return the column of the labels: as given by ``--column``, or the usual one."""
    if text is None:
        return _PLACES[kind]["tag"] if name == "tag" else LAST
    if text == "last":
        return LAST
    if kind == "conllu" and text.lower() in Token._fields:
        return Token._fields.index(text.lower())
    if text.isascii() and text.isdigit() and 0 < int(text) < 1000:
        return int(text) - 1
    raise UsageError(f"--column takes a number from 1, 'last', or a CoNLL-U name such as xpos; got {text!r}")


def format_of(given: str | None, path: str, otherwise: Format) -> Format:
    """Return the format of a file: as given, by its extension, or the usual one."""
    chosen: Any = given or ("conllu" if Path(path).suffix == ".conllu" else otherwise)
    return chosen  # type: ignore[no-any-return]


def blocks_of(path: str, kind: Format) -> Iterator[Block]:
    """Iterate over the sentences of a file, or of standard input (``-``)."""
    if kind == "text":
        return (_of_words(line.split()) for line in text_lines(path))
    return (plain_blocks if kind == "columns" else conllu_blocks)(_source(path))


def text_lines(path: str) -> Iterator[str]:
    """Iterate over the non-empty lines of a text."""
    for block in plain_blocks(_source(path), comments=""):  # every line is a comment: none is parsed
        yield from block.lines


def _source(path: str) -> str | TextIO:
    return TextIOWrapper(standard_input(), encoding="utf-8-sig") if path == "-" else path


def _of_words(words: list[str]) -> Block:
    return Block(words, list(range(len(words))), [(word,) for word in words])


def labelled(block: Block, kind: Format, columns: Sequence[Sequence[str]], target: int) -> list[str]:
    """Return the lines of a block with labels: one more column per labelling, or one that is filled in."""
    lines = list(block.lines)
    for token, place in enumerate(block.places):
        labels = [labelling[token] for labelling in columns]
        if kind == "conllu":
            fields = lines[place].split("\t")
            fields[target] = labels[0]
            lines[place] = "\t".join(fields)
        else:
            between = "\t" if kind == "text" or "\t" in lines[place] else " "
            lines[place] = between.join([lines[place], *labels])
    return lines


class Unanswered:
    """Sentences without an answer: each is reported when it is found, and their number at the end."""

    def __init__(self, noun: str) -> None:
        self.noun, self.count, self._sentences = noun, 0, 0

    def checked(self, answers: list[Any] | TallytreeError, words: Sequence[str]) -> list[Any]:
        """Return the answers for the next sentence; report it if there are none."""
        self._sentences += 1
        if isinstance(answers, TallytreeError) and not isinstance(answers, InfeasibleError):
            raise answers
        if isinstance(answers, list) and answers:
            return answers
        self.count += 1
        beginning = visible(" ".join(words[:_SHOWN])) + (" …" if len(words) > _SHOWN else "")
        reason = f"no {self.noun}" if isinstance(answers, list) else str(answers)
        sys.stderr.write(f"tallytree: sentence {self._sentences} ({beginning}): {reason}\n")
        return []

    def report(self) -> None:
        """Report how many sentences have no answer."""
        if self.count:
            verb = "has" if self.count == 1 else "have"
            total = counted(self._sentences, "sentence")
            sys.stderr.write(f"tallytree: {self.count} of {total} {verb} no {self.noun}\n")


@contextmanager
def written_to(path: str | None, *, shown: bool) -> Iterator[Callable[[list[str]], None]]:
    """Yield a function that writes lines to a file, to standard output, or nowhere."""

    def writer(stream: TextIO) -> Callable[[list[str]], None]:
        return lambda lines: stream.writelines(for_terminal(f"{line}\n", stream) for line in lines)

    if path is None or path == "-":
        yield writer(sys.stdout) if shown or path == "-" else lambda lines: None
        return
    with replacing_text(path) as file:
        yield lambda lines: file.writelines(f"{line}\n".encode() for line in lines)
