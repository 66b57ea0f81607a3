"""Tables for chunks, by the kinds of positions: those of a loss for all truths over a set of labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import TypeGuard

import numpy as np

from tallytree.bulk.kind_tables import Integers, KindTables
from tallytree.bulk.truth_tables import PositionTables, TruthTables
from tallytree.errors import ModelError
from tallytree.losses.base import Loss
from tallytree.losses.chunk_kinds import ChunkKinds, kinds_of
from tallytree.losses.chunks import ChunkFBeta
from tallytree.transducers.chunks import chunks_of

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


def check_summable(loss: Loss) -> None:
    """Raise an error for a loss without tables: it must count positions, nodes or chunks."""
    if not PositionTables.suit(loss) and not ChunkTables.suit(loss):
        raise ModelError(
            f"{type(loss).__name__} cannot be summed over labellings; use a loss that counts positions or "
            "chunks, such as HammingDistance, FBeta or ChunkFBeta"
        )


def summable_tables(loss: Loss, labels: int, names: Sequence[str] | None) -> TruthTables:
    """Return what a loss counts over a set of labels; raise an error if it does not fit the labels."""
    check_summable(loss)
    found = truth_tables(loss, labels, names)
    if found is not None:
        return found
    known = f"labels 0 to {labels - 1}" if names is None else f"the labels {', '.join(names)}"
    background = getattr(loss, "background", None)
    unknown = background is not None and background not in (names or ()) and background not in range(labels)
    reason = f": the background {background!r} is not one of them" if unknown else ""
    raise ModelError(f"{type(loss).__name__} cannot be counted with {known}{reason}")


@lru_cache(maxsize=16)
def _truth_tables(loss: Loss, labels: int, names: tuple[str, ...] | None) -> TruthTables | None:
    return PositionTables.of(loss, labels, names) or ChunkTables.of(loss, labels, names)


class ChunkTables(TruthTables):
    """The F-measure of whole chunks, for one set of labels."""

    def __init__(self, recipe: ChunkFBeta, names: tuple[str, ...], kinds: ChunkKinds) -> None:
        self.names, self.chunks = names, recipe
        self._kinds = kinds
        self._seen = lru_cache(_KNOWN)(self._read)
        super().__init__(recipe, ("tp", "fp"), _kind_tables(kinds))

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
        return self._kinds.positions([(len(truth), chunks)]), len(chunks)

    def _labels(self, truth: Integers) -> list[str]:
        return [self.names[label] for label in truth.tolist()]

    def bound(self, truth: Integers) -> Loss:
        """Return the loss bound to a truth given as names."""
        return self.recipe.against(self._labels(truth))

    @staticmethod
    def suit(loss: object) -> TypeGuard[ChunkFBeta]:
        """Return whether a loss counts whole chunks."""
        return type(loss) is ChunkFBeta

    @classmethod
    def of(cls, loss: Loss, labels: int, names: tuple[str, ...] | None) -> ChunkTables | None:
        """Return the tables for a set of labels; None for another loss, or if two labels mean the same."""
        if names is None or not cls.suit(loss):
            return None
        kinds = kinds_of(names, loss.scheme, loss.background)
        return None if kinds is None else cls(loss, names, kinds)


def _kind_tables(kinds: ChunkKinds) -> KindTables:
    """Return the tables of all kinds, with unused states where others have more."""
    count, width = kinds.count, max(len(kinds.states(kind)) for kind in range(kinds.count))
    labels = np.full((4 * count, width), -1, dtype=np.int32)
    given = np.zeros((2, 4 * count, width), dtype=np.int64)
    for place, kind in product(range(4), range(count)):
        used = _used(kinds, kind, place)
        labels[place * count + kind, used] = kinds.states(kind, place) // 2
        given[:, place * count + kind, used] = kinds.given(kind, place)
    pairs = np.full((count, count), -1, dtype=np.int32)
    neighbours = [pair for pair in product(range(count), repeat=2) if kinds.may_follow(*pair)]
    fits = np.zeros((len(neighbours), width, width), dtype=np.bool_)
    moved = np.zeros((2, len(neighbours), width, width), dtype=np.int64)
    for number, pair in enumerate(neighbours):
        pairs[pair] = number
        link = kinds.linked(*pair)
        inner = np.s_[: link.fits.shape[0], : link.fits.shape[1]]
        fits[number][inner] = link.fits
        for p, counts in enumerate(link.moved):
            if counts is not None:
                moved[p, number] = counts[link.fits].min()  # so that unused states do not widen the range
                moved[p, number][inner] = counts
    return KindTables(labels, given, np.tile(pairs, (4, 4)), fits, moved)


def _used(kinds: ChunkKinds, kind: int, place: int) -> Integers:
    """Return which states of a kind are used at a place, by their positions among all of its states."""
    return np.searchsorted(kinds.states(kind), kinds.states(kind, place))
