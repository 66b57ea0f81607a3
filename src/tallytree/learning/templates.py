"""Feature templates: strings for each position of a sentence, from its columns in a window.

A template lists places relative to the position, as ``(column, offset)``: the template ``((0, -1), (0, 0))``
on a sentence of (word, tag) rows gives the previous word together with the word itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.learning.attributes import NumberedNames
from tallytree.values import counted

Template = tuple[tuple[int, int], ...]
"""Places (column, offset) that are read together."""

Row = Sequence[str]
Integers = NDArray[np.int64]


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
"""Words in a window of five and pairs of them; :func:`word_parts` adds features of the word itself."""

_BEFORE, _AFTER = "<s>", "</s>"


def templated(sentence: Sequence[Row], templates: Iterable[Template] = CHUNKING) -> list[list[str]]:
    """Return the features of each position.

    Parameters
    ----------
    sentence : sequence of rows
        Each row is a sequence of columns, such as word and tag.
    templates : iterable of Template
        The templates. Places before and after the sentence are read as ``<s>`` and ``</s>``.

    Examples
    --------
    >>> templated([("the", "DT"), ("cat", "NN")], [((1, 0),), ((0, -1), (0, 0))])
    [['1[0]=DT', '0[-1]|0[0]=<s>|the'], ['1[0]=NN', '0[-1]|0[0]=the|cat']]
    """
    return _templated(sentence, CHUNKING if templates is CHUNKING else checked_templates(templates))


def _templated(sentence: Sequence[Row], templates: Sequence[Template]) -> list[list[str]]:
    needed = _columns(templates)
    _check_rows(sentence, needed)
    columns = list(zip(*(row[:needed] for row in sentence), strict=True))
    reach = _reach(templates)
    padded = [[_BEFORE] * reach + list(column) + [_AFTER] * reach for column in columns]
    features = [_features(padded, template, reach, len(sentence)) for template in templates if len(sentence)]
    return list(map(list, zip(*features, strict=True))) or [[] for _ in sentence]


def _features(padded: list[list[str]], template: Template, first: int, length: int) -> list[str]:
    """Return the feature of each position that a template makes."""
    prefix = _prefix(template)
    places = [padded[column][first + offset : first + offset + length] for column, offset in template]
    if len(places) == 1:
        return [prefix + text for text in places[0]]
    return (
        [prefix + text for text in map("|".join, zip(*places, strict=True))] if places else [prefix] * length
    )


def checked_templates(templates: Any) -> tuple[Template, ...]:
    """Return templates as tuples; raise an error if they are malformed."""
    try:
        made = tuple(tuple((column, offset) for column, offset in template) for template in templates)
    except (TypeError, ValueError):
        made = (((-1, 0),),)
    places = [place for template in made for place in template]
    whole = all(type(number) is int for place in places for number in place)
    if not whole or any(column < 0 or abs(offset) > _FARTHEST for column, offset in places):
        raise ModelError(
            "a template is a sequence of (column, offset), with columns from 0 and offsets up to "
            f"{_FARTHEST}; got {templates!r}"
        )
    return made


def _columns(templates: Iterable[Template]) -> int:
    """Return the number of columns that a row needs."""
    return max((column + 1 for template in templates for column, _ in template), default=1)


def _check_rows(sentence: Any, columns: int) -> None:
    if isinstance(sentence, (str, Mapping)) or not isinstance(sentence, Iterable):
        raise ModelError(f"a sentence must be a sequence of rows, got {sentence!r:.80}")
    plain = set(map(type, sentence)) <= {list, tuple} and min(map(len, sentence), default=columns) >= columns
    if plain and set(map(type, chain.from_iterable(row[:columns] for row in sentence))) <= {str}:
        return  # the usual case
    for row in sentence:
        if isinstance(row, (str, Mapping)) or not isinstance(row, Collection) or len(row) < columns:
            raise ModelError(f"each position must be a row of {counted(columns, 'column')}, got {row!r}")
        if not all(isinstance(one, str) for one in list(row)[:columns]):
            raise ModelError(f"the columns of a row must be strings, got {row!r}")


def _reach(templates: Iterable[Template]) -> int:
    return 1 + max((abs(offset) for template in templates for _, offset in template), default=0)


@lru_cache
def _prefix(template: Template) -> str:
    return "|".join(f"{column}[{offset}]" for column, offset in template) + "="


def shape(word: str) -> str:
    """Return the shape of a word: capitals, lower case, digits and the rest, with runs shortened.

    Examples
    --------
    >>> shape("McCoy-2024"), shape("tally")
    ('XxXx-0', 'x')
    """
    kinds = ["0" if c.isdigit() else "X" if c.isupper() else "x" if c.isalpha() else c for c in word]
    return "".join(kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before)


def word_parts(word: str, longest: int = 4) -> list[str]:
    """Return features of a single word for tagging: prefixes, suffixes, shape and lower case.

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
    """Features of sentences in columns, for ``SequenceSVM(features=…)``: examples are then lists of rows.

    Parameters
    ----------
    templates : sequence of Template
        The templates.
    parts : bool
        Whether to add features of the word in the first column: :func:`word_parts`.

    Examples
    --------
    >>> features = WindowFeatures([((0, 0),), ((0, 1),)])
    >>> features([("the", "DT"), ("cat", "NN")])
    [['0[0]=the', '0[1]=cat'], ['0[0]=cat', '0[1]=</s>']]
    >>> WindowFeatures(), WindowFeatures(TAGGING, parts=True)
    (WindowFeatures(), WindowFeatures(TAGGING, parts=True))
    """

    templates: Sequence[Template] = CHUNKING
    parts: bool = False

    def __repr__(self) -> str:
        shown = {CHUNKING: "", TAGGING: "TAGGING"}.get(tuple(self.templates), repr(self.templates))
        return f"WindowFeatures({', '.join(filter(None, (shown, 'parts=True' if self.parts else '')))})"

    def __post_init__(self) -> None:
        object.__setattr__(self, "templates", checked_templates(self.templates))

    @property
    def columns(self) -> int:
        """The number of columns that a row needs."""
        return _columns(self.templates)

    def __call__(self, sentence: Sequence[Row]) -> list[list[str]]:
        """Return the features of each position."""
        features = _templated(sentence, self.templates)
        if not self.parts:
            return features
        return [names + word_parts(row[0]) for names, row in zip(features, sentence, strict=True)]

    def numbered(self, sentences: Sequence[Sequence[Row]]) -> NumberedNames | None:
        """Return the features of all positions of several sentences, with every string made once.

        None if a row is not a list or tuple of enough strings: reading the sentences one by one then reports
        the error.

        Examples
        --------
        >>> WindowFeatures([((0, 0),)]).numbered([[["a"], ["b"]], [["a"]]]).numbers
        array([0, 1, 0])
        """
        rows = list(chain.from_iterable(sentences))
        if not rows or not self.templates or not set(map(type, rows)) <= {list, tuple}:
            return None
        if min(map(len, rows)) < self.columns:
            return None
        texts = [[row[column] for row in rows] for column in range(self.columns)]
        if any(set(map(type, column)) != {str} for column in texts):
            return None
        window = _Windows(texts, [len(sentence) for sentence in sentences], _reach(self.templates))
        names, numbers = window.read(self.templates)
        return window.with_parts(names, numbers) if self.parts else NumberedNames(names, *_flat(numbers))


