"""Arguments of a batch: one that serves all problems, or a list with one for each."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

from tallytree.errors import ModelError
from tallytree.statistics.statistic import Recipe, Statistic

Statistics = Iterable[Statistic | Recipe]


def one_each(given: Any, count: int, name: str, kind: Any) -> Iterable[Any]:
    """Return an argument for each problem: one of a kind is for all of them, a sequence has one for each."""
    if given is None or isinstance(given, kind):
        return repeat(given, count)
    if not isinstance(given, (list, tuple)):
        raise ModelError(f"{name} must be one for all models or a list with one for each, got {given!r}")
    if len(given) != count:
        raise ModelError(
            f"{name} has {len(given)} entries for {count} models; give one for each, or one for all"
        )
    return given


def statistics_each(given: Any, count: int) -> Iterable[Statistics]:
    """Return the statistics of each model: one list of statistics is for all of them."""
    some = [given] if isinstance(given, (Statistic, Recipe)) else list(given)
    if some and all(isinstance(one, (list, tuple)) for one in some):
        return one_each(some, count, "statistics", Statistic)
    return repeat(some, count)
