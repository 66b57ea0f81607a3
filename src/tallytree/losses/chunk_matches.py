"""A machine that counts the chunks of a labelling that are also in the truth, and the others.

While it reads the labels it remembers the last one, and whether the open chunk has agreed with a chunk of
the truth so far.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, final

import numpy as np

from tallytree.transducers.chunks import Chunk, Scheme, Tag, tag_of
from tallytree.transducers.machine import Machine, Move, State
from tallytree.transducers.trellis import Layer


class Place(NamedTuple):
    """What the machine sees at a position.

    The type of the true chunk that starts there, if any, and whether one ended just before it.
    """

    begins: str | None
    ended: bool


@final
@dataclass(frozen=True)
class ChunkMatches(Machine):
    """Counts the chunks that are in ``gold`` and those that are not.

    An open chunk is *matching* as long as a true chunk of the same type started where it did and
    has not ended. The state is the last label, and whether there is a matching chunk.
    """

    gold: tuple[Chunk, ...]
    scheme: Scheme
    outside: str

    outputs = ("tp", "fp")
    start = (Tag("O", None), False)

    @cached_property
    def _begins(self) -> dict[int, str]:
        return {chunk.first: chunk.type for chunk in self.gold}

    @cached_property
    def _ended(self) -> frozenset[int]:
        return frozenset(chunk.last + 1 for chunk in self.gold)

    def at(self, position: int) -> Hashable:
        """Return which true chunk starts at a position, and whether one ended before it."""
        return Place(self._begins.get(position), position in self._ended)

    def step(self, state: State, label: Hashable, at: Hashable) -> Move | None:
        """Close a chunk, right or wrong, and open one."""
        return _moved(state, tag_of(label, self.scheme, self.outside), at)

    def stop(self, state: State) -> tuple[int, ...] | None:
        """Close a chunk that matches to the end: it is correct."""
        return (int(_split(state)[1]), 0)


def _split(state: State) -> tuple[Tag, bool]:
    assert isinstance(state, tuple)
    return state[0], state[1]


def _moved(state: State, tag: Tag, at: Hashable) -> Move:
    (last, matching), tp, fp = _split(state), 0, 0
    assert isinstance(at, Place)
    boundary = last.boundary(tag)
    if matching and boundary:
        tp, fp = int(at.ended), int(not at.ended)
    elif matching and at.ended:
        fp = 1
    matching = matching and not boundary and not at.ended
    if boundary and tag.type is not None:
        matching = tag.type == at.begins
        fp += not matching
    return (tag, matching), (tp, fp)


@lru_cache(maxsize=1024)
def moves_at(tags: tuple[Tag, ...], place: Place) -> Layer:
    """Return the moves at a place.

    State ``2·a`` comes after label a, ``2·a + 1`` after label a with a match; the last one is the start.
    """
    numbers = {tag: number for number, tag in enumerate(tags)}
    states = [*((tag, matching) for tag in tags for matching in (False, True)), ChunkMatches.start]
    moves = [[_moved(state, tag, place) for tag in tags] for state in states]
    after = [[2 * numbers[tag] + matching for (tag, matching), _ in map(_typed, row)] for row in moves]
    return Layer(np.array(after), np.array([[given for _, given in row] for row in moves]))


def _typed(move: Move) -> tuple[tuple[Tag, bool], tuple[int, ...]]:
    return _split(move[0]), move[1]
