"""Single answers by bounds and by full tables, alternating, including Python; and where bounds do not help.

*native* is the compiled search alone. *pruned* is hand-written C++ for F1 and counts (``pruned.py``), from
arrays to a labelling: to be compared with *native*. Whole tables are made where they take no more than some
seconds. All times are processor times, on one thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial, reduce
from operator import and_
from typing import Any, NamedTuple

import bounded_batches
import drawn
import numpy as np
import phases
import pruned
import segmentation as segmentations
from common import Row, interleaved, show, slope
from counts import Counts, watched

import tallytree as tt
from tallytree.losses.query import loss_query
from tallytree.running.bounds import ModelSearcher, Search, Wanted


class Problem(NamedTuple):
    """One question, and the parts that it is made of."""

    ask: Callable[[str], Any]
    native: Callable[[], Any] | None = None
    pruned: Callable[[], Any] | None = None
    full: bool = True  # whether a whole table can be made


def f_measure(length: int, states: int, scaling: str, margin: float = 1.0, coupling: float = 1.0) -> Problem:
    """Return the F1 loss on a chain."""
    rng = np.random.default_rng(7)
    pairs, unary = coupling * rng.normal(size=(states, states)), rng.normal(size=(length, states))
    truth = np.where(rng.random(length) < 0.45, 0, rng.integers(1, states, length))
    model, loss = tt.Model.chain(unary, pairs), tt.losses.FBeta(truth, background=0)
    asked = loss_query(model, loss)
    question = asked.question(scaling, margin)
    counted, wanted = question.wanted(asked.query)
    return Problem(
        lambda strategy: tt.loss_augmented(model, loss, scaling, margin=margin, strategy=strategy),
        lambda: ModelSearcher(model, counted)(Search(wanted, starts=(question.start,))),
        pruned.f_measure(unary, pairs, truth, scaling, margin),
        full=length * states <= 16_000,
    )


def counted(
    model: tt.Model, numbers: Mapping[int, int], prototype: Callable[[], Any] | None, full: bool = True
) -> Problem:
    """Return the question for fixed numbers of states."""
    statistics = [tt.count(model, state=state) for state in numbers]
    where = reduce(and_, (s == n for s, n in zip(statistics, numbers.values(), strict=True)))
    box = tuple(numbers.values())
    return Problem(
        lambda strategy: tt.solve(model, where=where, strategy=strategy, memory_limit=2.0**32),
        lambda: ModelSearcher(model, statistics)(Search(Wanted(box, box))),
        prototype,
        full,
    )


def one_count(length: int, states: int, coupling: float = 1.0) -> Problem:
    """Return a chain of which half has one state."""
    rng = np.random.default_rng(8)
    pairs, unary = coupling * rng.normal(size=(states, states)), rng.normal(size=(length, states))
    model = tt.Model.chain(unary, pairs)
    return counted(model, {1: length // 2}, pruned.count(unary, pairs, length // 2))


def agreeing(length: int, states: int) -> Problem:
    """Return a chain whose neighbours agree nearly always, of which half has one state."""
    unary = np.random.default_rng(11).normal(size=(length, states))
    return counted(tt.Model.chain(unary, 100.0 * np.eye(states)), {1: length // 2}, None)


def two_counts(size: int, states: int = 3, coupling: float = 1.0) -> Problem:
    """Return a random tree with two states counted."""
    rng = np.random.default_rng(9)
    parents = np.array([-1, *(int(rng.integers(i)) for i in range(1, size))])
    pairs = coupling * rng.normal(size=(size, states, states))
    model = tt.Model.tree(parents, rng.normal(size=(size, states)), pairs)
    numbers = {1: size // 3, 2: size // 4}
    return counted(model, numbers, _prototype(model, numbers, 10 / size), full=size <= 1000)


def grid(rows: int, columns: int, states: int, ones: int, coupling: float) -> Problem:
    """Return a grid whose neighbours tend to agree, with a number of ones."""
    pairs = coupling * np.eye(states)
    scores = np.random.default_rng(10).normal(size=(rows, columns, states))
    return counted(tt.Model.grid(scores, pairs, pairs), {1: ones}, None)


def segmentation(positives: int) -> Problem:
    """Return the first segmentation with a number of positives."""
    model = segmentations.read(segmentations.NAMES[0])
    return counted(model, {1: positives}, _prototype(model, {1: positives}, 0.32))


def _prototype(model: tt.Model, numbers: Mapping[int, int], budget: float) -> Callable[[], Any] | None:
    return pruned.counts(model, tt.plan(model).order, list(numbers), list(numbers.values()), budget)


def written(name: str, length: int, states: int) -> Problem:
    """Return a chain with true and false positives, and an objective that is a function of them."""
    rng = np.random.default_rng(7)
    pairs, unary = rng.normal(size=(states, states)), rng.normal(size=(length, states))
    truth = np.where(rng.random(length) < 0.45, 0, rng.integers(1, states, length))
    model = tt.Model.chain(unary, pairs)
    read = loss_query(model, tt.losses.FBeta(truth, background=0)).query.read
    right, there = model.score(truth), int(np.count_nonzero(truth))
    objective = {
        "F1 slack": lambda score, tp, fp: (1 - 2 * tp / (there + tp + fp)) * (1 + score - right),
        "F1 margin": lambda score, tp, fp: 1 - 2 * tp / (there + tp + fp) + score,
        "score times precision": lambda score, tp, fp: score * (1 + tp) / (1 + tp + fp),
        "sign of the score": lambda score, tp, fp: np.sign(score) + 0.0 * tp,
    }[name]
    return Problem(lambda strategy: tt.solve(model, read, objective, strategy=strategy))


def function(name: str, length: int) -> Problem:
    """Return a chain with one count and an objective that is a function, most of them with plateaus."""
    rng = np.random.default_rng(5)
    model = tt.Model.chain(rng.normal(size=(length, 5)), rng.normal(size=(5, 5)))
    read, middle = [tt.count(model, state=1)], length // 4
    objective = {
        "parabola": lambda score, k: score - 0.05 * (k - middle) ** 2,
        "round(score) + k": lambda score, k: np.round(score) + k,
        "steps of 10": lambda score, k: np.floor(score / 10) - 0.01 * np.abs(k - middle),
        "score up to a limit": lambda score, k: np.minimum(score, middle) - 0.01 * np.abs(k - middle),
        "sign of the score": lambda score, k: np.sign(score) + 0.0 * k,
    }[name]
    return Problem(lambda strategy: tt.solve(model, read, objective, strategy=strategy))


HELPED: dict[str, Callable[[], Problem]] = {
    "F1 margin, chain of 50, N=20": lambda: f_measure(50, 20, "margin"),
    "F1 slack, chain of 50, N=20": lambda: f_measure(50, 20, "slack"),
    "F1 margin, chain of 400, N=5": lambda: f_measure(400, 5, "margin"),
    "F1 slack, chain of 400, N=5": lambda: f_measure(400, 5, "slack"),
    "F1 margin, chain of 800, N=20": lambda: f_measure(800, 20, "margin"),
    "F1 slack, chain of 800, N=20": lambda: f_measure(800, 20, "slack"),
    "F1 margin, chain of 100,000, N=2": lambda: f_measure(100_000, 2, "margin"),
    "F1 slack, chain of 100,000, N=2": lambda: f_measure(100_000, 2, "slack"),
    "F1 margin, chain of 100,000, N=5": lambda: f_measure(100_000, 5, "margin"),
    "F1 slack, chain of 100,000, N=5": lambda: f_measure(100_000, 5, "slack"),
    "F1 margin, chain of 100,000, N=20": lambda: f_measure(100_000, 20, "margin"),
    "F1 slack, chain of 100,000, N=20": lambda: f_measure(100_000, 20, "slack"),
    "one count, chain of 10,000, N=2": lambda: one_count(10_000, 2),
    "one count, chain of 10,000, N=5": lambda: one_count(10_000, 5),
    "one count, chain of 10,000, N=20": lambda: one_count(10_000, 20),
    "F1 slack as a function, chain of 400, N=5": lambda: written("F1 slack", 400, 5),
    "F1 slack as a function, chain of 400, N=23": lambda: written("F1 slack", 400, 23),
    "F1 margin as a function, chain of 400, N=5": lambda: written("F1 margin", 400, 5),
    "two counts, tree of 1,000, N=3": lambda: two_counts(1_000),
    "two counts, tree of 10,000, N=3": lambda: two_counts(10_000),
    "Segmentation_11, 114 positives": lambda: segmentation(114),
}

DEGENERATE: dict[str, Callable[[], Problem]] = {
    "F1 margin, chain of 300, coupling 10": lambda: f_measure(300, 5, "margin", coupling=10),
    "F1 slack, chain of 300, coupling 10": lambda: f_measure(300, 5, "slack", coupling=10),
    "F1 margin, loss as heavy as the score": lambda: f_measure(300, 5, "margin", margin=300),
    "F1 slack, loss as heavy as the score": lambda: f_measure(300, 5, "slack", margin=300),
    "F1 slack, chain of 40": lambda: f_measure(40, 5, "slack", margin=40),
    "one count, chain of 3,000, coupling 20": lambda: one_count(3000, 5, 20),
    "one count, chain of 3,000, N=2, coupling 20": lambda: one_count(3000, 2, 20),
    "two counts, tree of 300, coupling 10": lambda: two_counts(300, coupling=10),
    "one count, chain of 5,000, N=4, neighbours agree": lambda: agreeing(5_000, 4),
    "one count, chain of 18,000, N=4, neighbours agree": lambda: agreeing(18_000, 4),
    "one count, chain of 40,000, N=2, neighbours agree": lambda: agreeing(40_000, 2),
    **{
        f"function, chain of 3,000: {name}": partial(function, name, 3000)
        for name in (
            "parabola",
            "round(score) + k",
            "steps of 10",
            "score up to a limit",
            "sign of the score",
        )
    },
    "function, two counts, N=5: score times precision": lambda: written("score times precision", 400, 5),
    "function, two counts, N=5: sign of the score": lambda: written("sign of the score", 400, 5),
    "function, two counts, N=23: score times precision": lambda: written("score times precision", 100, 23),
    "function, two counts, N=23: sign of the score": lambda: written("sign of the score", 100, 23),
}


GRAPHS: dict[str, Callable[[], Problem]] = {
    f"one count of {ones}, grid of {rows} by {columns}, N={states}, coupling {coupling}": partial(
        grid, rows, columns, states, ones, coupling
    )
    for rows, columns, states in ((12, 30, 2), (6, 160, 2), (9, 40, 2), (7, 20, 3))
    for ones in (rows * columns // 20, rows * columns // 8, rows * columns // 2)
    for coupling in (0.3, 3, 10)
}


def measured(name: str, problem: Problem, budget: float) -> Row:
    """Return the figures of one problem; the answers must agree."""
    contenders: dict[str, Callable[[], object]] = {
        "bounds": lambda: problem.ask("bounds"),
        "auto": lambda: problem.ask("auto"),
    }
    if problem.full:
        contenders["full"] = lambda: problem.ask("full")
        values = [contenders[way]().value for way in ("full", "bounds")]
        assert np.isclose(*values, rtol=1e-9), (name, values)
    if problem.native is not None:
        contenders["native"] = problem.native
    if problem.pruned is not None:
        contenders["pruned"] = problem.pruned
    best = interleaved(contenders, rounds=5, budget=budget, clock=time.process_time)
    row: Row = {"case": name, **{f"{way} ms": best.get(way, np.nan) * 1e3 for way in _WAYS}}
    return {**row, "auto / full": best["auto"] / best["full"] if problem.full else np.nan}


_WAYS = ("full", "auto", "bounds", "native", "pruned")


def growth(quick: bool, budget: float) -> list[Row]:
    """Return times by length, and their exponents."""
    sizes = [1_000, 10_000] if quick else [1_000, 3_000, 10_000, 30_000, 100_000]
    rows: list[Row] = []
    for states, scaling in ((2, "margin"), (5, "margin"), (5, "slack"), (20, "slack")):
        problems = {m: f_measure(m, states, scaling) for m in sizes}
        times = [
            interleaved({"": lambda p=p: p.ask("auto")}, rounds=5, budget=budget, clock=time.process_time)[""]
            for p in problems.values()
        ]
        row: Row = {"case": f"F1 {scaling}, N={states}"}
        row |= {f"{m:,} ms": t * 1e3 for m, t in zip(sizes, times, strict=True)}
        rows.append({**row, "exponent": slope(sizes, times)})
    return rows


UNSEEN = 13_000  # constants were chosen by other questions


def asked_both_ways(seed: int, seconds: float = 0.1) -> Row:
    """Return the milliseconds of a question by full tables and by ``"auto"``, cold and warm, in turns.

    Also how long its searches took, and how high its table was priced, compared with what they should.
    """
    with watched() as counts:
        return _in_turns(drawn.question(seed), counts, seconds)


def _in_turns(asked: drawn.Drawn, counts: Counts, seconds: float) -> Row:
    best, spent = dict[str, float](), 0.0
    for done in range(40):
        for state in ("cold", "warm"):
            for way in ("full", "auto"):
                if state == "cold":
                    phases.forget()
                counts.begin()
                began = time.process_time()
                with suppress(tt.InfeasibleError):
                    asked.ask(way)
                took = time.process_time() - began
                counts.end()
                spent += took
                best[f"{way} {state}"] = min(best.get(f"{way} {state}", np.inf), took)
        if done >= 2 and spent > seconds:
            break
    ratios = {state: best[f"auto {state}"] / best[f"full {state}"] for state in ("cold", "warm")}
    row: Row = {"case": f"{asked.kind}: {asked.name}", "full ms": best["full warm"] * 1e3}
    row |= {"auto ms": best["auto warm"] * 1e3, **{f"auto / full, {s}": r for s, r in ratios.items()}}
    row["search / counted"] = counts.least if np.isfinite(counts.least) else np.nan
    return {**row, "price / full": counts.price / best["full warm"] / 1e9}


def unseen(quick: bool) -> dict[str, list[Row]]:
    """Print and return the worst ratios of questions drawn at random, and what is usual."""
    rows = [asked_both_ways(UNSEEN + number) for number in range(20 if quick else 400)]
    summary: list[Row] = []
    for state in ("cold", "warm"):
        ratios = [row[f"auto / full, {state}"] for row in rows]
        high = {"99 %": float(np.quantile(ratios, 0.99)), "largest": max(ratios)}
        summary.append({"state": state, "questions": len(rows), "median": float(np.median(ratios)), **high})
    worst = sorted(rows, key=lambda row: -max(row["auto / full, cold"], row["auto / full, warm"]))[:12]
    show("questions drawn at random: auto / full", summary)
    show("the worst of them", worst)
    counts = [
        {"ratio": name, **{f"{p} %": float(np.nanquantile([r[name] for r in rows], p / 100)) for p in _PARTS}}
        for name in ("search / counted", "price / full")
    ]
    show("what they take, compared with what is counted", counts)
    return {"drawn": summary, "drawn, worst": worst, "drawn, counted": counts}


_PARTS = (5, 25, 50, 75, 95, 100)


def main(quick: bool = False) -> dict[str, list[Row]]:
    budget = 0.3 if quick else 2.0
    large = ("100,000", "800", "tree of 10,000")
    few = {name: make for name, make in HELPED.items() if not quick or not any(x in name for x in large)}
    if pruned.module("prune", "prune") is None:
        print(f"(nothing to compare with: build {os.path.relpath(pruned.FOLDER)})")
    helped = [measured(name, make(), budget) for name, make in few.items()]
    show("single answers by bounds", helped)
    worst = [measured(name, make(), budget) for name, make in DEGENERATE.items()]
    show("where bounds do not help (auto / full should be at most 1.5)", worst)
    some = list(GRAPHS)[::9] if quick else GRAPHS
    graphs = [measured(name, GRAPHS[name](), budget) for name in some]
    show("wide graphs (auto / full should be at most 1.5)", graphs)
    grown = growth(quick, budget)
    show("by length", grown)
    batches = bounded_batches.tables(quick)
    for title, rows in batches.items():
        show(f"{title} (microseconds of processor time each)", rows)
    return {
        "bounds": helped,
        "degenerate": worst,
        "graphs": graphs,
        "growth": grown,
        **batches,
        **unseen(quick),
    }


if __name__ == "__main__":
    main()
