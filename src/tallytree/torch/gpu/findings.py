"""What kernels find about a batch: a few words that they write to the memory of the host.

A kernel reports its findings once all of its blocks have them, and continues. The host reads them
there, without a call to the driver, and waits only if they are not there yet. Words are reused: those of a
stream are for its own kernels, which run one after the other.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections import defaultdict, deque
from typing import NamedTuple

import torch

from tallytree.errors import TallytreeError
from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.structures import Findings

FORBIDDEN, UNKNOWN, NOTHING, LIMITED = 8, 16, 32, 64
WRONG = 7
"""Bits of the first word, as in ``kernels/words.cuh``: invalid ends, tags or scores."""
_TOLD = 4
"""The index of the word that is set last."""
ENDED = 5
"""The index of the word that counts blocks which have ended."""
_QUICK, _SOME = 64, 256
"""The number of looks before other threads may run, and between questions to the driver."""


class Words(NamedTuple):
    """The findings of kernels about a batch."""

    flags: int
    total: int
    columns: int
    padding: int


class Slot:
    """Words for the launches of one question, in the order of its stream.

    ``captured``: whether the launches are captured in a CUDA graph.
    """

    captured = False

    def __init__(self, device: torch.device, stream: int) -> None:
        pinned = device.type == "cuda"
        self._host = torch.zeros(_TOLD + 1, dtype=torch.int32, device="cpu", pin_memory=pinned)
        self._words = torch.zeros(8, dtype=torch.int32, device=device)
        self._told = (ctypes.c_int * (_TOLD + 1)).from_address(self._host.data_ptr())
        self.device, self._stream = device, stream
        _EVERY.append(self)  # a kernel may write to its memory whenever it gets there, also after Ctrl-C
        self.words: int = self._words.data_ptr()
        self.quiet: Findings = self.words, 0, 0
        self._telling: Findings = self.words, self._host.data_ptr(), 0

    def telling(self, fatal: int) -> Findings:
        """Return where to put findings that are reported; in a CUDA graph, those of `fatal` are errors."""
        return self._telling

    def read(self) -> Words:
        """Wait until a kernel, which must have been launched, has reported its findings; free the slot."""
        told = self._told
        for _ in range(_QUICK):
            if told[_TOLD]:
                break
        else:
            self._wait()
        told[_TOLD] = 0
        found = Words(*told[:_TOLD])
        self.free()
        return found

    def _wait(self) -> None:
        """Wait while other threads may run; check from time to time whether something failed."""
        rounds = 0
        while not self._told[_TOLD]:
            _rest()
            rounds += 1
            if rounds % _SOME == 0 and compiling.is_idle(self.device.index or 0, self._stream):
                if not self._told[_TOLD]:
                    raise TallytreeError("a kernel ended without a result; please report this")
                return

    def free(self) -> None:
        """Allow others to use the slot for later launches of the same stream."""
        _FREE[self.device, self._stream].append(self)

    def leave(self) -> None:
        """Do not wait for findings that will be reported; the slot is free once they are."""
        _LEFT[self.device, self._stream].append(self)

    def is_told(self) -> bool:
        """Return whether findings have been reported; if so, discard them."""
        told = bool(self._told[_TOLD])
        self._told[_TOLD] = 0
        return told


_rest = getattr(os, "sched_yield", lambda: time.sleep(0))
_EVERY: list[Slot] = []
_FREE: defaultdict[tuple[torch.device, int], list[Slot]] = defaultdict(list)
_LEFT: defaultdict[tuple[torch.device, int], deque[Slot]] = defaultdict(deque)


def slot(device: torch.device) -> Slot:
    """Return free words of the current stream of a device."""
    stream = compiling.stream(device.index or 0)
    try:
        return _FREE[device, stream].pop()
    except IndexError:
        return _left(device, stream) or Slot(device, stream)


def _left(device: torch.device, stream: int) -> Slot | None:
    """Return a slot that was left, and whose findings have been reported since."""
    left = _LEFT[device, stream]
    try:
        first = left.popleft()
    except IndexError:
        return None
    if first.is_told():
        return first
    left.appendleft(first)
    return None
