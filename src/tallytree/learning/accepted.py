"""The values that parameters accept: a description and a test."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import inf
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from tallytree.errors import ModelError


class Accepted(NamedTuple):
    """The values that a parameter accepts.

    Examples
    --------
    >>> POSITIVE.check("C", 0.5)
    >>> POSITIVE.check("C", "0.5")
    Traceback (most recent call last):
    tallytree.errors.ModelError: C must be a positive number, got '0.5'
    """

    words: str  # after "must be"
    test: Callable[[Any], bool]

    def check(self, name: str, value: object) -> None:
        """Raise an error for a value that is not accepted."""
        if not self.test(value):
            raise ModelError(f"{name} must be {self.words}, got {value!r}")

    def or_none(self) -> Accepted:
        """Return the same, with None accepted as well."""
        return Accepted(f"{self.words}, or None", lambda value: value is None or self.test(value))


def _is_number(value: object) -> bool:
    """Return whether a value is a real number; booleans, which Python counts as numbers, are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def integer(least: int, words: str, below: float = inf) -> Accepted:
    """Accept integers, including NumPy's, that are at least ``least``."""
    return Accepted(words, lambda value: _is_integer(value) and least <= value < below)


def one_of(*values: str) -> Accepted:
    """Accept some strings."""
    *most, last = map(repr, values)
    return Accepted(
        f"{', '.join(most)} or {last}", lambda value: isinstance(value, str) and str(value) in values
    )


def instance(words: str, *kinds: type) -> Accepted:
    """Accept instances of classes, or None."""
    return Accepted(words, lambda value: value is None or isinstance(value, kinds))


NUMBER = Accepted("a finite number", lambda value: _is_number(value) and -inf < value < inf)
POSITIVE = Accepted("a positive number", lambda value: _is_number(value) and 0.0 < value < inf)
NON_NEGATIVE = Accepted("a non-negative number", lambda value: _is_number(value) and 0.0 <= value < inf)
NO_LIMIT = Accepted("a non-negative number", lambda value: _is_number(value) and value >= 0.0)
PROBABILITY = Accepted("a number from 0 to 1", lambda value: _is_number(value) and 0.0 <= value <= 1.0)
COUNT = integer(1, "a positive integer")
NATURAL = integer(0, "a non-negative integer")
FLAG = Accepted("True or False", lambda value: isinstance(value, (bool, np.bool_)) or _is_bit(value))
PASSES = Accepted(
    "a positive integer, or inf",
    lambda value: COUNT.test(value) or (_is_number(value) and value == inf),
)
JOBS = Accepted(
    "a positive integer, -1 for all processors, or None",
    lambda value: value is None or (_is_integer(value) and value != 0),
)
VERBOSE = Accepted("True or False", lambda value: FLAG.test(value) or NATURAL.test(value))
FILE = instance("a path, or None", str, os.PathLike)
CALLBACK = Accepted("a function, or None", lambda value: value is None or callable(value))


def _is_bit(value: object) -> bool:
    return _is_integer(value) and value in (0, 1)


def check_all(owner: object, **accepted: Accepted) -> None:
    """Check some attributes of an object."""
    for name, one in accepted.items():
        one.check(name, getattr(owner, name))
