"""Shared by all value classes: immutability, read-only arrays, digests of content, repeated values, names."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import takewhile
from typing import Any, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
U = TypeVar("U")

set_once = object.__setattr__
"""Sets the slots of a :class:`Frozen` value in its constructor."""


class Frozen:
    """An immutable value: its slots are set by the constructor and never change."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"cannot set {name!r}: a {type(self).__name__} is immutable; create a new one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete {name!r}: a {type(self).__name__} is immutable")


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the name that was probably meant, if any is similar enough.

    Case and surrounding white space are ignored first; then swapped letters are the likeliest slip, and of
    names that are as similar, the one that begins in the same way is chosen.

    Examples
    --------
    >>> [nearest(name, ["B-NP", "B-PP", "O"]) for name in ("b-np", "B-PN", "B-NPP", "x")]
    ['B-NP', 'B-NP', 'B-NP', None]
    """
    names = list(known)
    for other in names:
        if other.strip().casefold() == name.strip().casefold():
            return other

    def distance(other: str) -> tuple[bool, float, int]:
        alike = SequenceMatcher(None, other, name).ratio()
        beginning = list(takewhile(lambda pair: pair[0] == pair[1], zip(other, name, strict=False)))
        return sorted(other) != sorted(name), -alike, -len(beginning)

    return min(get_close_matches(name, names, 9, cutoff), key=distance, default=None)


def counted(number: float, noun: str, shown: str | None = None) -> str:
    """Format a count with its noun, in the plural where needed; ``shown`` is another form of the number.

    Examples
    --------
    >>> counted(1, "tally"), counted(0, "statistic"), counted(1200, "tally"), counted(2, "plain pass")
    ('1 tally', '0 statistics', '1,200 tallies', '2 plain passes')
    """
    text = f"{number:,}" if shown is None else shown
    return f"{text} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def abbreviated(text: str, most: int) -> str:
    """Return the text, without its middle if it has more than ``most`` letters.

    Examples
    --------
    >>> abbreviated("temperature at station 12", 12)
    'temper…on 12'
    """
    head = most // 2
    return text if len(text) <= most else f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"


def integral(value: Any) -> int:
    """Return an integer, or a float without a fraction, as an int; raise TypeError for anything else.

    Examples
    --------
    >>> integral(np.int64(2)), integral(np.float32(2.0))
    (2, 2)
    >>> integral(2.5)
    Traceback (most recent call last):
    TypeError: 'float' object cannot be interpreted as an integer
    """
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return operator.index(int(value) if whole else value)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Mark an array that we own as read-only, in place, with the arrays it is a view of; return it."""
    array.setflags(write=False)
    base = array.base
    while isinstance(base, np.ndarray):
        base.setflags(write=False)
        base = base.base
    return array


