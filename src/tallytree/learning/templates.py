"""Feature templates: strings for each position of a sentence, from its columns in a window.

A template names places relative to the position, as ``(column, offset)``: the template ``((0, -1), (0, 0))``
on a sentence of (word, tag) rows gives the word before together with the word itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["CHUNKING", "TAGGING", "Template", "shape", "templated", "word_parts"]

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
