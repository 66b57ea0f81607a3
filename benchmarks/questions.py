"""Constraints, slack scaling, the k best, diverse labellings and ranges of scores, as questions.

Each question is put to tallytree and, in the same run, to HiGHS, toulbar2 and CP-SAT (``peer_questions.py``).
A peer counts when it proves each labelling optimal and their values are ours.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import peer_times

import tallytree as tt

Terms = list[tuple[int, int, int]]
Rows = list[tuple[Terms, int, int]]
Cell = tuple[float, Rows]
"""A loss, and the rows that fix the counts it comes from."""


@dataclass(frozen=True)
class Question:
    """A question to tallytree, and the same one in rows of indicators."""

    name: str
    unary: Any
    pairs: list[tuple[int, int, Any]]
    ask: Callable[[], Sequence[tt.Solution]]
    rows: Rows = field(default_factory=list)
    k: int = 1
    distance: int = 1
    avoid: Sequence[Sequence[int]] = ()
    between: tuple[float, float] | None = None
    slack: tuple[float, list[Cell]] | None = None
    gap: float = 4e-4  # less than a step of the scores
    by_hand: Callable[[], Any] | None = None

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
                "slack": self.slack,
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
    first, apart, image, ranged = of_a_chain(rng), diverse(rng), of_a_grid(rng), in_a_range(rng)
    return [*first, image, apart, ranged]


def of_a_chain(rng: np.random.Generator) -> list[Question]:
    unary, pairs, model = chain(rng, 200, 5)
    a, b = tt.count(model, state=1, name="a"), tt.count(model, state=2, name="b")
    combined = [
        ([*counting(200, 1, 2), *counting(200, 2, -1)], -ANY, 4),
        (counting(200, 1), 40, ANY),
    ]
    best = [s.assignment for s in tt.k_best(model, 50)]
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
    ]


def diverse(rng: np.random.Generator) -> Question:
    unary, pairs, model = chain(rng, 100, 4)
    name = "chain 100 x 4: 4 diverse, distance 10"
    return Question(name, unary, pairs, lambda: tt.diverse_k_best(model, 4, 10), k=4, distance=10)


def of_a_grid(rng: np.random.Generator) -> Question:
    unary, pairs, model = grid(rng, 6, 25)
    ones, fifty = tt.count(model, state=1), [(counting(150, 1), 50, 50)]
    name = "grid 6 x 25: 5 best with 50 ones"
    return Question(name, unary, pairs, lambda: tt.k_best(model, 5, where=ones == 50), fifty, k=5)


def in_a_range(rng: np.random.Generator) -> Question:
    unary, pairs, model = chain(rng, 60, 4, digits=1)
    top = tt.solve(model).score
    between = (round(0.8 * top - 1, 1), round(0.8 * top, 1))
    name = "chain 60 x 4: score in a range"
    return Question(name, unary, pairs, lambda: [tt.score_between(model, *between)], between=between)


def f1_slack(size: int, states: int) -> Question:
    """F1 with slack scaling: peers fix the counts, the largest loss first, until no tally can be better."""
    rng = np.random.default_rng(size)
    unary, pairs, model = chain(rng, size, states)
    truth = rng.integers(0, states, size)
    loss = tt.losses.FBeta(truth, background=0)
    right = [(v, int(a), 1) for v, a in enumerate(truth) if a]
    wrong = [(v, a, 1) for v in range(size) for a in range(1, states) if a != truth[v]]
    tallies = [(tp, fp) for tp in range(len(right) + 1) for fp in range(size - tp + 1)]
    cells = [(float(loss.value(tp, fp)), [(right, tp, tp), (wrong, fp, fp)]) for tp, fp in tallies]
    tables = [np.zeros((size, states), np.int64) for _ in range(2)]
    for table, terms in zip(tables, (right, wrong), strict=True):
        table[tuple(np.array([term[:2] for term in terms]).T)] = 1
    truth_score = model.score(truth)

    def value(score: Any, tp: Any, fp: Any) -> Any:
        return by_hand.slack(score - truth_score, loss.value(tp, fp))

    return Question(
        f"chain {size} x {states}",
        unary,
        pairs,
        lambda: [tt.loss_augmented(model, loss, "slack")],
        slack=(truth_score, sorted(cells, key=lambda cell: -cell[0])),
        by_hand=lambda: by_hand.best_chain(unary, [table for *_, table in pairs], tables, value),
    )


def peer(solver: str, question: Question, limit: float) -> dict[str, Any]:
    """Run a solver once, in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "question.json"
        path.write_text(question.as_json(), encoding="ascii")
        return peer_times.answer(peer_times.PYTHON, "peer_questions.py", [solver, path], limit)


def outcome_of(record: dict[str, Any], found: Sequence[tt.Solution], limit: float) -> peer_times.Outcome:
    """Seconds to labellings that are proven and as good as ours, or why there are none."""
    if "error" in record:
        return str(record["error"])
    if not record["proven"] or len(record["found"]) != len(found) or record["seconds"] > limit:
        return peer_times.beyond(limit)
    scores = [found[0].model.score(y) for y in record["found"]]
    same = np.allclose(scores, [one.score for one in found], rtol=0, atol=1e-3)
    return float(record["seconds"]) if same else "another optimum"


def asked(question: Question) -> dict[str, Callable[[float], peer_times.Outcome]]:
    """The solvers that can be asked, by name."""
    found = question.ask()

    def ask(solver: str, limit: float) -> peer_times.Outcome:
        if solver == "toulbar2" and question.between:
            return "-"  # its costs cannot be bounded by a separate row
        return outcome_of(peer(solver, question, limit), found, limit)

    return {solver: partial(ask, solver) for solver in peer_times.available()}
