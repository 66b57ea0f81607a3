"""Comparison with other solvers: one table for each family, all in one interleaved run.

*cold* and *warm* are ours from arrays to a certified labelling, with a shape that is new and with one that
has been seen. *C* is the hand-written dynamic program of ``../shared/limit``, *NumPy* what a user would write
by hand (``by_hand.py``). HiGHS, toulbar2 and CP-SAT get the best formulation found, torch-struct the product
of states and counts. Whoever is listed with a time has proven our optimum. All times are CPU times.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import by_hand
import cases
import end_to_end
import numpy as np
import peer_times
import phases
import questions
from common import ROOT, Row, markdown, short, show, skipped, yardstick

FAMILIES: dict[str, dict[str, tuple[str, int]]] = {
    "chain, a count fixed": {"binary, M = 40": ("B1", 40), "binary, M = 200": ("B1", 200)},
    "chain, true and false positives: F1, margin scaling": {
        "N = 5, M = 7": ("B2", 7),
        "N = 5, M = 40": ("B2", 40),
        "N = 5, M = 40, small scores": ("B2w", 40),
    },
    "chain, Hamming loss, slack scaling": {"N = 45, M = 5": ("B3", 5), "N = 45, M = 40": ("B3", 40)},
    "chain, far from two labellings": {"N = 5, M = 50": ("B6", 50)},
    "random tree, two counts fixed": {"N = 3, M = 40": ("B4", 40), "N = 3, M = 200": ("B4", 200)},
    "grid, a count fixed": {"binary, 6 x 10": ("B5", 10), "binary, 6 x 40": ("B5", 40)},
    "plain MAP": {
        "grid 5 x 5, N = 3": ("B7grid", 5),
        "grid 10 x 10, N = 3": ("B7grid", 10),
        "chain, N = 20, M = 1,000": ("B7chain", 1000),
    },
}
OUT = ROOT / "build" / "peers.md"
NAMES = {"highs": "HiGHS", "toulbar2": "toulbar2", "cpsat": "CP-SAT", "torch": "torch-struct"}

Peers = dict[str, Callable[[float], peer_times.Outcome]]


def of_case(case: str, m: int) -> tuple[dict[str, Callable[[], object]], Peers]:
    """Return the solvers that run in this process, and those that need a separate one."""
    end = cases.make(case, m)
    found = end.run().assignment
    assert end_to_end.as_good(end, found)
    assert end_to_end.as_good(end, by_hand.solve(end.problem))
    optimum = end.problem.objective(np.ravel(found))
    peers: Peers = {
        NAMES[solver]: partial(peer_times.solve, case, m, solver, optimum)
        for solver in peer_times.available()
    }
    if peer_times.has_torch_struct():
        peers[NAMES["torch"]] = partial(peer_times.solve_by_torch, case, m, optimum)
    return {**end_to_end.contenders(end), "NumPy": lambda: by_hand.solve(end.problem)}, peers


def of_question(question: questions.Question) -> tuple[dict[str, Callable[[], object]], Peers]:
    """Return the same for a question."""

    def cold() -> object:
        phases.forget()
        return question.ask()

    contenders: dict[str, Callable[[], object]] = {"cold": cold, "warm": question.ask}
    if question.by_hand is not None:
        (found,) = question.ask()
        assert abs(found.model.score(question.by_hand()) - found.score) < 1e-9
        contenders["NumPy"] = question.by_hand
    return contenders, {NAMES[solver]: ask for solver, ask in questions.asked(question).items()}


def row(name: str, contenders: dict[str, Any], peers: Peers, quick: bool) -> Row:
    rounds, budget, limit = (1, 0.2, 5.0) if quick else (3, 0.4, 20.0)
    best = peer_times.in_turns(contenders, peers, rounds=rounds, budget=budget, limit=limit)
    result: Row = {"problem": name, **{f"{how} ms": best.pop(how) * 1e3 for how in ("cold", "warm")}}
    result |= {who: _milliseconds(outcome) for who, outcome in best.items()}
    proven = [best[who] for who in peers if isinstance(best[who], float)]
    if proven:
        result |= {f"peer / {how}": min(proven) / result[f"{how} ms"] * 1e3 for how in ("cold", "warm")}
    return result


def _milliseconds(outcome: peer_times.Outcome) -> str:
    return outcome if isinstance(outcome, str) else short(outcome * 1e3)


def main(quick: bool = False) -> dict[str, list[Row]]:
    if not peer_times.available():
        print("(no peers: install the bench extra, or set TALLYTREE_PEERS_PYTHON)")
    data: dict[str, list[Row]] = {}
    if yardstick("dp") is None:
        skipped("families compared with C")
    else:
        for family, problems in FAMILIES.items():
            data[family] = [row(name, *of_case(*case), quick) for name, case in problems.items()]
            show(f"{family} (ms)", data[family])
    slack = [questions.f1_slack(size, 4) for size in (8, 16)]
    for family, asked in {
        "chain, true and false positives: F1, slack scaling": slack,
        "constraints, exclusions, k best, diverse, ranges": questions.questions(),
    }.items():
        data[family] = [row(question.name, *of_question(question), quick) for question in asked]
        show(f"{family} (ms)", data[family])
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("\n".join(f"{family}:\n\n{markdown(rows)}" for family, rows in data.items()))
    print(f"the same for the documentation: {OUT}\n")
    return data


if __name__ == "__main__":
    main()
