"""How the command ends: signals that stop it, and the meaning of its exit codes."""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from threading import current_thread, main_thread
from time import monotonic
from types import FrameType
from typing import Any

from tallytree.errors import BudgetError, InfeasibleError, ModelError, ObjectiveError, TallytreeError

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_ONCE = 1.0
"""Signals within this many seconds count as one request: supervisors send several."""


class Stopped(KeyboardInterrupt):
    """A signal has requested the end. As for Ctrl-C, files are closed and training keeps its best weights."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class _Received:
    """The last signal, and when it was received."""

    number: int = signal.SIGINT
    at: float = -float("inf")


@contextmanager
def stoppable() -> Iterator[None]:
    """Let signals raise :class:`Stopped` in the body; ignored ones, as under nohup, stay ignored."""
    _Received.number, _Received.at = signal.SIGINT, -float("inf")
    before: dict[int, Any] = {}
    if current_thread() is main_thread():
        for number in _SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, _stop)
    try:
        yield
    finally:
        stopped = _Received.at > -float("inf")
        for number, handler in before.items():
            signal.signal(number, _after(handler) if stopped else handler)
            if stopped:  # Python restores handlers as it exits, and the exit code would be different
                atexit.register(signal.signal, number, signal.SIG_IGN)


def _after(handler: Any) -> Callable[[int, FrameType | None], None]:
    """Return a handler that ignores signals sent together with the last one; afterwards, the old handler."""

    def late(number: int, frame: FrameType | None) -> None:
        if monotonic() - _Received.at >= _ONCE:
            signal.signal(number, handler)
            signal.raise_signal(number)

    return late


def _stop(number: int, frame: FrameType | None) -> None:
    now = monotonic()
    if now - _Received.at < _ONCE:
        return
    _Received.number, _Received.at = number, now
    _silence_threads()
    raise Stopped(number)


def _silence_threads() -> None:
    """Hide errors of other threads while everything is shut down."""
    threading.excepthook = lambda _: None


def stop_code() -> int:
    """Return the exit code of a stopped command: 128 plus the number of the signal."""
    return 128 + _Received.number


def end_workers() -> None:
    """End the processes that joblib keeps for the next call; they would outlive this one by minutes."""
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(loky, "_executor", None)
    if executor is not None:
        _silence_threads()
        with suppress(Exception):  # exiting anyway
            executor.shutdown(wait=True, kill_workers=True)


class UsageError(ModelError):
    """An option has an invalid value, has no effect, or contradicts another one."""


class UnfinishedError(BudgetError):
    """A limit was reached; `document` is what was found before, for JSON."""

    def __init__(self, message: str, document: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.document = document


def error_json(error: BaseException, message: str) -> dict[str, Any]:
    """Return an error for JSON, with what was found before it."""
    if isinstance(error, UnfinishedError):
        return {"error": {"kind": BudgetError.__name__, "message": message}, **error.document}
    return {"error": {"kind": type(error).__name__, "message": message}}


class Exit(IntEnum):
    """Exit codes, as ``tallytree --help`` lists them."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    MALFORMED = 3
    INFEASIBLE = 4
    BUDGET = 5
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS = {
    Exit.OK: "success",
    Exit.FAILURE: "any other error",
    Exit.USAGE: "the command line is invalid, or a file cannot be read or written",
    Exit.MALFORMED: "a file or a formula is malformed, or the options do not fit the model",
    Exit.INFEASIBLE: "no labelling satisfies the constraint",
    Exit.BUDGET: "the problem exceeds the memory or operation limit",
    Exit.HUNG_UP: "stopped by SIGHUP (the terminal was closed)",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
    Exit.TERMINATED: "stopped by SIGTERM",
}

_EXITS: tuple[tuple[type[BaseException], Exit], ...] = (
    (InfeasibleError, Exit.INFEASIBLE),
    (BudgetError, Exit.BUDGET),
    (UsageError, Exit.USAGE),
    (ModelError, Exit.MALFORMED),
    (ObjectiveError, Exit.MALFORMED),
    (TallytreeError, Exit.FAILURE),
    (OSError, Exit.USAGE),
    (MemoryError, Exit.BUDGET),
    (KeyboardInterrupt, Exit.INTERRUPTED),
)


def exit_of(error: BaseException) -> Exit:
    """Return the exit code for an error."""
    if isinstance(error, Stopped):
        return Exit(stop_code())
    return next((code for kind, code in _EXITS if isinstance(error, kind)), Exit.FAILURE)
