"""Run the general-purpose solvers of ``../shared/limit/peers.py``, each time in a process of its own.

``TALLYTREE_PEERS_PYTHON`` names the interpreter that has ortools, highspy and pytoulbar2 (the ``bench``
extra); by default it is this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from common import LIMIT

PYTHON = os.environ.get("TALLYTREE_PEERS_PYTHON", sys.executable)
SOLVERS = {"highs": "highspy", "toulbar2": "pytoulbar2", "cpsat": "ortools"}  # highs is never hopeless: first


@lru_cache(maxsize=1)
def available() -> tuple[str, ...]:
    """The solvers that the peers' interpreter can import."""
    test = "import importlib.util, sys; print(*(n for n in sys.argv[1:] if importlib.util.find_spec(n)))"
    found = subprocess.run(
        [PYTHON, "-c", test, *SOLVERS.values()], capture_output=True, text=True, check=True
    )
    return tuple(solver for solver, module in SOLVERS.items() if module in found.stdout.split())


def run(case: str, solver: str, *, timeout: float = 60.0) -> dict[str, Any]:
    """Solve a case once; ``total`` is in seconds, model building included and imports not."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "peer.json"
        command = [PYTHON, str(LIMIT / "peers.py"), "--case", case, "--solver", solver]
        command += ["--repeats", "1", "--timeout", str(timeout), "--json", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout + 60)
        if not out.is_file():
            return {"error": done.stderr.strip().splitlines()[-1:] or f"exit {done.returncode}"}
        record: dict[str, Any] = json.loads(out.read_text())
        return record
