"""Checks inputs on their device with kernels, whose findings are read once.

If something is wrong, the inputs are checked again on the CPU, which raises the error.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tallytree.torch import cpu
from tallytree.torch.functions import Scores
from tallytree.torch.gpu import compiling, findings
from tallytree.torch.gpu.chains import Chains, Sizes
from tallytree.torch.gpu.findings import FORBIDDEN, WRONG, Words
from tallytree.torch.gpu.replays import Replayed, refuse
from tallytree.torch.gpu.structures import ENDS, FINDINGS, PADDED, Findings, packing

_LOOKING = packing(PADDED, ENDS, FINDINGS)
"""The input of ``kernels/looking.cu``."""


class Seen:
    """A batch that kernels check, with the true tags (B, T) if they are given.

    `room`, `sizes`: as for :class:`~tallytree.torch.gpu.chains.Chains`.
    """

    _slot: findings.Slot | None = None

    def __init__(
        self, scores: Scores, tags: Tensor | None = None, room: int = 0, sizes: Sizes | None = None
    ) -> None:
        emissions, ends = scores.emissions, scores.ends
        device = emissions.device
        mask, lengths = _here(ends.mask, device), _here(ends.given, device)
        given = emissions, scores.transitions, None, scores.start, scores.end
        self.chains = Chains(*given, mask=mask, given=lengths, room=room, sizes=sizes)
        self.scores, self.tags = scores, tags

    @property
    def slot(self) -> findings.Slot:
        """The words for their findings."""
        if self._slot is None:
            self._slot = self._captured() if compiling.capturing() else findings.slot(self.chains.device)
        return self._slot

    def _captured(self) -> Replayed:
        slot = Replayed(self.scores, self.tags)
        self.chains.words = slot.words
        return slot

    def next_slot(self) -> findings.Slot:
        """Return words for the launches after the findings were read: those of a capture are the same."""
        return self.slot if self.slot.captured else findings.slot(self.chains.device)

    def telling(self, and_if: int = 0) -> Findings:
        """Return where to put the findings of a launch; `and_if`: as for :meth:`read`."""
        return self.slot.telling(WRONG | and_if)

    def read(self, and_if: int = 0) -> Words:
        """Wait for the findings; raise an error for invalid inputs, or if bits of `and_if` are set."""
        slot = self.slot
        words = slot.read()
        if slot.captured:
            return words
        if words.flags & (WRONG | and_if):
            self._explain(bool(words.flags & and_if & FORBIDDEN))
        self.scores.ends.found(words.total, self.chains)
        return words

    def _explain(self, forbidden: bool) -> None:
        """Let the checks on the CPU raise the error."""
        given, tags = self.scores.on_cpu(), None
        if self.tags is not None:
            tags = self.scores.ends.tags(self.tags, given.emissions.shape[2]).cpu()
        cpu.check(given)
        if forbidden and tags is not None:
            cpu.possible_score(given, tags)


def look(scores: Scores, *, tell: bool = False) -> Seen:
    """Check scores, and where sentences end; report it, or leave that to a later launch."""
    seen = Seen(scores)
    chains, found = seen.chains, seen.telling() if tell else seen.slot.quiet
    chains.launch("looking.cu", "look", _LOOKING(*chains.inputs, *chains.ends, *found))
    return seen


def _here(tensor: Tensor | None, device: torch.device) -> Tensor | None:
    if tensor is None or (tensor.device == device and tensor.is_contiguous()):
        return tensor
    if tensor.device != device:
        refuse("moving a mask or lengths to the GPU")
    return tensor.to(device).contiguous()
