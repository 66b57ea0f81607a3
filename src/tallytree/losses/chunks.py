"""The F-measure of whole chunks, as reported by the CoNLL scorer.

A chunk is correct if its type, its first and its last word are. This does not decompose over neighbouring
labels, but a machine can count it (:mod:`tallytree.transducers`): while it reads the labels it remembers the
last one, and whether the open chunk has agreed with a chunk of the truth so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.losses.base import Line, flat
from tallytree.losses.nodes import FBeta
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.transducers.chunks import Scheme, Tag, checked_scheme, tag_of
from tallytree.transducers.encodings import transduced
from tallytree.transducers.machine import Machine, Move, State
from tallytree.transducers.trellis import Alphabet, Layer, Trellis, trimmed, unrolled
from tallytree.trees import Tree
from tallytree.values import Repeated, each


class Chunk(NamedTuple):
    """A chunk: its type, its first position and its last."""

    type: str
    first: int
    last: int


def chunks_of(labels: Sequence[Hashable], scheme: Scheme = "BIO", outside: str = "O") -> list[Chunk]:
    """Return the chunks of a sequence of labels, valid or not, as the CoNLL scorer finds them.

    Examples
    --------
    >>> chunks_of(["B-NP", "I-NP", "B-NP", "O", "I-VP"])
    [Chunk(type='NP', first=0, last=1), Chunk(type='NP', first=2, last=2), Chunk(type='VP', first=4, last=4)]
    """
    if isinstance(labels, str):
        raise ModelError(f"expected a sequence of labels, got the string {labels!r}; use labels.split()")
    try:
        tags = {label: tag_of(label, scheme, outside) for label in set(labels)}
    except TypeError:
        raise ModelError(f"expected a sequence of strings, got {labels!r}") from None
    starts: list[tuple[str, int]] = []
    ends: list[int] = []
    open_ended = False  # whether the last chunk may continue
    for position, (tag, kind) in enumerate(map(tags.__getitem__, labels)):
        if kind is None:
            open_ended = False
            continue
        if open_ended and starts[-1][0] == kind and tag in ("I", "E"):
            ends[-1] = position
        else:
            starts.append((kind, position))
            ends.append(position)
        open_ended = tag in ("B", "I")
    return [Chunk(*start, end) for start, end in zip(starts, ends, strict=True)]


@dataclass(frozen=True)
class ChunkFBeta(FBeta):
    """One minus the F-measure of whole chunks: ``1 - (1 + β²)·TP / (β²·|y*| + TP + FP)``.

    TP is the number of chunks that are also in the truth (type, first and last position), FP the number of
    other chunks, ``|y*|`` the number of chunks of the truth; 0 without any chunks. Chunks are those that the
    CoNLL scorer finds, also in invalid sequences: ``I-NP`` after ``O`` starts a chunk. For chains with named
    states.

    Parameters
    ----------
    truth : labelling, optional
        The true labelling.
    beta : float
        The weight of recall relative to precision, from 1e-6 to 1e6.
    scheme : {"BIO", "BIOES", "IO"}
        How labels encode chunks.
    background : str
        The label outside chunks.

    Examples
    --------
    >>> import tallytree as tt
    >>> loss = tt.losses.ChunkFBeta(["B-NP", "I-NP", "O", "B-VP"])
    >>> loss(["B-NP", "I-NP", "O", "B-VP"]), loss(["B-NP", "O", "O", "B-VP"])
    (0.0, 0.5)
    """

    background: Any = field(default="O", kw_only=True)
    scheme: Scheme = "BIO"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_scheme(self.scheme)

    def _truth_on(self, model: Model, codes: NDArray[np.int64]) -> Any:
        return model.labels(codes)  # chunks are encoded in the names

    def nodes(self, y: Any) -> Counter[Any]:
        """Return the chunks of a labelling."""
        if isinstance(y, Tree):
            raise ModelError(f"{type(self).__name__} is a loss of labellings, not of trees; use FBeta()")
        labels = flat(y if self._model is None else self._model.labels(y))
        if len(labels) != len(self.right):
            raise ModelError(f"the truth has {len(self.right)} variables, the labelling has {len(labels)}")
        return Counter(chunks_of(labels, self.scheme, self.background))

    @cached_property
    def gold(self) -> Counter[Any]:
        """The chunks of the truth."""
        return self.nodes(self._required())

    @property
    def one_tally(self) -> bool:
        """False: it needs true positives and false positives."""
        return False

    def reduce(self, model: Model) -> Reduction:
        """Count true and false positives with a machine."""
        truth = flat(model.labels(self._required()))
        machine = ChunkMatches(
            tuple(chunks_of(truth, self.scheme, self.background)), self.scheme, self.background
        )
        return transduced(Reduction.identity(model), machine)

    def reduce_all(self, model: Model, truths: Sequence[Sequence[Hashable]]) -> Reduction:
        """Count true and false positives of many sentences that are concatenated in one model.

        Chunks do not continue from one sentence to the next.
        """
        starts = np.cumsum([0, *map(len, truths)]).tolist()
        gold = tuple(
            Chunk(chunk.type, at + chunk.first, at + chunk.last)
            for at, truth in zip(starts, truths, strict=False)
            for chunk in chunks_of(truth, self.scheme, self.background)
        )
        machine = ChunkMatches(gold, self.scheme, self.background, frozenset(starts))
        return transduced(Reduction.identity(model), machine)

    def linear(self) -> Line | None:
        """Return None: it is not linear."""
        return None


class Place(NamedTuple):
    """What the machine sees at a position.

    The type of the true chunk that starts there, if any, whether one ended just before it, and
    whether a sentence starts there.
    """

    begins: str | None
    ended: bool
    fresh: bool = False


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
    sentences: frozenset[int] = frozenset()  # where sentences start, if there are several

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
        return Place(self._begins.get(position), position in self._ended, position in self.sentences)

    def step(self, state: State, label: Hashable, at: Hashable) -> Move | None:
        """Close a chunk, right or wrong, and open one."""
        return _moved(state, tag_of(label, self.scheme, self.outside), at)

    def stop(self, state: State) -> tuple[int, ...] | None:
        """Close a chunk that matches to the end: it is correct."""
        return (int(_split(state)[1]), 0)

    def trellis(self, alphabets: tuple[Alphabet, ...]) -> Trellis | None:
        """Return its moves; those at one place are the same for every truth, and cached."""
        if len(set(alphabets)) != 1:
            return unrolled(self, alphabets)
        tags = tuple(tag_of(label, self.scheme, self.outside) for label in alphabets[0])
        layers = each(lambda position: moves_at(tags, self.at(position)), self._alike(len(alphabets)))
        accepting = np.ones(2 * len(tags) + 1, dtype=np.bool_)
        stops = np.zeros((2 * len(tags) + 1, 2), dtype=np.int64)
        stops[1 : 2 * len(tags) : 2, 0] = 1
        return trimmed(layers, 2 * len(tags), accepting, stops)

    def _alike(self, length: int) -> Repeated[int]:
        """Return for each position the first one with the same place."""
        kinds = {kind: number for number, kind in enumerate(dict.fromkeys(self._begins.values()), start=1)}
        codes = np.zeros(length, dtype=np.int64)
        begins = {place: 4 * kinds[kind] for place, kind in self._begins.items() if place < length}
        codes[list(begins)] = list(begins.values())
        for places, code in ((self._ended, 2), (self.sentences, 1)):
            codes[[place for place in places if place < length]] += code
        _, first, numbers = np.unique(codes, return_index=True, return_inverse=True)
        return Repeated(first.tolist(), numbers.reshape(-1))


def _split(state: State) -> tuple[Tag, bool]:
    assert isinstance(state, tuple)
    return state[0], state[1]


def _moved(state: State, tag: Tag, at: Hashable) -> Move:
    (last, matching), tp, fp = _split(state), 0, 0
    assert isinstance(at, Place)
    boundary = at.fresh or last.boundary(tag)
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
