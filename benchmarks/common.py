"""What the benchmarks share: interleaved timing, slopes, aligned tables, the folders of optional files."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# Not part of the repository: docs/benchmarks.md says what they hold.
LIMIT = Path(os.environ.get("TALLYTREE_LIMIT", ROOT.parent / "shared" / "limit"))
DATA = Path(os.environ.get("TALLYTREE_DATA", ROOT.parent / "shared" / "data"))

Row = dict[str, Any]


def interleaved(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 9,
    budget: float = 2.0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the best time of each contender in seconds, all run in turn so that noise hits them alike.

    At least three rounds, then until ``rounds`` rounds or ``budget`` seconds (for all together) are over.
    Quick contenders run several times a round.
    """
    best = {name: _once(run, clock) for name, run in contenders.items()}
    end = time.perf_counter() + budget
    for done in range(rounds):
        for name, run in contenders.items():
            for _ in range(max(1, min(20, int(0.02 / max(best[name], 1e-6))))):
                best[name] = min(best[name], _once(run, clock))
        if done >= 2 and time.perf_counter() > end:
            break
    return best


def best_time(
    run: Callable[[], object],
    *,
    rounds: int = 9,
    budget: float = 1.0,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the best time of one contender in seconds."""
    return interleaved({"": run}, rounds=rounds, budget=budget, clock=clock)[""]


def _once(run: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    run()
    return clock() - start


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the exponent of a power law fitted by least squares on logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def yardstick(module: str) -> Any | None:
    """Import a module of the hand-written C (``limit``, ``dp``, ``instances``); None if it is absent."""
    if not (LIMIT / f"{module}.py").is_file():
        return None
    if str(LIMIT) not in sys.path:
        sys.path.append(str(LIMIT))
    try:
        return importlib.import_module(module)
    except Exception as error:  # no gcc, or no AVX-512 in it
        print(f"(the hand-written C in {LIMIT} cannot be used here: {error!r})")
        return None


def skipped(what: str) -> None:
    """Print that a part needs the yardstick and is skipped."""
    print(f"{what}: skipped, there is no hand-written C in {LIMIT} (set TALLYTREE_LIMIT)\n")


def show(title: str, rows: Sequence[Row], note: str = "") -> None:
    """Print rows as an aligned table; the columns are the keys of the rows, in order of appearance."""
    columns, cells = _cells(rows)
    widths = [max(map(len, (column, *(line[i] for line in cells)))) for i, column in enumerate(columns)]
    left = [any(isinstance(row.get(column), str) for row in rows) for column in columns]
    print(f"## {title}")
    for line in (columns, ["-" * width for width in widths], *cells):
        parts = [
            text.ljust(width) if to_left else text.rjust(width)
            for text, width, to_left in zip(line, widths, left, strict=True)
        ]
        print("  ".join(parts).rstrip())
    print(f"{note}\n" if note else "", flush=True)


def paste(title: str, rows: Sequence[Row], note: str = "") -> None:
    """Print rows as a table of the documentation."""
    print(f"## {title}\n{markdown(rows)}{note}\n", flush=True)


def short(value: object) -> str:
    """Write a value for the documentation: three digits are enough there."""
    if not isinstance(value, float) or np.isnan(value):
        return _text(value)
    return f"{value:,.0f}" if 100 <= abs(value) < 1e7 else f"{value:.3g}"


def markdown(rows: Sequence[Row]) -> str:
    """Return rows as a table for the documentation."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [columns, ["---"] * len(columns), *([short(row.get(c)) for c in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cells(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return columns, [[_text(row.get(column)) for column in columns] for row in rows]


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float):
        size = abs(value)
        return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}" if size < 0.1 else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