class _Windows:
    """The columns of many sentences, with the strings of each column numbered.

    Numbers 0 and 1 are for places before and after a sentence.
    """

    def __init__(self, texts: list[list[str]], lengths: list[int], reach: int) -> None:
        ends = np.cumsum(lengths) + reach * (2 * np.arange(len(lengths)) + 1)
        self.places = np.arange(len(texts[0])) + np.repeat(reach * (2 * np.arange(len(lengths)) + 1), lengths)
        self.strings = [[_BEFORE, _AFTER, *dict.fromkeys(column)] for column in texts]
        self.numbers = []
        for column, strings in zip(texts, self.strings, strict=True):
            known = dict(zip(strings[2:], range(2, len(strings)), strict=True))
            numbers = np.zeros(len(column) + 2 * reach * len(lengths), dtype=np.int64)
            numbers[(ends[:, np.newaxis] + np.arange(reach)).ravel()] = 1
            numbers[self.places] = np.fromiter(map(known.__getitem__, column), np.int64, len(column))
            self.numbers.append(numbers)

    def read(self, templates: Sequence[Template]) -> tuple[list[str], list[Integers]]:
        """Return the strings of all templates, and for each template the number at each position."""
        names: list[str] = []
        numbers = []
        for template in templates:
            parts = [self.numbers[column][self.places + offset] for column, offset in template]
            sizes = [len(self.strings[column]) for column, _ in template]
            number, example = _renumbered(parts, sizes, len(self.places))
            read = [
                map(self.strings[column].__getitem__, part[example].tolist())
                for (column, _), part in zip(template, parts, strict=True)
            ]
            numbers.append(number + len(names))
            prefix = _prefix(template)
            made = map("|".join, zip(*read, strict=True)) if read else [""]
            names += [prefix + text for text in made]
        return names, numbers

    def with_parts(self, names: list[str], numbers: list[Integers]) -> NumberedNames:
        """Add the features of the words themselves, those in the first column."""
        parts = [word_parts(word) for word in self.strings[0]]
        sizes = np.array([len(some) for some in parts])
        word = self.numbers[0][self.places]
        flat, widths = _flat(numbers)
        counts = sizes[word]
        firsts = np.cumsum(sizes) - sizes + len(names)  # of each word's features, after the names so far
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        ends = np.repeat(np.cumsum(widths), counts)
        every = np.insert(flat, ends, np.repeat(firsts[word], counts) + within)
        return NumberedNames(names + list(chain.from_iterable(parts)), every, widths + counts)


def _flat(numbers: list[Integers]) -> tuple[Integers, Integers]:
    """Return the numbers position by position, and the number of each position's features."""
    table = np.stack(numbers, axis=1)
    return table.ravel(), np.full(len(table), table.shape[1])


def _renumbered(parts: list[Integers], sizes: list[int], count: int) -> tuple[Integers, Integers]:
    """Return the numbers of the tuples at each position, and for each tuple a position with it."""
    number, size = np.zeros(count, dtype=np.int64), 1
    for part, more in zip(parts, sizes, strict=True):
        size *= more
        number = number * more + part
        if size <= 8 * count + 64:
            occurs = np.zeros(size, dtype=np.bool_)
            occurs[number] = True
            number = (np.cumsum(occurs) - 1)[number]
        else:
            number = np.unique(number, return_inverse=True)[1]
        size = int(number.max()) + 1
    example = np.empty(size, dtype=np.int64)
    example[number] = np.arange(count)
    return number, example
