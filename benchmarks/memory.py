"""Forecast against measured memory: ``plan.peak_bytes`` beside the growth of the resident set.

Each problem runs in a process of its own. What is measured is the peak while a profile is made and one
labelling decoded, less what was resident once the plan was there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, show

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


def main(quick: bool = False) -> dict[str, list[Row]]:
    if not Path("/proc/self/status").is_file():
        print("memory: skipped, there is no /proc here\n")
        return {}
    rows = [measure(name) for name in list(PROBLEMS)[: 2 if quick else None]]
    show("memory: forecast and measured", rows)
    return {"memory": rows}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1])
    else:
        main()
