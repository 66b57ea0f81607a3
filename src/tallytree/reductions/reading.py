"""Factors over other variables and states, from which the original ones are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.model.blocks import Block, grouped
from tallytree.values import Repeated, each, read_only


def read_through(
    blocks: Iterable[Block],
    sources: NDArray[np.int32],
    emissions: Sequence[NDArray[np.int64]],
) -> tuple[Block, ...]:
    """Return the factors over the variables and states from which the original ones are read."""
    tables = Repeated.of(emissions)
    return tuple(part for block in blocks for part in _read_block(block, sources, tables))


def _read_block(
    block: Block, sources: NDArray[np.int32], emissions: Repeated[NDArray[np.int64]]
) -> tuple[Block, ...]:
    numbers = emissions.numbers[block.scopes]
    if not len(block):
        return ()
    if (numbers == numbers[0]).all():
        entries = _taken(block.tables, *[emissions.distinct[number] for number in numbers[0]])
        return (Block(sources[block.scopes], read_only(np.ascontiguousarray(entries))),)
    each_axis = [Repeated(emissions.distinct, column) for column in numbers.T]
    places = sources[block.scopes]
    if len(block.tables) == 1:
        return grouped(places, each(lambda *tables: _taken(block.tables, *tables)[0], *each_axis))
    return tuple(_read_rows(block, places, each(lambda *tables: tables, *each_axis)))


def _read_rows(
    block: Block, places: NDArray[np.int32], emissions: Repeated[tuple[NDArray[np.int64], ...]]
) -> Iterator[Block]:
    """Yield the factors of a block that has a table for each scope, by shape."""
    groups: dict[tuple[int, ...], list[tuple[NDArray[np.int64], NDArray[Any]]]] = {}
    for tables, rows in emissions.places:
        entries = _taken(block.tables[rows], *tables)
        groups.setdefault(entries.shape[1:], []).append((rows, entries))
    for same in groups.values():
        rows = np.concatenate([rows for rows, _ in same])
        order = np.argsort(rows)
        entries = np.concatenate([entries for _, entries in same])[order]
        yield Block(read_only(places[rows[order]]), read_only(entries))


def _taken(tables: NDArray[Any], *emissions: NDArray[np.int64]) -> NDArray[Any]:
    """Return some tables over the states from which those of their axes are read."""
    for axis, emission in enumerate(emissions, start=1):
        tables = tables.take(emission, axis=axis)
    return tables
