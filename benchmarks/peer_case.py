"""Solve a case of ``../shared/limit`` with one of its peers: ``python peer_case.py SOLVER CASE M LIMIT``.

Prints JSON: the value of the labelling, whether it is proven to be optimal, and the seconds of CPU time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from typing import Any

import peer_clock
from common import LIMIT, yardstick


def instance(case: str, m: int | None = None) -> Any:
    """Make a case of ``instances.py``; that of B5 fixes half of the count that plain MAP has."""
    problem = yardstick("instances").make(case, m)
    if case == "B5":
        (counts, relation, _), *_ = problem.task[1]
        problem.task = ("map",)
        labelling = yardstick("dp").solve(problem)
        half = int(counts[range(len(labelling)), labelling].sum()) // 2
        problem.task = ("lin", [(counts, relation, half)])
    return problem


def theirs() -> Any:
    """Import the formulations; a file of this folder has the same name."""
    os.environ["CPSAT_WORKERS"] = "1"  # more of them take more CPU time
    spec = importlib.util.spec_from_file_location("formulations", LIMIT / "peers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(solver: str, case: str, m: int, limit: float) -> None:
    problem, peers = instance(case, m), theirs()
    for module in peers.IMPORTS[solver].split():
        __import__(module)
    (labelling, proven, *_), seconds = peer_clock.timed(
        lambda left: peers.PEERS[solver](problem, left), limit
    )
    value = None if labelling is None else problem.objective(labelling)
    print("\n" + json.dumps({"value": value, "proven": bool(proven), "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
