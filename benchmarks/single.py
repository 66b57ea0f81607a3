"""The upward pass in double and in single precision, in turns: time, memory, the gap of the best labelling.

*gap* is the proven bound on how far the labelling is from the optimum, *lost* the actual distance, both
relative to its score.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import threads
from common import Row, interleaved, show

import tallytree as tt
from tallytree.planning.options import RunOptions
from tallytree.running.graphs import pass_upward

Problem = tuple[tt.Model, tt.Plan]


def chain_with_count(length: int, states: int) -> Problem:
    """Return a chain with a table for each edge, and the count of all states but one."""
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(length - 1, states, states))
    model = tt.Model.chain(rng.normal(size=(length, states)), pairs)
    return model, tt.plan(model, [tt.count(model, state=list(range(1, states)))])


def plain_chain(length: int, states: int) -> Problem:
    """Return a chain of which nothing is counted."""
    model, _ = chain_with_count(length, states)
    return model, tt.plan(model)


CASES: dict[str, Callable[[bool], Problem]] = {
    "chain of 400, N=5, a count": lambda _: chain_with_count(400, 5),
    "chain of 200, N=20, a count": lambda _: chain_with_count(200, 20),
    "chain of 40, N=45, a count": lambda _: chain_with_count(40, 45),
    "chain of 40, N=5, TP and FP": lambda _: threads.chain(40, 5),
    "chain of 160, N=5, TP and FP": lambda _: threads.chain(160, 5),
    "random tree, two counts": lambda quick: threads.tree(150 if quick else 300, 3),
    "two paths of 1,000, a count": lambda _: threads.long_join(1000),
    "grid 6 x 40, a count": lambda _: threads.grid(6, 40),
    "grid 9 x 40, a count": lambda _: threads.grid(9, 40),
    "chain of 2,000, N=20, no count": lambda _: plain_chain(2000, 20),
}


def measured(name: str, problem: Problem, budget: float) -> Row:
    """Return the figures of one problem."""
    model, double = problem
    single = tt.plan(model, double.statistics, layout=double.mode, precision="single")
    plans = {"double": double, "single": single}
    best = interleaved(
        {kind: lambda p=plan: pass_upward(p, model, RunOptions(threads=1)) for kind, plan in plans.items()},
        budget=budget,
    )
    found = tt.profile(model, double.statistics, plan=single).best()
    exact = tt.profile(model, double.statistics, plan=double).best().score
    return {
        "case": name,
        "double ms": best["double"] * 1e3,
        "single ms": best["single"] * 1e3,
        "speed": best["double"] / best["single"],
        "double MB": double.peak_bytes / 1e6,
        "single MB": single.peak_bytes / 1e6,
        "gap": f"{found.gap / abs(exact):.1e}",
        "lost": f"{max(exact - found.score, 0.0) / abs(exact):.1e}",
    }


def main(quick: bool = False) -> dict[str, list[Row]]:
    budget = 0.4 if quick else 2.0
    rows = [measured(name, make(quick), budget) for name, make in CASES.items()]
    show("single precision compared with double (speed 2 = half of the time)", rows)
    return {"single": rows}


if __name__ == "__main__":
    main()
