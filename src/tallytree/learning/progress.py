"""Stopping rules, and the progress shown to the user."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from tallytree.learning.accepted import CALLBACK, FILE, NO_LIMIT, PASSES, check_all
from tallytree.learning.planes import Floats


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
        The mean loss of the examples, such as the hinge loss of an SVM or the log-loss of a CRF.
    calls : int
        The number of oracle calls so far.
    seconds : float
        The time so far.
    left : float or None
        The estimated remaining time in seconds, smoothed over passes; None for the first passes.
    gradient : float or None
        For objectives without a lower bound, such as the expected loss: the norm of the gradient, divided by
        ``max(1, ‖w‖)``, which is compared with the tolerance instead of the gap.
    """

    number: int
    primal: float
    dual: float
    certified: bool
    loss: float
    calls: int
    seconds: float
    left: float | None
    gradient: float | None = None

    @property
    def gap(self) -> float:
        """The difference between primal and dual, in units of the objective."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap divided by the primal, which is compared with the tolerance: 0 is optimal."""
        return max(self.gap, 0.0) / self.primal if self.primal > 0.0 else 0.0

    @property
    def measure(self) -> float:
        """What is compared with the tolerance: the relative gap, or the gradient if there is no bound."""
        return self.relative_gap if self.gradient is None else self.gradient

    @property
    def done(self) -> float | None:
        """The fraction of the total time that has passed, from 0 to 1; None if the rest is unknown."""
        if self.left is None:
            return None
        return self.seconds / (self.seconds + self.left) if self.seconds + self.left > 0.0 else 1.0

    def __str__(self) -> str:
        return ", ".join(self._parts().values())

    def within(self, width: int) -> str:
        """Return the text in at most this many characters: without the least important parts if necessary.

        Examples
        --------
        >>> entry = Progress(13, 46.6328, 18.2, False, 0.07331, 5200, 7.9, 12.0)
        >>> print(entry)
        pass 13: loss 0.07331, objective ~46.6328, gap ~0.61, 5200 oracle calls, 7.9 s, about 12 s left (40 %)
        >>> entry.within(79)
        'pass 13: loss 0.07331, gap ~0.61, 7.9 s, about 12 s left (40 %)'
        """
        parts = self._parts()
        for least in ("calls", "objective", "seconds", "gap"):
            if len(", ".join(parts.values())) <= width:
                break
            del parts[least]
        return ", ".join(parts.values())[:width]

    def _parts(self) -> dict[str, str]:
        sign = "" if self.certified else "~"
        parts = {
            "loss": f"pass {self.number}: loss {self.loss:.4g}",
            "objective": f"objective {sign}{self.primal:.6g}",
            "gap": f"{'gap' if self.gradient is None else 'gradient'} {sign}{self.measure:.2g}",
            "calls": f"{self.calls} oracle calls",
            "seconds": f"{self.seconds:.1f} s",
        }
        if self.done is not None:
            parts["left"] = f"about {self.left:.0f} s left ({100 * self.done:.0f} %)"
        return parts


class LaterPass(Progress):
    """A pass of which at least as much is done as of those before, even if the time left has grown."""

    least = 0.0

    @classmethod
    def of(cls, progress: Progress, least: float) -> LaterPass:
        """Convert a pass."""
        later = cls(*progress)
        later.least = least
        return later

    @property
    def done(self) -> float | None:
        """The fraction of the total time that has passed, or the largest one shown before."""
        done = super().done
        return None if done is None else max(done, self.least)


class StartingPass(Progress):
    """A pass that finds the starting point of a run, when it is not known yet how long the run takes."""

    @classmethod
    def of(cls, progress: Progress) -> StartingPass:
        """Convert a pass."""
        return cls(*progress._replace(left=None))

    def _parts(self) -> dict[str, str]:
        parts = super()._parts()
        return {**parts, "loss": f"starting point, {parts['loss']}"}


def history_of(entries: Any) -> list[Progress]:
    """Return the stored history of a run, after checking it.

    Raises ValueError if it is not a list of passes.
    """
    history = [Progress(*entry) for entry in entries]
    for at, entry in enumerate(history):
        numbers = entry._replace(left=entry.left or 0.0, gradient=entry.gradient or 0.0)
        if not all(isinstance(number, (int, float)) for number in numbers) or entry.number != at + 1:
            raise ValueError(f"pass {at + 1} of its history is {tuple(entry)}")
    return history


Callback = Callable[[Progress], object]

_CHECK_EVERY = 10
"""Passes between certificates while the estimates are far above the tolerance."""


