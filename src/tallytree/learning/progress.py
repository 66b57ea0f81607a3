"""What a user sees of a run: where it stands, and when it will be done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple


class Progress(NamedTuple):
    """Where a run stands after a pass.

    Attributes
    ----------
    number : int
        The pass, from 1.
    primal, dual : float
        The objective of the weights, and a lower bound on the optimum.
    certified : bool
        Whether `primal` is that of fixed weights, so that the gap is a bound; it is an estimate otherwise.
    loss : float
        The mean hinge loss of the examples.
    calls : int
        The oracle calls so far.
    seconds : float
        The time so far.
    left : float or None
        The time that the rest may take, in seconds; None where the gap does not shrink.
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
        """The difference of primal and dual."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap in parts of the primal: 0 is optimal."""
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
    """Return what was written down of a run, after a look at it.

    Raises
    ------
    ValueError
        It is no list of passes.
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
