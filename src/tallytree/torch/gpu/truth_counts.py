"""Counts relative to the true tags of a batch, by a kernel that applies the rules of a loss."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.counted import Chunks, Tallies
from tallytree.torch.gpu.findings import UNKNOWN, Findings, Words
from tallytree.torch.gpu.looking import Seen
from tallytree.torch.gpu.replays import Replayed
from tallytree.torch.gpu.structures import Ends, Padded
from tallytree.torch.gpu.truths import Rules, RuleStructure


class _Counting(ctypes.Structure):
    """The input of ``kernels/counting.cu``."""

    _fields_ = [
        *(("given", Padded), ("ends", Ends), ("labels", ctypes.c_void_p), ("rules", RuleStructure)),
        *((name, ctypes.c_void_p) for name in ("right", "boxes", "marks", "which", "keys")),
        ("found", Findings),
    ]


class Numbered(NamedTuple):
    """Rows of what is known about truths, the row of each sentence, and the marks of chunks."""

    rows: Tensor
    which: Tensor
    marks: Tensor


@dataclass(frozen=True)
class Truths:
    """Tallies of what a loss counts, with its values.

    ``losses`` (rows, count) are float64, and ``which`` (B,), int32, is the row of each sentence; ``right``
    (B,), float64, are the scores of the true tags.
    """

    tallies: Tallies
    losses: Tensor
    which: Tensor
    right: Tensor


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
        (sentences, positions, _), alphabet = chains.shape, rules.alphabet
        self._rules, self._tags, self._chains = rules, tags, chains
        self._extra = 0 if alphabet is None else alphabet.labels.shape[1]
        everywhere = sentences * positions
        marks = (1 + self._extra) * everywhere if self._extra else 0
        sizes = [3 * everywhere * boxes, marks, sentences, sentences]
        memory = chains.empty(sum(sizes), dtype=torch.int32)
        first, *places = (memory.data_ptr() + 4 * before for before in accumulate(sizes[:-1], initial=0))
        results = (chains.right if boxes else None), (first if boxes else None), *places
        own = rules.structure(self._known)
        inputs = _Counting(chains.padded, chains.ends, tags.data_ptr(), own, *results, seen.telling(and_if))
        chains.launch("counting.cu", "count", inputs, blocks=chains.blocks(), CHUNKS=self._extra)
        self._boxes, self._marks, self._which, self._keys = memory.split_with_sizes(sizes)

    def numbered(self, words: Words | None = None) -> Numbered:
        """Return what is known about the truths, given what the kernel has found, or else so far."""
        which = self._which
        if words is not None and words.flags & UNKNOWN:
            self._known = self._rules.learn(self._keys)
            which = self._known.row_of.index_select(0, self._keys)
        return Numbered(self._known.rows, which, self._marks)

    def truths(self, words: Words) -> Truths:
        """Return what is counted, given what the kernel has found."""
        rules, alphabet, (losses, which, _) = self._rules, self._rules.alphabet, self.numbered(words)
        chunks = None
        if alphabet is not None:
            chunks = Chunks(self._marks, alphabet.bits, alphabet.pairs, alphabet.groups, self._extra)
        rows = self._tags if alphabet is None else None
        columns = words.columns or rules.most_columns  # in a CUDA graph, nothing is found yet
        tallies = Tallies(rules.shifts, self._boxes, columns, rules.count, rules.sizes[1], rows, chunks)
        return Truths(tallies, losses, which, self._chains.scores_of_tags)
