"""From user input for each position to rows of a sparse matrix.

A position is a row of a dense or sparse matrix, a list of strings, or a dictionary, as sklearn-crfsuite
accepts them: ``{"word": "the", "capital": False, "length": 3.0}`` has the attributes ``word:the``,
``capital`` (0) and ``length`` (3). Strings become columns by a learned vocabulary, or by hashing.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher

from tallytree.bulk.expectations import SparseRows
from tallytree.bulk.name_tables import NameTable
from tallytree.errors import ModelError
from tallytree.learning.examples import brief, of_each
from tallytree.values import counted

Rows = Any
"""A sparse matrix in row order, one row for each position."""


_WORDS = "; for sentences of words, set features=WindowFeatures()"


def attributes(position: Any) -> Iterator[tuple[str, float]]:
    """Iterate over the attributes of a position and their values.

    Examples
    --------
    >>> list(attributes({"word": "the", "capital": True, "length": 3, "tags": ["DT", "IN"]}))
    [('word:the', 1.0), ('capital', 1.0), ('length', 3.0), ('tags:DT', 1.0), ('tags:IN', 1.0)]
    >>> list(attributes(["the", "DT"]))
    [('the', 1.0), ('DT', 1.0)]
    """
    if isinstance(position, Mapping):
        for name, value in position.items():
            yield from _named(str(name), value)
    elif isinstance(position, str) or not isinstance(position, Iterable):
        raise ModelError(
            "a position must be a list of strings, a dictionary of attributes or a row of numbers, got "
            f"{position!r}{_WORDS if isinstance(position, str) else ''}"
        )
    else:
        for name in position:
            if not isinstance(name, str):
                raise ModelError(f"attributes of a position must be strings, got {name!r} in {position!r}")
            yield name, 1.0


def _plain_names(positions: Sequence[Any]) -> list[str] | None:
    """Return the attributes of positions that are all lists of strings, concatenated; None for others."""
    if not set(map(type, positions)) <= {list}:
        return None
    names = list(chain.from_iterable(positions))
    return names if set(map(type, names)) <= {str} else None


def _names(positions: Sequence[Any]) -> list[str]:
    """Return the attributes of all positions."""
    names = _plain_names(positions)
    return [name for one in positions for name, _ in attributes(one)] if names is None else names


def _named(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, str):
        yield f"{name}:{value}", 1.0
    elif isinstance(value, (bool, int, float, np.number, np.bool_)):
        yield name, _finite(name, value)
    elif isinstance(value, Mapping):
        for inner, part in value.items():
            yield from _named(f"{name}:{inner}", part)
    elif isinstance(value, (list, tuple, set, frozenset)):
        if not all(isinstance(one, str) for one in value):
            raise ModelError(f"attribute {name!r} has {brief(value)}; the items of a list must be strings")
        for inner in sorted(value) if isinstance(value, (set, frozenset)) else value:
            yield f"{name}:{inner}", 1.0
    else:
        raise ModelError(
            f"attribute {name!r} has the value {value!r}; use strings, numbers, booleans, or lists or "
            "dictionaries of them"
        )


def _finite(name: str, value: Any) -> float:
    try:
        number = float(value)
    except OverflowError:  # of an integer
        raise ModelError(f"attribute {name!r} is too large for a float; scale or remove it") from None
    if isfinite(number):
        return number
    raise ModelError(f"attribute {name!r} is {number}, but values must be finite; impute or remove it")


class NumberedNames(NamedTuple):
    """The attributes of many positions, all of value 1, as indices into a list of names."""

    names: list[str]  # every attribute that occurs, at least once
    numbers: NDArray[np.int64]  # the attributes of all positions, concatenated
    sizes: NDArray[np.int64]  # the number of attributes of each position


class Encoder:
    """Turns the positions of an example into rows of a sparse matrix."""

    size: int

    def rows(self, positions: Any) -> Rows:
        """Return one row for each position."""
        raise NotImplementedError

    def stacked(self, examples: Sequence[Any], threads: int | None = None) -> tuple[SparseRows, list[int]]:
        """Return the rows of several examples, concatenated, and the length of each example."""
        rows = list(of_each(examples, self.rows))
        return SparseRows.of(sparse.vstack(rows, format="csr")), [matrix.shape[0] for matrix in rows]


@dataclass(frozen=True)
class Columns(Encoder):
    """Rows that are already numeric: a matrix, dense or sparse, with a fixed number of columns."""

    size: int

    def __post_init__(self) -> None:
        _check_size(self.size)

    def rows(self, positions: Any) -> Rows:
        """Return the matrix as a sparse one."""
        matrix = as_matrix(positions)
        if matrix.shape[1] != self.size:
            raise ModelError(f"positions had {self.size} features in training, got {matrix.shape[1]}")
        if not np.isfinite(matrix.data).all():
            raise ModelError("features must be finite, got nan or infinity; impute or remove them first")
        return matrix


def as_matrix(positions: Any) -> Rows:
    """Return a dense or sparse matrix as a sparse one."""
    return sparse.csr_matrix(positions if sparse.issparse(positions) else _dense(positions), dtype=np.float64)


def _dense(positions: Any) -> np.ndarray:
    try:
        array = np.asarray(positions, dtype=np.float64)
    except (TypeError, ValueError):
        if any(isinstance(position, (str, Mapping)) or _has_text(position) for position in positions):
            raise ModelError(
                f"expected rows of numbers, as in the first example, got {brief(positions)}"
            ) from None
        raise ModelError(f"rows of numbers must have the same length, got {brief(positions)}") from None
    if array.ndim != 2:
        raise ModelError(f"an example must have shape (positions, features), got {array.shape}")
    return array


def _has_text(position: Any) -> bool:
    return isinstance(position, Iterable) and any(map(_is_text, position))


@dataclass(frozen=True)
class Vocabulary(Encoder):
    """A column for each attribute seen in training; others are ignored."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(name, str) for name in self.names):
            raise ModelError("the attributes of a vocabulary must be strings")
        object.__setattr__(self, "_columns", {name: column for column, name in enumerate(self.names)})

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of columns."""
        return len(self.names)

    @cached_property
    def _table(self) -> NameTable:
        return NameTable(self.names)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the native table: it is rebuilt if needed."""
        return {name: value for name, value in vars(self).items() if name != "_table"}

    @classmethod
    def of(cls, examples: Iterable[Sequence[Any]], min_count: int = 1) -> Vocabulary:
        """Return the attributes that occur often enough, in order of first occurrence."""
        counts = Counter(chain.from_iterable(of_each(examples, _names)))
        names = tuple(str(name) for name, count in counts.items() if count >= min_count)
        if counts and not names:
            warnings.warn(
                f"no feature occurs {min_count} times (min_count), so only pairs of labels are learned; the "
                f"most frequent one occurs {counted(max(counts.values()), 'time')}: lower min_count",
                stacklevel=2,
            )
        return cls(names)

    def rows(self, positions: Sequence[Any]) -> Rows:
        """Return one row for each position."""
        return self._matrix(*self._entries(positions))

    def stacked(self, examples: Sequence[Any], threads: int | None = None) -> tuple[SparseRows, list[int]]:
        """Return the rows of several examples, concatenated, and the length of each example."""
        found = self._table.rows(examples, threads)
        if found is not None and np.isfinite(found.values).all():
            return found, list(map(len, examples))
        columns, values, sizes = zip(*of_each(examples, self._entries), strict=True)
        rows = self._matrix(np.concatenate(columns), np.concatenate(values), chain.from_iterable(sizes))
        return SparseRows.of(rows), list(map(len, sizes))

    def numbered_rows(self, given: NumberedNames) -> SparseRows:
        """Return one row for each position; every name is looked up once."""
        columns = self._columns_of(given.names)[given.numbers]
        return SparseRows.of(self._matrix(columns, np.ones(len(columns)), given.sizes))

    def _entries(self, positions: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.float64], list[int]]:
        """Return the columns and values of the attributes of all positions, and the number of each."""
        names = _plain_names(positions)
        if names is not None:
            return self._columns_of(names), np.ones(len(names)), list(map(len, positions))
        pairs = [list(attributes(position)) for position in positions]
        columns = self._columns_of([name for some in pairs for name, _ in some])
        values = np.array([value for some in pairs for _, value in some], dtype=np.float64)
        return columns, values, list(map(len, pairs))

    def _columns_of(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return the column of each name, -1 for names not seen in training."""
        columns: dict[str, int] = self._columns  # type: ignore[attr-defined]
        return np.fromiter(map(columns.get, names, repeat(-1)), np.int64, len(names))

    def _matrix(self, columns: NDArray[np.int64], values: NDArray[np.float64], sizes: Iterable[int]) -> Rows:
        kept = (columns >= 0) & (values != 0.0)
        begins = np.cumsum([0, *sizes])
        pointers = np.concatenate(([0], np.cumsum(kept)))[begins]
        return sparse.csr_matrix((values[kept], columns[kept], pointers), shape=(len(begins) - 1, self.size))


@dataclass(frozen=True)
class Hashed(Encoder):
    """A column by a hash of the attribute: no vocabulary to learn or store; some attributes collide."""

    size: int

    def __post_init__(self) -> None:
        _check_size(self.size, least=1)

    def rows(self, positions: Sequence[Any]) -> Rows:
        """Return one row for each position."""
        hasher = FeatureHasher(self.size, input_type="pair", alternate_sign=False)
        return hasher.transform([list(attributes(position)) for position in positions]).tocsr()


def _check_size(size: object, least: int = 0) -> None:
    if type(size) is not int or not least <= size < 2**31:
        raise ModelError(
            f"the number of columns must be an integer of at least {least} and below 2**31, got {size!r}"
        )


def is_symbolic(positions: Any) -> bool:
    """Return whether an example's positions are lists of strings or dictionaries, rather than numbers."""
    if sparse.issparse(positions) or isinstance(positions, np.ndarray):
        return isinstance(positions, np.ndarray) and positions.dtype.kind in "OU"
    first = next(iter(positions), None)
    if isinstance(first, np.ndarray) and first.dtype.kind in "biuf":
        return False
    if first is None or isinstance(first, (str, Mapping)):
        return True
    return isinstance(first, Iterable) and (not (names := list(first)) or any(map(_is_text, names)))


def _is_text(value: object) -> bool:
    """Whether something cannot be meant as a number."""
    return value is None or isinstance(value, (str, tuple))


def encoder_of(examples: Sequence[Any], hashed: int | None = None, min_count: int = 1) -> Encoder:
    """Choose an encoder for the training data."""
    if not len(examples):
        raise ModelError("there are no examples to learn from")
    number, filled = next(((n, one) for n, one in enumerate(examples) if _length(one)), (0, examples[0]))
    if not is_symbolic(filled):
        try:
            return Columns(_width(filled))
        except ModelError as error:
            raise ModelError(f"example {number}: {error}") from None
    return Vocabulary.of(examples, min_count) if hashed is None else Hashed(int(hashed))


def _length(positions: Any) -> int:
    return int(positions.shape[0]) if hasattr(positions, "shape") else len(positions)


def _width(positions: Any) -> int:
    return int(positions.shape[1]) if sparse.issparse(positions) else int(_dense(positions).shape[1])
