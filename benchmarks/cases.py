"""The problems B1 to B7 of ``../shared/limit`` as tallytree users would write them: arrays to a labelling.

Each function takes a problem, lays its plain arrays out (that is not timed) and returns an ``End``: three
steps, ``model()``, ``statistics(model)`` and ``solve(model, statistics)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from peer_case import instance

import tallytree as tt

Statistics = tuple[tt.Statistic, ...]


@dataclass(frozen=True)
class End:
    """One problem, ready to be solved from its arrays."""

    problem: Any
    model: Callable[[], tt.Model]
    statistics: Callable[[tt.Model], Statistics]
    solve: Callable[[tt.Model, Statistics], tt.Solution]

    def run(self) -> tt.Solution:
        model = self.model()
        return self.solve(model, self.statistics(model))


def make(case: str, m: int | None = None) -> End:
    """Make a case of ``../shared/limit``."""
    return CASES[case](instance(case, m))


def _chain(p: Any) -> Callable[[], tt.Model]:
    unary, pairs = p.unary, np.stack([table for *_, table in p.edges])
    return lambda: tt.Model.chain(unary, pairs)


def _grid(p: Any) -> Callable[[], tt.Model]:
    # numbered column by column there, row by row here: our rows are its columns
    rows, columns = p.meta["rows"], p.meta["cols"]
    n = p.shape[1]
    unary = p.unary.reshape(columns, rows, n)
    down, right = np.zeros((columns - 1, rows, n, n)), np.zeros((columns, rows - 1, n, n))
    for i, j, table in p.edges:
        (down if j - i == rows else right)[divmod(i, rows)] = table
    return lambda: tt.Model.grid(unary, down, right)


def b1(p: Any) -> End:
    (_, _, bound), *_ = p.task[1]
    return End(
        p,
        _chain(p),
        lambda model: (tt.count(model, state=1),),
        lambda model, s: tt.solve(model, where=s[0] == bound, threads=1),
    )


def b2(p: Any) -> End:
    _, tp, _, positives = p.task
    truth = np.where(tp.any(1), tp.argmax(1), 0)
    return End(
        p,
        _chain(p),
        lambda model: (
            tt.matches(model, truth, background=0, name="tp"),
            tt.mismatches(model, truth, background=0, name="fp"),
        ),
        lambda model, s: tt.solve(
            model, s, lambda score, tp, fp: score + 1.0 - 2.0 * tp / (positives + tp + fp), threads=1
        ),
    )


def b3(p: Any) -> End:
    _, wrong, truth_score = p.task
    truth = wrong.argmin(1)
    return End(
        p,
        _chain(p),
        lambda model: (tt.mismatches(model, truth),),
        lambda model, s: tt.solve(model, s, lambda score, d: (score - truth_score + 1.0) * d, threads=1),
    )


def b4(p: Any) -> End:
    (_, _, zeros), (_, _, ones) = p.task[1]
    parents, unary = p.meta["parent"], p.unary
    pairs = np.zeros((len(parents), *p.edges[0][2].shape))
    for _, child, table in p.edges:
        pairs[child] = table
    return End(
        p,
        lambda: tt.Model.tree(parents, unary, pairs),
        lambda model: (tt.count(model, state=0), tt.count(model, state=1)),
        lambda model, s: tt.solve(model, where=(s[0] == zeros) & (s[1] == ones), threads=1),
    )


def b5(p: Any) -> End:
    (_, _, bound), *_ = p.task[1]
    return End(
        p,
        _grid(p),
        lambda model: (tt.count(model, state=1),),
        lambda model, s: tt.solve(model, where=s[0] == bound, threads=1),
    )


def b6(p: Any) -> End:
    (g1, _, low1), (g2, _, low2) = p.task[1]
    a, b = g1.argmin(1), g2.argmin(1)
    return End(
        p,
        _chain(p),
        lambda model: (tt.mismatches(model, a, name="d1"), tt.mismatches(model, b, name="d2")),
        lambda model, s: tt.solve(model, where=(s[0] >= low1) & (s[1] >= low2), threads=1),
    )


def b7grid(p: Any) -> End:
    return End(p, _grid(p), lambda _: (), lambda model, _: tt.solve(model, threads=1))


def b7chain(p: Any) -> End:
    return End(p, _chain(p), lambda _: (), lambda model, _: tt.solve(model, threads=1))


CASES: dict[str, Callable[[Any], End]] = {
    "B1": b1,
    "B2": b2,
    "B2w": b2,
    "B3": b3,
    "B4": b4,
    "B5": b5,
    "B6": b6,
    "B7grid": b7grid,
    "B7chain": b7chain,
}
