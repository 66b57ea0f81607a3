"""A machine that looks for many n-grams at once.

Its state is the longest suffix of the input that is a prefix of some n-gram (the Aho-Corasick automaton):
all n-grams that end here are suffixes of it. With an end label, nothing else may follow the first one.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import final

from tallytree.transducers.machine import Machine, Move, State
from tallytree.transducers.trellis import Alphabet, Trellis, unrolled

Gram = tuple[Hashable, ...]

_ENDED = "ended"


@final
@dataclass(frozen=True)
class Ngrams(Machine):
    """Adds up the values of n-grams.

    `grams`: for each n-gram one integer per output, which is added wherever it occurs. `outputs`: the names
    of the outputs. `end`: the label after which only itself may follow; it ends the sequence, and counts as
    nothing.

    Examples
    --------
    >>> machine = Ngrams(((("a", "b"), (1,)), (("b", "a"), (10,))), ("worth",))
    >>> machine.run("abab")
    (12,)
    """

    grams: tuple[tuple[Gram, tuple[int, ...]], ...]
    outputs: tuple[str, ...]
    end: Hashable = None

    @cached_property
    def _worth(self) -> dict[Gram, tuple[int, ...]]:
        return dict(self.grams)

    @cached_property
    def _prefixes(self) -> frozenset[Gram]:
        return frozenset(gram[:n] for gram, _ in self.grams for n in range(len(gram) + 1)) | {()}

    @property
    def start(self) -> State:
        """The empty input."""
        return ()

    def step(self, state: State, label: Hashable, at: Hashable) -> Move | None:
        """Read a label: the state determines which n-grams end with it."""
        if self.end is not None and label == self.end:
            return _ENDED, (0,) * len(self.outputs)
        if state == _ENDED:
            return None
        assert isinstance(state, tuple)
        read = (*state, label)
        after = next(read[n:] for n in range(len(read) + 1) if read[n:] in self._prefixes)
        values = [self._worth[after[n:]] for n in range(len(after)) if after[n:] in self._worth]
        return after, tuple(map(sum, zip(*values, strict=True))) if values else (0,) * len(self.outputs)

    def stop(self, state: State) -> tuple[int, ...] | None:
        """Accept."""
        return (0,) * len(self.outputs)

    def trellis(self, alphabets: tuple[Alphabet, ...]) -> Trellis | None:
        """Return its moves; states are not merged, since each of them determines the last output."""
        return unrolled(self, alphabets, merge=False)
