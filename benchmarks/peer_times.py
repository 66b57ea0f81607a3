"""Run other solvers, each in a separate process, alternating with ours.

``TALLYTREE_PEERS_PYTHON`` names the interpreter that has ortools, highspy and pytoulbar2 (the ``bench``
extra), ``TALLYTREE_TORCH_PYTHON`` the one that has torch-struct; by default it is this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from common import LIMIT, interleaved

PYTHON = os.environ.get("TALLYTREE_PEERS_PYTHON", sys.executable)
TORCH_PYTHON = os.environ.get("TALLYTREE_TORCH_PYTHON", PYTHON)
SOLVERS = {"highs": "highspy", "toulbar2": "pytoulbar2", "cpsat": "ortools"}  # highs is never hopeless: first
HOPELESS = 5.0  # a peer this many times slower than the best one runs once only

Outcome = float | str
"""Seconds to a proven optimum that is ours, or why there are none."""


@lru_cache(maxsize=1)
def available() -> tuple[str, ...]:
    """The solvers that the peers' interpreter can import."""
    found = _importable(PYTHON, tuple(SOLVERS.values()))
    return tuple(solver for solver, module in SOLVERS.items() if module in found)


@lru_cache(maxsize=1)
def has_torch_struct() -> bool:
    return bool(_importable(TORCH_PYTHON, ("torch_struct",)))


def _importable(python: str, modules: tuple[str, ...]) -> list[str]:
    test = "import importlib.util, sys; print(*(n for n in sys.argv[1:] if importlib.util.find_spec(n)))"
    found = subprocess.run([python, "-c", test, *modules], capture_output=True, text=True, check=True)
    return found.stdout.split()


# ---------------------------------------------------------------- one answer


def solve(case: str, m: int, solver: str, timeout: float) -> Outcome:
    """Solve a case once as ``../shared/limit/peers.py`` does: model building is counted, imports are not."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "peer.json"
        command = [PYTHON, str(LIMIT / "peers.py"), "--case", case, "--solver", solver]
        command += ["--m", str(m), "--repeats", "1", "--timeout", str(timeout), "--json", str(out)]
        text = _output(command, timeout)
        return _outcome(out.read_text() if out.is_file() else text, timeout)


def solve_by_torch(case: str, m: int, timeout: float) -> Outcome:
    """Solve a case once with torch-struct on the product space."""
    command = [TORCH_PYTHON, str(Path(__file__).with_name("peer_torch.py")), str(LIMIT), case, str(m)]
    return _outcome(_output(command, timeout), timeout)


def _output(command: Sequence[str], timeout: float) -> str:
    """Return the last line that a program prints, or nothing if it takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout + 60)
    except subprocess.TimeoutExpired:
        return ""
    return (done.stdout.strip().splitlines() or [""])[-1]


def _outcome(text: str, timeout: float) -> Outcome:
    try:
        record: dict[str, Any] = json.loads(text)
    except ValueError:
        return f"> {timeout:.0f} s"
    error = str(record.get("error", ""))
    if error and not error.startswith("killed"):
        return error.split(":")[0]
    if error or not record["proven"] or record["total"] > timeout:
        return f"> {timeout:.0f} s"
    return float(record["total"]) if record["equal"] else "another optimum"


# ---------------------------------------------------------------- in turns


def in_turns(
    contenders: Mapping[str, Callable[[], object]],
    peers: Mapping[str, Callable[[float], Outcome]],
    *,
    rounds: int,
    budget: float,
    patience: float,
) -> dict[str, Outcome]:
    """Take turns: ours several times, each peer once, ours again, …; return the best of each."""
    best: dict[str, Outcome] = dict(interleaved(contenders, rounds=20, budget=budget))
    found: dict[str, Outcome] = {}
    for _ in range(rounds):
        fastest = min((t for t in found.values() if isinstance(t, float)), default=float("inf"))
        for name, ask in peers.items():
            before = found.get(name, 0.0)
            if isinstance(before, float) and before <= HOPELESS * fastest:
                found[name] = _better(found.get(name), ask(patience))
        for name, seconds in interleaved(contenders, rounds=20, budget=budget).items():
            best[name] = _better(best[name], seconds)
    return best | found


def _better(before: Outcome | None, now: Outcome) -> Outcome:
    return min(before, now) if isinstance(before, float) and isinstance(now, float) else now
