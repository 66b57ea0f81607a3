"""Tallies as values with names."""

from __future__ import annotations

from collections import namedtuple
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["nearest_tallies", "tally_type", "unique_names"]


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


def nearest_tallies(names: tuple[str, ...], tallies: NDArray[np.int64], missed: NDArray[Any]) -> str:
    """Return the tallies that miss a constraint by least, for the end of an error."""
    rows = np.argsort(np.broadcast_to(missed, len(tallies)), kind="stable")[:3]
    named = (zip(names, row, strict=True) for row in tallies[rows].tolist())
    shown = ("(" + ", ".join(f"{name}={value}" for name, value in pairs) + ")" for pairs in named)
    return f"the nearest attainable tallies are {', '.join(shown)}"
