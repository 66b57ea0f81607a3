"""Memory limits and their use, readable sizes, and advice for problems that are too large.

A plan announces its memory before it runs. Memory that grows during a call, such as that of a search and of
the answers in a list, is counted by a :class:`Budget` as it grows.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from tallytree.errors import BudgetError, ModelError
from tallytree.planning.query import Query
from tallytree.values import counted

_OTHERS = (
    "a branch-and-bound solver such as toulbar2 finds the best labelling, and approximate inference gives "
    "probabilities"
)


def too_wide(what: str, use: str = "Use") -> BudgetError:
    """Return the error for a graph that is too wide even without statistics, with advice."""
    error = BudgetError(f"{what}. {use} a better elimination order (order=); for wide graphs, {_OTHERS}")
    error.too_wide = True
    return error


def too_dense(variables: int, *, ordered: bool) -> BudgetError:
    """Return the error for a graph whose programs have a step over too many variables."""
    step = f"a step over {variables} variables or more"
    step += ", which does not fit in any memory, even without statistics"
    if ordered:
        return too_wide(f"the given elimination order has {step}", "Leave out order=, or use")
    return too_wide(f"the graph is too dense: every order tried has {step}")


def advice(statistics: int) -> str:
    """Return advice for making a plan over this many statistics smaller."""
    if not statistics:
        return (
            "Give a better elimination order (order=), or raise memory_limit=; for wide graphs without "
            f"counts, {_OTHERS}"
        )
    return (
        "Cap a statistic that only has to reach a bound, use fewer statistics, give a better elimination "
        "order (order=), or raise memory_limit="
    )


class Budget:
    """The memory that one call may use, and how much of it is in use.

    `limit`: in bytes. `held`: in use from the start, such as the tables of a plan.

    Examples
    --------
    >>> budget = Budget(2**20, held=2**19)
    >>> budget.hold(2**18, "a list of answers")
    >>> budget.room == 2**18
    True
    >>> budget.hold(2**20, "a list of answers")
    Traceback (most recent call last):
    tallytree.errors.BudgetError: a list of answers: together with the memory already in use, this takes
    1.8 MiB, but the limit is 1.0 MiB. Ask for less, or raise memory_limit=
    """

    def __init__(self, limit: float, held: float = 0.0) -> None:
        self.limit, self.held = limit, held

    @property
    def room(self) -> float:
        """How much more may be used."""
        return self.limit - self.held

    def hold(self, size: float, what: str) -> None:
        """Count memory that is in use from now on, or freed if the size is negative.

        Raises BudgetError if it exceeds the limit.
        """
        self.held += size
        if size > 0 and self.held > self.limit:
            raise self.exceeded(what)

    def need(self, size: float, what: str) -> None:
        """Raise an error if something would not fit."""
        if size > self.room:
            raise self.exceeded(what, size)

    def exceeded(self, what: str, more: float = 0.0) -> BudgetError:
        """Return the error for something that needs this many more bytes."""
        return BudgetError(
            f"{what}: together with the memory already in use, this takes "
            f"{readable_bytes(self.held + more)}, but the limit is {readable_bytes(self.limit)}. "
            "Ask for less, or raise memory_limit="
        )


def without_tallies(query: Query[Any]) -> str:
    """Return advice on answering a query, or bounding its answer, without tallies."""
    if query.constraint is None:
        return (
            "If you only need one constraint, tallytree.solve(model, where=…) computes only the tallies "
            "that it allows, and tallytree.relax(model, where=…) bounds the best score without any"
        )
    if query.linear:
        return (
            "Without tallies, tallytree.relax(model, where=…) gives an upper bound on the best score under "
            "this constraint, and often the best labelling itself"
        )
    return (
        "Without tallies, tallytree.relax(model, where=…) bounds the best score under comparisons joined by "
        "&; relax the alternatives of this constraint one by one"
    )


@lru_cache(maxsize=1)
def default_memory_limit() -> float:
    """Return half of the memory that this process may use, independent of what else is running."""
    total = float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as file:
                total = min(total, float(file.read()))
        except (OSError, ValueError):  # missing, or "max": no separate limit
            continue
    return total / 2


def readable_bytes(size: float) -> str:
    """Format a size for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def readable_count(number: float) -> str:
    """Format a large number for people."""
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return f"{number:.0f}"


def listed(names: tuple[str, ...]) -> str:
    """Return the number of statistics, and their names."""
    shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
    return f"{counted(len(names), 'statistic')} ({shown})" if names else "no statistics"


LARGE = 5e7
"""Add-max operations from which on a problem uses all processors: about 20 ms on one of them."""


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count(threads: int | None) -> int:
    """Return the given number of threads, or the number of processors; raise an error if it is invalid."""
    if threads is None:
        return processors()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ModelError(f"threads must be a positive integer or None, got {threads!r}")
    return threads


def threads_for(operations: float, threads: int | None) -> int:
    """Return how many threads to use for a pass: as many as requested, or as many as pay off.

    Examples
    --------
    >>> threads_for(1e3, None), threads_for(1e3, 4)
    (1, 4)
    """
    return thread_count(1 if threads is None and operations < LARGE else threads)
