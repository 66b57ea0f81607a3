"""Tallies as values with names."""

from __future__ import annotations

from collections import namedtuple
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=512)
def tally_type(names: tuple[str, ...]) -> Any:
    """Return the named tuple for statistics of these names (a name that is no identifier gets a number)."""
    return namedtuple("Tally", names, rename=True)


@lru_cache(maxsize=512)
def unique_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names with a number on those that come more than once."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique_names(tuple(result)) if len(set(result)) < len(result) else tuple(result)
