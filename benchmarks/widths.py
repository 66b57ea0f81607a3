"""Elimination orders: widths beside bounds and known optima, planning time beside what it saves, tallies.

A width is at least the contraction degeneracy of the graph (the largest smallest degree met while vertices of
smallest degree are contracted into a neighbour), so where both are equal the order is optimal. Grids and
partial k-trees have known widths.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from common import ROOT, Row, show
from phases import forget

import tallytree as tt
from tallytree.core.elimination import skeleton

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


def lower_bound(model: tt.Model) -> int:
    """Contract vertices of smallest degree, each into the neighbour it shares the fewest others with."""
    graph, bound = graph_of(model), 0
    while len(graph) > 1:
        v = min(graph, key=lambda u: (len(graph[u]), u))
        neighbours = graph.pop(v)
        bound = max(bound, len(neighbours))
        for u in neighbours:
            graph[u].discard(v)
        if neighbours:
            into = min(neighbours, key=lambda u: (len(graph[u] & neighbours), u))
            for u in neighbours - {into}:
                graph[u].add(into)
                graph[into].add(u)
    return bound


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
    for n in (40, 80):
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
    rows = []
    for title, (make, known) in instances(quick).items():
        model = make()
        ours, seconds = cold(model)
        fill, _ = cold(model, "min-fill")
        rows.append(
            {
                "case": title,
                "at least": lower_bound(model),
                "known": known,
                "ours": ours.width,
                "min-fill": fill.width,
                "min-degree": cold(model, "min-degree")[0].width,
                "planning ms": seconds * 1e3,
                "saves ms": (fill.cost - ours.cost) / RATE * 1e3 if fill.feasible and ours.feasible else None,
            }
        )
    return rows


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
