"""Kinds of positions for chunks, so that whole chunks are counted alike on all chains over a set of labels.

Relative to the truth, a position is outside all chunks, at the start of a chunk of some type, or further
inside one. For two neighbours, this is all that the machine of :mod:`tallytree.losses.chunks` looks at, so
its moves between states can be tabulated once. A state is a label, and whether the chunk it is in
has matched one of the truth so far; most labels never match at a position of a given kind, and have a single
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.bulk.kind_tables import Integers, KindTables
from tallytree.bulk.truth_tables import PositionTables, TruthTables
from tallytree.losses.base import Loss
from tallytree.losses.chunks import ChunkFBeta, Place, chunks_of, moves_at
from tallytree.transducers.chunks import Tag, tag_of
from tallytree.transducers.trellis import Layer

_KNOWN = 65_536
"""Number of truths whose kinds are cached, at about a hundred bytes each."""


def truth_tables(loss: Loss, labels: int, names: Sequence[str] | None) -> TruthTables | None:
    """Return what a loss counts over a set of labels; None for a loss without tables.

    Examples
    --------
    >>> import tallytree as tt
    >>> truth_tables(tt.losses.ChunkFBeta(), 3, ["O", "B-NP", "I-NP"]).tables.labels.shape
    (12, 4)
    """
    try:
        return _truth_tables(loss, labels, None if names is None else tuple(names))
    except TypeError:  # a custom loss with an unhashable parameter
        return None


@lru_cache(maxsize=16)
def _truth_tables(loss: Loss, labels: int, names: tuple[str, ...] | None) -> TruthTables | None:
    return PositionTables.of(loss, labels, names) or ChunkTables.of(loss, labels, names)


class ChunkTables(TruthTables):
    """The F-measure of whole chunks, for one set of labels."""

    def __init__(self, recipe: ChunkFBeta, names: tuple[str, ...]) -> None:
        tags = tuple(tag_of(name, recipe.scheme, recipe.background) for name in names)
        self.names, self.chunks = names, recipe
        self._columns = _Columns(tags)
        self._seen = lru_cache(_KNOWN)(self._read)
        super().__init__(recipe, ("tp", "fp"), self._columns.tables())

    def kinds(self, labels: Integers, lengths: Sequence[int]) -> tuple[Integers, list[int]]:
        """Return the kinds of positions (outside, chunk start, inside), and the numbers of chunks."""
        ends = np.cumsum(lengths).tolist()
        parts = (labels[end - length : end] for end, length in zip(ends, lengths, strict=True))
        seen = [self._seen(part.tobytes()) for part in parts]
        return np.concatenate([kinds for kinds, _ in seen]), [size for _, size in seen]

    def _read(self, data: bytes) -> tuple[Integers, int]:
        """Return the kinds of one truth, and its number of chunks."""
        truth = np.frombuffer(data, dtype=np.int64)
        chunks = chunks_of(self._labels(truth), self.chunks.scheme, self.chunks.background)
        return self._columns.positions(len(truth), chunks), len(chunks)

    def _labels(self, truth: Integers) -> list[str]:
        return [self.names[label] for label in truth.tolist()]

    def bound(self, truth: Integers) -> Loss:
        """Return the loss bound to a truth given as names."""
        return self.recipe.against(self._labels(truth))

    @classmethod
    def of(cls, loss: Loss, labels: int, names: tuple[str, ...] | None) -> ChunkTables | None:
        """Return the tables for a set of labels; None for another loss, or if two labels mean the same."""
        if type(loss) is not ChunkFBeta or names is None:
            return None
        tags = {tag_of(name, loss.scheme, loss.background) for name in names}
        return cls(loss, names) if len(tags) == len(names) else None


class _Columns:
    """The states at positions of each kind: 0 is outside, then starts and insides of each type.

    States are numbered as in the layers of the machine: twice the label, plus one for a match.
    """

    def __init__(self, tags: tuple[Tag, ...]) -> None:
        self.tags = tags
        self.types = sorted({tag.type for tag in tags if tag.type is not None})
        self.count = 1 + 2 * len(self.types)
        self.start = 2 * len(tags)
        self.pairs = [pair for pair in product(range(self.count), repeat=2) if self._may_follow(*pair)]
        self.layers = {pair: self._layer(*pair) for pair in self.pairs}
        self.first = {kind: self._layer(0, kind) for kind in range(self.count) if not self._inside(kind)}
        self.states = self._reached()
        self.width = max(map(len, self.states))

    def _inside(self, kind: int) -> bool:
        return kind > len(self.types)

    def _type(self, kind: int) -> str | None:
        return None if kind == 0 else self.types[(kind - 1) % len(self.types)]

    def _may_follow(self, before: int, after: int) -> bool:
        """Whether two kinds may be neighbours: an inside must follow the same chunk."""
        return not self._inside(after) or (before > 0 and self._type(before) == self._type(after))

    def _layer(self, before: int, after: int) -> Layer:
        inside = self._inside(after)
        begins = None if inside else self._type(after)
        return moves_at(self.tags, Place(begins, before > 0 and not inside))

    def _reached(self) -> list[Integers]:
        """Return the states of each kind that are reachable from the start, over any kinds before."""
        states = [self._opened(kind) for kind in range(self.count)]
        while True:
            grown = list(states)
            for (before, after), layer in self.layers.items():
                grown[after] = np.union1d(grown[after], layer.moves[states[before]])
            if [*map(len, grown)] == [*map(len, states)]:
                return states
            states = grown

    def _opened(self, kind: int) -> Integers:
        """Return the states at a first position."""
        none = np.zeros(0, dtype=np.int64)
        return np.unique(self.first[kind].moves[self.start]) if kind in self.first else none

    def positions(self, length: int, chunks: list[Any]) -> Integers:
        """Return the kinds of a truth's positions; the first and the last have separate kinds."""
        kinds = np.zeros(length, dtype=np.int64)
        for kind, first, last in chunks:
            number = 1 + self.types.index(kind)
            kinds[first] = number
            kinds[first + 1 : last + 1] = number + len(self.types)
        kinds[:1] += self.count
        kinds[-1:] += 2 * self.count
        return kinds

    def tables(self) -> KindTables:
        """Return the tables of all kinds: each in the middle, first, last, and alone."""
        labels, given = self._labels(), self._given()
        numbers = {pair: number for number, pair in enumerate(self.pairs)}
        pairs = np.full((self.count, self.count), -1, dtype=np.int32)
        for pair, number in numbers.items():
            pairs[pair] = number
        fits = np.zeros((len(self.pairs), self.width, self.width), dtype=np.bool_)
        moved = np.zeros((2, len(self.pairs), self.width, self.width), dtype=np.int64)
        for (before, after), number in numbers.items():
            fits[number], moved[:, number] = self._moved(before, after)
        return KindTables(labels, given, np.tile(pairs, (4, 4)), fits, moved)

    def _labels(self) -> NDArray[np.int32]:
        middle = np.full((self.count, self.width), -1, dtype=np.int32)
        first = middle.copy()
        for kind, states in enumerate(self.states):
            middle[kind, : len(states)] = states // 2
            opened = np.isin(states, self._opened(kind))
            first[kind, : len(states)] = np.where(opened, states // 2, -1)
        return np.concatenate((middle, first, middle, first))

    def _given(self) -> Integers:
        """Return the counts at the first position, and those of a match that lasts to the end."""
        first, last = (np.zeros((2, self.count, self.width), dtype=np.int64) for _ in range(2))
        for kind, states in enumerate(self.states):
            last[0, kind, : len(states)] = states % 2
            if kind in self.first:
                given = self.first[kind].outputs[self.start, states // 2].T
                opened = np.isin(states, self._opened(kind))
                first[:, kind, : len(states)] = np.where(opened, given, 0)
        return np.concatenate((np.zeros_like(first), first, last, first + last), axis=1)

    def _moved(self, before: int, after: int) -> tuple[NDArray[np.bool_], Integers]:
        """Return which states of two neighbours are compatible, and their counts; 0 if incompatible."""
        layer, here, there = self.layers[before, after], self.states[before], self.states[after]
        fits = np.zeros((self.width, self.width), dtype=np.bool_)
        inner = np.s_[: len(here), : len(there)]
        fits[inner] = layer.moves[here][:, there // 2] == there
        outputs = np.zeros((2, self.width, self.width), dtype=np.int64)
        outputs[:, *inner] = np.moveaxis(layer.outputs[here][:, there // 2], 2, 0)
        least = [one[fits].min() for one in outputs]
        return fits, np.where(fits, outputs, np.array(least)[:, np.newaxis, np.newaxis])
