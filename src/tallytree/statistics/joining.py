"""Sums and constraints built one part at a time, in time linear in the number of parts."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from tallytree.statistics.linear import Term


FEW_TERMS = 16
"""Terms that can be compared without their digests."""

T = TypeVar("T")
Pair = tuple["Term", int]

_ROOM = 64  # minimum number of pairs before merging


class Joined(Generic[T]):
    """A sequence concatenated with others, listed lazily.

    ``a + b + c + …`` makes one for each operator, and only the last is listed.

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
        """Return the items of this sequence, followed by those of another."""
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
    """A sum of terms with coefficients; equal terms are merged lazily."""

    __slots__ = ("_added", "_room", "_terms")

    def __init__(self, added: Joined[Pair], room: int = _ROOM) -> None:
        self._added, self._room = added, room  # room: how many pairs may accumulate before merging
        self._terms: tuple[Pair, ...] | None = None

    @property
    def terms(self) -> tuple[Pair, ...]:
        """The distinct terms and their coefficients."""
        known = self._terms
        if known is None:
            known = merged(self._added.items)
            self._terms, self._added, self._room = known, Joined(known), max(_ROOM, 2 * len(known))
        return known

    def plus(self, other: Sum) -> Sum:
        """Add another sum, at a cost that does not grow with the number of terms."""
        added = other._added if other._added.size > _ROOM else Joined(other.terms)
        whole = Sum(self._added.with_(added), max(self._room, other._room))
        if whole._added.size > whole._room:  # otherwise x + x would double
            _ = whole.terms
        return whole


def merged(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Add up the coefficients of equal terms, and drop those that cancel.

    A term's position is where it first appeared since it last cancelled, as if pairs were added one by one.
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
