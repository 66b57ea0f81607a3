"""A line on the terminal while something runs: what it is, and for how long already."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from tallytree.cli.text import visible

_PATIENCE = 0.7  # seconds before anything is shown
_PACE = 0.2


@contextmanager
def progress(what: str, *, shown: bool) -> Iterator[None]:
    """Show the line while the body runs, if it runs for long; the library releases the interpreter."""
    if not (shown and sys.stderr.isatty()):
        yield
        return
    done = Event()
    thread = Thread(target=_tick, args=(what, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _tick(what: str, done: Event) -> None:
    start = monotonic()
    if done.wait(_PATIENCE):
        return
    while not done.wait(_PACE):
        sys.stderr.write(f"\r{visible(what)}: {monotonic() - start:.0f} s (Ctrl-C stops)\033[K")
        sys.stderr.flush()
    sys.stderr.write("\r\033[K")
    sys.stderr.flush()
