"""The same plan over other algebras: log-sum-exp and exact counts, compared with max-plus.

An operation is one ⊗ and one ⊕ of the algebra. ``counts`` runs the counting pass once per prime and
combines the residues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from common import Row, best_time, interleaved, show

import tallytree as tt
from tallytree.kernels import native

PRIME = 2**31 - 1


def problems() -> dict[str, tuple[tt.Model, Sequence[Any]]]:
    rng = np.random.default_rng(0)
    chain = tt.Model.chain(rng.standard_normal((400, 5)), rng.standard_normal((5, 5)))
    labels = tt.Model.chain(rng.standard_normal((80, 5)), rng.standard_normal((5, 5)))
    truth = rng.integers(0, 5, 80)
    parents = np.array([-1] + [int(rng.integers(0, i)) for i in range(1, 1000)])
    tree = tt.Model.tree(parents, rng.standard_normal((1000, 3)), rng.standard_normal((3, 3)))
    pair = rng.standard_normal((2, 2))
    grid = tt.Model.grid(rng.standard_normal((6, 20, 2)), pair, pair)
    positives = [tt.matches(labels, truth, background=0), tt.mismatches(labels, truth, background=0)]
    return {
        "chain M=400 N=5, count": (chain, [tt.count(chain, state=1)]),
        "chain M=80 N=5, (TP, FP)": (labels, positives),
        "random tree M=1000 N=3, count": (tree, [tt.count(tree, state=1)]),
        "grid 6 x 20, count": (grid, [tt.count(grid, state=1)]),
    }


def rates(model: tt.Model, statistics: Sequence[Any], budget: float) -> Row:
    plan = tt.plan(model, statistics)
    tables = [block.tables for block in model.blocks]

    def upward(algebra: int, prime: int = 0) -> Callable[[], object]:
        return lambda: native.Run(plan.layout, tables, algebra, prime)

    runs = {
        "max-plus": upward(native.MAX_PLUS),
        "log-sum-exp": upward(native.LOG_SUM_EXP),
        "counting": upward(native.COUNTING, PRIME),
    }
    times = interleaved(runs, budget=budget)
    row: Row = {"Mops": plan.operations / 1e6}
    row |= {f"{name} Gop/s": plan.operations / seconds / 1e9 for name, seconds in times.items()}
    return row


def answers(model: tt.Model, statistics: Sequence[Any], budget: float) -> Row:
    plan = tt.plan(model, statistics)
    known = tt.distribution(model, statistics, plan=plan)

    def counts() -> object:
        known.__dict__.pop("counts", None)
        return known.counts

    runs: dict[str, Callable[[], object]] = {
        "distribution": lambda: tt.distribution(model, statistics, plan=plan),
        "marginals": known.marginals,
        "100 samples": lambda: known.sample(100, rng=0),
        "counts": counts,
    }
    return {f"{name} ms": best_time(run, rounds=3, budget=budget) * 1e3 for name, run in runs.items()}


def main(quick: bool = False) -> dict[str, list[Row]]:
    budget = 0.3 if quick else 1.0
    found = problems()
    data = {
        "rates": [{"problem": name, **rates(*problem, budget)} for name, problem in found.items()],
        "answers": [{"problem": name, **answers(*problem, budget)} for name, problem in found.items()],
    }
    show("rates of the upward pass by algebra", data["rates"])
    show("answers about the distribution", data["answers"])
    return data


if __name__ == "__main__":
    main()
