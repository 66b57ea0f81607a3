"""Shared by all value classes: immutability, read-only arrays, and digests of content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

set_once = object.__setattr__
"""Sets the slots of a :class:`Frozen` value in its constructor."""


class Frozen:
    """An immutable value: its slots are set by the constructor and never change."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"cannot set {name!r}: a {type(self).__name__} is immutable; create a new one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete {name!r}: a {type(self).__name__} is immutable")


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


class Once(Generic[T]):
    """Call a function once for each combination of arguments, compared by identity; numbers by value.

    Long chains repeat a few tables at thousands of positions. The result for each is computed once and
    shared.

    Examples
    --------
    >>> double = Once(lambda array: 2 * array)
    >>> table = np.arange(3)
    >>> double(table) is double(table), double(table) is double(table.copy())
    (True, False)
    """

    def __init__(self, function: Callable[..., T]) -> None:
        self._function = function
        self._known: dict[tuple[int, ...], tuple[T, tuple[Any, ...]]] = {}

    def __call__(self, *arguments: Any) -> T:
        """Return the result for these arguments, which are kept alive with it."""
        key = tuple([one if isinstance(one, int) else id(one) for one in arguments])
        if key not in self._known:
            self._known[key] = self._function(*arguments), arguments
        return self._known[key][0]
