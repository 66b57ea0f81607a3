"""Counts relative to the true tags of a batch, by a kernel that applies the rules of a loss."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.chains import Sizes
from tallytree.torch.gpu.counted import Chunks, Tallies
from tallytree.torch.gpu.findings import UNKNOWN, Words
from tallytree.torch.gpu.looking import Seen
from tallytree.torch.gpu.replays import Replayed
from tallytree.torch.gpu.structures import ENDS, FINDINGS, PADDED, packing
from tallytree.torch.gpu.truths import RULES, Rules

_COUNTING = packing(PADDED, ENDS, "P", RULES, "5P", FINDINGS)
"""Labels; right, boxes, marks, which, keys: ``kernels/counting.cu``."""


class Numbered(NamedTuple):
    """Rows of what is known about truths, the row of each sentence, and the address of the marks of chunks.

    ``which`` (B,), int32, are the rows of sentences, or their address.
    """

    rows: Tensor
    which: Tensor | int
    marks: int


class Truths(NamedTuple):
    """Tallies of what a loss counts, with its values.

    ``losses`` (rows, count) are float64; ``which`` (B,), int32, are the rows of sentences, or their address;
    ``right`` is the address of the scores of the true tags (B,), float64.
    """

    tallies: Tallies
    losses: Tensor
    which: Tensor | int
    right: int


def room(rules: Rules, sizes: Sizes, boxes: bool = True) -> int:
    """Return the number of words for the counts of a batch."""
    return (sum(_integers(rules, sizes, boxes)) + 2 * sizes.shape[0] + 1) // 2


def _integers(rules: Rules, sizes: Sizes, boxes: bool) -> tuple[int, int]:
    """Return the numbers of integers of boxes and of marks, which are followed by rows and keys."""
    everywhere, extra = sizes.shape[0] * sizes.shape[1], rules.extra
    return 3 * everywhere * boxes, (1 + extra) * everywhere if extra else 0


class Counting:
    """Counts relative to the true tags, by a kernel that also checks the inputs.

    `and_if`: as for `Seen.read`. `boxes`: whether tables will be filled.
    """

    def __init__(self, rules: Rules, seen: Seen, and_if: int = 0, boxes: bool = True) -> None:
        chains, tags, self._known = seen.chains, seen.tags, rules.known
        assert tags is not None
        if isinstance(seen.slot, Replayed):
            with compiling.preparing(chains.device):
                self._known = rules.complete()
            seen.slot.keep(rules, self._known)
        self._rules, self._tags, self._chains = rules, tags, chains
        self._memory = chains.kept = chains.take(room(rules, chains.sizes, boxes))
        before, marks = _integers(rules, chains.sizes, boxes)
        self._keys = before + marks + chains.shape[0]  # the index of the first one
        place = self._memory.place
        self._marks, self._which = place + 4 * before, place + 4 * (before + marks)
        results = *((chains.right, place) if boxes else (0, 0)), self._marks, self._which
        inputs = _COUNTING(
            *(*chains.inputs, *chains.ends, tags.data_ptr(), *rules.numbers(self._known)),
            *(*results, place + 4 * self._keys, *seen.telling(and_if)),
        )
        chains.launch("counting.cu", "count", inputs, CHUNKS=rules.extra)

    def numbered(self, words: Words | None = None) -> Numbered:
        """Return what is known about the truths, given what the kernel has found, or else so far."""
        which: Tensor | int = self._which
        if words is not None and words.flags & UNKNOWN:
            whole, first = self._memory
            keys = whole[first + self._keys :][: self._chains.shape[0]]
            self._known = self._rules.learn(keys)
            which = self._known.row_of.index_select(0, keys)
        return Numbered(self._known.rows, which, self._marks)

    def truths(self, words: Words) -> Truths:
        """Return what is counted, given what the kernel has found."""
        rules, alphabet, (losses, which, _) = self._rules, self._rules.alphabet, self.numbered(words)
        chunks, rows = None, self._tags if alphabet is None else None
        if alphabet is not None:
            its = alphabet.bits, alphabet.pairs, alphabet.before, alphabet.outside
            chunks = Chunks(self._marks, *its, rules.extra)
        columns = words.columns or rules.most_columns  # in a CUDA graph, nothing is found yet
        counts = columns, rules.count, rules.sizes[1]
        tallies = Tallies(rules.shifts, self._memory.place, *counts, rows, chunks)
        return Truths(tallies, losses, which, self._chains.right)

    @property
    def boxes(self) -> Tensor:
        """The boxes (B, T, 3), int32."""
        whole, first = self._memory
        sentences, positions, _ = self._chains.shape
        return whole[first:][: 3 * sentences * positions].view(sentences, positions, 3)
