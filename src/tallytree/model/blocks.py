"""Factors in bulk: many scopes of the same kind, with one table each or one shared table.

A sum over small scopes, ``Σ_t f_t(y_Ct)``, is stored as blocks: factors whose tables have the same shape
are stored in two arrays, ``scopes[K, arity]`` and ``tables[K or 1, n_1, …, n_arity]``. The score ``F`` of a
model has float64 tables, a statistic ``G`` has int64 tables. ``pairs.py`` converts user input to blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tallytree.values import Frozen, Repeated, counted, digest, owned, read_only, set_once

LARGEST_INTEGER = 2**40
"""Entries of statistics stay below this in magnitude."""


SHARED = 16
"""The number of scopes per table from which tables are shared."""


@final
class Block(Frozen):
    """Factors of the same shape over many scopes.

    `scopes`: the variables of each factor, in the order given by the user. `tables`: one table per scope, or
    one shared by all; axis ``i`` of ``tables[k]`` belongs to ``scopes[k, i]``. `key`: ``digest(scopes)``, if
    already known.

    Notes
    -----
    Read-only arrays are shared; writable arrays, and views of them, are copied.

    Examples
    --------
    >>> import numpy as np
    >>> block = Block(np.array([[0, 1], [1, 2]]), np.zeros((1, 3, 3)))
    >>> block
    Block(2 scopes of 2 variables, one shared (3, 3) table)
    >>> block.tables[0, 0, 0] = 1.0
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """

    __slots__ = ("_key", "scopes", "tables")

    scopes: NDArray[np.int32]
    tables: NDArray[Any]
    _key: bytes | None

    def __init__(self, scopes: NDArray[Any], tables: NDArray[Any], key: bytes | None = None) -> None:
        set_once(self, "scopes", owned(scopes, np.int32))
        set_once(self, "tables", owned(tables, tables.dtype))
        set_once(self, "_key", key)

    @property
    def key(self) -> bytes:
        """The digest of the scopes alone, used by the skeleton cache."""
        if self._key is None:
            set_once(self, "_key", digest(self.scopes))
        assert self._key is not None
        return self._key

    @property
    def arity(self) -> int:
        """The number of variables in each scope."""
        return int(self.scopes.shape[1])

    def with_tables(self, tables: NDArray[Any]) -> Block:
        """Return a block with the same scopes and different tables."""
        return Block(self.scopes, tables, self._key)

    def __len__(self) -> int:
        """Return the number K of scopes."""
        return len(self.scopes)

    def __reduce__(self) -> tuple[type[Block], tuple[object, ...]]:
        return Block, (self.scopes, self.tables, self._key)

    def __repr__(self) -> str:
        scopes = f"{counted(len(self), 'scope')} of {counted(self.arity, 'variable')}"
        shape = tuple(self.tables.shape[1:])
        if len(self.tables) == 1 < len(self):
            return f"Block({scopes}, one shared {shape} table)"
        return f"Block({scopes}, {counted(len(self.tables), f'{shape} table')})"


@lru_cache(maxsize=256)
def unary_scopes(size: int) -> tuple[NDArray[np.int32], bytes]:
    """Return the scopes ``(0,), (1,), …`` of all variables, shared and read-only, and their digest."""
    scopes = read_only(np.arange(size, dtype=np.int32).reshape(size, 1))
    return scopes, digest(scopes)


def row_ends(which: np.ufunc, rows: NDArray[Any]) -> NDArray[Any]:
    """Return the minimum or maximum of each row; short rows column by column, which is ten times as fast."""
    ends: NDArray[Any] = which.reduce(rows, axis=1) if rows.shape[1] > 32 else reduce(which, rows.T)
    return ends


def evaluate(blocks: Iterable[Block], y: NDArray[np.int64]) -> float:
    """Sum all factors at the labelling ``y``: ``Σ_t f_t(y_Ct)``.

    Returns a Python scalar: a float for float64 tables, an exact int for int64 tables.

    Examples
    --------
    >>> import numpy as np
    >>> from tallytree.model.pairs import from_pairs
    >>> blocks = from_pairs([((0,), [0, 1]), ((1,), [0, 1]), ((1, 0), [[0, 0], [0, 5]]), ((), 2)], np.int64)
    >>> evaluate(blocks, np.array([1, 1]))
    9
    """
    total: float = sum(_block_sum(block, y) for block in blocks)
    return total


def _block_sum(block: Block, y: NDArray[np.int64]) -> Any:
    size = len(block)
    row: Any = np.arange(size) if len(block.tables) == size else 0
    entries = block.tables[(row, *y[block.scopes].T)]
    return np.broadcast_to(entries, (size,)).sum().item()


def stacked(tables: Iterable[tuple[Sequence[int], NDArray[Any]]]) -> tuple[Block, ...]:
    """Group valid (scope, table) pairs by shape.

    Tables that occur many times as the same object are shared.
    """
    pairs = list(tables)
    most = max((len(scope) for scope, _ in pairs), default=0)
    scopes = [(*(0,) * (most - len(scope)), *scope) for scope, _ in pairs]
    aligned = np.array(scopes, dtype=np.int32).reshape(len(pairs), most)
    return grouped(aligned, Repeated.of([table for _, table in pairs]))


def grouped(scopes: NDArray[np.int32], tables: Repeated[NDArray[Any]]) -> tuple[Block, ...]:
    """Group valid tables by shape; a table with n axes is over the last n variables in its row of scopes."""
    groups: dict[tuple[int, ...], list[tuple[NDArray[Any], NDArray[np.int64]]]] = {}
    for table, places in tables.places:
        groups.setdefault(table.shape, []).append((table, places))
    return tuple(
        block
        for shape, same in groups.items()
        for block in _blocks(scopes[:, scopes.shape[1] - len(shape) :], same)
    )


def _blocks(
    scopes: NDArray[np.int32], tables: Sequence[tuple[NDArray[Any], NDArray[np.int64]]]
) -> list[Block]:
    """Return a block with one table per scope, or one block per table if there are few tables."""
    used = np.concatenate([places for _, places in tables])
    if len(tables) * SHARED > len(used):
        order = np.argsort(used)
        which = np.repeat(np.arange(len(tables)), [len(places) for _, places in tables])[order]
        every = np.stack([table for table, _ in tables])[which]
        return [Block(read_only(scopes[used[order]]), read_only(every))]
    return [
        Block(read_only(scopes[places]), read_only(np.ascontiguousarray(table)[np.newaxis]))
        for table, places in tables
    ]
