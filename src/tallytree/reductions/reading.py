"""Factors over other variables and states, from which the original ones are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.model.blocks import Block, stacked
from tallytree.values import Once, read_only


def read_through(
    blocks: Iterable[Block],
    sources: NDArray[np.int32],
    emissions: Sequence[NDArray[np.int64]],
) -> tuple[Block, ...]:
    """Return the factors over the variables and states from which the original ones are read."""
    return tuple(part for block in blocks for part in _read_block(block, sources, emissions))


def _read_block(
    block: Block,
    sources: NDArray[np.int32],
    emissions: Sequence[NDArray[np.int64]],
) -> tuple[Block, ...]:
    common = [_common([emissions[v] for v in variables]) for variables in block.scopes.T.tolist()]
    tables = [table for table in common if table is not None]
    if len(tables) == block.arity:
        entries = block.tables
        for axis, table in enumerate(tables, start=1):
            entries = entries.take(table, axis=axis)
        return (Block(sources[block.scopes], read_only(np.ascontiguousarray(entries))),)
    return stacked(_pairs(block, sources, emissions))


def _common(tables: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """Return the table that all of them equal, or None."""
    return tables[0] if all(table is tables[0] for table in tables) else None


def _pairs(
    block: Block, sources: NDArray[np.int32], emissions: Sequence[NDArray[np.int64]]
) -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
    shared = len(block.tables) == 1
    read = Once(_taken)
    scopes, places = block.scopes.tolist(), sources[block.scopes].tolist()
    for k, (scope, place) in enumerate(zip(scopes, places, strict=True)):
        each = [emissions[v] for v in scope]
        yield tuple(place), read(block.tables, *each) if shared else _taken(block.tables[k : k + 1], *each)


def _taken(tables: NDArray[Any], *emissions: NDArray[np.int64]) -> NDArray[Any]:
    """Return the first of some tables, over the states from which those of its axes are read."""
    entries: NDArray[Any] = tables[0]
    for axis, emission in enumerate(emissions):
        entries = entries.take(emission, axis=axis)
    return entries
