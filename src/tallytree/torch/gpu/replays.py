"""Findings of launches that are captured in a CUDA graph.

The host does not wait for them: at each replay, kernels check the inputs again. If something is invalid,
values become nan and derivatives 0, and the findings stay in the memory of the host until :func:`check` asks
for them.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor

from tallytree.errors import ModelError, TallytreeError
from tallytree.torch.functions import Scores
from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.findings import FORBIDDEN, NOTHING, Slot, Words
from tallytree.torch.gpu.structures import Findings
from tallytree.torch.inputs import Ends

_NO_WORDS = Words(0, 0, 0, 0)
_IN_WORDS = {
    1: "a mask with a hole, or a sentence without positions",
    2: "tags out of range",
    4: "scores that are nan or +inf",
    FORBIDDEN: "true tags with a score of -inf",
    NOTHING: "a sentence in which all taggings are forbidden",
}


class Replayed(Slot):
    """Words for the launches of one captured call; they are never reused."""

    captured = True

    def __init__(self, scores: Scores, tags: Tensor | None) -> None:
        device, ends = scores.emissions.device, scores.ends
        with compiling.preparing(device):
            super().__init__(device, 0)
        self._shape, self._states = ends.shape, scores.emissions.shape[2]
        self._inputs = [None if one is None else weakref.ref(one) for one in (ends.given, ends.mask, tags)]
        self._kept: tuple[Any, ...] = ()
        _REPLAYED.append(self)

    def keep(self, *memory: Any) -> None:
        """Keep memory that replays read, and that is not the user's."""
        self._kept += memory

    def telling(self, fatal: int) -> Findings:
        """Return where to put findings, of which those of `fatal` are errors."""
        return *self._telling[:2], fatal

    def read(self) -> Words:
        """Return no findings: nothing has run yet."""
        return _NO_WORDS

    def free(self) -> None:
        """Do nothing: replays use the words."""

    leave = free

    def take(self) -> int:
        """Return the flags of what was found since the last call."""
        flags, self._told[0] = self._told[0], 0
        return flags

    def complain(self, flags: int) -> None:
        """Raise an error for what was found."""
        self._explain()
        reasons = ", ".join(words for bit, words in _IN_WORDS.items() if flags & bit)
        raise ModelError(f"a CUDA graph was replayed with invalid input: {reasons}; {_MEANING}")

    def _explain(self) -> None:
        """Raise the full error if the tensors that are wrong still have the values that were."""
        lengths, mask, tags = (None if one is None else one() for one in self._inputs)
        try:
            ends = Ends(lengths, mask, *self._shape)
            _ = ends.lengths if tags is None else ends.tags(tags, self._states)
        except ModelError as error:
            raise ModelError(f"a CUDA graph was replayed with invalid input: {error}; {_MEANING}") from None


_MEANING = "losses of such replays are nan, and their gradients 0"
_REPLAYED: list[Replayed] = []


def check() -> None:
    """Wait for the devices, and raise an error if replayed graphs have found invalid inputs."""
    for device in {slot.device for slot in _REPLAYED if slot.device.type == "cuda"}:
        torch.cuda.synchronize(device)
    found = [(slot, flags) for slot in list(_REPLAYED) if (flags := slot.take())]
    for slot, flags in found[:1]:  # the others go with it: the next call tells of what is found from now on
        slot.complain(flags)


def refuse(what: str) -> None:
    """Raise an error if a capture is under way, for what needs the host."""
    if compiling.capturing():
        raise TallytreeError(
            f"{what} cannot be captured in a CUDA graph: the CPU has to wait for results; call it outside of "
            "the capture"
        )
