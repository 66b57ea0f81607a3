"""Statistics of chains as tables by kinds: what each position counts, by itself and after the one before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tallytree.bulk.kind_tables import CountingTables, Integers, KindTables
from tallytree.model.blocks import Block
from tallytree.statistics.statistic import Statistic

_MOST_ENTRIES = 2**22
"""The largest number of entries of the tables of one length, and of pairs of kinds."""

Bound = Mapping[int, tuple[Statistic, ...]]
"""Statistics on chains of several lengths."""


def counting_tables(bound: Bound, labels: int) -> tuple[CountingTables | None, dict[int, Integers]]:
    """Return tables that serve chains of several lengths, and the kinds of the positions of each length.

    There are none if a statistic is capped, looks at other variables than single ones and neighbours, or
    counts in too many ways.

    Examples
    --------
    >>> import tallytree as tt
    >>> chain = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    >>> tables, kinds = counting_tables({3: (tt.count(state=1).on(chain),)}, 2)
    >>> tables.tables.given.tolist(), kinds
    ([[[0, 1]]], {3: array([0, 0, 0])})
    """
    linked = any(b.arity > 1 for some in bound.values() for one in some for b in one.blocks)
    counted = {length: _positions(some, length, labels, linked) for length, some in bound.items()}
    rows: dict[bytes, int] = {}
    given: list[Integers] = []
    moved: list[Integers] = []
    kinds: dict[int, Integers] = {}
    for length, found in counted.items():
        if found is None:
            return None, {}
        numbers = []
        for alone, after in zip(*found, strict=True):
            number = rows.setdefault(alone.tobytes() + after.tobytes(), len(rows))
            if number == len(given):
                given.append(alone)
                moved.append(after)
            numbers.append(number)
        kinds[length] = np.array(numbers, dtype=np.int64)
    if len(given) ** 2 > _MOST_ENTRIES:
        return None, {}
    names = tuple(statistic.name for statistic in next(iter(bound.values())))
    return CountingTables(names, _by_kinds(given, moved, labels)), kinds


def _by_kinds(given: list[Integers], moved: list[Integers], labels: int) -> KindTables:
    """Return the tables of kinds, given what each of them counts, alone and after any other."""
    kinds, links = len(given), np.array(moved).swapaxes(0, 1)
    linked = kinds if links.size else 0
    pairs = np.arange(kinds) if linked else np.full(kinds, -1)
    return KindTables(
        np.tile(np.arange(labels, dtype=np.int32), (kinds, 1)),
        np.ascontiguousarray(np.array(given).swapaxes(0, 1)),
        np.tile(pairs.astype(np.int32), (kinds, 1)),
        np.ones((linked, labels, labels), dtype=np.bool_),
        np.ascontiguousarray(links).reshape(len(links), linked, labels, labels),
    )


def _positions(
    statistics: tuple[Statistic, ...], length: int, labels: int, linked: bool
) -> tuple[Integers, Integers] | None:
    """Return what positions count: (length, P, N) alone, and (length, P, N, N) after the one before."""
    count = len(statistics)
    if length * count * labels ** (1 + linked) > _MOST_ENTRIES:
        return None
    alone = np.zeros((length, count, labels), dtype=np.int64)
    after = np.zeros((length, count, *(2 * [labels * linked])), dtype=np.int64)
    for number, statistic in enumerate(statistics):
        if statistic.cap is not None or not _add(statistic.blocks, alone[:, number], after[:, number]):
            return None
    return alone, after


def _add(blocks: Iterable[Block], alone: Integers, after: Integers) -> bool:
    """Add blocks to what positions count; return whether they can be added."""
    for block in blocks:
        scopes = block.scopes.astype(np.int64)
        tables = np.broadcast_to(block.tables, (len(scopes), *block.tables.shape[1:]))
        if block.arity == 0:
            alone[0] += tables.sum()
        elif block.arity == 1:
            np.add.at(alone, scopes[:, 0], tables)
        elif block.arity == 2 and (abs(scopes[:, 0] - scopes[:, 1]) == 1).all():
            forward = scopes[:, 0] < scopes[:, 1]
            np.add.at(after, scopes[forward, 1], tables[forward])
            np.add.at(after, scopes[~forward, 0], tables[~forward].swapaxes(1, 2))
        else:
            return False
    return True
