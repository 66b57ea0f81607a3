"""Input checks of models: arrays, names and labellings as given by users."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from functools import lru_cache
from math import isnan, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.model.pairs import check_scores, numeric
from tallytree.values import counted, digest, is_masked, nearest, owned, read_only

Scores = NDArray[np.float64]
Names = tuple[str, ...]


# --- arrays -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def uniform(size: int, n: int) -> tuple[NDArray[np.int32], bytes]:
    """Return the cardinalities of ``size`` variables with ``n`` states, shared by models, and a digest."""
    cardinalities = read_only(np.full(size, n, dtype=np.int32))
    return cardinalities, digest(cardinalities)


def checked_cardinalities(cardinalities: ArrayLike) -> tuple[NDArray[np.int32], int | None]:
    """Check the numbers of states; return them, and their common value, if they are all equal."""
    sizes = np.asarray(cardinalities)
    if is_masked(cardinalities) or sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu"):
        raise ModelError(
            f"cardinalities must be a sequence of integers, one per variable, got {cardinalities!r}"
        )
    if not len(sizes):
        return uniform(0, 0)[0], None
    least, most = int(sizes.min()), int(sizes.max())
    if least < 1 or most >= 2**31:
        variable = int((sizes < 1).argmax() if least < 1 else sizes.argmax())
        raise ModelError(
            f"variable {variable} has cardinality {sizes[variable]}; every variable needs at least one "
            "state, and fewer than 2**31"
        )
    return (uniform(len(sizes), most)[0], most) if least == most else (owned(sizes, np.int32), None)


def _floats(value: ArrayLike, name: str) -> Scores:
    return np.array(numeric(value, name), dtype=np.float64, order="C")


def _check_entries(scores: Scores, name: str) -> None:
    check_scores(scores, lambda index: f"{name}[{', '.join(map(str, index))}]")


def unary_scores(value: ArrayLike, axes: tuple[str, ...]) -> Scores:
    """Check one score per state of each variable."""
    scores = _floats(value, "unary")
    if scores.ndim != len(axes):
        places = "one row per variable" if len(axes) == 2 else "one entry per row and column of the grid"
        raise ModelError(
            f"unary must have shape ({', '.join(axes)}), {places} and one column per state; got shape "
            f"{scores.shape}"
        )
    if scores.shape[-1] == 0:
        raise ModelError(
            f"unary has shape {scores.shape}: its last axis holds the states, and must have at least one"
        )
    _check_entries(scores, "unary")
    return scores


def pairwise_scores(
    value: ArrayLike,
    name: str,
    edges: tuple[int, ...],
    unary: tuple[int, ...],
    ignored: NDArray[np.bool_] | None = None,
) -> Scores:
    """Check one (n, n) table, or one for each of the edges; return it or them with one leading axis.

    `unary`: the shape of the unary scores, which ends in n.
    """
    scores, n = _floats(value, name), unary[-1]
    shared = scores.shape == (n, n)
    if not shared and scores.shape != (*edges, n, n):
        raise ModelError(
            f"{name} must have shape {(n, n)}, one table for all, or {(*edges, n, n)}, one for each, "
            f"got {scores.shape}{_other_states(scores.shape, name, unary)}"
        )
    if ignored is not None and not shared:
        scores[ignored] = 0.0
    _check_entries(scores, name)
    return scores.reshape(1 if shared else prod(edges), n, n)


def _other_states(shape: tuple[int, ...], name: str, unary: tuple[int, ...]) -> str:
    """Return the end of a message if tables of pairs have another number of states than unary scores."""
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] == unary[-1]:
        return ""
    grid = f"a {unary[0]} x {unary[1]} grid" if len(unary) == 3 else counted(unary[0], "variable")
    each = f"{grid} of {counted(unary[-1], 'state')}, while {name} has {counted(shape[-1], 'state')}"
    order = "transposed? It has one row per variable and one column per state"
    if len(unary) == 3:
        order = "in another order? Its states come last: np.moveaxis(unary, 0, -1) moves them there"
    advice = f". Is unary {order}" if unary[0] == shape[-1] else ""
    return f". unary has shape {unary}: {each}{advice}"


def check_labels(states: Sequence[Any] | None, **tables: ArrayLike) -> None:
    """Raise an error if tables with labels, as those of pandas, have them in another order than the states.

    All columns, and the index of tables of pairs, are compared with ``states``, or with each other.
    Labels other than strings, such as the numbers that pandas gives, say nothing about the order.
    """
    first = (_labels(states), "states are")
    for name, table in tables.items():
        for axis in ("columns",) if name == "unary" else ("index", "columns"):
            labels = _labels(getattr(table, axis, None))
            verb = "is" if axis == "index" else "are"
            if labels and first[0] and len(labels) == len(first[0]) and labels != first[0]:
                raise ModelError(
                    f"the {axis} of {name} {verb} {_few(map(repr, labels))}, but {first[1]} "
                    f"{_few(map(repr, first[0]))}; tables are read by position, so use the same order"
                )
            first = first if first[0] else (labels, f"the {axis} of {name} {verb}")


def _labels(values: Any) -> list[str]:
    """Return labels that are all strings, or nothing."""
    if values is None or callable(values):  # as the `index` of a list
        return []
    labels = list(values)
    return labels if all(isinstance(label, str) for label in labels) else []


def checked_parents(parents: ArrayLike, size: int) -> NDArray[np.int64]:
    """Check the parents of a forest; returns -1 for every root."""
    above = np.asarray(parents)
    if is_masked(parents) or above.shape != (size,) or (size and above.dtype.kind not in "iu"):
        raise ModelError(
            f"parents must be {size} integers, one per row of unary and negative for roots, got an array of "
            f"shape {above.shape} and dtype {above.dtype}"
        )
    above = np.maximum(above.astype(np.int64), -1)
    if (above >= size).any():
        child = int((above >= size).argmax())
        raise ModelError(f"variable {child} has parent {above[child]}, but variables are 0 to {size - 1}")
    _check_acyclic(above)
    return above


def _check_acyclic(above: NDArray[np.int64]) -> None:
    """Raise an error if there is a cycle: by pointer jumping, all paths must end at a root."""
    # one more entry than there are variables: the last is the end of all paths and points to itself
    jump = np.append(above, -1)
    for _ in range(len(above).bit_length()):
        jump = jump[jump]
    if (jump >= 0).any():
        start = int(jump[jump >= 0].min())
        circle = [start]
        while (step := int(above[circle[-1]])) != start:
            circle.append(step)
        path = " → ".join(map(str, [*circle[:8], *(["…"] if len(circle) > 8 else []), start]))
        raise ModelError(
            f"parents contain a cycle: {path}; in a tree every path ends at a root, with parent -1"
        )


# --- names and labellings -----------------------------------------------------------------------------------


def state_names(
    states: Sequence[Any], sizes: NDArray[np.int32], n: int | None
) -> tuple[Names | None, tuple[Names, ...] | None]:
    """Return the state names that all variables share, or the names for each variable."""
    if all(isinstance(name, str) for name in states):
        return _common_names(tuple(states), len(sizes), n), None
    if all(isinstance(name, (int, float, np.number)) for name in states):
        raise ModelError(
            f"the names of states are strings, got the number {states[0]!r}; convert them with "
            "[str(s) for s in states], or leave out states= to use the numbers 0, 1, …"
        )
    each = tuple(_names_of(i, names) for i, names in enumerate(states))
    if tuple(map(len, each)) != tuple(sizes.tolist()):
        raise ModelError(
            f"states has lists of {_few(map(len, each))} names, but the variables have "
            f"{_few(sizes.tolist())} states; give one list per variable, with one name per state"
        )
    return (each[0], None) if len(set(each)) == 1 else (None, each)


def _common_names(names: Names, size: int, n: int | None) -> Names:
    if n is None and size:
        raise ModelError(
            f"states has {counted(len(names), 'name')} for all variables, but these have different numbers "
            "of states; give one list of names per variable"
        )
    if n is not None and n != len(names):
        raise ModelError(
            f"states has {counted(len(names), 'name')}, but each variable has {counted(n, 'state')}; "
            "give one name per state"
        )
    return _distinct(names, "states")


def _names_of(variable: int, names: Any) -> Names:
    what = f"states[{variable}]"
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ModelError(
            f"{what} is {names!r}; states must be a list of names for all variables, or one list per variable"
        )
    return _distinct(tuple(names), what)


def variable_names(variables: Sequence[str], size: int) -> Names:
    """Check one name per variable; numbers and dates, such as those of a pandas index, become text."""
    names = _distinct(tuple(map(_as_name, variables)), "variables")
    if len(names) != size:
        raise ModelError(
            f"variables has {counted(len(names), 'name')}, but the model has {counted(size, 'variable')}"
        )
    return names


def _as_name(value: Any) -> Any:
    """Return the text for a number or a date; a point in time at midnight is shown as a date."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime) and value.timetz() == time.min:
        value = value.date()
    return str(value) if isinstance(value, (int, np.generic, date)) else value


