"""How many threads: the processors of this process, and from how much work on they are worth it."""

from __future__ import annotations

import os

from tallytree.errors import ModelError

LARGE = 5e7
"""Add-max operations from which on one problem is given all processors: some 20 ms on one of them."""


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """Return a number of threads as it was given, or that of the processors; refuse what is none."""
    if threads is None:
        return processors()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ModelError(f"threads must be a positive integer or None, got {threads!r}")
    return threads


def threads_for(operations: float, threads: int | None) -> int:
    """Return how many threads to use for a pass: as many as were asked for, or as many as are worth it.

    Examples
    --------
    >>> threads_for(1e3, None), threads_for(1e3, 4)
    (1, 4)
    """
    return thread_count(1 if threads is None and operations < LARGE else threads)
