"""Run other solvers, each in a separate process, alternating with ours, in CPU time.

``TALLYTREE_PEERS_PYTHON`` names the interpreter that has ortools, highspy and pytoulbar2 (the ``bench``
extra), ``TALLYTREE_TORCH_PYTHON`` the one that has torch-struct; by default it is this one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import peer_clock
from common import interleaved

PYTHON = os.environ.get("TALLYTREE_PEERS_PYTHON", sys.executable)
TORCH_PYTHON = os.environ.get("TALLYTREE_TORCH_PYTHON", PYTHON)
SOLVERS = {"highs": "highspy", "toulbar2": "pytoulbar2", "cpsat": "ortools"}  # highs is never hopeless: first
HOPELESS = 5.0  # a peer this many times slower than the best one runs once only

Outcome = float | str
"""Seconds of CPU time to a proven optimum that is ours, or why there are none."""


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


def solve(case: str, m: int, solver: str, optimum: float, limit: float) -> Outcome:
    """Solve a case once as ``../shared/limit/peers.py`` does."""
    return _outcome(answer(PYTHON, "peer_case.py", [solver, case, m], limit), optimum, limit)


def solve_by_torch(case: str, m: int, optimum: float, limit: float) -> Outcome:
    """Solve a case once with torch-struct on the product space."""
    return _outcome(answer(TORCH_PYTHON, "peer_torch.py", [case, m], limit), optimum, limit)


def answer(python: str, script: str, arguments: Sequence[object], limit: float) -> dict[str, Any]:
    """Run a program of this folder that times a solver; return what it prints, or why there is no answer."""
    command = [python, str(Path(__file__).with_name(script)), *map(str, arguments), str(limit)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=peer_clock.PATIENCE * limit + 60
        )
    except subprocess.TimeoutExpired:
        return {"error": beyond(limit)}
    if done.returncode == -signal.SIGXCPU:
        return {"error": beyond(limit)}
    try:
        record: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        print(f"({' '.join(command)}: {(done.stderr.strip().splitlines() or ['no answer'])[-1]})")
        return {"error": "failed"}
    return record


def beyond(limit: float) -> str:
    """What is shown for a solver that had not finished."""
    return f"> {limit:.0f} s"


def _outcome(record: dict[str, Any], optimum: float, limit: float) -> Outcome:
    if "error" in record:
        return str(record["error"]).split(":")[0]
    if not record["proven"] or record["seconds"] > limit:
        return beyond(limit)
    close = abs(record["value"] - optimum) < min(2e-3, 1e-5 * max(1.0, abs(optimum)))
    return float(record["seconds"]) if close else "another optimum"


# ---------------------------------------------------------------- in turns


def in_turns(
    contenders: Mapping[str, Callable[[], object]],
    peers: Mapping[str, Callable[[float], Outcome]],
    *,
    rounds: int,
    budget: float,
    limit: float,
) -> dict[str, Outcome]:
    """Take turns: ours several times, each peer once, ours again, …; return the best of each."""
    ours = partial(interleaved, contenders, rounds=20, budget=budget, clock=time.process_time)
    best: dict[str, Outcome] = dict(ours())
    found: dict[str, Outcome] = {}
    for _ in range(rounds):
        fastest = min((t for t in found.values() if isinstance(t, float)), default=float("inf"))
        for name, ask in peers.items():
            before = found.get(name, 0.0)
            if isinstance(before, float) and before <= HOPELESS * fastest:
                found[name] = _better(found.get(name), ask(limit))
        for name, seconds in ours().items():
            best[name] = _better(best[name], seconds)
    return best | found


def _better(before: Outcome | None, now: Outcome) -> Outcome:
    return min(before, now) if isinstance(before, float) and isinstance(now, float) else now
