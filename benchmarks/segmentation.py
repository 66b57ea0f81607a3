"""MAP with a given number of positives on image segmentations of a UAI competition, compared with HiGHS.

About 230 binary variables, width 18. The plan with the constraint is shown beside the one without it: tallies
that can no longer end at the count are never computed. Both keep to one memory limit. By default, `solve`
tries bounds before it computes such tables. Times are of the processor, so that other work matters little.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import peer_times
import phases
import questions
from common import DATA, Row, best_time, show

import tallytree as tt

FOLDER = DATA / "uai"
NAMES = ("Segmentation_11", "Segmentation_12")
LIMIT = 2.0 * 2**30
POSITIVES = (5, 20, 60, 105, 114, 120)
MIB = 2**20


def read(name: str) -> tt.Model:
    return tt.io.read_uai(FOLDER / f"{name}.uai", evidence=FOLDER / f"{name}.uai.evid")


def question(model: tt.Model, positives: int) -> questions.Question:
    """The question in rows for other solvers: unary and pairwise factors with one bound on the sum."""
    unary = np.zeros((len(model), 2))
    pairs = []
    for block in model.blocks:
        tables = np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:]))
        if block.arity == 1:
            np.add.at(unary, block.scopes[:, 0], tables)
        elif block.arity == 2:
            pairs += [(i, j, t) for (i, j), t in zip(block.scopes.tolist(), tables, strict=True)]
    where = tt.count(model, state=1) == positives
    rows = [(questions.counting(len(model), 1), positives, positives)]
    return questions.Question(
        "", unary, pairs, lambda: [tt.solve(model, where=where, memory_limit=LIMIT)], rows, gap=1e-7
    )


def row(name: str, model: tt.Model, positives: int, quick: bool) -> Row:
    ones = tt.count(model, state=1)
    everything = tt.plan(model, [ones], memory_limit=64 * LIMIT)
    pruned = tt.plan(model, where=ones == positives, memory_limit=64 * LIMIT)
    inside = tt.plan(model, where=ones == positives, memory_limit=LIMIT)
    asked = question(model, positives)
    found = asked.ask()[0]

    def in_full() -> tt.Solution:
        return tt.solve(model, where=ones == positives, memory_limit=LIMIT, strategy="full")

    def cold() -> object:
        phases.forget()
        return asked.ask()

    best = partial(best_time, rounds=1 if quick else 3, budget=1.0, clock=time.process_time)
    result: Row = {
        "instance": name.replace("Segmentation_", "S"),
        "positives": positives,
        "all tallies MiB": everything.peak_bytes / MIB,
        "pruned MiB": pruned.peak_bytes / MIB,
        "in the limit MiB": inside.peak_bytes / MIB,
        "operations": pruned.operations / everything.operations,
        "score": found.score,
        "full tables ms": best(in_full) * 1e3,
        "cold ms": best(cold) * 1e3,
        "solve ms": best(asked.ask) * 1e3,
    }
    if "highs" in peer_times.available():
        record = questions.peer("highs", asked, 60.0)
        outcome = questions.outcome_of(record, [found], 60.0)
        result["HiGHS ms"] = record["cpu"] * 1e3 if isinstance(outcome, float) else outcome
    return result


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
