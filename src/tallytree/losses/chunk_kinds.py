"""Kinds of positions for chunks, so that whole chunks are counted alike on all chains over a set of labels.

Relative to the truth, a position is outside all chunks, at the start of a chunk of some type, or further
inside one. For two neighbours, this is all that the machine of ``chunk_matches.py`` looks at, so
its moves between states can be tabulated once. A state is a label, and whether the chunk it is in
has matched one of the truth so far; most labels never match at a position of a given kind, and have a single
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.losses.chunk_matches import ChunkMatches, Place, moves_at
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.transducers.chunks import Chunk, Scheme, Tag, tag_of
from tallytree.transducers.encodings import check_chain, check_entries
from tallytree.transducers.product import ChainProduct, nonzero
from tallytree.transducers.trellis import Layer
from tallytree.values import Repeated, each, read_only

Integers = NDArray[np.int64]

_LINK_BYTES = 2**24
"""The size of the tables of neighbours that are kept for a set of labels."""

MIDDLE, FIRST, LAST = 0, 1, 2
"""Where in its sentence a position is; FIRST + LAST is alone."""


class Link(NamedTuple):
    """Two neighbours: which states may follow each other, and what is counted; None for zeros."""

    fits: NDArray[np.bool_]
    moved: tuple[Integers | None, ...]


class ChunkKinds:
    """The states of positions of each kind: 0 is outside, then starts and insides of each type.

    States are numbered as in the layers of the machine: twice the label, plus one for a match. Each kind
    exists four times, by where in its sentence the position is: ``kind + place * count``.
    """

    def __init__(self, tags: tuple[Tag, ...]) -> None:
        self.tags = tags
        self.types = sorted({tag.type for tag in tags if tag.type is not None})
        self.count = 1 + 2 * len(self.types)
        self._numbers = {kind: number for number, kind in enumerate(self.types, start=1)}
        self._start = 2 * len(tags)  # the state before the first position
        self._states: dict[int, Integers] = {}  # of kinds, then of kinds at the first position
        self.width = len(tags) + 1  # about as many states as a position has
        self._link = lru_cache(max(16, _LINK_BYTES // (17 * self.width**2)))(self._linked)

    # ---- kinds of a truth ----------------------------------------------------------------------------

    def positions(self, sentences: Sequence[tuple[int, Sequence[Chunk]]]) -> Integers:
        """Return the kinds of the positions of some sentences, given their lengths and chunks."""
        lengths = np.array([length for length, _ in sentences], dtype=np.int64)
        ends = lengths.cumsum()
        starts = ends - lengths
        kinds = np.zeros(int(lengths.sum()), dtype=np.int64)
        chunks = [chunk for _, some in sentences for chunk in some]
        number = np.array([self._numbers[chunk.type] for chunk in chunks], dtype=np.int64)
        at = np.repeat(starts, [len(some) for _, some in sentences])
        first = at + np.array([chunk.first for chunk in chunks], dtype=np.int64)
        more = np.array([chunk.last - chunk.first for chunk in chunks], dtype=np.int64)
        kinds[first] = number
        behind = np.arange(more.sum()) - np.repeat(more.cumsum() - more, more)  # 0, 1, … in each chunk
        kinds[np.repeat(first + 1, more) + behind] = np.repeat(number + len(self.types), more)
        some = lengths > 0
        kinds[starts[some]] += FIRST * self.count
        kinds[ends[some] - 1] += LAST * self.count
        return kinds

    def _inside(self, kind: int) -> bool:
        return kind > len(self.types)

    def _type(self, kind: int) -> str | None:
        return None if kind == 0 else self.types[(kind - 1) % len(self.types)]

    def may_follow(self, before: int, after: int) -> bool:
        """Whether two kinds may be neighbours in a sentence: an inside must follow the same chunk."""
        return not self._inside(after) or (before > 0 and self._type(before) == self._type(after))

    # ---- states --------------------------------------------------------------------------------------

    def states(self, kind: int, place: int = MIDDLE) -> Integers:
        """Return the states of a kind that are reachable from the start, over any kinds before."""
        number = kind + self.count * (place & FIRST)
        if number not in self._states:
            known = {number: self._opened(kind)} if place & FIRST else self._reached(kind)
            self._states.update(known)
        return self._states[number]

    def _opened(self, kind: int) -> Integers:
        """Return the states at a first position."""
        none = np.zeros(0, dtype=np.int64)
        return none if self._inside(kind) else np.unique(self._first(kind).moves[self._start])

    def _reached(self, kind: int) -> dict[int, Integers]:
        """Return the states of the outside, and of the start and the inside of chunks of one type.

        Kinds of other types need not be considered: a chunk of another type neither continues here nor
        matches.
        """
        start = 1 + max(kind - 1, 0) % max(len(self.types), 1)
        near = [0, start, start + len(self.types)] if self.types else [0]
        states = {one: self.states(one, FIRST) for one in near}
        pairs = [(one, other) for one in near for other in near if self.may_follow(one, other)]
        while True:
            grown = dict(states)
            for before, after in pairs:
                grown[after] = np.union1d(grown[after], self._layer(before, after).moves[states[before]])
            if all(len(grown[one]) == len(states[one]) for one in near):
                return states
            states = grown

    def _layer(self, before: int, after: int) -> Layer:
        inside = self._inside(after)
        begins = None if inside else self._type(after)
        return moves_at(self.tags, Place(begins, before > 0 and not inside))

    def _first(self, kind: int) -> Layer:
        """Return the moves at the first position."""
        return self._layer(0, kind)

    # ---- counts --------------------------------------------------------------------------------------

    def given(self, kind: int, place: int) -> Integers:
        """Return the counts at the first position, and those of a match that lasts to the end."""
        states = self.states(kind, place)
        counts = np.zeros((2, len(states)), dtype=np.int64)
        if place & FIRST and len(states):
            counts += self._first(kind).outputs[self._start, states // 2].T
        if place & LAST:
            counts[0] += states % 2
        return counts

    def linked(self, before: int, after: int) -> Link:
        """Return what two neighbours are: one sentence ends between them, or they are in the same one.

        `before` and `after`: kinds with their places.
        """
        (place, kind), (there, other) = divmod(before, self.count), divmod(after, self.count)
        if place & LAST:
            sizes = len(self.states(kind, place)), len(self.states(other, there))
            return Link(np.ones(sizes, dtype=np.bool_), (None, None))
        return self._link(kind, place & FIRST, other)

    def _linked(self, before: int, place: int, after: int) -> Link:
        layer, here, there = self._layer(before, after), self.states(before, place), self.states(after)
        fits = layer.moves[here][:, there // 2] == there
        outputs = np.moveaxis(layer.outputs[here][:, there // 2], 2, 0)
        return Link(read_only(fits), tuple(nonzero(one, fits) for one in outputs))

    # ---- chains --------------------------------------------------------------------------------------

    def product(self, kinds: Integers) -> ChainProduct:
        """Return the chain of a row of kinds with their places."""
        place, kind = np.divmod(kinds, self.count)
        every = range(4 * self.count)
        here: Repeated[int] = Repeated(every, kinds)
        alike: Repeated[int] = Repeated(every, kind + self.count * (place & FIRST))  # with the same states
        given = each(self._counted, here)
        links = each(self.linked, here[:-1], here[1:])
        return ChainProduct(
            _same(each(self._labels, alike)),
            links.mapped(lambda link: link.fits),
            [given.mapped(lambda counts, p=p: counts[p]) for p in range(2)],  # type: ignore[misc]
            [links.mapped(lambda link, p=p: link.moved[p]) for p in range(2)],  # type: ignore[misc]
        )

    def _counted(self, kind: int) -> tuple[Integers | None, ...]:
        place, base = divmod(kind, self.count)
        return (None, None) if place == MIDDLE else tuple(map(nonzero, self.given(base, place)))

    def _labels(self, kind: int) -> Integers:
        return self.states(kind % self.count, kind // self.count) // 2

    def reduction(self, model: Model, sentences: Sequence[tuple[int, Sequence[Chunk]]]) -> Reduction:
        """Count true and false positives on a chain of sentences, given their lengths and true chunks."""
        check_chain(model)
        made = self.product(self.positions(sentences))
        check_entries(made.entries(model.blocks), "ChunkMatches", self.width)
        return made.reduction(Reduction.identity(model), ChunkMatches.outputs, (0, 0))


def _same(tables: Repeated[Integers]) -> Repeated[Integers]:
    """Return equal arrays as the same object."""
    known: dict[bytes, Integers] = {}
    first = Repeated.of([known.setdefault(table.tobytes(), table) for table in tables.distinct])
    return Repeated(first.distinct, first.numbers[tables.numbers])


def chunk_kinds(model: Model, scheme: Scheme, outside: Any) -> ChunkKinds | None:
    """Return the kinds of positions of a model; None if its labels differ or two of them mean the same."""
    names = None if model.alike is None or not len(model) else model.states_of(0)
    return None if names is None else kinds_of(tuple(names), scheme, outside)


@lru_cache(maxsize=16)
def kinds_of(names: tuple[str, ...], scheme: Scheme, outside: str) -> ChunkKinds | None:
    """Return the kinds of positions for a set of labels; None if two of them mean the same."""
    tags = tuple(tag_of(name, scheme, outside) for name in names)
    return ChunkKinds(tags) if len(set(tags)) == len(tags) else None
