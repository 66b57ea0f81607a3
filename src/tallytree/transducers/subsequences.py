"""A machine that computes the longest common subsequences with some reference sequences.

Let ``L_j`` be the length of the longest common subsequence of the input so far and the first ``j`` labels
of a reference. From one ``j`` to the next it grows by 0 or 1, so these steps, as the bits of one integer,
are the whole state; the length with the whole reference is the number of ones. Reading a label updates all
bits at once (Allison and Dix).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import final

from tallytree.transducers.machine import Machine, Move, State


@final
@dataclass(frozen=True)
class Subsequences(Machine):
    """Outputs the lengths of the longest common subsequences at the end, and the number of labels read.

    `references`: the input is compared with each of them. `end`: the label after which only itself
    may follow; it ends the sequence, and does not count.

    Examples
    --------
    >>> Subsequences((tuple("abcb"), tuple("b"))).run("cbab")
    (2, 1, 4)
    """

    references: tuple[tuple[Hashable, ...], ...]
    end: Hashable = None

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The length with each reference, and the length of the input."""
        return (*(f"lcs{i}" for i in range(len(self.references))), "length")

    @cached_property
    def _places(self) -> list[dict[Hashable, int]]:
        """The positions of each label in each reference, as the bits of an integer."""
        places: list[dict[Hashable, int]] = []
        for reference in self.references:
            bits: dict[Hashable, int] = {}
            for j, label in enumerate(reference):
                bits[label] = bits.get(label, 0) | 1 << j
            places.append(bits)
        return places

    @property
    def start(self) -> State:
        """Nothing in common yet, and not at the end."""
        return (False, *(0 for _ in self.references))

    def step(self, state: State, label: Hashable, at: Hashable) -> Move | None:
        """Update the bits of every reference."""
        assert isinstance(state, tuple)
        ended, *rows = state
        nothing = (0,) * len(rows)
        if self.end is not None and label == self.end:
            return (True, *rows), (*nothing, 0)
        if ended:
            return None
        updated = (_updated(row, bits.get(label, 0)) for row, bits in zip(rows, self._places, strict=True))
        return (False, *updated), (*nothing, 1)

    def stop(self, state: State) -> tuple[int, ...] | None:
        """Output the lengths."""
        assert isinstance(state, tuple)
        return (*(row.bit_count() for row in state[1:]), 0)


def _updated(row: int, places: int) -> int:
    """Move each step of ``L`` down to the first occurrence of the label since the step before it."""
    either = row | places
    return either & ((either - (row << 1 | 1)) ^ either)
