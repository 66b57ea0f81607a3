"""The rate of a chain with one count as its tables grow beyond the cache, decoding included.

A profile from an existing plan, and the labelling of one tally: with all tables, and with tables that
roll through the cache; on one thread, on two, and as called by default, which takes all processors from 5e7
operations on. All in turns, the best of several rounds. Rates in operations per nanosecond, of the wall clock
and of the processors: on a busy machine, compare the latter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from common import Row, show

import tallytree as tt
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan

SIZES = [(5, 500), (5, 1000), (5, 3000), (5, 8000), (23, 500), (23, 1000), (23, 3000)]
"""States and variables."""


def contenders(states: int, length: int) -> tuple[Plan, dict[str, Callable[[], object]]]:
    """Return a plan, and ways to compute a profile and one labelling of a chain."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(length, states)), rng.normal(size=(length - 1, states, states))
    model = tt.Model.chain(*scores)
    count = tt.count(model, state=1)
    rolling, whole = tt.plan(model, [count]), Plan(model, [count], PlanOptions(every_table=True))

    def run(plan: Plan, **options: Any) -> Callable[[], object]:
        return lambda: tt.profile(model, [count], plan=plan, **options).at(length // 3)

    return rolling, {
        "all tables": run(whole, threads=1),
        "one thread": run(rolling, threads=1),
        "all tables, two": run(whole, threads=2),
        "two threads": run(rolling, threads=2),
        "default": run(rolling),
    }


def measured(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """Return the best wall-clock and processor time of each, in turns."""
    best = dict.fromkeys(ways, (np.inf, np.inf))
    for _ in range(rounds):
        for name, way in ways.items():
            start, used = time.perf_counter(), time.process_time()
            way()
            took = time.perf_counter() - start, time.process_time() - used
            best[name] = min(best[name][0], took[0]), min(best[name][1], took[1])
    return best


def main(quick: bool = False) -> dict[str, list[Row]]:
    rows: list[Row] = []
    for states, length in SIZES[: 2 if quick else None]:
        plan, ways = contenders(states, length)
        rounds = max(3, min(40, int(2e9 / plan.operations))) if not quick else 2
        found = measured(ways, rounds)
        for clock, name in enumerate(("wall", "processors")):
            rates = {way: plan.operations / best[clock] / 1e9 for way, best in found.items()}
            sizes = {"tables MB": plan.table_bytes / 1e6, "kept MB": plan.layout.arena_bytes / 1e6}
            rows.append({"N": states, "M": length, **sizes, "clock": name, **rates})
    show("rolling tables: Gop/s, decoding included", rows)
    return {"rolling": rows}


if __name__ == "__main__":
    main()
