"""The options of a training run: when it stops, where it writes its state, and who hears of its passes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from tallytree.learning.progress import Progress

Callback = Callable[[Progress], object]

_CHECK_EVERY = 10
"""Passes between certificates while the estimates are far from the tolerance."""


@dataclass(frozen=True)
class RunOptions:
    """When a training run stops, and where it writes.

    Parameters
    ----------
    tolerance : float
        Stop when ``(P − D) / P``, certified, is not above it.
    max_passes, max_seconds
        Stop after as many passes, or after the first pass that ends later than that.
    checkpoint : path, optional
        A file that is written after each pass, and read at the beginning where it exists.
    callback : callable, optional
        Gets a :class:`Progress` after each pass.

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
        """Return whether passes or time are used up."""
        return len(history) >= self.max_passes or (bool(history) and history[-1].seconds >= self.max_seconds)

    def certify(self, history: list[Progress]) -> bool:
        """Return whether the next pass should be one with a certificate."""
        following = len(history) + 1
        near = bool(history) and not history[-1].certified and history[-1].relative_gap <= self.tolerance
        return near or following % _CHECK_EVERY == 0 or following >= self.max_passes or self._late(history)

    def _late(self, history: list[Progress]) -> bool:
        """Return whether the next pass, if it takes as long as the last one, ends too late."""
        if self.max_seconds == np.inf or not history:
            return False
        before = history[-2].seconds if len(history) > 1 else 0.0
        return 2 * history[-1].seconds - before >= self.max_seconds


class RunChanges(TypedDict, total=False):
    """Some of the fields of :class:`RunOptions`, as keyword arguments."""

    tolerance: float
    max_passes: int
    max_seconds: float
    checkpoint: str | os.PathLike[str] | None
    callback: Callback | None
