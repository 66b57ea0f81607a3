"""Predicted and measured memory: ``plan.peak_bytes`` compared with the growth of the resident set.

Each problem runs in a separate process. The measurement is the peak while a profile is made and one
labelling decoded, minus the memory in use once the plan exists.

The second table asks what ``memory_limit`` is worth: the forecast, which is the plan's, or the least limit
under which a call runs, beside what the process grows by; and what a refusal at half of it takes.
"""

from __future__ import annotations

import ctypes
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
from memory_cases import CASES, REFUSED

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


def chain_with_count(m: int, states: int, **options: Any) -> Problem:
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.standard_normal((m, states)), rng.standard_normal((states, states)))
    return model, [tt.count(model, state=1)], options


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "chain M=400 N=5, (TP, FP)": lambda: true_false_positives(400),
    "the same, in 100 MB": lambda: true_false_positives(400, memory_limit=100e6),
    "grid 10 x 60, count": lambda: grid_with_count(10, 60),
    "the same, in 200 MB": lambda: grid_with_count(10, 60, memory_limit=200e6),
    "chain M=3,000 N=23, count": lambda: chain_with_count(3000, 23),
    "chain M=20,000 N=5, count": lambda: chain_with_count(20_000, 5),
    "the same, in 150 MB": lambda: chain_with_count(20_000, 5, memory_limit=150e6),
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
    """Measure memory growth and time of a call in this process, after a small call of the same kind."""
    CASES[name](True)(None)
    call = CASES[name](False)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what making the inputs has left behind
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before, start = resident("VmRSS"), time.perf_counter()
    refused, forecast = "", None
    try:
        forecast = call(limit)
    except tt.BudgetError as error:
        refused = str(error)
    seconds = time.perf_counter() - start
    growth = max(resident("VmHWM") - before, 0)
    return {"refused": refused, "forecast": forecast, "growth": growth, "seconds": seconds}


def in_child(name: str, limit: float | None) -> Row:
    command = [sys.executable, __file__, name, "-" if limit is None else repr(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    row: Row = json.loads(done.stdout)
    return row


def least_limit(name: str, growth: float) -> tuple[float, Row]:
    """Find the smallest limit under which a call runs, within 5 %, and the memory that it then takes."""
    low, enough = 0.75 * growth, 1.25 * growth + 1e6
    while (found := in_child(name, enough))["refused"]:
        low, enough = enough, 1.5 * enough
    while not in_child(name, low)["refused"]:
        low, enough = low / 2, low
    while enough > 1.05 * low:
        middle = float(np.sqrt(low * enough))
        tried = in_child(name, middle)
        if tried["refused"]:
            low = middle
        else:
            enough, found = middle, tried
    return enough, found


def under_limits(name: str) -> Row:
    """Compare the forecast of a plan, or the least limit that lets a call run, with what the call takes.

    Where a call is refused, its limit is the forecast: nothing may take more than that before it is refused.
    """
    limit = REFUSED.get(name)
    found = in_child(name, limit)
    forecast = found["forecast"] or limit
    if forecast is None:
        forecast, found = least_limit(name, found["growth"])
    refused = in_child(name, forecast / 2)
    return {
        "call": name,
        "forecast MB": forecast / 1e6,
        "growth MB": found["growth"] / 1e6,
        "growth / forecast": found["growth"] / forecast,
        "refused at half: MB": refused["growth"] / 1e6 if refused["refused"] else None,
        "s": refused["seconds"] if refused["refused"] else None,
    }


def main(quick: bool = False) -> dict[str, list[Row]]:
    if not Path("/proc/self/clear_refs").is_file():
        print("memory: skipped, there is no /proc here\n")
        return {}
    rows = [measure(name) for name in list(PROBLEMS)[: 2 if quick else None]]
    show("memory: forecast and measured", rows)
    small = ["chain of 100 x 1,000", "loss_augmented_corpus of 300"]
    limits = [under_limits(name) for name in (small if quick else CASES)]
    show("memory: limits and measured", limits)
    return {"memory": rows, "memory limits": limits}


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(called(sys.argv[1], None if sys.argv[2] == "-" else float(sys.argv[2]))))
    elif len(sys.argv) > 1:
        child(sys.argv[1])
    else:
        main()