def owned(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return a read-only C-contiguous array that nobody can change: the same one if possible, or a copy.

    Views of writable memory, or of memory that does not belong to NumPy, are copied.

    Examples
    --------
    >>> writable = np.zeros(3)
    >>> view = writable[:]
    >>> view.setflags(write=False)
    >>> owned(view, np.float64) is view
    False
    >>> kept = read_only(np.zeros(6).reshape(2, 3))
    >>> owned(kept, np.float64) is kept
    True
    """
    flags, base = array.flags, array.base
    fits = flags.c_contiguous and array.dtype == dtype and type(array) is np.ndarray
    if fits and not flags.writeable and (base is None or _is_settled(base)):
        return array
    return read_only(np.array(array, dtype=dtype, order="C"))


def _is_settled(base: object) -> bool:
    """Whether no writable array shares the memory of views of this one, as far as can be seen."""
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return base is None or isinstance(base, bytes)


def is_masked(value: object) -> bool:
    """Whether something is a masked array with masked entries, which a plain array would expose."""
    return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(value))


def digest(array: NDArray[Any]) -> bytes:
    """Return a 16-byte digest of the shape and content of an array."""
    content = hashlib.blake2b(repr(array.shape).encode(), digest_size=16)
    content.update(array.data if array.size else b"")
    return content.digest()


class Repeated(Sequence[T]):
    """A long sequence of a few objects: each of them once, and the number of the one at each position.

    Long chains repeat a few tables at thousands of positions. What follows from a table is computed once.

    Examples
    --------
    >>> one, two = np.arange(3), np.arange(2)
    >>> tables = Repeated.of([one, two, one, one])
    >>> tables.numbers, len(tables.distinct), tables[2] is one
    (array([0, 1, 0, 0]), 2, True)
    >>> sums = each(lambda a, b: a.sum() + b.sum(), tables[1:], tables[:-1])
    >>> list(map(int, sums)), len(sums.distinct)
    ([4, 4, 6], 3)
    """

    def __init__(self, distinct: Sequence[T], numbers: NDArray[np.int64]) -> None:
        self.distinct, self.numbers = distinct, numbers

    @classmethod
    def of(cls, values: Sequence[T]) -> Repeated[T]:
        """Return a sequence in this form; objects are compared by identity."""
        if isinstance(values, Repeated):
            return values
        known: dict[int, int] = {}
        kept = list(values)  # all alive at once: rows of an array are made anew when asked for, and ids recur
        numbers = np.array([known.setdefault(id(value), len(known)) for value in kept], dtype=np.int64)
        _, first = np.unique(numbers, return_index=True)
        return cls([kept[place] for place in first.tolist()], numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Repeated[T]: ...
    def __getitem__(self, place: int | slice) -> T | Repeated[T]:
        """Return the object at a position, or those of a slice."""
        if isinstance(place, slice):
            return Repeated(self.distinct, self.numbers[place])
        return self.distinct[int(self.numbers[place])]

    def __iter__(self) -> Iterator[T]:
        return map(self.distinct.__getitem__, self.numbers.tolist())

    def mapped(self, function: Callable[[T], U]) -> Repeated[U]:
        """Return the result of a function at each position, which is called once for each object."""
        return Repeated([function(one) for one in self.distinct], self.numbers)

    def values(self, function: Callable[[T], int]) -> NDArray[np.int64]:
        """Return an integer for each position."""
        return np.array([function(one) for one in self.distinct], dtype=np.int64)[self.numbers]

    @property
    def places(self) -> list[tuple[T, NDArray[np.int64]]]:
        """Each object with its positions, in order of appearance."""
        few = len(self.distinct) <= np.iinfo(np.uint16).max
        # small integers are sorted in linear time
        order = np.argsort(self.numbers.astype(np.uint16) if few else self.numbers, kind="stable")
        sizes = np.bincount(self.numbers, minlength=1)
        ends = sizes.cumsum()
        groups = [
            order[end - size : end] for size, end in zip(sizes.tolist(), ends.tolist(), strict=True) if size
        ]
        return [(self[int(group[0])], group) for group in sorted(groups, key=lambda group: int(group[0]))]


def each(function: Callable[..., T], *sequences: Repeated[Any]) -> Repeated[T]:
    """Call a function once for each combination of objects that occurs at a position."""
    codes, most = sequences[0].numbers, len(sequences[0].distinct)
    for other in sequences[1:]:  # renumbered, so that codes stay small
        first, numbers = _distinct(codes, most)
        codes, most = numbers * len(other.distinct) + other.numbers, len(first) * len(other.distinct)
    first, numbers = _distinct(codes, most)
    columns = [map(one.distinct.__getitem__, one.numbers[first].tolist()) for one in sequences]
    return Repeated(list(map(function, *columns)), numbers)


def _distinct(codes: NDArray[np.int64], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each of some codes occurs first, and the number of each one; codes are below `most`."""
    if most > 16 * len(codes) + 1024:
        _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
        return first, numbers.reshape(-1)
    places = np.full(most, -1, dtype=np.int64)
    places[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    there = places >= 0
    return places[there], (there.cumsum() - 1)[codes]
