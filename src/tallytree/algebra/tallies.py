"""Tally arithmetic: how the statistics of two parts of a labelling add up.

A set of tallies is an ``(S, P)`` int64 array, one row per tally, sorted lexicographically, without
duplicates. The tally of two disjoint parts is the capped sum ``min(cap, a + b)``, statistic by statistic.
Capped addition is only associative on non-negative numbers (``min(1, min(1, 2 + 1) - 1) = 0``, but
``min(1, 2 + (1 - 1)) = 1``), so the minima of a capped statistic are moved out first: with ``c = Σ min g``,

    min(cap, Σ g) = min(cap, c + t)    where    t = min(max(cap - c, 0), Σ (g - min g))

and every term of ``t`` is non-negative.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

UNCAPPED = int(np.iinfo(np.int64).max)
"""The cap that never binds."""


def cap_array(caps: Sequence[int | None]) -> Integers:
    """Return the caps as a ``(P,)`` array, with `UNCAPPED` for None.

    Examples
    --------
    >>> cap_array([3, None]).tolist() == [3, UNCAPPED]
    True
    """
    return np.array([UNCAPPED if cap is None else cap for cap in caps], dtype=np.int64)


def capped_sum(a: Integers, b: Integers, caps: Integers) -> Integers:
    """Return ``min(caps, a + b)``, where the last axis of all three runs over the statistics.

    Examples
    --------
    >>> capped_sum(np.array([2, 2]), np.array([2, 2]), cap_array([3, None]))
    array([3, 4])
    """
    total: Integers = np.minimum(a + b, caps)
    return total


def move_minima_out(tables: Sequence[Integers], cap: int | None) -> tuple[list[Integers], int, int]:
    """Rewrite a capped statistic so that its tables are non-negative.

    Parameters
    ----------
    tables
        The tables ``g`` of one statistic.
    cap
        Its cap, or None. An uncapped statistic is not changed.

    Returns
    -------
    tables, offset, room
        The tables ``g - min g``, the sum ``c`` of the minima, and the cap on the sum of the new tables
        (at least 0; `UNCAPPED` if `cap` is None).

    Examples
    --------
    >>> move_minima_out([np.array([-1, 1]), np.array([2, 0])], cap=1)
    ([array([0, 2]), array([2, 0])], -1, 2)
    """
    if cap is None:
        return list(tables), 0, UNCAPPED
    minima = [int(table.min()) for table in tables]
    offset = sum(minima)
    return [table - low for table, low in zip(tables, minima, strict=True)], offset, max(cap - offset, 0)


def put_minima_back(tallies: Integers, offsets: Integers, caps: Integers) -> Integers:
    """Return the tallies ``min(cap, c + t)`` for the sums `tallies` of rewritten tables.

    `caps` are the original caps of the statistics. Rows stay sorted and distinct, because ``t`` is
    either at most ``cap - c`` or always 0.

    Examples
    --------
    >>> put_minima_back(np.array([[0], [1], [2]]), np.array([-1]), np.array([1])).ravel()
    array([-1,  0,  1])
    """
    return capped_sum(tallies, offsets, caps)


def unique_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Sort the rows of an ``(n, P)`` array lexicographically and drop duplicates.

    Returns
    -------
    unique, inverse
        ``unique[inverse]`` equals `rows`. Without statistics (``P = 0``) all rows are the same.

    Examples
    --------
    >>> unique, inverse = unique_rows(np.array([[1, 0], [0, 5], [1, 0]]))
    >>> unique.tolist(), inverse.tolist()
    ([[0, 5], [1, 0]], [1, 0, 1])
    """
    count, width = rows.shape
    if count == 0 or width == 0:
        return rows[:1], np.zeros(count, dtype=np.int64)
    order = np.lexsort(rows.T[::-1])
    is_new = np.ones(count, dtype=bool)
    is_new[1:] = np.any(rows[order[1:]] != rows[order[:-1]], axis=1)
    inverse = np.empty(count, dtype=np.int64)
    inverse[order] = np.cumsum(is_new) - 1
    return rows[order[is_new]], inverse


def unique_sums(a: Integers, b: Integers, caps: Integers) -> tuple[Integers, Integers]:
    """Return the distinct capped sums of a row of `a` and a row of `b`.

    Returns
    -------
    sums, index
        The sorted sums, and the ``(len(a), len(b))`` array of the index of ``a[i] + b[j]`` among them.

    Examples
    --------
    >>> sums, index = unique_sums(np.array([[0], [1]]), np.array([[0], [1], [2]]), np.array([2]))
    >>> sums.ravel().tolist(), index.tolist()
    ([0, 1, 2], [[0, 1, 2], [1, 2, 2]])
    """
    pairs = capped_sum(a[:, None, :], b[None, :, :], caps)
    sums, inverse = unique_rows(pairs.reshape(len(a) * len(b), a.shape[1]))
    return sums, inverse.reshape(len(a), len(b))
