"""Elimination orders: widths beside the best known ones, planning time beside what it saves, tallies.

What is best known comes from the construction (grids, partial k-trees), from many random orders, and from
the exact algorithm of ``treewidth.py``, which also proves lower bounds: where both are equal, nothing is
narrower.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import treewidth
from common import ROOT, Row, show
from phases import forget

import tallytree as tt
from tallytree.core.elimination import METHODS, skeleton
from tallytree.kernels import native

DATA = ROOT.parent / "shared" / "data" / "uai"
BLIND = ("min-fill", "min-degree")
RATE = 5e9  # add-max operations a second, to weigh planning time against them


def graph_of(model: tt.Model) -> dict[int, set[int]]:
    graph: dict[int, set[int]] = {v: set() for v in range(len(model))}
    for block in model.blocks:
        for scope in block.scopes.tolist():
            for a, b in combinations(scope, 2):
                graph[a].add(b)
                graph[b].add(a)
    return graph


def long_search(model: tt.Model, graph: treewidth.Graph, seconds: float) -> int:
    """Return the smallest width of many orders by min-fill and min-degree with ties broken at random."""
    scopes, best = [block.scopes for block in model.blocks], len(model)
    end, seed = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        for method in BLIND:
            order = native.elimination_order(model.cardinalities, scopes, METHODS[method], seed)
            best = min(best, treewidth.width_of(graph, order.tolist()))
        seed += 1
    return best


def factors(scopes: list[tuple[int, ...]], variables: int) -> tt.Model:
    return tt.Model([2] * variables, [(scope, np.zeros((2,) * len(scope))) for scope in scopes])


def partial_tree(variables: int, width: int, share: float) -> tt.Model:
    """A random k-tree without some of its edges: its width is at most k."""
    rng = np.random.default_rng(width)
    cliques = [tuple(range(width))]
    edges = set(combinations(range(width), 2))
    for v in range(width, variables):
        base = cliques[int(rng.integers(len(cliques)))]
        edges |= {(u, v) for u in base}
        cliques += [(*(w for w in base if w != u), v) for u in base]
    return factors([e for e in sorted(edges) if rng.random() < share], variables)


def random_graph(variables: int, degree: float) -> tt.Model:
    rng = np.random.default_rng(variables)
    edges = list(combinations(range(variables), 2))
    return factors([e for e in edges if rng.random() < degree / (variables - 1)], variables)


def grid(rows: int, columns: int) -> tt.Model:
    free = np.zeros((2, 2))
    return tt.Model.grid(np.zeros((rows, columns, 2)), free, free)


def instances(quick: bool) -> dict[str, tuple[Callable[[], tt.Model], int | None]]:
    """Models by name, and their widths where they are known (at most, for partial k-trees)."""
    known: dict[str, tuple[Callable[[], tt.Model], int | None]] = {
        f"grid {n} x {n}": (lambda n=n: grid(n, n), n) for n in (6, 10, 14)
    }
    for k in (4, 8):
        known[f"partial {k}-tree, 100 variables"] = (lambda k=k: partial_tree(100, k, 0.8), k)
    for n in (30, 40, 80):
        known[f"random graph, {n} variables of degree 3"] = (lambda n=n: random_graph(n, 3.0), None)
    for path in sorted(DATA.glob("*.uai"))[: 3 if quick else None]:
        known[path.stem] = (lambda path=path: tt.io.read_uai(path, Path(f"{path}.evid")), None)
    return known


def cold(model: tt.Model, order: str | None = None) -> tuple[Any, float]:
    """Return the program and the seconds that finding it takes."""
    forget()
    start = time.perf_counter()
    found = skeleton(model, (), order)
    return found, time.perf_counter() - start


def widths(quick: bool) -> list[Row]:
    return [row(title, *instance, quick) for title, instance in instances(quick).items()]


def row(title: str, make: Callable[[], tt.Model], known: int | None, quick: bool) -> Row:
    model = make()
    graph = graph_of(model)
    ours, seconds = cold(model)
    alone = {order: cold(model, order)[0] for order in BLIND}
    narrowest = min(ours.width, *(found.width for found in alone.values()), known or len(model))
    narrowest = min(narrowest, long_search(model, graph, 1.0 if quick else 5.0))
    lower, upper = treewidth.bounds(graph, narrowest, 5.0 if quick else 20.0)
    fill = alone["min-fill"]
    return {
        "case": title,
        "at least": lower,
        "best known": upper,
        "ours": ours.width,
        **{order: found.width for order, found in alone.items()},
        "planning ms": seconds * 1e3,
        "saves ms": (fill.cost - ours.cost) / RATE * 1e3 if fill.feasible and ours.feasible else None,
    }


def tallies() -> list[Row]:
    """Orders that look at states alone, in multiples of ours: without a count, and with one."""
    rng = np.random.default_rng(0)
    parents = [-1, *(int(rng.integers(0, i)) for i in range(1, 60))]
    free = np.zeros((3, 3))
    models = {
        "chain of 40": tt.Model.chain(np.zeros((40, 3)), free),
        "random tree of 60": tt.Model.tree(parents, np.zeros((60, 3)), free),
        "grid 8 x 8": grid(8, 8),
        "grid 6 x 40": grid(6, 40),
    }
    return [row for title, model in models.items() for row in _compared(title, model)]


def _compared(title: str, model: tt.Model) -> list[Row]:
    ones = [tt.count(model, state=1)]
    plain, counted = tt.plan(model).operations, tt.plan(model, ones).operations
    return [
        {
            "case": title,
            "order": order,
            "without a count": tt.plan(model, order=order).operations / plain,
            "with a count": tt.plan(model, ones, order=order).operations / counted,
        }
        for order in BLIND
    ]


def main(quick: bool = False) -> dict[str, list[Row]]:
    data = {"widths": widths(quick), "tallies": tallies()}
    show(
        "widths of elimination orders",
        data["widths"],
        "saves ms: operations less than min-fill's, at 5 Gop/s",
    )
    show("orders that do not look at tallies: operations, in multiples of ours", data["tallies"])
    return data


if __name__ == "__main__":
    main()
