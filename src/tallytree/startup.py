"""Runs first: a command that is interrupted while it is still loading exits without a traceback."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def is_command() -> bool:
    """Whether Python was started to run this library's command line."""
    name = sys.argv[0] if sys.argv else ""
    if name == "-m":  # its name until the module is found
        given = sys.orig_argv
        return given[given.index("-m") + 1].partition(".")[0] == "tallytree" if "-m" in given[:-1] else False
    return os.path.splitext(os.path.basename(name))[0] == "tallytree"


def end_quietly() -> None:
    """Let Ctrl-C end the process at once; before a command has started there is nothing to clean up."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, b"tallytree: interrupted\n")
    finally:
        os._exit(128 + number)


if is_command():
    end_quietly()
