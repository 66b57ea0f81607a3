"""What all values of the library share: they are frozen, their arrays are read-only, content has a digest."""

from __future__ import annotations

import hashlib
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

__all__ = ["Frozen", "counted", "digest", "is_masked", "owned", "read_only", "set_once"]

set_once = object.__setattr__
"""How the constructor of a :class:`Frozen` value fills its slots."""


class Frozen:
    """A value: its slots are filled by the constructor and never change."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"cannot set {name!r}: a {type(self).__name__} is immutable; make a new one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete {name!r}: a {type(self).__name__} is immutable")


def counted(number: int, noun: str) -> str:
    """Write a number of things, for people."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Mark an array of our own as read-only, in place, and return it."""
    array.setflags(write=False)
    return array


def owned(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Give a read-only C-contiguous array: the same one if it is that already, otherwise a copy."""
    flags = array.flags
    if flags.writeable or not flags.c_contiguous or array.dtype != dtype:
        array = read_only(np.array(array, dtype=dtype, order="C"))
    return array


def is_masked(value: object) -> bool:
    """Say whether something is an array that hides some of its entries, which a plain array would show."""
    return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(value))


def digest(array: NDArray[Any]) -> bytes:
    """Sixteen bytes that stand for the shape and the content of an array."""
    content = hashlib.blake2b(repr(array.shape).encode(), digest_size=16)
    content.update(array.data if array.size else b"")
    return content.digest()
