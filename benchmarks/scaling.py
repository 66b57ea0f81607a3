"""Exponents: operations and time against the number of variables, fitted on logarithms.

Expected, with tight ranges: chain or tree with one count 2 (the paper's bound is 3), chain with (TP, FP) 3,
plain MAP 1. Time has a smaller exponent than operations while rows are short, and a larger one once the
tables outgrow a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from common import Row, best_time, interleaved, show, slope

import tallytree as tt
from tallytree.kernels import native

Problem = tuple[tt.Model, Sequence[Any]]


def chain(m: int, n: int = 5) -> tt.Model:
    rng = np.random.default_rng(m)
    return tt.Model.chain(rng.standard_normal((m, n)), rng.standard_normal((n, n)))


def tree(parents: np.ndarray, n: int = 3) -> tt.Model:
    rng = np.random.default_rng(len(parents))
    return tt.Model.tree(parents, rng.standard_normal((len(parents), n)), rng.standard_normal((n, n)))


def random_parents(m: int) -> np.ndarray:
    rng = np.random.default_rng(m)
    return np.array([-1] + [int(rng.integers(0, i)) for i in range(1, m)])


def star_parents(m: int) -> np.ndarray:
    return np.where(np.arange(m) == 0, -1, 0)


def counted(model: tt.Model) -> Problem:
    return model, [tt.count(model, state=1)]


def true_false_positives(m: int) -> Problem:
    model = chain(m)
    truth = np.random.default_rng(m).integers(0, 5, m)
    return model, [tt.matches(model, truth, background=0), tt.mismatches(model, truth, background=0)]


FAMILIES: dict[str, tuple[int, Callable[[int], Problem], tuple[int, ...]]] = {
    "plain MAP, chain N=5": (1, lambda m: (chain(m), ()), (1000, 2000, 4000, 8000)),
    "plain MAP, random tree N=3": (1, lambda m: (tree(random_parents(m)), ()), (1000, 2000, 4000, 8000)),
    "one count, chain N=5": (2, lambda m: counted(chain(m)), (250, 500, 1000, 2000)),
    "one count, random tree N=3": (2, lambda m: counted(tree(random_parents(m))), (500, 1000, 2000, 4000)),
    "one count, star N=3": (2, lambda m: counted(tree(star_parents(m))), (500, 1000, 2000, 4000)),
    "(TP, FP), chain N=5": (3, true_false_positives, (60, 120, 240, 360)),
}


def price(problem: Problem) -> tuple[float, float]:
    """Operations and seconds of the upward pass."""
    model, statistics = problem
    plan = tt.plan(model, statistics)
    tables = [block.tables for block in model.blocks]
    run = best_time(lambda: native.Run(plan.layout, tables, native.MAX_PLUS), rounds=5, budget=0.3)
    return plan.operations, run


def exponents(quick: bool) -> list[Row]:
    rows = []
    for family, (expected, make, sizes) in FAMILIES.items():
        chosen = sizes[:3] if quick else sizes
        operations, seconds = zip(*(price(make(m)) for m in chosen), strict=True)
        rows.append(
            {
                "family": family,
                "M": f"{chosen[0]} .. {chosen[-1]}",
                "expected": expected,
                "operations": slope(chosen, operations),
                "time": slope(chosen, seconds),
                "largest: Mops": operations[-1] / 1e6,
                "ms": seconds[-1] * 1e3,
                "Gop/s": operations[-1] / seconds[-1] / 1e9,
            }
        )
    return rows


def excluding(quick: bool, m: int = 200) -> list[Row]:
    """K labellings shut out by K mismatch counts capped at 1: at most K + 1 tallies per table, not 2^K."""
    return [excluding_k(k, m) for k in ((1, 4, 16, 64) if quick else (1, 2, 4, 8, 16, 32, 64))]


def excluding_k(k: int, m: int) -> Row:
    model = chain(m)
    labellings = np.random.default_rng(0).integers(0, 5, (k, m))
    statistics = [tt.mismatches(model, y, cap=1) for y in labellings]
    plan = tt.plan(model, statistics)
    tables = [block.tables for block in model.blocks]
    times = interleaved(
        {
            "plan": lambda: tt.plan(model, statistics),
            "messages": lambda: native.Run(plan.layout, tables, native.MAX_PLUS),
            "profile + decode": lambda: tt.profile(model, statistics, plan=plan).at(*[1] * k),
        },
        rounds=5,
        budget=0.5,
    )
    row: Row = {"K": k, "most tallies": plan.tallies, "K + 1": k + 1, "Mops": plan.operations / 1e6}
    return row | {f"{name} ms": seconds * 1e3 for name, seconds in times.items()}


def main(quick: bool = False) -> dict[str, list[Row]]:
    data = {"exponents": exponents(quick), "excluding": excluding(quick)}
    show("exponents in M", data["exponents"])
    rows = data["excluding"]
    sizes = [row["K"] for row in rows]
    fitted = slope(sizes, [row["messages ms"] for row in rows])
    show("excluding K labellings, chain M=200 N=5", rows, f"messages grow as K^{fitted:.2f}")
    return data


if __name__ == "__main__":
    main()