def variable_key(value: object) -> object:
    """Return the name for a date that a variable is given by; anything else is returned unchanged."""
    return _as_name(value) if isinstance(value, (date, np.datetime64)) else value


@lru_cache(maxsize=256)
def _distinct(names: tuple[Any, ...], what: str) -> Names:
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"{what} must hold strings, got {name!r} of type {type(name).__name__}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"{what} has the name {twice!r} twice; names must be distinct")
    return tuple(map(str, names))


@lru_cache(maxsize=256)
def numbers_of(names: Names) -> dict[str, int]:
    """Return a mapping from names to numbers."""
    return {name: number for number, name in enumerate(names)}


@lru_cache(maxsize=256)
def name_array(names: Names) -> NDArray[Any]:
    """Return the names as an array for indexing."""
    return read_only(np.array(names, dtype=object))


def code_in(item: object, names: Names | None, n: int) -> int:
    """Return the number for a name or number, and -1 for anything else."""
    if isinstance(item, str):
        return -1 if names is None else numbers_of(names).get(item, -1)
    if isinstance(item, (int, np.integer)) and 0 <= item < n:
        return int(item)
    return -1


def _few(items: Iterable[Any]) -> str:
    shown = list(items)
    return ", ".join(map(str, shown[:12])) + (", …" if len(shown) > 12 else "")


