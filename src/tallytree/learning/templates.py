"""Feature templates: strings for each position of a sentence, from its columns in a window.

A template names places relative to the position, as ``(column, offset)``: the template ``((0, -1), (0, 0))``
on a sentence of (word, tag) rows gives the word before together with the word itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tallytree.errors import ModelError

__all__ = ["CHUNKING", "TAGGING", "Template", "WindowFeatures", "shape", "templated", "word_parts"]

Template = tuple[tuple[int, int], ...]
"""Places (column, offset) that are read together."""

Row = Sequence[str]


def _window(column: int, reach: int) -> list[Template]:
    return [((column, offset),) for offset in range(-reach, reach + 1)]


CHUNKING: tuple[Template, ...] = (
    *_window(0, 2),
    ((0, -1), (0, 0)),
    ((0, 0), (0, 1)),
    *_window(1, 2),
    *(((1, offset), (1, offset + 1)) for offset in range(-2, 2)),
    *(((1, offset), (1, offset + 1), (1, offset + 2)) for offset in range(-2, 1)),
)
"""Words and tags in a window of five, pairs of words, pairs and triples of tags: 19 for each position."""

TAGGING: tuple[Template, ...] = (*_window(0, 2), ((0, -1), (0, 0)), ((0, 0), (0, 1)))
"""Words in a window of five and pairs of them; :func:`word_parts` adds what a word looks like."""

_BEFORE, _AFTER = "<s>", "</s>"


def templated(sentence: Sequence[Row], templates: Iterable[Template] = CHUNKING) -> list[list[str]]:
    """Return the features of each position.

    Parameters
    ----------
    sentence : sequence of rows
        Each a sequence of columns, as word and tag.
    templates : iterable of Template
        What to read. Places before and after the sentence read ``<s>`` and ``</s>``.

    Examples
    --------
    >>> templated([("the", "DT"), ("cat", "NN")], [((1, 0),), ((0, -1), (0, 0))])
    [['1[0]=DT', '0[-1]|0[0]=<s>|the'], ['1[0]=NN', '0[-1]|0[0]=the|cat']]
    """
    columns = list(zip(*sentence, strict=True))
    reach = 1 + max((abs(offset) for template in templates for _, offset in template), default=0)
    padded = [[_BEFORE] * reach + list(column) + [_AFTER] * reach for column in columns]
    named = [("|".join(f"{column}[{offset}]" for column, offset in t) + "=", t) for t in templates]
    return [
        [name + "|".join([padded[column][place + offset] for column, offset in t]) for name, t in named]
        for place in range(reach, reach + len(sentence))
    ]


def shape(word: str) -> str:
    """Return the shape of a word: capitals, small letters, digits and the rest, runs shortened.

    Examples
    --------
    >>> shape("McCoy-2024"), shape("tally")
    ('XxXx-0', 'x')
    """
    kinds = ["0" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word]
    return "".join(kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before)


def word_parts(word: str, longest: int = 4) -> list[str]:
    """Return features of a single word for tagging: its ends, its shape and its lower case.

    Examples
    --------
    >>> word_parts("Cats", longest=2)
    ['lower=cats', 'shape=Xx', 'starts=C', 'ends=s', 'starts=Ca', 'ends=ts']
    """
    sizes = range(1, min(longest, len(word)) + 1)
    ends = [part for n in sizes for part in (f"starts={word[:n]}", f"ends={word[-n:]}")]
    return [f"lower={word.lower()}", f"shape={shape(word)}", *ends]


_FARTHEST = 100


@dataclass(frozen=True)
class WindowFeatures:
    """Features of sentences in columns, for ``SequenceSVM(features=…)``: the estimator then takes rows.

    Parameters
    ----------
    templates : sequence of Template
        What to read around each position.
    parts : bool
        Whether to add what the word, the first column, looks like: :func:`word_parts`.

    Examples
    --------
    >>> features = WindowFeatures([((0, 0),), ((0, 1),)])
    >>> features([("the", "DT"), ("cat", "NN")])
    [['0[0]=the', '0[1]=cat'], ['0[0]=cat', '0[1]=</s>']]
    """

    templates: Sequence[Template] = CHUNKING
    parts: bool = False

    def __post_init__(self) -> None:
        templates = tuple(tuple((column, offset) for column, offset in t) for t in self.templates)
        places = [place for template in templates for place in template]
        whole = all(type(number) is int for place in places for number in place)
        if not whole or any(column < 0 or abs(offset) > _FARTHEST for column, offset in places):
            raise ModelError(
                "a template is a sequence of (column, offset), columns from 0 and offsets up to "
                f"{_FARTHEST}; got {self.templates!r}"
            )
        object.__setattr__(self, "templates", templates)

    @property
    def columns(self) -> int:
        """How many columns a row needs."""
        return max((column + 1 for template in self.templates for column, _ in template), default=1)

    def __call__(self, sentence: Sequence[Row]) -> list[list[str]]:
        """Return the features of each position."""
        for row in sentence:
            if isinstance(row, str) or len(row) < self.columns:
                raise ModelError(f"each position is a row of {self.columns} columns, got {row!r}")
        found = templated([row[: self.columns] for row in sentence], self.templates)
        if not self.parts:
            return found
        return [names + word_parts(row[0]) for names, row in zip(found, sentence, strict=True)]
