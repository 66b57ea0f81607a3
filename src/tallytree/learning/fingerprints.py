"""Fingerprints of training problems: a digest of all their content.

The state of an earlier run, in a checkpoint or a warm start, consists of planes of its examples. On
other examples it would certify something false, so it is used only if the digests agree. One function
covers everything that a problem can hold (numbers, texts, arrays, sparse matrices, containers, and objects as
they would be pickled), with lengths and types, so that different problems have different digests.
"""

from __future__ import annotations

import copyreg
import hashlib
import types
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tallytree.errors import ModelError

Parts = tuple[str, bytes, Iterable[Any]]
"""The type of a value, its own content, and its parts."""


def fingerprint_of(value: Any) -> str:
    """Return a digest of a value and everything it contains.

    Equal content has equal digests in every process: they do not depend on memory addresses or
    on the order of sets.

    Raises ModelError if it contains something without content, such as an open file.

    Examples
    --------
    >>> fingerprint_of([[1, 2], [3]]) == fingerprint_of(([1, 2], (3,)))
    True
    >>> fingerprint_of([[1, 2], [3]]) == fingerprint_of([[1], [2, 3]])
    False
    """
    return _digest(value).hex()


def contents(value: object, without: Iterable[str] = ()) -> dict[str, Any]:
    """Return the attributes of an object, except the given ones and cached properties."""
    left_out = set(without)
    return {name: held for name, held in _lasting(value, vars(value)).items() if name not in left_out}


def _lasting(value: object, state: Mapping[str, Any]) -> dict[str, Any]:
    kind = type(value)
    return {
        name: held
        for name, held in state.items()
        if not isinstance(getattr(kind, name, None), cached_property)
    }


class _Done:
    """On the stack: all parts of a value have been processed."""

    def __init__(self, value: Any) -> None:
        self.value = value  # kept alive while its id is in use


def _digest(value: Any) -> bytes:
    """Process a value with an explicit stack, so that nesting depth does not matter."""
    digest = hashlib.sha256()
    waiting: list[Any] = [value]
    within: set[int] = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, _Done):
            within.remove(id(one.value))
            continue
        if id(one) in within:  # a cycle
            kind, own, made_of = "again", b"", list[Any]()
        else:
            kind, own, parts = _parts(one)
            made_of = list(parts)
        digest.update(f"{kind} {len(own)} {len(made_of)}\n".encode())
        digest.update(own)
        if made_of:
            within.add(id(one))
            waiting.append(_Done(one))
            waiting.extend(reversed(made_of))
    return digest.digest()


def _parts(value: Any) -> Parts:
    for kinds, parts in _KNOWN:
        if isinstance(value, kinds):
            return parts(value)
    return _object(value)


def _number(value: complex | None) -> Parts:
    return type(value).__name__, repr(value).encode(), ()


def _scalar(value: np.generic) -> Parts:
    return _parts(value.item()) if value.dtype.kind in "biufcUS" else _object(value)


def _array(value: NDArray[Any]) -> Parts:
    if value.dtype.hasobject:
        return "objects", repr(value.shape).encode(), value.ravel().tolist()
    kind = value.dtype.newbyteorder("<")
    return f"array {kind.str} {value.shape}", np.ascontiguousarray(value, dtype=kind).tobytes(), ()


def _matrix(value: Any) -> Parts:
    rows = value.tocsr()
    ends, columns = (np.asarray(part, dtype=np.int64) for part in (rows.indptr, rows.indices))
    return "sparse", repr(rows.shape).encode(), (ends, columns, rows.data)


def _code(value: types.CodeType) -> Parts:
    return "code", value.co_code, (value.co_consts, value.co_names, value.co_varnames)


def _function(value: types.FunctionType) -> Parts:
    held = [cell.cell_contents for cell in value.__closure__ or ()]
    return "function", _name(value), (value.__code__, value.__defaults__, value.__kwdefaults__, held)


def _name(value: Any) -> bytes:
    """Name a class or a function by its package, since modules may move within one."""
    package = str(getattr(value, "__module__", "")).partition(".")[0]
    return f"{package}:{getattr(value, '__qualname__', value.__name__)}".encode()


_KNOWN: tuple[tuple[Any, Callable[[Any], Parts]], ...] = (
    (np.ndarray, _array),
    (np.generic, _scalar),
    ((type(None), bool, int, float, complex), _number),
    (str, lambda value: ("text", value.encode("utf-8", "surrogatepass"), ())),
    ((bytes, bytearray), lambda value: ("bytes", bytes(value), ())),
    ((list, tuple), lambda value: ("sequence", b"", value)),
    (Set, lambda value: ("set", b"", sorted(map(_digest, value)))),
    (Mapping, lambda value: ("mapping", b"", sorted(map(_digest, value.items())))),
    (types.CodeType, _code),
    (types.FunctionType, _function),
    ((type, types.BuiltinFunctionType, types.ModuleType), lambda value: ("name", _name(value), ())),
    ((sparse.spmatrix, sparse.sparray), _matrix),
)


def _object(value: Any) -> Parts:
    """Process an object as it would be pickled: its constructor, arguments and attributes."""
    kind = type(value)
    try:
        registered = copyreg.dispatch_table.get(kind)
        reduced: Any = registered(value) if registered else value.__reduce_ex__(4)
    except Exception as error:
        raise ModelError(
            f"a value of the class {kind.__name__} has no content to identify a problem by "
            f"({error}); give the problem a method fingerprint() that returns a different string for each "
            "set of examples"
        ) from error
    if isinstance(reduced, str):
        return "global", _name(kind) + reduced.encode(), ()
    make, arguments, state, *items = (*reduced, None, None, None)[:5]
    if isinstance(state, dict):
        state = _lasting(value, state)
    listed = (None if one is None else [*one] for one in items)
    return "object", _name(kind), (make, arguments, state, *listed)
