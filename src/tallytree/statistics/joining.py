"""Sums and constraints that grow by one part at a time, in time that grows with the number of parts alone."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from tallytree.statistics.linear import Term


FEW_TERMS = 16
"""Terms that are told apart without their digests."""

T = TypeVar("T")
Pair = tuple["Term", int]

_ROOM = 64  # pairs that wait at least


class Joined(Generic[T]):
    """A sequence of items, and what further ones it was joined with; they are listed when they are asked for.

    ``a + b + c + …`` makes one for each sign, and of these only the last is listed.

    Examples
    --------
    >>> some = Joined((1, 2))
    >>> some.with_(Joined((3,))).with_(some).items
    (1, 2, 3, 1, 2)
    """

    __slots__ = ("_items", "_pair", "size")

    def __init__(self, items: tuple[T, ...] = ()) -> None:
        self._items: tuple[T, ...] | None = items
        self._pair: tuple[Joined[T], Joined[T]] | None = None
        self.size = len(items)

    def with_(self, other: Joined[T]) -> Joined[T]:
        """Return the items of this sequence, then those of another."""
        joined: Joined[T] = Joined()
        joined._items, joined._pair, joined.size = None, (self, other), self.size + other.size
        return joined

    @property
    def items(self) -> tuple[T, ...]:
        """All items in order."""
        if self._items is None:
            found: list[T] = []
            waiting = [self]
            while waiting:
                one = waiting.pop()
                items, pair = one._items, one._pair  # read once: another thread may be listing it
                if items is not None:
                    found.extend(items)
                elif pair is not None:
                    waiting += (pair[1], pair[0])
            self._items, self._pair = tuple(found), None
        return self._items


class Sum:
    """Terms with coefficients, added up; equal ones are put together when they are asked for."""

    __slots__ = ("_added", "_room", "_terms")

    def __init__(self, added: Joined[Pair], room: int = _ROOM) -> None:
        self._added, self._room = added, room  # room: how many pairs may wait
        self._terms: tuple[Pair, ...] | None = None

    @property
    def terms(self) -> tuple[Pair, ...]:
        """Terms and their coefficients, each once."""
        known = self._terms
        if known is None:
            known = merged(self._added.items)
            self._terms, self._added, self._room = known, Joined(known), max(_ROOM, 2 * len(known))
        return known

    def plus(self, other: Sum) -> Sum:
        """Add another sum, at a price that does not grow with the number of terms."""
        added = other._added if other._added.size > _ROOM else Joined(other.terms)
        whole = Sum(self._added.with_(added), max(self._room, other._room))
        if whole._added.size > whole._room:  # or x + x would double
            _ = whole.terms
        return whole


def merged(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Add up the coefficients of equal terms, and leave out those that come to nothing.

    A term stands where it came first since it last came to nothing, as if the pairs were added one by one.
    """
    few = len(pairs) <= FEW_TERMS
    sums: dict[Hashable, Pair] = {}
    for term, coefficient in pairs:
        key = term if few else (type(term), term.key)
        first, before = sums.get(key, (term, 0))
        if before + coefficient:
            sums[key] = (first, before + coefficient)
        else:
            sums.pop(key, None)
    return tuple(sums.values())
