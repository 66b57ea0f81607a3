"""Factors over other variables and states, from which the original ones are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.model.blocks import Block, grouped
from tallytree.values import Repeated, each, read_only

Added = Repeated[NDArray[np.float64] | None]


def read_through(
    blocks: Iterable[Block],
    sources: NDArray[np.int32],
    emissions: Sequence[NDArray[np.int64]],
    added: Added | None = None,
) -> tuple[Block, ...]:
    """Return the factors over the variables and states from which the original ones are read.

    `added`: for each factor of each block, a table over these states that is added to it, or None.
    """
    tables = Repeated.of(emissions)
    return tuple(part for block in blocks for part in _read_block(block, sources, tables, added))


def _read_block(
    block: Block, sources: NDArray[np.int32], emissions: Repeated[NDArray[np.int64]], added: Added | None
) -> tuple[Block, ...]:
    if not len(block):
        return ()
    numbers, places = emissions.numbers[block.scopes], sources[block.scopes]
    axes = [Repeated(emissions.distinct, column) for column in numbers.T]
    more = Repeated([None], np.zeros(len(block), dtype=np.int64)) if added is None else added
    if (numbers == numbers[0]).all() and (more.numbers == more.numbers[0]).all():
        entries = _taken(block.tables, more[0], *(axis[0] for axis in axes))
        return (Block(places, read_only(np.ascontiguousarray(entries))),)
    if len(block.tables) == 1:
        return grouped(places, each(lambda *parts: _taken(block.tables, *parts)[0], more, *axes))
    return tuple(_read_rows(block, places, each(lambda *parts: parts, more, *axes)))


def _read_rows(block: Block, places: NDArray[np.int32], parts: Repeated[tuple[Any, ...]]) -> Iterator[Block]:
    """Yield the factors of a block that has a table for each scope, by shape."""
    groups: dict[tuple[int, ...], list[tuple[NDArray[np.int64], NDArray[Any]]]] = {}
    for (more, *axes), rows in parts.places:
        entries = _taken(block.tables[rows], more, *axes)
        groups.setdefault(entries.shape[1:], []).append((rows, entries))
    for same in groups.values():
        rows = np.concatenate([rows for rows, _ in same])
        order = np.argsort(rows)
        entries = np.concatenate([entries for _, entries in same])[order]
        yield Block(read_only(places[rows[order]]), read_only(entries))


def _taken(
    tables: NDArray[Any], more: NDArray[np.float64] | None, *emissions: NDArray[np.int64]
) -> NDArray[Any]:
    """Return some tables over the states from which those of their axes are read, with one table added."""
    for axis, emission in enumerate(emissions, start=1):
        tables = tables.take(emission, axis=axis)
    return tables if more is None else tables + more
