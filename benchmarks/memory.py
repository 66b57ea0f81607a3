"""Forecast against measured memory: ``plan.peak_bytes`` beside the growth of the resident set.

Each problem runs in a process of its own. What is measured is the peak while a profile is made and one
labelling decoded, less what was resident once the plan was there.

The second table asks what ``memory_limit`` is worth: the least limit under which a call runs, and how much
the process grows, under that limit, without one, and where half of it is refused.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, show
from memory_cases import CASES

import tallytree as tt

Problem = tuple[tt.Model, Sequence[Any], dict[str, Any]]


def true_false_positives(m: int, **options: Any) -> Problem:
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.standard_normal((m, 5)), rng.standard_normal((5, 5)))
    truth = rng.integers(0, 5, m)
    both = [tt.matches(model, truth, background=0), tt.mismatches(model, truth, background=0)]
    return model, both, options


def grid_with_count(rows: int, columns: int, **options: Any) -> Problem:
    rng = np.random.default_rng(0)
    pair = rng.standard_normal((2, 2))
    model = tt.Model.grid(rng.standard_normal((rows, columns, 2)), pair, pair)
    return model, [tt.count(model, state=1)], options


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "chain M=400 N=5, (TP, FP)": lambda: true_false_positives(400),
    "the same, in 100 MB": lambda: true_false_positives(400, memory_limit=100e6),
    "grid 10 x 60, count": lambda: grid_with_count(10, 60),
    "the same, in 200 MB": lambda: grid_with_count(10, 60, memory_limit=200e6),
}


def resident(field: str) -> int:
    """Bytes in a field of /proc/self/status: VmRSS (now) or VmHWM (the peak)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def child(name: str) -> None:
    model, statistics, options = PROBLEMS[name]()
    empty = resident("VmRSS")
    plan = tt.plan(model, statistics, **options)
    before = resident("VmRSS")
    tt.profile(model, statistics, plan=plan).best()
    peak = resident("VmHWM")
    print(
        json.dumps(
            {
                "segments": plan.segments,
                "forecast": plan.peak_bytes,
                "plan forecast": plan.layout.plan_bytes,
                "plan": before - empty,
                "run": peak - before,
            }
        )
    )


def measure(name: str) -> Row:
    command = [sys.executable, __file__, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"problem": name, "error": (done.stderr.strip().splitlines() or ["?"])[-1][:120]}
    record = json.loads(done.stdout)
    measured = record["plan"] + record["run"]
    return {
        "problem": name,
        "segments": record["segments"],
        "forecast MB": record["forecast"] / 1e6,
        "measured MB": measured / 1e6,
        "of it plan MB": record["plan"] / 1e6,
        "measured / forecast": measured / record["forecast"],
    }


def called(name: str, limit: float | None) -> Row:
    """Make a call in this process, after one of its kind that is over at once: its growth and its time."""
    CASES[name](True)(None)
    call = CASES[name](False)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before, start = resident("VmRSS"), time.perf_counter()
    refused, said = "", None
    try:
        said = call(limit)
    except tt.BudgetError as error:
        refused = str(error)
    seconds = time.perf_counter() - start
    return {
        "refused": refused,
        "said": said,
        "growth": max(resident("VmHWM") - before, 0),
        "seconds": seconds,
    }


def in_child(name: str, limit: float | None) -> Row:
    command = [sys.executable, __file__, name, "-" if limit is None else repr(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    row: Row = json.loads(done.stdout)
    return row


def least_limit(name: str, enough: float) -> tuple[float, Row]:
    """Find the least limit under which a call runs, to 5 %, and what it takes then."""
    low, found = 1e3, in_child(name, enough)
    while found["refused"]:
        low, enough = enough, 2 * enough
        found = in_child(name, enough)
    while enough > 1.05 * low:
        middle = float(np.sqrt(low * enough))
        tried = in_child(name, middle)
        if tried["refused"]:
            low = middle
        else:
            enough, found = middle, tried
    return enough, found


def under_limits(name: str) -> Row:
    free = in_child(name, 200e6 if name.startswith("diverse") else None)
    if free["refused"]:
        return {"call": name, "refused MB": free["growth"] / 1e6, "refused s": free["seconds"]}
    limit, least = least_limit(name, 1.3 * free["growth"] + 1e6)
    refused = in_child(name, limit / 2)
    forecast = free["said"] / 1e6 if isinstance(free["said"], int) and free["said"] > 10**6 else None
    return {
        "call": name,
        "forecast MB": forecast,
        "grows MB": free["growth"] / 1e6,
        "least limit MB": limit / 1e6,
        "grows under it MB": least["growth"] / 1e6,
        "refused MB": refused["growth"] / 1e6 if refused["refused"] else None,
        "refused s": refused["seconds"] if refused["refused"] else None,
    }


def main(quick: bool = False) -> dict[str, list[Row]]:
    if not Path("/proc/self/clear_refs").is_file():
        print("memory: skipped, there is no /proc here\n")
        return {}
    rows = [measure(name) for name in list(PROBLEMS)[: 2 if quick else None]]
    show("memory: forecast and measured", rows)
    limits = [under_limits(name) for name in (list(CASES)[3:5] if quick else CASES)]
    show("memory: limits and measured", limits)
    return {"memory": rows, "memory limits": limits}


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(called(sys.argv[1], None if sys.argv[2] == "-" else float(sys.argv[2]))))
    elif len(sys.argv) > 1:
        child(sys.argv[1])
    else:
        main()
