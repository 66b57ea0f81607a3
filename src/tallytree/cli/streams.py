"""Standard output and standard error of the command: closed, full, or with a reader that has gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any, TextIO


@contextmanager
def usable_streams() -> Iterator[None]:
    """Write what the terminal can show in the body, and drop what standard error does not accept."""
    before: TextIO | None = sys.stderr
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = _nowhere() if before is None else _optional(before)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without τ shows ? instead of a traceback
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = before


def drop_output() -> None:
    """Discard what standard output does not accept; Python would try again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nowhere() -> TextIO:
    """Return a stream that discards everything, in place of a closed one."""
    return open(os.devnull, "w")


def _optional(stream: TextIO) -> TextIO:
    """Return the same stream, but without errors: progress that nobody reads must not end a training."""
    if type(getattr(getattr(stream, "buffer", None), "raw", None)) is not FileIO:
        return stream
    stream.flush()
    raw: Any = _Optional(stream.fileno(), "w", closefd=False)
    return TextIOWrapper(BufferedWriter(raw), stream.encoding, line_buffering=True)


class _Optional(FileIO):
    """A file that drops what it cannot write."""

    def write(self, data: Any, /) -> int:
        """Write some bytes, or drop them."""
        try:
            return super().write(data)
        except OSError:
            return len(data)