def listed_states(names: Names | None, n: int) -> str:
    """Return the states of a variable, for an error message."""
    numbers = f"0 to {n - 1}" if n > 1 else "only 0" if n else "none"
    return numbers if not names else f"{_few(map(repr, names))} (or {numbers})"


def suggestion(item: object, names: Names | None) -> str:
    """Return a suggestion for the end of an error message."""
    if isinstance(item, float) and isnan(item):
        return ". Leave out missing values, for example with .dropna()"
    if isinstance(item, float):
        return ". Pass integers: labelling.astype(int)"
    if not isinstance(item, str):
        return ""
    if names is None:
        return (
            ". The model has no names for them: pass states= or variables= to the model, such as "
            "states=df.columns for a DataFrame, or use numbers"
        )
    close = nearest(item, names)
    return "" if close is None else f". Did you mean {close!r}?"


def labelling_array(labelling: ArrayLike) -> NDArray[Any]:
    """Return a labelling as a rectangular array of numbers or objects."""
    if is_masked(labelling):
        raise ModelError("the labelling has masked entries; give a state for every variable")
    try:
        array = np.asarray(labelling)
        if array.size and array.dtype.kind not in "biu":
            array = np.array(labelling, dtype=object)  # keeps numbers and names apart
    except ValueError as error:
        raise ModelError(f"a labelling must be a rectangular array of states: {error}") from None
    return array


def whole_number(value: object, noun: str, *, least: int) -> int:
    """Return an integer of at least ``least``; raise an error that uses ``noun`` otherwise."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"{noun} must be an integer, got {value!r}") from None
    if number < least:
        raise ModelError(f"{noun} must be at least {least}, got {number}")
    return number
