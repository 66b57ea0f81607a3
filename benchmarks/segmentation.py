"""MAP with a given number of positives on image segmentations of a UAI competition, compared with HiGHS.

About 230 binary variables, width 18. The plan with the constraint is shown beside the one without it: tallies
that can no longer end at the count are never computed. Both keep to one memory limit. By default, `solve`
tries bounds before it computes such tables. Times are CPU times, in turns; full tables run twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import peer_times
import phases
import questions
from common import DATA, Row, show

import tallytree as tt

FOLDER = DATA / "uai"
NAMES = ("Segmentation_11", "Segmentation_12")
LIMIT = 2.0 * 2**30
POSITIVES = (5, 10, 20, 40, 60, 80, 100, 105, 110, 114, 118, 120, 130, 140)
MIB = 2**20


def read(name: str) -> tt.Model:
    return tt.io.read_uai(FOLDER / f"{name}.uai", evidence=FOLDER / f"{name}.uai.evid")


def question(model: tt.Model, positives: int) -> questions.Question:
    """The question from factors, and in rows for other solvers: one bound on the sum."""
    unary = np.zeros((len(model), 2))
    factors = factors_of(model)
    for scope, table in factors:
        if len(scope) == 1:
            unary[scope[0]] += table
    pairs = [(*scope, table) for scope, table in factors if len(scope) == 2]
    rows = [(questions.counting(len(model), 1), positives, positives)]

    def ask() -> list[tt.Solution]:
        again = tt.Model(model.cardinalities, factors)
        return [tt.solve(again, where=tt.count(state=1) == positives, memory_limit=LIMIT)]

    return questions.Question("", unary, pairs, ask, rows, gap=1e-7)


def factors_of(model: tt.Model) -> list[tuple[tuple[int, ...], Any]]:
    """Return scopes and tables one by one."""
    return [
        (tuple(scope), table)
        for block in model.blocks
        for scope, table in zip(
            block.scopes.tolist(),
            np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:])),
            strict=True,
        )
    ]


def row(name: str, model: tt.Model, positives: int, quick: bool) -> Row:
    ones = tt.count(model, state=1)
    everything = tt.plan(model, [ones], memory_limit=64 * LIMIT)
    pruned = tt.plan(model, where=ones == positives, memory_limit=64 * LIMIT)
    inside = tt.plan(model, where=ones == positives, memory_limit=LIMIT)
    best = times(model, positives, quick)
    return {
        "instance": name,
        "positives": positives,
        "all tallies MiB": everything.peak_bytes / MIB,
        "pruned MiB": pruned.peak_bytes / MIB,
        "in the limit MiB": inside.peak_bytes / MIB,
        "operations": pruned.operations / everything.operations,
        **{f"{who} ms": t if isinstance(t, str) else t * 1e3 for who, t in best.items()},
    }


def times(model: tt.Model, positives: int, quick: bool) -> dict[str, peer_times.Outcome]:
    """Return the seconds of full tables, of `solve` and of HiGHS."""
    asked = question(model, positives)
    where = tt.count(model, state=1) == positives
    full = partial(tt.solve, model, where=where, memory_limit=LIMIT, strategy="full")
    found = asked.ask()

    def cold() -> object:
        phases.forget()
        return asked.ask()

    def highs(limit: float) -> peer_times.Outcome:
        return questions.outcome_of(questions.peer("highs", asked, limit), found, limit)

    peers = {"HiGHS": highs} if "highs" in peer_times.available() else {}
    best: dict[str, peer_times.Outcome] = {"full tables": twice(full)}
    rounds, budget, limit = (1, 0.2, 5.0) if quick else (3, 0.4, 20.0)
    contenders = {"cold": cold, "warm": asked.ask}
    return best | peer_times.in_turns(contenders, peers, rounds=rounds, budget=budget, limit=limit)


def twice(run: Callable[[], object]) -> float:
    """Return the better time of two."""
    clock = [time.process_time()]
    for _ in range(2):
        run()
        clock.append(time.process_time())
    return min(b - a for a, b in pairwise(clock))


def main(quick: bool = False) -> dict[str, Any]:
    if not FOLDER.is_dir():
        print(f"segmentation: skipped, {FOLDER} is not there (set TALLYTREE_DATA)\n")
        return {}
    chosen = POSITIVES[:2] if quick else POSITIVES
    rows = [row(name, model, k, quick) for name in NAMES for model in [read(name)] for k in chosen]
    show(
        f"MAP with a given number of positives, memory limit {LIMIT / 2**30:.0f} GiB",
        rows,
        "operations: those of the pruned plan, as a share of all tallies'",
    )
    return {"segmentation": rows}


if __name__ == "__main__":
    main()