@dataclass(frozen=True)
class RunOptions:
    """When a training run stops, and where it writes.

    Parameters
    ----------
    tolerance : float
        Stop when the certified relative gap ``(P − D) / P`` is at most this; for objectives without a lower
        bound, the norm of the gradient divided by ``max(1, ‖w‖)``.
    max_passes : int
        The maximum number of passes, at least 1; ``inf`` for no limit.
    max_seconds : float
        The time limit of each run; after resuming from a checkpoint, the time of earlier runs does not count.
        A pass that has begun is finished.
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

    def __post_init__(self) -> None:
        check_all(self, tolerance=NO_LIMIT, max_passes=PASSES, max_seconds=NO_LIMIT)
        check_all(self, checkpoint=FILE, callback=CALLBACK)

    def reached(self, history: list[Progress]) -> bool:
        """Return whether the last certified gap, or the last gradient, is small enough."""
        return bool(history) and history[-1].certified and history[-1].measure <= self.tolerance

    def resumed_at(self, seconds: float) -> RunOptions:
        """Return the options of a run whose history begins with this many seconds of earlier runs."""
        return replace(self, max_seconds=self.max_seconds + seconds)

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


# --- remaining time -----------------------------------------------------------------------------------------

_FIRST = 3  # passes before the first estimate
_WINDOW = 30  # passes used for an estimate
_KEPT = 0.7  # weight of the previous estimate


def time_left(history: Sequence[Progress], options: RunOptions) -> float | None:
    """Estimate the time until the tolerance is reached, or the passes or the time are used up.

    A line is fitted to the logarithm of the smallest gap so far, over the last passes: of the gap relative to
    the primal, or to the dual if that is straighter (it is while the primal falls), against the time or its
    square root. Gradients are treated like gaps. The result is averaged with the previous estimate to avoid
    jumps. Unless the run ends here, at least one more pass is needed.

    Examples
    --------
    >>> history = [Progress(k, 1.0, 1.0 - 0.5**k, True, 0.1, 10 * k, 2.0 * k, None) for k in (1, 2, 3)]
    >>> round(time_left(history, RunOptions(tolerance=0.5**5)), 6)
    4.0
    """
    if len(history) < _FIRST:
        return None
    last, before = history[-1], history[-2]
    recent = history[-_WINDOW:]
    pace = (last.seconds - recent[0].seconds) / (len(recent) - 1)
    limits = [(options.max_passes - last.number) * pace, options.max_seconds - last.seconds]
    if options.reached([*history]) or options.exhausted([*history]):
        return 0.0
    estimate = max(min(_until(recent, options.tolerance), *limits), pace)
    if before.left is None:
        return estimate
    expected = max(before.left - (last.seconds - before.seconds), 0.0)
    if not pace > 0.0:
        return estimate
    logs = math.log1p(expected / pace), math.log1p(estimate / pace)  # limits the effect of an outlier
    return max(pace * math.expm1(_KEPT * logs[0] + (1 - _KEPT) * logs[1]), pace)


def _until(recent: Sequence[Progress], tolerance: float) -> float:
    """Return the time until the straightest line reaches the tolerance; inf if it does not fall."""
    if not 0.0 < tolerance < 1.0:
        return math.inf if tolerance < 1.0 else 0.0
    gaps = np.array([entry.measure for entry in recent])
    bounded = recent[-1].gradient is None
    some = (gaps > 0.0) & (gaps < 1.0) if bounded else gaps > 0.0
    if some.sum() < 2:
        return math.inf
    least = np.minimum.accumulate(gaps[some])
    seconds = np.array([entry.seconds for entry in recent])[some]
    above = [np.log(least / tolerance)]
    if bounded:
        above.append(np.log(least / (1.0 - least)) - math.log(tolerance / (1.0 - tolerance)))
    return min(_line(seconds, logs, power) for logs in above for power in (1.0, 0.5))[1]


def _line(seconds: Floats, above: Floats, power: float) -> tuple[float, float]:
    """Fit a line to values against a power of the time.

    Returns the fraction of their variance that it leaves, and how long it takes to reach 0 from the last one.
    """
    times = seconds**power
    x, y = times - times.mean(), above - above.mean()
    squares, variance = float(x @ x), float(y @ y)
    fall = -float(x @ y) / squares if squares > 0.0 else 0.0
    if not fall > 0.0:
        return 1.0, math.inf
    end = float(times[-1]) + max(float(above[-1]), 0.0) / fall
    return 1.0 - fall**2 * squares / variance, end ** (1.0 / power) - float(seconds[-1])


# --- display ------------------------------------------------------------------------------------------------


@contextmanager
def shown_passes(verbose: bool) -> Iterator[Callback | None]:
    """Yield a callback that shows passes on standard error: in one line on a terminal, else line by line."""
    if not verbose:
        yield None
    elif sys.stderr.isatty():
        try:
            yield _forward(_rewrite)
        finally:
            _write("\n")
    else:
        yield _forward(show_line)


def _forward(show: Callback) -> Callback:
    """Return a callback that shows passes with percentages that never fall."""
    least = 0.0

    def shown(progress: Progress) -> None:
        nonlocal least
        if progress.done is not None:
            progress = LaterPass.of(progress, least)
            least = progress.done or least
        show(progress)

    return shown


def show_line(progress: Progress) -> None:
    """Show a pass on its own line."""
    _write(f"{progress}\n")


def _rewrite(progress: Progress) -> None:
    line = progress.within(shutil.get_terminal_size().columns - 1)
    _write(f"\r{line}\033[K")


def _write(text: str) -> None:
    """Write to standard error; progress that nobody can read must not end a training."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
