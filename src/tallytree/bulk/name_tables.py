"""The columns of attributes by name, for many positions at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallytree.bulk.expectations import SparseRows
from tallytree.kernels import native
from tallytree.planning.budget import thread_count


class NameTable:
    """Names, numbered from 0.

    Parameters
    ----------
    names : sequence of str
        Unique names.

    Examples
    --------
    >>> table = NameTable(["the", "word:cat"])
    >>> table.rows([[["the", "unknown"], {"word": "cat", "the": 0.5}]])
    SparseRows(starts=array([0, 1, 3]), columns=array([0, 1, 0], dtype=int32), values=array([1. , 1. , 0.5]))
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._native = native.NameTable(list(names))

    def rows(self, examples: Sequence[Any], threads: int | None = None) -> SparseRows | None:
        """Return a row for each position of all examples; names that are not in the table are ignored.

        None if an example is not a list of positions, or a position is neither a list of strings nor a
        dictionary of strings, numbers and booleans: these have to be encoded one by one.
        """
        found = self._native.read(list(examples), thread_count(threads))
        return None if found is None else SparseRows(*found)
