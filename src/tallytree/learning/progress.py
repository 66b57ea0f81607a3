"""Stopping rules, and the progress shown to the user."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import numpy as np


class Progress(NamedTuple):
    """The state of a run after a pass.

    Attributes
    ----------
    number : int
        The pass, from 1.
    primal, dual : float
        The objective of the weights, and a lower bound on the optimum.
    certified : bool
        Whether `primal` is for fixed weights, so that the gap is a bound; otherwise it is an estimate.
    loss : float
        The mean hinge loss of the examples.
    calls : int
        The number of oracle calls so far.
    seconds : float
        The time so far.
    left : float or None
        The estimated remaining time in seconds; None if the gap does not shrink.
    """

    number: int
    primal: float
    dual: float
    certified: bool
    loss: float
    calls: int
    seconds: float
    left: float | None

    @property
    def gap(self) -> float:
        """The difference between primal and dual."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap divided by the primal: 0 is optimal."""
        return max(self.gap, 0.0) / self.primal if self.primal > 0.0 else 0.0

    def __str__(self) -> str:
        sign = "" if self.certified else "~"
        left = "" if self.left is None else f", about {self.left:.0f} s left"
        return (
            f"pass {self.number}: loss {self.loss:.4g}, objective {sign}{self.primal:.6g}, "
            f"gap {sign}{100 * self.relative_gap:.2g} %, {self.calls} oracle calls, "
            f"{self.seconds:.1f} s{left}"
        )


def history_of(entries: Any) -> list[Progress]:
    """Return the stored history of a run, after checking it.

    Raises ValueError if it is not a list of passes.
    """
    history = [Progress(*entry) for entry in entries]
    for at, entry in enumerate(history):
        numbers = entry._replace(left=entry.left or 0.0)
        if not all(isinstance(number, (int, float)) for number in numbers) or entry.number != at + 1:
            raise ValueError(f"pass {at + 1} of its history is {tuple(entry)}")
    return history


def time_left(history: Sequence[Progress], tolerance: float, window: int = 5) -> float | None:
    """Extrapolate the logarithm of the relative gap over the last passes.

    Examples
    --------
    >>> history = [Progress(k, 1.0, 1.0 - 0.5**k, True, 0.1, 10 * k, 2.0 * k, None) for k in (1, 2, 3)]
    >>> time_left(history, tolerance=0.5**5)
    4.0
    """
    recent = [entry for entry in history[-window:] if 0.0 < entry.relative_gap < math.inf]
    if len(recent) < 2:
        return None
    first, last = recent[0], recent[-1]
    fall = math.log(first.relative_gap / last.relative_gap)
    if fall <= 0.0:
        return None
    remaining = max(math.log(last.relative_gap / tolerance), 0.0) if tolerance > 0.0 else math.inf
    return (last.seconds - first.seconds) * remaining / fall if remaining < math.inf else None


Callback = Callable[[Progress], object]

_CHECK_EVERY = 10
"""Passes between certificates while the estimates are far above the tolerance."""


@dataclass(frozen=True)
class RunOptions:
    """When a training run stops, and where it writes.

    Parameters
    ----------
    tolerance : float
        Stop when the certified relative gap ``(P − D) / P`` is at most this.
    max_passes, max_seconds
        The maximum number of passes, and the time limit. A pass that has begun is finished.
    checkpoint : path, optional
        A file that is written after each pass, and read at the start if it exists.
    callback : callable, optional
        Called with a :class:`Progress` after each pass.

    Examples
    --------
    >>> RunOptions(max_passes=20).tolerance
    0.01
    """

    tolerance: float = 0.01
    max_passes: int = 100
    max_seconds: float = np.inf
    checkpoint: str | os.PathLike[str] | None = None
    callback: Callback | None = None

    def reached(self, history: list[Progress]) -> bool:
        """Return whether the last certified gap is small enough."""
        return bool(history) and history[-1].certified and history[-1].relative_gap <= self.tolerance

    def exhausted(self, history: list[Progress]) -> bool:
        """Return whether the limit of passes or time is reached."""
        return len(history) >= self.max_passes or (bool(history) and history[-1].seconds >= self.max_seconds)

    def certify(self, history: list[Progress]) -> bool:
        """Return whether the next pass should compute a certificate."""
        following = len(history) + 1
        near = bool(history) and not history[-1].certified and history[-1].relative_gap <= self.tolerance
        return near or following % _CHECK_EVERY == 0 or following >= self.max_passes or self._late(history)

    def _late(self, history: list[Progress]) -> bool:
        """Return whether the next pass would exceed the time limit if it takes as long as the last one."""
        if self.max_seconds == np.inf or not history:
            return False
        before = history[-2].seconds if len(history) > 1 else 0.0
        return 2 * history[-1].seconds - before >= self.max_seconds


class RunChanges(TypedDict, total=False):
    """Fields of :class:`RunOptions`, as keyword arguments."""

    tolerance: float
    max_passes: int
    max_seconds: float
    checkpoint: str | os.PathLike[str] | None
    callback: Callback | None
