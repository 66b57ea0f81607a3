"""Solve a case with torch-struct on the product space: ``python peer_torch.py CASE M LIMIT`` prints JSON.

A state of the chain that torch-struct sees is a label and the counts so far (for a grid: the labels of a
column), so that the counts are part of an ordinary linear chain, whose best path its max semiring finds.
Slack scaling is one such chain for each count, the largest loss first, until no further one can be better.
The seconds of CPU time are those of making potentials and solving, without imports.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import peer_clock
from peer_case import instance

LARGEST = 16e9  # bytes: torch-struct multiplies matrices of states by broadcasting
FORBIDDEN = -1e9  # its semirings take no -inf


class TooLargeError(Exception):
    """The product space does not fit into memory."""


def check_size(steps: int, states: int) -> None:
    if 8.0 * (steps / 2) * states**3 > LARGEST:
        raise TooLargeError(f"{states:,} states")


def best_path(potentials: Any) -> list[int]:
    """Return the states of the best path; ``potentials[k, new, old]``."""
    import torch
    from torch_struct import LinearChainCRF

    parts = LinearChainCRF(torch.from_numpy(np.ascontiguousarray(potentials))[None]).argmax[0]
    path = [0] * (len(potentials) + 1)
    for k, new, old in parts.nonzero().tolist():
        path[k], path[k + 1] = old, new
    return path


# ---------------------------------------------------------------- chains


class Product:
    """Labels and counts of a chain as states of another one."""

    def __init__(self, problem: Any) -> None:
        self.unary, self.pairs = problem.unary, [table for _, _, table in problem.edges]
        self.shifts, self.sizes, self.capped = _counts(problem)
        self.cells = np.indices(self.sizes).reshape(len(self.sizes), -1)
        self.labels, self.tallies = problem.shape[1], self.cells.shape[1]
        check_size(len(self.pairs), self.labels * self.tallies)
        self.potentials = self._potentials()

    def _moved(self, k: int, label: int) -> tuple[Any, Any]:
        """Return the tallies after which a label can come, and those it leads to."""
        ends = np.array(self.sizes)[:, None]
        to = self.cells + self.shifts[k, label][:, None]
        to = np.where(self.capped[:, None], np.minimum(to, ends - 1), to)
        inside = (to < ends).all(axis=0)
        return np.flatnonzero(inside), np.ravel_multi_index(tuple(to[:, inside]), self.sizes)

    def _potentials(self) -> Any:
        steps = len(self.pairs)
        found = np.full((steps, self.labels, self.tallies, self.labels, self.tallies), FORBIDDEN)
        for k in range(steps):
            for b in range(self.labels):
                old, new = self._moved(k + 1, b)
                found[k, b, new, :, old] = self.pairs[k][:, b] + self.unary[k + 1, b]
        for a in range(self.labels):  # the first label has its own counts and no others
            first = self._moved(0, a)[1][0]  # from no counts at all
            kept = found[0, :, :, a, first] + self.unary[0, a]
            found[0, :, :, a] = FORBIDDEN
            found[0, :, :, a, first] = kept
        return found

    def best(self, final: Callable[..., Any]) -> list[int]:
        """Return the labelling that maximises the score and a function of the counts."""
        ends = np.maximum(final(*self.cells), FORBIDDEN)
        potentials = self.potentials.copy()
        potentials[-1] += ends[None, :, None, None]
        states = self.labels * self.tallies
        path = best_path(potentials.reshape(len(potentials), states, states))
        return [state // self.tallies for state in path]


def _counts(problem: Any) -> tuple[Any, tuple[int, ...], Any]:
    """Return shifts (variable, label, count), how many values each count has, and whether it is capped."""
    kind, *rest = problem.task
    if kind == "map":
        return np.zeros((*problem.shape, 1), np.int64), (1,), np.array([False])
    if kind == "lin":
        tables, sizes = [g for g, _, _ in rest[0]], tuple(int(bound) + 1 for _, _, bound in rest[0])
        return np.stack(tables, axis=2), sizes, np.array([relation == ">=" for _, relation, _ in rest[0]])
    tables = rest[:2] if kind == "f1" else rest[:1]
    return (
        np.stack(tables, axis=2),
        tuple(int(g.max(axis=1).sum()) + 1 for g in tables),
        np.zeros(len(tables), bool),
    )


def chain(problem: Any) -> list[int]:
    kind, *rest = problem.task
    product = Product(problem)
    if kind == "map":
        return product.best(lambda _: 0.0 * _)
    if kind == "f1":
        return product.best(lambda tp, fp: 1.0 - 2.0 * tp / (rest[2] + tp + fp))
    if kind == "lin":
        bounds = np.array([int(bound) for _, _, bound in rest[0]])
        return product.best(lambda *counts: _where((np.stack(counts, axis=1) == bounds).all(axis=1)))
    return _slack(problem, product)


def _where(holds: Any) -> Any:
    return np.where(holds, 0.0, FORBIDDEN)


def _slack(problem: Any, product: Product) -> list[int]:
    """Fix the count to one number after the other, while a larger score could still make up for it."""
    most = problem.score(product.best(lambda d: 0.0 * d))
    top, best = -np.inf, []
    for d in range(product.sizes[0] - 1, 0, -1):
        if (most - problem.task[2] + 1.0) * d <= top:
            break
        found = product.best(lambda count, d=d: _where(count == d))
        if problem.objective(found) > top:
            top, best = problem.objective(found), found
    return best


# ---------------------------------------------------------------- grids


def grid(problem: Any) -> list[int]:
    """Plain MAP: the labels of a column are one state."""
    rows, columns, labels = problem.meta["rows"], problem.meta["cols"], problem.shape[1]
    if problem.task[0] != "map":
        raise TooLargeError("labels of a column times counts")
    check_size(columns - 1, labels**rows)
    states = np.indices((labels,) * rows).reshape(rows, -1)
    within = np.zeros((columns, labels**rows))
    between = np.zeros((columns - 1, labels**rows, labels**rows))
    for v, scores in enumerate(problem.unary):
        within[v // rows] += scores[states[v % rows]]
    for i, j, table in problem.edges:
        if j - i == rows:
            at = i % rows
            between[i // rows] += table.T[states[at][:, None], states[at][None, :]]
        else:
            within[i // rows] += table[states[i % rows], states[j % rows]]
    between += within[1:, :, None]
    between[0] += within[0][None, :]
    return [int(a) for state in best_path(between) for a in states[:, state]]


def main(case: str, m: int, limit: float) -> None:
    import torch
    import torch_struct  # noqa: F401

    warnings.simplefilter("ignore", UserWarning)
    torch.set_num_threads(1)
    problem = instance(case, m)
    solve = {"chain": chain, "grid": grid}.get(problem.meta["kind"])
    if solve is None:
        print(json.dumps({"error": "no such structure"}))
        return
    try:
        found, seconds = peer_clock.timed(lambda _: solve(problem), limit)
    except TooLargeError as error:
        print(json.dumps({"error": f"too large: {error}"}))
        return
    print(json.dumps({"proven": True, "value": float(problem.objective(found)), "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
