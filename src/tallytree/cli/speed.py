"""The speed of this machine, to express the cost of plans in seconds."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import Any, NamedTuple, Protocol

import numpy as np

from tallytree.model.model import Model
from tallytree.solving import distribution, plan, profile
from tallytree.statistics.recipes import count

_BYTES = 1 << 26  # large enough that the system allocates fresh memory each time
_RUNS = 3


class Price(Protocol):
    """A cost in operations and memory."""

    @property
    def operations(self) -> float:
        """The number of add-max operations."""

    @property
    def peak_bytes(self) -> float:
        """The peak memory in bytes."""


class Speed(NamedTuple):
    """Add-max operations per second, and bytes of newly allocated memory per second."""

    operations: float
    bytes: float

    def seconds(self, price: Price) -> float:
        """Estimate the processor time for a cost: for its operations, and for the first access to memory."""
        return float(price.operations / self.operations + price.peak_bytes / self.bytes)

    def __str__(self) -> str:
        return f"{self.operations / 1e9:.2g} Gop/s and {self.bytes / 1e9:.2g} GB/s as just measured"


class SumSpeed(NamedTuple):
    """Operations per second of sums in place of maxima: of the pass upwards, and of the one for marginals."""

    upward: float
    downward: float


def measured() -> Speed:
    """Measure the speed: the best of a few small runs."""
    model = Model.chain(np.zeros((200, 8)), np.zeros((8, 8)))
    made: Any = plan(model, [count(state=1)])
    runs, writes = [], []
    for _ in range(_RUNS):
        runs.append(_seconds(lambda: profile(model, made.statistics, plan=made)))
        writes.append(_seconds(lambda: np.empty(_BYTES, dtype=np.uint8).fill(1)))
    return Speed(made.operations / min(runs), _BYTES / min(writes))


def measured_sums(*, tallied: bool) -> SumSpeed:
    """Measure the speed of sums; single numbers, as without tallies, take longer each than rows of them."""
    model = Model.grid(np.zeros((9, 9, 2)), np.zeros((2, 2)), np.zeros((2, 2)))
    made: Any = plan(model, [count(state=1)] if tallied else [])
    found = distribution(model, made.statistics, plan=made)
    upward = _fastest(lambda: distribution(model, made.statistics, plan=made))
    return SumSpeed(made.operations / upward, made.operations / _fastest(found.marginals))


def _fastest(run: Callable[[], Any]) -> float:
    """Return the seconds that the fastest of a few runs takes."""
    return min(_seconds(run) for _ in range(_RUNS))


def _seconds(run: Callable[[], Any]) -> float:
    """Return the processor time of a small run, which uses one thread; waiting does not count.

    Progress is estimated while the run itself keeps the processors busy.
    """
    start = thread_time()
    run()
    return thread_time() - start
