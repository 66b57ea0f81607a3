"""Figures stored from run to run, as ratios, and those that have become slower since the last run.

A time is divided by that of a fixed piece of work that does not use tallytree (NumPy and plain Python),
measured at the same time: the ratio hardly depends on how busy the machine is. A figure that is already a
ratio is stored unchanged. Runs are in ``.benchmarks/``, one JSON file each, the newest last; they belong to
the machine they were made on and are not under version control.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, Row, show

FOLDER = ROOT / ".benchmarks"
KEPT = 50
TOLERANCE = 1.3  # a busy machine moves single figures by a tenth or two

TIMES = (" ms", " us", " µs", " s", "seconds", "ms")  # how the name of a column that is a time ends
HIGHER_IS_BETTER = ("speed", "C / batch", "two threads", "peer / cold", "peer / warm", "Gop/s", "our Gop/s")
LOWER_IS_BETTER = ("overhead / arithmetic",)

SEPARATOR = " · "

Figures = dict[str, float]


def reference() -> float:
    """Return the seconds of a fixed piece of work: in cache, in memory and in the interpreter."""
    rng = np.random.default_rng(0)
    small, large = rng.normal(size=4096), rng.normal(size=1 << 20)

    def work() -> None:
        for _ in range(120):
            np.maximum(small + 1.0, small).max()
        np.maximum(large + 1.0, large).max()
        total = 0
        for i in range(20_000):
            total += i & 3

    best = np.inf
    for _ in range(15):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)


def figures(data: Mapping[str, Any], references: Mapping[str, float]) -> Figures:
    """Return every figure of a run that can be compared, as a ratio, under a name."""
    found: Figures = {}
    for benchmark, unit in references.items():
        for table, rows in data[benchmark].items():
            for label, row in _labelled(rows if isinstance(rows, list) else []):
                for column, value in row.items():
                    kind = direction(column)
                    if kind and isinstance(value, (int, float)) and np.isfinite(value) and value > 0:
                        ratio = value / unit if column.endswith(TIMES) else value
                        found[SEPARATOR.join((benchmark, table, label, column))] = float(ratio)
    return found


def direction(column: str) -> int:
    """Return -1 for a column whose figures are better when they are lower, 1 if higher, 0 if neither."""
    if column in HIGHER_IS_BETTER:
        return 1
    return -1 if column in LOWER_IS_BETTER or column.endswith(TIMES) else 0


def _labelled(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Name rows by their text and integers, and by their position if that is ambiguous."""
    seen: dict[str, int] = {}
    for row in (row for row in rows if isinstance(row, dict)):
        parts = [str(v) for v in row.values() if isinstance(v, str)]
        parts = parts or [
            f"{k}={v}" for k, v in row.items() if isinstance(v, int) and not isinstance(v, bool)
        ]
        label = ", ".join(parts) or "row"
        seen[label] = seen.get(label, 0) + 1
        yield (label if seen[label] == 1 else f"{label} ({seen[label]})"), row


# ---------------------------------------------------------------- stored runs


def store(machine: Mapping[str, Any], found: Figures, quick: bool) -> Path:
    """Store a run, and delete the oldest ones."""
    FOLDER.mkdir(exist_ok=True)
    now = time.strftime("%Y-%m-%dT%H-%M-%S")
    record = {"when": now, "commit": _commit(), "quick": quick, "machine": dict(machine), "figures": found}
    path = FOLDER / f"{now}.json"
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(record, indent=1, ensure_ascii=False), encoding="utf-8")
    partial.replace(path)
    for old in stored()[:-KEPT]:
        old.unlink()
    return path


def stored() -> list[Path]:
    """Return the stored runs, the newest last."""
    return sorted(FOLDER.glob("*.json"))


def before(quick: bool, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return for each benchmark the newest stored run of the same kind that has it."""
    found: dict[str, dict[str, Any]] = {}
    for path in reversed(stored()):
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        has = {key.split(SEPARATOR)[0] for key in record["figures"]} if record["quick"] == quick else set()
        for name in has.intersection(names) - found.keys():
            found[name] = record
    return found


def _commit() -> str:
    """Return the commit of this tree; empty without git."""
    if shutil.which("git") is None:
        return ""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


# ---------------------------------------------------------------- comparison


def slower(before: Figures, after: Figures, tolerance: float = TOLERANCE) -> list[Row]:
    """Return the figures that are worse by more than the tolerance, the worst first."""
    rows = []
    for name in before.keys() & after.keys():
        change = after[name] / before[name]
        factor = 1 / change if direction(name.split(SEPARATOR)[-1]) > 0 else change
        if factor > tolerance:
            rows.append({"figure": name, "before": before[name], "now": after[name], "times as slow": factor})
    return sorted(rows, key=lambda row: (-row["times as slow"], row["figure"]))


def compare(earlier: Mapping[str, Mapping[str, Any]], after: Figures) -> list[Row]:
    """Print what got slower since the last stored run of each benchmark."""
    worse = []
    for name, record in sorted(earlier.items()):
        known = {k: v for k, v in record["figures"].items() if k.split(SEPARATOR)[0] == name}
        rows = slower(known, after)
        shared = len(known.keys() & after.keys())
        since = f"{record['when']} ({record['commit'] or 'no commit'})"
        if rows:
            note = f"{len(rows)} of {shared} figures, by more than a factor of {TOLERANCE}"
            show(f"{name}: slower than on {since}", rows, note)
        else:
            print(f"{name}: none of {shared} figures is slower than on {since}")
        worse += rows
    return worse
