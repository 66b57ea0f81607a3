"""Checks inputs on their device with one kernel, whose findings are read once.

If something is wrong, the inputs are checked again on the CPU, which raises the error.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tallytree.torch import cpu
from tallytree.torch.functions import Scores
from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.chains import Chains, address

FORBIDDEN, UNKNOWN, NOTHING = 8, 16, 32
_WRONG = 7
"""Bits of the first word, as in ``kernels/words.cuh``: invalid ends, tags or scores."""
_WORDS = 4


class _Ends(ctypes.Structure):
    """A mask, or lengths, or neither; see ``Ends`` in ``kernels/looking.cu``."""

    _fields_ = [("mask", ctypes.c_void_p), ("lengths", ctypes.c_void_p)]


class Words(NamedTuple):
    """The findings of kernels about a batch."""

    flags: int
    total: int
    columns: int


@dataclass(frozen=True)
class Seen:
    """A batch that kernels are checking.

    ``right`` (B,), float64, are the scores of ``tags`` (B, T), if given. ``words`` are the findings, to
    which more kernels may add before they are read.
    """

    scores: Scores
    chains: Chains
    words: Tensor
    tags: Tensor | None = None
    right: Tensor | None = None

    def read(self, and_if: int = 0) -> Words:
        """Wait for the findings; raise an error for invalid inputs, or if bits of `and_if` are set."""
        flags, total, columns, _ = self.words.tolist()
        if flags & (_WRONG | and_if):
            self._explain(bool(flags & and_if & FORBIDDEN))
        self.scores.ends.found(total, self.chains.lengths)
        return Words(flags, total, columns)

    def _explain(self, forbidden: bool) -> None:
        """Let the checks on the CPU raise the error."""
        given, tags = self.scores.on_cpu(), None
        if self.tags is not None:
            tags = self.scores.ends.tags(self.tags, given.emissions.shape[2]).cpu()
        cpu.check(given)
        if forbidden and tags is not None:
            cpu.possible_score(given, tags)


def look(scores: Scores, tags: Tensor | None = None) -> Seen:
    """Check scores, where sentences end, and the true tags."""
    emissions, ends = scores.emissions, scores.ends
    batch, device = len(emissions), emissions.device
    mask, lengths = (_here(one, device) for one in (ends.mask, ends.given))
    words = compiling.cleared(torch.empty(_WORDS, dtype=torch.int32, device=device))
    own = torch.empty(batch, dtype=torch.int32, device=device)
    chains = Chains(emissions, scores.transitions, own, scores.start, scores.end)
    right = None if tags is None else chains.empty(batch)
    given = _Ends(address(mask), address(lengths))
    chains.launch("looking.cu", "look", given, tags, own, right, words, blocks=chains.blocks())
    return Seen(scores, chains, words, tags, right)


def _here(tensor: Tensor | None, device: torch.device) -> Tensor | None:
    if tensor is None or (tensor.device == device and tensor.is_contiguous()):
        return tensor
    return tensor.to(device).contiguous()
