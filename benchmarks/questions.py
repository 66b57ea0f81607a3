"""Constraints, exclusions, the k best, diverse labellings, ranges of scores, beside general-purpose solvers.

Each question is put to tallytree and, in the same run, to HiGHS, toulbar2 and CP-SAT (``peer_questions.py``).
A peer counts when it proves each labelling optimal and their scores are ours.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import peer_times
import phases
from common import ROOT, Row, interleaved, show

import tallytree as tt

Terms = list[tuple[int, int, int]]


@dataclass(frozen=True)
class Question:
    """A question to tallytree, and the same one in rows of indicators."""

    name: str
    unary: Any
    pairs: list[tuple[int, int, Any]]
    ask: Callable[[], Sequence[tt.Solution]]
    rows: list[tuple[Terms, int, int]] = field(default_factory=list)
    k: int = 1
    distance: int = 1
    avoid: Sequence[Sequence[int]] = ()
    between: tuple[float, float] | None = None
    gap: float = 4e-4  # less than a step of the scores

    def as_json(self) -> str:
        return json.dumps(
            {
                "unary": [list(map(float, row)) for row in self.unary],
                "pairs": [(int(i), int(j), np.asarray(t).tolist()) for i, j, t in self.pairs],
                "rows": self.rows,
                "k": self.k,
                "distance": self.distance,
                "avoid": [list(map(int, y)) for y in self.avoid],
                "between": self.between,
                "gap": self.gap,
            }
        )


ANY = 10**6  # no bound


def counting(size: int, state: int, factor: int = 1) -> Terms:
    return [(v, state, factor) for v in range(size)]


def chain(rng: np.random.Generator, size: int, states: int, digits: int = 3) -> tuple[Any, Any, tt.Model]:
    unary = rng.standard_normal((size, states)).round(digits)
    links = rng.standard_normal((states, states)).round(digits)
    return unary, [(i, i + 1, links) for i in range(size - 1)], tt.Model.chain(unary, links)


def grid(rng: np.random.Generator, rows: int, columns: int) -> tuple[Any, Any, tt.Model]:
    unary = rng.standard_normal((rows, columns, 2)).round(3)
    down, right = (0.5 * rng.standard_normal((2, 2))).round(3), (0.5 * rng.standard_normal((2, 2))).round(3)
    at = np.arange(rows * columns).reshape(rows, columns)
    below = zip(at[:-1].ravel(), at[1:].ravel(), strict=True)
    beside = zip(at[:, :-1].ravel(), at[:, 1:].ravel(), strict=True)
    pairs = [*((i, j, down) for i, j in below), *((i, j, right) for i, j in beside)]
    return unary.reshape(-1, 2), pairs, tt.Model.grid(unary, down, right)


def questions() -> list[Question]:
    rng = np.random.default_rng(0)
    unary, pairs, model = chain(rng, 200, 5)
    a, b = tt.count(model, state=1, name="a"), tt.count(model, state=2, name="b")
    combined = [
        ([*counting(200, 1, 2), *counting(200, 2, -1)], -ANY, 4),
        (counting(200, 1), 40, ANY),
    ]
    best = [s.assignment for s in tt.k_best(model, 50)]
    small, links, short = chain(rng, 100, 4)
    places, edges, image = grid(rng, 6, 25)
    ones = tt.count(image, state=1)
    coarse, steps, decimal = chain(rng, 60, 4, digits=1)
    top = tt.solve(decimal).score
    between = (round(0.8 * top - 1, 1), round(0.8 * top, 1))
    return [
        Question(
            "chain 200 x 5: 2a - b <= 4, a >= 40",
            unary,
            pairs,
            lambda: [tt.solve(model, where=(2 * a - b <= 4) & (a >= 40))],
            combined,
        ),
        Question(
            "chain 200 x 5: best outside 50",
            unary,
            pairs,
            lambda: [tt.exclude(model, best)],
            avoid=best,
        ),
        Question(
            "chain 200 x 5: 10 best with a == 30",
            unary,
            pairs,
            lambda: tt.k_best(model, 10, where=a == 30),
            [(counting(200, 1), 30, 30)],
            k=10,
        ),
        Question(
            "grid 6 x 25: 5 best with 50 ones",
            places,
            edges,
            lambda: tt.k_best(image, 5, where=ones == 50),
            [(counting(150, 1), 50, 50)],
            k=5,
        ),
        Question(
            "chain 100 x 4: 4 diverse, distance 10",
            small,
            links,
            lambda: tt.diverse_k_best(short, 4, 10),
            k=4,
            distance=10,
        ),
        Question(
            "chain 60 x 4: score in a range",
            coarse,
            steps,
            lambda: [tt.score_between(decimal, *between)],
            between=between,
        ),
    ]


def peer(solver: str, question: Question, timeout: float) -> dict[str, Any]:
    """Ask a solver once, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "question.json"
        path.write_text(question.as_json(), encoding="ascii")
        command = [peer_times.PYTHON, str(ROOT / "benchmarks" / "peer_questions.py"), solver, str(path)]
        try:
            done = subprocess.run(
                [*command, str(timeout)], capture_output=True, text=True, timeout=2 * timeout + 30
            )
        except subprocess.TimeoutExpired:
            return {"error": f"no answer in {2 * timeout + 30:.0f} s"}
    try:
        record: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": (done.stderr.strip().splitlines() or ["no answer"])[-1]}
    return record


def seconds_of(record: dict[str, Any], model: tt.Model, wanted: Sequence[float]) -> float:
    """Seconds to labellings that are proven and as good as ours; infinite otherwise."""
    if "error" in record or not record["proven"] or len(record["found"]) != len(wanted):
        return float("inf")
    scores = [model.score(y) for y in record["found"]]
    return float(record["seconds"]) if np.allclose(scores, wanted, rtol=0, atol=1e-3) else float("nan")


def row_of(question: Question, rounds: int, timeout: float) -> Row:
    def cold() -> object:
        phases.forget()
        return question.ask()

    found = question.ask()
    ours = interleaved({"cold": cold, "warm": question.ask}, rounds=20, budget=1.0)
    result: Row = {"question": question.name, **{f"{how} ms": t * 1e3 for how, t in ours.items()}}
    peers: dict[str, float] = {}
    for _ in range(rounds):
        for solver in peer_times.available():
            if peers.get(solver, 0.0) > 5.0:
                continue  # once is enough
            if solver == "toulbar2" and question.between:
                continue  # its costs cannot be bounded by a row of its own
            record = peer(solver, question, timeout)
            seconds = seconds_of(record, found[0].model, [s.score for s in found])
            peers[solver] = min(peers.get(solver, float("inf")), seconds)
    for solver in peer_times.available():
        answered = peers.get(solver, float("inf"))
        text = f"> {timeout:.0f} s" if solver in peers else "-"
        result[f"{solver} ms"] = answered * 1e3 if answered < float("inf") else text
    if peers and min(peers.values()) < float("inf"):
        result["best peer / cold"] = min(peers.values()) / ours["cold"]
    return result


def main(quick: bool = False) -> dict[str, Any]:
    if not peer_times.available():
        print("(no peers: install the bench extra, or set TALLYTREE_PEERS_PYTHON)")
    rows = [row_of(question, 1 if quick else 3, 10.0 if quick else 30.0) for question in questions()]
    show(
        "questions, beside general-purpose solvers (best times)",
        rows,
        "all labellings of a question together; a peer's model building is counted, its imports are not",
    )
    return {"questions": rows}


if __name__ == "__main__":
    main()
