"""From arrays to a certified labelling on B1 to B7, beside the C dynamic program and beside other solvers.

Model, statistics, plan, messages, decoding and certificate are all inside the clock. Cold: the shape of the
model is new, so that an elimination order has to be found; warm: it has been seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cases
import peer_times
import phases
from common import Row, interleaved, show, skipped, yardstick

WITH_PEERS = ("B1", "B2", "B3", "B4", "B5", "B6", "B7grid")
HOPELESS = 5.0  # a peer this many times slower than the best one runs once only


def check(end: cases.End) -> bool:
    """Is our labelling as good as the C's?"""
    problem = end.problem
    ours, theirs = problem.objective(end.run().assignment), problem.objective(yardstick("dp").solve(problem))
    return bool(abs(ours - theirs) <= 1e-9 * max(1.0, abs(theirs)))


def contenders(end: cases.End) -> dict[str, Callable[[], object]]:
    def cold() -> object:
        phases.forget()
        return end.run()

    dp = yardstick("dp")
    return {"cold": cold, "warm": end.run, "C": lambda: dp.solve(end.problem)}


def beside_peers(case: str, end: cases.End, rounds: int, budget: float) -> tuple[dict[str, float], Row]:
    """Take turns: ours, each peer once, ours again, …; return our best times and the peers'."""
    ours = interleaved(contenders(end), rounds=20, budget=budget)
    best: dict[str, float] = {}
    dropped: set[str] = set()
    for _ in range(rounds if case in WITH_PEERS else 0):
        for solver in peer_times.available():
            if solver not in dropped:
                seconds = _peer(case, solver, min(best.values(), default=float("inf")))
                best[solver] = min(best.get(solver, float("inf")), seconds)
        dropped = {solver for solver, seconds in best.items() if seconds > HOPELESS * min(best.values())}
        for name, seconds in interleaved(contenders(end), rounds=20, budget=budget).items():
            ours[name] = min(ours[name], seconds)
    return ours, best


def _peer(case: str, solver: str, to_beat: float) -> float:
    """Seconds to a proven optimum that equals the C's; infinite if there was none while it mattered."""
    timeout = min(60.0, max(5.0, HOPELESS * to_beat))
    record = peer_times.run(case, solver, timeout=timeout)
    if "error" in record or not record["proven"] or not record["equal"]:
        print(f"({case} {solver}: {record.get('error', f'no proven optimum in {timeout:.0f} s')})")
        return float("inf")
    return float(record["total"])


def row(case: str, rounds: int, budget: float) -> Row:
    end = cases.make(case)
    ours, peers = beside_peers(case, end, rounds, budget)
    result: Row = {
        "case": case,
        "same objective": check(end),
        "cold ms": ours["cold"] * 1e3,
        "warm ms": ours["warm"] * 1e3,
        "C ms": ours["C"] * 1e3,
        "C / cold": ours["C"] / ours["cold"],
    }
    if peers:
        name = min(peers, key=peers.__getitem__)
        result |= {f"{solver} ms": seconds * 1e3 for solver, seconds in peers.items()}
        result["best peer"] = name
        result |= {f"x {how}": peers[name] / ours[how] for how in ("cold", "warm")}
        result["goal"] = 1 if case.startswith("B7") else 100
        result |= {f"met {how}": result[f"x {how}"] >= result["goal"] for how in ("cold", "warm")}
    return result


def main(quick: bool = False, only: tuple[str, ...] = tuple(cases.CASES)) -> dict[str, Any]:
    if yardstick("dp") is None:
        skipped("end to end")
        return {}
    if not peer_times.available():
        print("(no peers: install the bench extra, or set TALLYTREE_PEERS_PYTHON)")
    rounds, budget = (1, 0.3) if quick else (5, 0.4)
    rows = [row(case, rounds, budget) for case in only]
    show("end to end (best times)", rows)
    split, repeats = {}, 15 if quick else 60
    for how in ("cold", "warm"):
        split[how] = [
            {
                "case": case,
                **phases.measure(cases.make(case), cold=how == "cold", repeats=repeats),
            }
            for case in only
        ]
        show(f"where the time goes, {how} (ms, clocks included)", split[how])
    return {"end to end": rows, "phases": split}


if __name__ == "__main__":
    main()
