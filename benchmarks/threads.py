"""One problem on one and on two threads: the upward pass alone, plans and factors ready.

Wall times. *processor* is the processor time of two threads relative to one: the overhead of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import segmentation as segmentations
from common import Row, show

import tallytree as tt
from tallytree.kernels import native

Problem = tuple[tt.Model, tt.Plan]


def tree(size: int, states: int) -> Problem:
    """Return a random tree with the counts of two states."""
    rng = np.random.default_rng(0)
    parents = [-1, *(int(rng.integers(0, i)) for i in range(1, size))]
    model = tt.Model.tree(parents, rng.normal(size=(size, states)), rng.normal(size=(states, states)))
    return model, tt.plan(model, [tt.count(model, state=0), tt.count(model, state=1)])


def grid(rows: int, columns: int, *, counted: bool = True) -> Problem:
    """Return a grid of two states, with the count of one."""
    rng = np.random.default_rng(0)
    down, right = rng.normal(size=(2, 2, 2))
    model = tt.Model.grid(rng.normal(size=(rows, columns, 2)), down, right)
    return model, tt.plan(model, [tt.count(model, state=1)] if counted else [])


def chain(length: int, states: int) -> Problem:
    """Return a chain with true and false positives."""
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(length, states)), rng.normal(size=(states, states)))
    truth = np.where(rng.random(length) < 0.45, 0, rng.integers(1, states, length))
    return model, tt.plan(model, [tt.matches(model, truth, 0), tt.mismatches(model, truth, 0)])


def long_join(length: int) -> Problem:
    """Return two paths from one variable, with a count: where they meet, two long rows are joined."""
    rng = np.random.default_rng(0)
    parents = [-1, *range(length), 0, *range(length + 1, 2 * length)]
    model = tt.Model.tree(parents, rng.normal(size=(len(parents), 2)), rng.normal(size=(2, 2)))
    return model, tt.plan(model, [tt.count(model, state=1)])


def segmentation() -> Problem | None:
    """Return an image of the UAI competition, with twenty positives; None where it is absent."""
    path = segmentations.FOLDER / f"{segmentations.NAMES[0]}.uai"
    if not path.is_file():
        return None
    model = segmentations.read(segmentations.NAMES[0])
    return model, tt.plan(model, where=tt.count(model, state=1) == 20)


CASES: dict[str, Callable[[bool], Problem | None]] = {
    "random tree, two counts": lambda quick: tree(150 if quick else 300, 3),
    "grid 6 x 40, a count": lambda _: grid(6, 40),
    "grid 12 x 40, a count": lambda quick: grid(9 if quick else 12, 40),
    "grid 16 x 40": lambda quick: grid(12 if quick else 16, 40, counted=False),
    "chain of 160, TP and FP": lambda _: chain(160, 10),
    "two paths of 2,000, a count": lambda _: long_join(2000),
    "Segmentation_11, 20 positives": lambda quick: None if quick else segmentation(),
}


def measured(problem: Problem, rounds: int) -> tuple[float, dict[int, tuple[float, float]]]:
    """Return the operations of a pass, and the best wall and processor time by number of threads."""
    model, plan = problem
    tables = [block.tables for block in model.blocks]
    best = {1: (np.inf, np.inf), 2: (np.inf, np.inf)}
    for _ in range(rounds):
        for threads, (wall, cpu) in best.items():
            start, used = time.perf_counter(), time.process_time()
            native.Run(plan.layout, tables, native.MAX_PLUS, threads=threads)
            took = time.perf_counter() - start, time.process_time() - used
            best[threads] = min(wall, took[0]), min(cpu, took[1])
    return plan.operations, best


def main(quick: bool = False) -> dict[str, list[Row]]:
    rows: list[Row] = []
    for name, make in CASES.items():
        problem = make(quick)
        if problem is None:
            continue
        operations, best = measured(problem, 3 if quick else 9)
        rows.append(
            {
                "case": name,
                "operations": f"{operations:.1e}",
                "one ms": best[1][0] * 1e3,
                "two ms": best[2][0] * 1e3,
                "two threads": best[1][0] / best[2][0],
                "processor": best[2][1] / best[1][1],
            }
        )
    show("one problem on two threads", rows)
    return {"threads": rows}


if __name__ == "__main__":
    main()
