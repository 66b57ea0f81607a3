"""How much memory there is, sizes for people, and what to do where a plan is too large."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from tallytree.planning.query import Question

__all__ = ["ADVICE", "default_memory_limit", "readable_bytes", "readable_count", "without_tallies"]

ADVICE = (
    "Cap a statistic that only has to reach a bound, use fewer statistics, give a better elimination order "
    "(order=), or raise memory_limit="
)


def without_tallies(question: Question[Any]) -> str:
    """Say what answers a question, or bounds its answer, without tallies."""
    if question.constraint is None:
        return (
            "If one constraint is all you ask, tallytree.solve(model, where=…) computes only the tallies "
            "that it leaves, and tallytree.relax(model, where=…) bounds the best score without any"
        )
    if question.linear:
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
    """Half of the memory that this process may use: reproducible, whatever else is running."""
    total = float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as file:
                total = min(total, float(file.read()))
        except (OSError, ValueError):  # not there, or "max": no limit of its own
            continue
    return total / 2


def readable_bytes(size: float) -> str:
    """Write a size for people."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def readable_count(number: float) -> str:
    """Write a large number for people."""
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return f"{number:.0f}"
