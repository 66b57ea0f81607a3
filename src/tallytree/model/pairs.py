"""(scope, table) pairs from users, checked and grouped into blocks.

Malformed input is rejected here, so that the rest of the library need not check it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.model.blocks import LARGEST_INTEGER, Block
from tallytree.values import counted, is_masked, read_only

Pair = tuple[Iterable[int], ArrayLike]
"""A scope and its table: axis ``i`` of the table belongs to variable ``scope[i]``."""

MOST_VARIABLES = 2**31 - 1

LARGEST_SCORE = 1e290
"""Largest magnitude of a finite score: sums of as many as fit in memory stay far below the largest double."""

Name = Callable[[int], str]
"""Names the ``k``-th factor of a block in an error message."""


def from_pairs(
    pairs: Iterable[Pair],
    dtype: type[np.float64] | type[np.int64],
    cardinalities: NDArray[np.int32] | None = None,
    *,
    noun: str = "factor",
) -> tuple[Block, ...]:
    """Group (scope, table) pairs into blocks, by the shape of the table.

    Blocks are in the order in which their shapes first appear, and pairs keep their order within a block. A
    scope may be in any order, may be repeated, and may be empty (a constant).

    Parameters
    ----------
    pairs : iterable of (scope, table)
        A scope is an iterable of distinct variable numbers; a table has one axis per variable of its scope.
    dtype : numpy.float64 or numpy.int64
        Scores (at most 1e290 in magnitude, or -inf), or integers below 2**40 in magnitude.
    cardinalities : int32 array, optional
        The number of states of each variable, if known: every axis of a table must match.
    noun : str
        What a pair is called in error messages.

    Raises
    ------
    ModelError
        A pair is malformed; the message gives its number and scope.

    Examples
    --------
    >>> import numpy as np
    >>> from_pairs([((0,), [0, 1]), ((0, 1), [[1, 2], [3, 4]]), ((1,), [5, 6])], np.int64)
    (Block(2 scopes of 1 variable, 2 (2,) tables), Block(1 scope of 2 variables, 1 (2, 2) table))
    """
    return tuple(_block(*group, dtype, cardinalities, noun) for group in _grouped(pairs, noun))


def _block(
    numbers: list[int], scopes: list[Any], tables: list[Any], dtype: Any, cardinalities: Any, noun: str
) -> Block:
    def name(k: int) -> str:
        return f"{noun} {numbers[k]} with scope {scopes[k]}"

    variables = _scope_array(scopes, name)
    _check_scopes(variables, None if cardinalities is None else len(cardinalities), name)
    if cardinalities is not None:
        _check_shapes(variables, np.shape(tables[0]), cardinalities, name)
    return Block(
        read_only(variables.astype(np.int32)), read_only(_CONVERSIONS[dtype](np.stack(tables), name))
    )


def integer_tables(tables: ArrayLike, name: Name) -> NDArray[np.int64]:
    """Return checked integer tables, one for each index of the first axis."""
    integers: NDArray[np.int64] = _CONVERSIONS[np.int64](numeric(tables, "the array"), name)
    return integers


def _grouped(pairs: Iterable[Pair], noun: str) -> Iterable[tuple[list[int], list[Any], list[Any]]]:
    """Collect (numbers, scopes, tables) of the pairs whose tables have the same shape."""
    groups: dict[tuple[int, ...], tuple[list[int], list[Any], list[Any]]] = {}
    if isinstance(pairs, Mapping):
        one = noun.split()[-1]
        raise ModelError(f"the {one}s are a mapping; pass (scope, table) pairs, as in {one}s.items()")
    for number, pair in enumerate(pairs):
        scope, table = _split(pair, f"{noun} {number}")
        if table.ndim != len(scope):
            raise ModelError(
                f"{noun} {number} has scope {scope} and a table of shape {table.shape}: a table needs one "
                f"axis per variable of its scope, {len(scope)} here"
            )
        numbers, scopes, tables = groups.setdefault(table.shape, ([], [], []))
        numbers.append(number)
        scopes.append(scope)
        tables.append(table)
    return groups.values()


def _split(pair: Pair, name: str) -> tuple[tuple[int, ...], NDArray[Any]]:
    try:
        scope, table = pair
    except (TypeError, ValueError):
        raise ModelError(
            f"{name} must be a (scope, table) pair such as ((0, 1), [[0.0, 1.0], [1.0, 0.0]]), got {pair!r}"
        ) from None
    try:
        variables = tuple(scope.tolist() if isinstance(scope, np.ndarray) else scope)
    except TypeError:
        advice = f"a scope is a tuple of variable numbers; write ({scope!r},) for one variable"
        if isinstance(table, (int, np.integer)):
            advice = f"the scope of a single pair? Write a list of pairs: [(({scope!r}, {table!r}), table)]"
        raise ModelError(f"{name} has scope {scope!r}: {advice}") from None
    return variables, numeric(table, f"the table of {name}")


def numeric(value: ArrayLike, name: str) -> NDArray[Any]:
    """Return ``value`` as an array of booleans, integers or floats; raise an error otherwise."""
    if is_masked(value):
        raise ModelError(f"{name} is a masked array with masked entries; fill them with array.filled(…)")
    try:
        array = np.asarray(value)
        if array.dtype == object:  # numbers as objects, as in tables of pandas with nullable types
            array = np.array(array.tolist()).reshape(array.shape)
    except (TypeError, ValueError, RuntimeError) as error:  # RuntimeError: tensors that require a gradient
        raise ModelError(
            f"{name} is not a rectangular array of numbers: {_other_length(value) or error}"
        ) from None
    if array.dtype.kind not in "biuf":
        raise ModelError(f"{name} must hold numbers that fit 64 bits, got {_no_number(value, array.dtype)}")
    return array


def _other_length(rows: Any) -> str:
    """Return which row has another length than the first, for an error message."""
    sizes = [len(row) if isinstance(row, Sized) else 0 for row in rows] if isinstance(rows, Iterable) else []
    for number, size in enumerate(sizes):
        if size != sizes[0]:
            return f"row {number} has {counted(size, 'number')}, row 0 has {sizes[0]}"
    return ""


def _no_number(value: Any, dtype: Any) -> str:
    """Return the first entry that is not a number, with its place and a remedy, for an error message."""
    entries = np.asarray(value, dtype=object)
    columns: Any = getattr(value, "columns", None)
    for index, entry in np.ndenumerate(entries):
        if not isinstance(entry, Number):
            column = columns[index[-1]] if columns is not None else None
            place = f"{list(index)}" if column is None else f"{list(index)}, in the column {column!r}"
            return f"{entry!r} at {place}; {_remedy(value, entries[..., index[-1]], column)}"
    return f"an array of dtype {dtype}"


def _remedy(value: Any, column: NDArray[Any], name: object) -> str:
    """Say what to do about entries that are not numbers."""
    if all(isinstance(entry, str) and _is_number(entry) for entry in column.flat):
        return f"convert text with {'' if hasattr(value, 'astype') else 'np.array(…)'}.astype(float)"
    if name is not None and not any(isinstance(entry, Number) for entry in column.flat):
        return "this column holds no numbers; leave it out"
    return "replace it by a number"


def _is_number(text: str) -> bool:
    try:
        return bool(float(text) <= LARGEST_SCORE)
    except ValueError:
        return False


def _scope_array(scopes: Sequence[Any], name: Name) -> NDArray[Any]:
    array = np.array(scopes) if scopes[0] else np.empty((len(scopes), 0), dtype=np.int32)
    if array.ndim == 2 and array.dtype.kind in "iu":
        return array
    for k, scope in enumerate(scopes):
        for variable in scope:
            if not isinstance(variable, (int, np.integer)) or isinstance(variable, bool):
                raise ModelError(
                    f"{name(k)}: {variable!r} is not a variable; variables are the integers 0, 1, …"
                )
    return np.array(scopes, dtype=object)  # integers beyond 64 bits: out of range for every model


# --- checks of whole blocks ---------------------------------------------------------------------------------


def check_blocks(
    blocks: Iterable[Block],
    dtype: type[np.float64] | type[np.int64],
    cardinalities: NDArray[np.int32],
    *,
    noun: str,
) -> None:
    """Raise an error if blocks do not fit a model with these cardinalities.

    Raises ModelError if a scope is out of range or repeats a variable, a table has the wrong shape or dtype,
    or a score is nan, +inf or too large, or an integer is too large.
    """
    for number, block in enumerate(blocks):
        _check_block(block, number, dtype, cardinalities, noun)


def _check_block(block: Block, number: int, dtype: Any, cardinalities: NDArray[np.int32], noun: str) -> None:
    def name(k: int) -> str:
        place = f" {k} of block {number}" if dtype is np.float64 else ""  # blocks of statistics are our own
        return f"{noun}{place} with scope {tuple(block.scopes[k].tolist())}"

    tables = block.tables
    if tables.dtype != dtype or tables.ndim != block.arity + 1 or len(tables) not in (1, len(block)):
        raise ModelError(
            f"block {number} of {noun}s has scopes of shape {block.scopes.shape} and tables of shape "
            f"{tables.shape} and dtype {tables.dtype}; it needs {np.dtype(dtype)} tables, 1 or {len(block)} "
            f"of them, with {block.arity} axes each"
        )
    _check_scopes(block.scopes, len(cardinalities), name)
    _check_shapes(block.scopes, tables.shape[1:], cardinalities, name)
    check = check_scores if dtype is np.float64 else _check_integers
    check(tables, lambda index: f"entry {index[1:]} of {name(index[0])}")


def _check_scopes(scopes: NDArray[Any], size: int | None, name: Name) -> None:
    """Check that variables are in ``0 … size - 1`` and not repeated within a scope."""
    outside = (scopes < 0) | (scopes >= (MOST_VARIABLES if size is None else size))
    if outside.any():
        k, i = np.argwhere(outside)[0].tolist()
        raise ModelError(f"{name(k)}: there is no variable {scopes[k, i]}; {_range(size)}")
    ordered = np.sort(scopes, axis=1)
    twice = ordered[:, 1:] == ordered[:, :-1]
    if twice.any():
        k, i = np.argwhere(twice)[0].tolist()
        raise ModelError(
            f"{name(k)} has variable {ordered[k, i]} twice; list it once, with the diagonal of the table"
        )


def _range(size: int | None) -> str:
    if size is None:
        return f"variable numbers must be at least 0 and below {MOST_VARIABLES}"
    return f"the model has variables 0 to {size - 1}" if size else "the model has no variables"


def _check_shapes(
    scopes: NDArray[Any], shape: tuple[int, ...], cardinalities: NDArray[np.int32], name: Name
) -> None:
    """Check that axis ``i`` of every table is as long as variable ``scopes[k, i]`` has states."""
    wanted = cardinalities[scopes]
    wrong = (wanted != np.array(shape, dtype=np.int64)).any(axis=1)
    if wrong.any():
        k = int(wrong.argmax())
        raise ModelError(
            f"{name(k)} needs a table of shape {tuple(wanted[k].tolist())}, the numbers of states of its "
            f"variables, got {tuple(shape)}; axis i of the table belongs to scope[i]"
        )


def check_scores(scores: NDArray[np.float64], name: Callable[[tuple[int, ...]], str]) -> None:
    """Raise an error for nan, +inf and scores that are too large. ``name(index)`` names an entry."""
    if not are_scores(scores):
        index = tuple(np.argwhere(~_good_scores(scores))[0].tolist())
        raise ModelError(
            f"{name(index)} is {scores[index]}: a score must be finite, or -inf to forbid, and at most "
            f"{LARGEST_SCORE:.0e} in magnitude, so that sums stay finite; replace this entry, or divide all "
            "scores by a constant"
        )


_PLAIN = 1e300  # a sum of squares below this has no entry above 1e150
_FEW = 10_000  # the squares of up to this many numbers are summed on one thread


def are_scores(array: NDArray[np.float64]) -> bool:
    """Whether all entries are valid scores: ``-inf``, or at most ``LARGEST_SCORE`` in magnitude."""
    if array.size <= _FEW and np.vdot(array, array) < _PLAIN:  # fast path; false for nan, inf
        return True
    if not array.max(initial=-np.inf) <= LARGEST_SCORE:  # nan propagates through a maximum
        return False
    least = array.min(initial=0.0)
    return bool(least >= -LARGEST_SCORE or (least == -np.inf and _good_scores(array).all()))


def _good_scores(array: NDArray[np.float64]) -> NDArray[np.bool_]:
    good: NDArray[np.bool_] = (np.abs(array) <= LARGEST_SCORE) | np.isneginf(array)
    return good


def _to_scores(tables: NDArray[Any], name: Name) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = tables.astype(np.float64)
    check_scores(scores, lambda index: f"entry {index[1:]} of {name(index[0])}")
    return scores


def _to_integers(tables: NDArray[Any], name: Name) -> NDArray[np.int64]:
    _check_integers(tables, lambda index: f"entry {index[1:]} of {name(index[0])}")
    integers: NDArray[np.int64] = tables.astype(np.int64)
    return integers


def _check_integers(tables: NDArray[Any], name: Callable[[tuple[int, ...]], str]) -> None:
    """Raise an error for entries that are not integral, or too large. ``name(index)`` names an entry."""
    good = (tables < LARGEST_INTEGER) & (tables > -LARGEST_INTEGER)  # false for nan
    if tables.dtype.kind == "f":
        good &= np.rint(tables) == tables
    if not good.all():
        index = tuple(np.argwhere(~good)[0].tolist())
        raise ModelError(
            f"{name(index)} is {tables[index]}: a statistic needs integer entries below 2**40 in magnitude; "
            "round it, or scale the table to a coarser lattice"
        )


_CONVERSIONS: dict[Any, Callable[[NDArray[Any], Name], NDArray[Any]]] = {
    np.float64: _to_scores,
    np.int64: _to_integers,
}
