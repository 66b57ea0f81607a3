"""Elimination orders: widths compared with the best known ones, planning time and savings, tallies.

The best known widths come from the construction (grids, partial k-trees), from many random orders, and from
the exact algorithm of ``treewidth.py``, which also proves lower bounds: where both are equal, nothing is
narrower.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import treewidth
from common import DATA, Row, interleaved, show
from phases import forget

import tallytree as tt
from tallytree.planning.orders import METHODS, Programs, skeleton

FOLDER = DATA / "uai"
BLIND = ("min-fill", "min-degree")


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
    shape, best = Programs(model, []).shape, len(model)
    end, seed = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        for method in BLIND:
            order = shape.order(METHODS[method], seed)
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


Instance = tuple[Callable[[], tt.Model], int, int | None]
"""A model, and what is known of its width by construction: at least, at most."""


def instances(quick: bool) -> dict[str, Instance]:
    found: dict[str, Instance] = {f"grid {n} x {n}": (partial(grid, n, n), n, n) for n in (6, 10, 14)}
    for k in (4, 8):
        found[f"partial {k}-tree, 100 variables"] = (partial(partial_tree, 100, k, 0.8), 0, k)
    for n in (30, 40, 80):
        found[f"random graph, {n} variables of degree 3"] = (partial(random_graph, n, 3.0), 0, None)
    for path in sorted(FOLDER.glob("*.uai"))[: 3 if quick else None]:
        found[path.stem] = (partial(tt.io.read_uai, path, Path(f"{path}.evid")), 0, None)
    return found


def cold(model: tt.Model, order: str | None = None) -> tuple[Any, float]:
    """Return the program and the seconds that finding it takes."""
    forget()
    start = time.perf_counter()
    found = skeleton(model, (), order)
    return found, time.perf_counter() - start


def widths(quick: bool) -> list[Row]:
    return [row(title, *instance, quick) for title, instance in instances(quick).items()]


def row(title: str, make: Callable[[], tt.Model], least: int, most: int | None, quick: bool) -> Row:
    model = make()
    graph = graph_of(model)
    ours, seconds = cold(model)
    alone = {order: cold(model, order)[0].width for order in BLIND}
    narrowest = min(ours.width, *alone.values(), len(model) if most is None else most)
    if least < narrowest:
        narrowest = min(narrowest, long_search(model, graph, 1.0 if quick else 5.0))
        least, narrowest = treewidth.bounds(graph, narrowest, 5.0 if quick else 20.0)
    runs = {"ours": partial(tt.solve, model), "fill": partial(tt.solve, model, order="min-fill")}
    times = interleaved(runs, rounds=5, budget=0.5)
    return {
        "case": title,
        "at least": least,
        "best known": narrowest,
        "ours": ours.width,
        **alone,
        "planning ms": seconds * 1e3,
        "run ms": times["ours"] * 1e3,
        "run by min-fill ms": times["fill"] * 1e3,
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
    show("widths of elimination orders", data["widths"], "runs: plain MAP with a plan that is there already")
    show("orders that do not look at tallies: operations, in multiples of ours", data["tallies"])
    return data


if __name__ == "__main__":
    main()
