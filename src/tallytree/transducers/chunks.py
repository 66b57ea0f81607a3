"""Chunks in label sequences: the BIO, BIOES and IO schemes.

A label is a tag and a type, ``B-NP``, or the outside label. A chunk of a type begins and ends as in the CoNLL
scorer, also in invalid sequences: between two labels there is a **boundary** if their types differ
(the outside has no type), if the second starts a chunk (B, S) or if the first ends one (E, S).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, final

from tallytree.errors import ModelError
from tallytree.transducers.machine import Machine, Move, State

Scheme = Literal["BIO", "BIOES", "IO"]

_TAGS: dict[str, str] = {"BIO": "BI", "BIOES": "BIES", "IO": "I"}


class Tag(NamedTuple):
    """A parsed label: its tag (``O`` outside), and the type of chunk (None outside)."""

    tag: str
    type: str | None

    def boundary(self, after: Tag) -> bool:
        """Whether there is a boundary between this label and the one after it."""
        return self.type != after.type or (
            self.type is not None and (after.tag in ("B", "S") or self.tag in ("E", "S"))
        )


def checked_scheme(scheme: object) -> Scheme:
    """Return a scheme; raise an error if it is unknown."""
    if scheme not in ("BIO", "BIOES", "IO"):
        raise ModelError(f"scheme must be 'BIO', 'BIOES' or 'IO', got {scheme!r}")
    return scheme


@lru_cache(maxsize=4096)
def tag_of(label: Hashable, scheme: Scheme, outside: str = "O") -> Tag:
    """Parse a label of a scheme.

    Examples
    --------
    >>> tag_of("B-NP", "BIO"), tag_of("O", "BIO")
    (Tag(tag='B', type='NP'), Tag(tag='O', type=None))
    >>> tag_of("S-NP", "BIO")
    Traceback (most recent call last):
    tallytree.errors.ModelError: 'S-NP' is not a label of the BIO scheme: expected 'O', or a label that begins
    with B- or I-. ...
    """
    if label == outside:
        return Tag("O", None)
    text = label if isinstance(label, str) else ""
    tag, dash, kind = text.partition("-")
    if tag in _TAGS[scheme] and len(tag) == 1 and (kind or not dash):
        return Tag(tag, kind)
    if scheme == "IO" and text and not (dash and tag in ("B", "E", "S")):
        return Tag("I", text)
    wanted = " or ".join(f"{one}-" for one in _TAGS[scheme])
    raise ModelError(
        f"{label!r} is not a label of the {scheme} scheme: expected {outside!r}, or a label that begins with "
        f"{wanted}{_hint(label, scheme)}"
    )


def _hint(label: Hashable, scheme: Scheme) -> str:
    """Return how to use a label that is not in a scheme."""
    if not isinstance(label, str):
        return "; give the labels names, such as 'B-NP'"
    if scheme == "BIO" and label.startswith(("E-", "S-")):
        return ". This is the BIOES scheme; use scheme='BIOES', or tt.valid_bioes in a constraint"
    return "; the schemes are BIO, BIOES and IO"


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
        marks = {label: _marks(tag_of(label, scheme, outside)) for label in set(labels)}
    except TypeError:
        raise ModelError(f"expected a sequence of strings, got {labels!r}") from None
    kinds: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    current = None  # the type of the last chunk, if it may continue
    for position, (kind, continues, stays) in enumerate(map(marks.__getitem__, labels)):
        if continues and kind == current:
            ends[-1] = position
        elif kind is not None:
            kinds.append(kind)
            starts.append(position)
            ends.append(position)
        current = stays
    return list(map(Chunk, kinds, starts, ends))


def _marks(label: Tag) -> tuple[str | None, bool, str | None]:
    """Return the type of a label, whether it may continue a chunk, and the type of chunk that may go on."""
    return label.type, label.tag in ("I", "E"), label.type if label.tag in ("B", "I") else None


@final
@dataclass(frozen=True)
class ValidChunks(Machine):
    """Accepts valid sequences of a scheme; its state is the type of a chunk that may continue."""

    scheme: Scheme
    outside: str = "O"

    @property
    def start(self) -> State:
        """No chunk is open."""
        return None

    def step(self, state: State, label: Hashable, at: Hashable) -> Move | None:
        """Forbid labels that continue no chunk, and in BIOES those that leave one open."""
        tag, kind = tag_of(label, self.scheme, self.outside)
        continues = tag in ("I", "E")
        must_continue = self.scheme == "BIOES" and state is not None
        if (continues and kind != state) or (must_continue and not continues):
            return None
        return (kind if tag in ("B", "I") else None), ()

    def stop(self, state: State) -> tuple[int, ...] | None:
        """Accept; in BIOES only if no chunk is open."""
        return None if self.scheme == "BIOES" and state is not None else ()

    def check(self, labels: frozenset[Hashable]) -> None:
        """Raise an error for labels of another scheme."""
        for label in sorted(labels, key=str):
            tag_of(label, self.scheme, self.outside)
