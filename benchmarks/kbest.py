"""K-best labellings compared with other algorithms, and the best labelling outside a set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from common import Row, best_time, show
from numpy.typing import NDArray

import tallytree as tt
from tallytree.kernels import native

Problem = tuple[tt.Model, Sequence[Any]]


def problems() -> dict[str, Problem]:
    rng = np.random.default_rng(0)

    def chain(m: int, n: int) -> tt.Model:
        return tt.Model.chain(rng.standard_normal((m, n)), rng.standard_normal((n, n)))

    short, long = chain(200, 10), chain(2000, 5)
    pair = rng.standard_normal((2, 2))
    grid = tt.Model.grid(rng.standard_normal((8, 25, 2)), pair, pair)
    parents = [-1, *(rng.integers(v) for v in range(1, 200))]
    tree = tt.Model.tree(parents, rng.standard_normal((200, 10)), rng.standard_normal((10, 10)))
    return {
        "chain M=200 N=10": (short, []),
        "chain M=200 N=10, count": (short, [tt.count(short, state=1)]),
        "chain M=2000 N=5": (long, []),
        "tree M=200 N=10, count": (tree, [tt.count(tree, state=1)]),
        "grid 8 x 25, count": (grid, [tt.count(grid, state=1)]),
    }


def search(model: tt.Model, plan: tt.Plan, k: int) -> None:
    run = native.Run(plan.layout, [block.tables for block in model.blocks], native.MAX_PLUS)
    native.KBest(run, run.root()[0]).next(k)


def each(problem: Problem, budget: float) -> Row:
    """Microseconds for each labelling after the pass: certified, and the search alone at k=1000."""
    model, statistics = problem
    plan = tt.plan(model, statistics)
    profile = tt.profile(model, statistics, plan=plan)
    upward = best_time(lambda: tt.profile(model, statistics, plan=plan), budget=budget)
    row: Row = {"pass ms": upward * 1e3}
    for k in (1, 10, 100, 1000):
        seconds = best_time(lambda k=k: list(islice(profile.ranked(), k)), budget=budget)
        row[f"k={k} µs"] = seconds / k * 1e6
    row["search µs"] = (best_time(lambda: search(model, plan, 1000), budget=budget) - upward) / 1000 * 1e6
    return row


def k_best_viterbi(unary: NDArray[Any], pairwise: NDArray[Any], k: int) -> NDArray[Any]:
    """The k best scores of a chain when every cell keeps k numbers: the algebra of sorted lists."""
    table = unary[0][:, None]
    for row in unary[1:]:
        sums = (table[:, None, :] + pairwise[:, :, None]).transpose(1, 0, 2).reshape(len(row), -1)
        kept = min(k, sums.shape[1])
        table = row[:, None] + np.partition(sums, sums.shape[1] - kept, axis=1)[:, -kept:]
    return np.sort(table.ravel())[::-1][:k]


def alternatives(budget: float) -> list[Row]:
    """On a chain: lists of k in every cell, and one upward and one downward pass for each labelling."""
    rng = np.random.default_rng(0)
    unary, pairwise = rng.standard_normal((200, 10)), rng.standard_normal((10, 10))
    model = tt.Model.chain(unary, pairwise)
    rows = []
    for statistics in ([], [tt.count(model, state=1)]):
        plan = tt.plan(model, statistics)
        both = best_time(
            lambda p=plan: tt.profile(model, p.statistics, plan=p).max_marginals(), budget=budget
        )
        for k in (10, 100, 1000):
            row: Row = {"statistics": len(statistics), "k": k}
            row["lazy ms"] = best_time(lambda k=k, p=plan: search(model, p, k), budget=budget) * 1e3
            if not statistics:
                lists = best_time(lambda k=k: k_best_viterbi(unary, pairwise, k), budget=budget)
                row["lists (NumPy) ms"] = lists * 1e3
            row["two passes each ms"] = both * k * 1e3
            rows.append(row)
    return rows


def exclusions(quick: bool, budget: float) -> list[Row]:
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.standard_normal((200, 10)), rng.standard_normal((10, 10)))
    found = tt.k_best(model, 4001)
    rows = []
    for count in (1, 10, 100, 400, 4000):
        outputs = found[:count]
        row: Row = {"K": count}
        row["ranking ms"] = best_time(lambda o=outputs: tt.exclude(model, o), budget=budget) * 1e3
        if count <= (100 if quick else 400):
            seconds = best_time(lambda o=outputs: tt.exclude(model, o, method="statistics"), budget=budget)
            row["statistics ms"] = seconds * 1e3
        rows.append(row)
    return rows


def main(quick: bool = False) -> dict[str, list[Row]]:
    budget = 0.2 if quick else 0.6
    ranking = [{"problem": name, **each(problem, budget)} for name, problem in problems().items()]
    show(
        "labellings in order: time for each of the first k",
        ranking,
        "the pass is not in the times per labelling",
    )
    others = alternatives(budget)
    show(
        "chain M=200 N=10: other ways to the k best",
        others,
        "two passes each: what partitioning pays at least",
    )
    outside = exclusions(quick, budget)
    show("chain M=200 N=10: the best outside a set of K", outside)
    return {"ranking": ranking, "alternatives": others, "exclusions": outside}


if __name__ == "__main__":
    main()
