"""Range checks for the integers of a statistic, done with unbounded integers before any arithmetic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.kernels.limits import NO_LIMIT
from tallytree.model.blocks import LARGEST_INTEGER, Block, row_ends
from tallytree.values import integral, read_only

LARGEST_TALLY = 2**60
"""The largest sum of a statistic stays below this, so that differences of sums and bounds fit in 64 bits."""


def checked_cap(cap: object, name: str) -> int:
    """Return the cap of a statistic as an int; raise an error if it is invalid."""
    try:
        value = integral(cap)
    except TypeError:
        raise ModelError(f"the cap of statistic {name!r} must be an integer or None, got {cap!r}") from None
    if abs(value) >= NO_LIMIT:
        raise ModelError(f"the cap of statistic {name!r} is {value}, above 2**62; use None for no cap")
    return value


def check_reach(blocks: tuple[Block, ...], name: str) -> None:
    """Raise an error if the tally of a statistic might overflow."""
    if sum(map(len, blocks)) * LARGEST_INTEGER <= LARGEST_TALLY:
        return
    reach = sum(largest(block.tables) * len(block) for block in blocks)
    if reach >= LARGEST_TALLY:
        raise ModelError(
            f"statistic {name!r} can reach {reach}, but tallies must stay below 2**60; scale its tables to a "
            "coarser lattice"
        )


def largest(tables: NDArray[np.int64]) -> int:
    """Return the largest magnitude of the entries."""
    return max(int(tables.max(initial=0)), -int(tables.min(initial=0)))


def multiplied(tables: NDArray[np.int64], coefficient: int, whole: object) -> NDArray[np.int64]:
    """Multiply tables by an integer of any size; raise an error if the result does not fit."""
    most = largest(tables)
    if not most:
        return np.zeros_like(tables)
    if abs(coefficient) * most >= LARGEST_INTEGER:
        raise ModelError(
            f"the combination '{whole}' has an entry of size {coefficient * most}, but a statistic must have "
            "integer entries below 2**40 in magnitude. Divide its coefficients, or compare it in where= of "
            "solve or k_best, which keep large multiples apart"
        )
    return tables * coefficient


def ends_of_blocks(blocks: tuple[Block, ...]) -> tuple[int, int]:
    """Return bounds on all sums: the smallest and the largest entries of all scopes added up."""
    low = high = 0
    for block in blocks:
        tables = block.tables.reshape(len(block.tables), -1)
        times = len(block) if len(tables) == 1 else 1
        low += int(row_ends(np.minimum, tables).sum()) * times
        high += int(row_ends(np.maximum, tables).sum()) * times
    return low, high


def joined(blocks: Iterable[Block]) -> list[Block]:
    """Add up blocks with the same scopes: messages look at each block by itself."""
    kept: dict[Any, Block] = {}
    for block in blocks:
        key: Any = block.key, block.tables.shape[1:]
        if key in kept:
            tables = kept[key].tables + block.tables
            if largest(tables) < LARGEST_INTEGER:
                kept[key] = block.with_tables(read_only(tables))
                continue
            key = object()
        kept[key] = block
    return list(kept.values())
