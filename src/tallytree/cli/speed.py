"""How fast this machine is: prices of plans in seconds."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from tallytree.model.model import Model
from tallytree.solving import plan, profile
from tallytree.statistics.recipes import count

_BYTES = 1 << 26  # of memory that is written: so many that the system gives them anew each time
_RUNS = 3


class Price(Protocol):
    """What takes operations and memory."""

    @property
    def operations(self) -> float:
        """Add-max operations."""

    @property
    def peak_bytes(self) -> float:
        """Memory, at the peak."""


class Speed(NamedTuple):
    """Add-max operations, and bytes of fresh memory, per second."""

    operations: float
    bytes: float

    def seconds(self, price: Price) -> float:
        """Return about how long something takes: its operations, and first touching its memory."""
        return float(price.operations / self.operations + price.peak_bytes / self.bytes)

    def __str__(self) -> str:
        return f"at {self.operations / 1e9:.2g} Gop/s and {self.bytes / 1e9:.2g} GB/s as measured just now"


def measured() -> Speed:
    """Measure: the best of a few small runs."""
    model = Model.chain(np.zeros((200, 8)), np.zeros((8, 8)))
    made: Any = plan(model, [count(state=1)])
    runs, writes = [], []
    for _ in range(_RUNS):
        start = perf_counter()
        profile(model, made.statistics, plan=made)
        ran = perf_counter()
        np.empty(_BYTES, dtype=np.uint8).fill(1)
        runs.append(ran - start)
        writes.append(perf_counter() - ran)
    return Speed(made.operations / min(runs), _BYTES / min(writes))
