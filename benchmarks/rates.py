"""Add-max rates of the upward pass, compared with hand-written C on the same data.

The C (``../shared/limit``) keeps all tables in a buffer allocated before the clock starts; ours allocates its
arena inside. ``ops ratio`` is our add-max operations over the C's; ``speed`` is C's time over ours.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import cases
import numpy as np
from common import Row, best_time, interleaved, show, skipped, yardstick

import tallytree as tt
from tallytree.kernels import native

Contender = tuple[float, Callable[[], object]]  # add-max operations, and a run

RATES = "rates beside the C (speed 1 = as fast)"
REPEATS = {"join 20x20 with 20x20": 20}  # a call alone takes as long as it


def upward(model: tt.Model, statistics: Sequence[Any], **options: Any) -> Contender:
    """Plan once; the contender is the native upward pass alone."""
    plan = tt.plan(model, statistics, **options)
    tables = [block.tables for block in model.blocks]
    return plan.operations, lambda: native.Run(plan.layout, tables, native.MAX_PLUS)


# ---------------------------------------------------------------- twins of the C's cases


def chain_one_count(n: int, m: int, c_run: Any) -> dict[str, Contender]:
    u0, f, *_ = c_run.keep
    unary = np.zeros((m, n))
    unary[0] = u0
    model = tt.Model.chain(unary, f[1:])
    ones = [tt.count(model, state=list(range(1, n)))]
    return {"natural": upward(model, ones, order="natural"), "default": upward(model, ones)}


def chain_true_false_positives(m: int, _: Any) -> dict[str, Contender]:
    problem = yardstick("instances").make("B2", m)
    _, tp, _, _ = problem.task
    truth = np.where(tp.any(1), tp.argmax(1), 0)
    model = tt.Model.chain(problem.unary, np.stack([table for *_, table in problem.edges]))
    right, wrong = tt.matches(model, truth, background=0), tt.mismatches(model, truth, background=0)
    assert all(right.tally(y) == tp[np.arange(m), y].sum() for y in (truth, np.zeros(m, int)))
    both = [right, wrong]
    return {"natural": upward(model, both, order="natural"), "default": upward(model, both)}


def join_1d(na: int, nb: int, _: Any) -> dict[str, Contender]:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((1, 1, na)), rng.standard_normal((1, 1, nb))
    repeats = max(1, 16_000_000 // (na * nb))
    return {"join": (na * nb * repeats, lambda: native.join(a, b, repeats))}


def join_2d(s: int, t: int, _: Any) -> dict[str, Contender]:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((1, s, t)), rng.standard_normal((1, s, t))
    repeats = REPEATS.get(f"join {s}x{t} with {s}x{t}", 1)
    return {"join": (repeats * (s * t) ** 2, lambda: native.join(a, b, repeats))}


def tree_one_count(m: int, _: Any, n: int = 3) -> dict[str, Contender]:
    rng = np.random.default_rng(0)
    parents = np.array([-1] + [int(rng.integers(0, i)) for i in range(1, m)])
    unary, pairs = rng.standard_normal((m, n)), rng.standard_normal((m, n, n))
    model = tt.Model.tree(parents, unary, pairs.transpose(0, 2, 1))  # the C has (child, parent)
    some = [tt.count(model, state=[1, 2])]
    return {"reversed": upward(model, some, order=np.arange(m)[::-1]), "default": upward(model, some)}


TWINS: dict[str, Callable[[Any], dict[str, Contender]]] = {
    "chain one count N=2 M=1000": lambda c: chain_one_count(2, 1000, c),
    "chain one count N=5 M=400": lambda c: chain_one_count(5, 400, c),
    "chain one count N=20 M=200": lambda c: chain_one_count(20, 200, c),
    "chain one count N=45 M=40": lambda c: chain_one_count(45, 40, c),
    "chain (TP,FP) N=5 M=40": lambda c: chain_true_false_positives(40, c),
    "chain (TP,FP) N=5 M=160": lambda c: chain_true_false_positives(160, c),
    "join 64 x 64": lambda c: join_1d(64, 64, c),
    "join 2000 x 2000": lambda c: join_1d(2000, 2000, c),
    "join 20x20 with 20x20": lambda c: join_2d(20, 20, c),
    "join 50x70 with 50x70": lambda c: join_2d(50, 70, c),
    "random tree one count M=1000": lambda c: tree_one_count(1000, c),
    "random tree one count M=3000": lambda c: tree_one_count(3000, c),
}


# ---------------------------------------------------------------- more of the C, not among its listed cases


def viterbi(m: int, n: int) -> tuple[float, Any]:
    """Plain MAP on a chain; ``keep`` is as for the chain with a count."""
    kernels = yardstick("ckern")
    rng = np.random.default_rng(1)
    u0, f, table = rng.standard_normal(n), rng.standard_normal((m, n, n)), np.empty((m, n))
    args = (kernels.L(m), ctypes.c_int(n), kernels.ptr(u0), kernels.ptr(f), kernels.ptr(table))

    def run() -> None:
        kernels.LIB.viterbi_d(*args)

    run.keep = (u0, f, table)  # type: ignore[attr-defined]
    return (m - 1) * n * n, run


def plain_chain(m: int, n: int, c_run: Any) -> dict[str, Contender]:
    u0, f, *_ = c_run.keep
    unary = np.zeros((m, n))
    unary[0] = u0
    return {"default": upward(tt.Model.chain(unary, f[1:]), [])}


def grid(case: str) -> tuple[float, Any]:
    """A grid swept column by column, with a count (B5) or without (B7grid)."""
    kernels, dp = yardstick("ckern"), yardstick("dp")
    p = yardstick("instances").make(case)
    rows, columns, (size, n) = p.meta["rows"], p.meta["cols"], p.shape
    left, up = np.zeros((size, n, n)), np.zeros((size, n, n))
    for i, j, table in p.edges:
        (left if j - i == rows else up)[j] = table
    counts = kernels.i64(np.tile([0, 1], (size, 1)) if case == "B5" else np.zeros((size, n)))
    tallies = kernels.i64(np.cumsum(counts.max(1)) + 1)
    states, offsets = n**rows, dp.offsets(n**rows * tallies)
    buffer, ptr = np.empty(offsets[-1]), kernels.ptr
    shape = (*map(ctypes.c_int, (rows, columns, n)), ptr(p.unary), ptr(left), ptr(up))
    counted = (*shape, ptr(counts), ptr(buffer), ptr(offsets), ptr(tallies), kernels.L(states))
    plain = (*shape, ptr(buffer), kernels.L(states))

    def run() -> None:
        kernels.LIB.grid1_d(*counted) if case == "B5" else kernels.LIB.grid0_d(*plain)

    run.keep = (p, left, up, counts, tallies, offsets, buffer)  # type: ignore[attr-defined]
    return float(states * n * tallies[rows - 1 : -1].sum()), run  # the first column is left out: little


def our_grid(case: str, c_run: Any) -> dict[str, Contender]:
    end = cases.CASES[case](c_run.keep[0])
    model = end.model()
    return {"default": upward(model, [tt.count(model, state=1)] if case == "B5" else [])}


MORE_C: dict[str, Callable[[], tuple[float, Any]]] = {
    "plain MAP chain N=5 M=10000": lambda: viterbi(10_000, 5),
    "plain MAP chain N=20 M=10000": lambda: viterbi(10_000, 20),
    "grid 6 x 40 N=2, count": lambda: grid("B5"),
    "plain MAP grid 10 x 10 N=3": lambda: grid("B7grid"),
}
TWINS |= {
    "plain MAP chain N=5 M=10000": lambda c: plain_chain(10_000, 5, c),
    "plain MAP chain N=20 M=10000": lambda c: plain_chain(10_000, 20, c),
    "grid 6 x 40 N=2, count": lambda c: our_grid("B5", c),
    "plain MAP grid 10 x 10 N=3": lambda c: our_grid("B7grid", c),
}


def repeated(run: Callable[[], object], count: int) -> Callable[[], object]:
    def runs() -> None:
        for _ in range(count):
            run()

    return runs if count > 1 else run


def beside_c(limit: Any, budget: float) -> list[Row]:
    rows = []
    for title, make in {**limit.CASES, **MORE_C}.items():
        if title not in TWINS:
            print(f"(no twin for {title!r})")
            continue
        c_ops, c_run = make()
        ours = TWINS[title](c_run)
        c_ops, c_run = c_ops * REPEATS.get(title, 1), repeated(c_run, REPEATS.get(title, 1))
        runs = {"C": c_run, **{name: run for name, (_, run) in ours.items()}}
        times = interleaved(runs, rounds=100, budget=budget)
        for name, (ops, _) in ours.items():
            rows.append(
                {
                    "case": title,
                    "order": name,
                    "C Mops": c_ops / 1e6,
                    "ops ratio": ops / c_ops,
                    "C ms": times["C"] * 1e3,
                    "our ms": times[name] * 1e3,
                    "C Gop/s": c_ops / times["C"] / 1e9,
                    "our Gop/s": ops / times[name] / 1e9,
                    "speed": times["C"] / times[name],
                    ">= 0.9": times["C"] / times[name] >= 0.9,
                }
            )
    return rows


# ---------------------------------------------------------------- cases without a twin


def grid_with_count(rows: int, columns: int) -> Contender:
    rng = np.random.default_rng(4)
    pair = rng.standard_normal((2, 2))
    model = tt.Model.grid(rng.standard_normal((rows, columns, 2)), pair, pair)
    return upward(model, [tt.count(model, state=1)])


def excluding(k: int, m: int, n: int = 5) -> Contender:
    rng = np.random.default_rng(5)
    model = tt.Model.chain(rng.standard_normal((m, n)), rng.standard_normal((n, n)))
    return upward(model, [tt.mismatches(model, y, cap=1) for y in rng.integers(0, n, (k, m))])


def three_counts(m: int, n: int, kind: str) -> Contender:
    rng = np.random.default_rng(6)
    unary, pair = rng.standard_normal((m, n)), rng.standard_normal((n, n))
    parents = np.array([-1] + [int(rng.integers(0, i)) for i in range(1, m)])
    model = tt.Model.chain(unary, pair) if kind == "chain" else tt.Model.tree(parents, unary, pair)
    return upward(model, [tt.count(model, state=state) for state in (1, 2, 3)])


ALONE: dict[str, Callable[[], Contender]] = {
    "grid 6 x 40, count": lambda: grid_with_count(6, 40),
    "grid 10 x 20, count": lambda: grid_with_count(10, 20),
    "chain M=200, 64 capped mismatches": lambda: excluding(64, 200),
    "tree M=60 N=4, three counts": lambda: three_counts(60, 4, "tree"),
    "chain M=60 N=4, three counts": lambda: three_counts(60, 4, "chain"),
}


def table_sizes(budget: float) -> list[Row]:
    """The same recursion with ever larger tables: in cache, out of it, beyond what is kept for reuse."""
    rows = []
    for m in (250, 500, 1000, 2000, 3000):
        rng = np.random.default_rng(7)
        model = tt.Model.chain(rng.standard_normal((m, 5)), rng.standard_normal((5, 5)))
        plan = tt.plan(model, [tt.count(model, state=1)], order="natural")
        tables = [block.tables for block in model.blocks]
        seconds = best_time(lambda p=plan, t=tables: native.Run(p.layout, t, native.MAX_PLUS), budget=budget)
        rate = plan.operations / seconds / 1e9
        rows.append({"M": m, "arena MB": plan.layout.arena_bytes / 1e6, "ms": seconds * 1e3, "Gop/s": rate})
    return rows


def alone(budget: float) -> list[Row]:
    rows = []
    for title, make in ALONE.items():
        ops, run = make()
        seconds = best_time(run, budget=budget)
        rows.append({"case": title, "Mops": ops / 1e6, "ms": seconds * 1e3, "Gop/s": ops / seconds / 1e9})
    return rows


def main(quick: bool = False) -> dict[str, list[Row]]:
    budget = 0.4 if quick else 2.0
    data = {"alone": alone(budget), "table sizes": table_sizes(budget / 2)}
    limit = yardstick("limit")
    if limit is None:
        skipped("rates compared with C")
    else:
        peak = limit.peak()["d"]
        data["beside C"] = beside_c(limit, budget)
        show(RATES, data["beside C"], f"add-max peak of this machine: {peak:.1f} Gop/s float64")
    show("rates without a C twin", data["alone"])
    show("chain N=5 with one count: the size of the tables", data["table sizes"])
    return data


if __name__ == "__main__":
    main()
