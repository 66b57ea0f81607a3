"""How the times of other solvers grow with the size of a problem, compared with ours, in CPU time.

Each peer gets the sizes in order, 20 s each, until one takes longer. The exponent is that of a power law
fitted to the sizes that a solver finished; it is missing if there are fewer than two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import cases
import numpy as np
import peer_times
import phases
from common import Row, paste, short, skipped, slope, yardstick
from peers import NAMES

import tallytree as tt

SIZES: dict[str, tuple[str, tuple[int, ...]]] = {
    "binary chain, a count fixed": ("B1", (40, 200, 1000, 5000, 20_000, 100_000)),
    "chain, N = 5, F1, margin scaling": ("B2", (40, 100, 400, 1000, 10_000)),
    "chain, N = 45, Hamming loss, slack scaling": ("B3", (5, 40, 200, 1000, 3000)),
    "random tree, N = 3, two counts fixed": ("B4", (40, 100, 300, 1000, 3000, 10_000, 100_000)),
    "binary grid 6 x M, a count fixed": ("B5", (10, 40, 160, 640, 2560)),
}


def question(case: str, end: cases.End) -> Callable[[], tt.Solution]:
    """Return the call that a user would write, from arrays; F1 is a loss of the library."""
    if case != "B2":
        return end.run
    positives = end.problem.task[1]
    loss = tt.losses.FBeta(np.where(positives.any(1), positives.argmax(1), 0), background=0)
    return lambda: tt.loss_augmented(end.model(), loss, threads=1)


def measured(case: str, m: int, solvers: Sequence[str], limit: float) -> dict[str, peer_times.Outcome]:
    """Return the seconds of a call with a new shape, of one with a known shape, and of other solvers."""
    end = cases.make(case, m)
    ask = question(case, end)
    optimum = end.problem.objective(np.ravel(ask().assignment))

    def cold() -> object:
        phases.forget()
        return ask()

    peers = {NAMES[who]: partial(peer_times.solve, case, m, who, optimum) for who in solvers}
    return peer_times.in_turns({"cold": cold, "warm": ask}, peers, rounds=2, budget=0.5, limit=limit)


def grown(case: str, sizes: tuple[int, ...], limit: float) -> list[Row]:
    """Return the milliseconds of each solver for each size, and the exponents."""
    times: dict[str, dict[int, peer_times.Outcome]] = {"cold": {}, "warm": {}}
    solvers = list(peer_times.available())
    for m in sizes:
        found = measured(case, m, solvers, limit)
        solvers = [who for who in solvers if isinstance(found[NAMES[who]], float)]
        for who, outcome in found.items():
            times.setdefault(who, {})[m] = outcome
    rows: list[Row] = [
        {"M": f"{m:,}", **{who: _shown(found.get(m, "")) for who, found in times.items()}} for m in sizes
    ]
    return [*rows, {"M": "exponent", **{who: _exponent(found) for who, found in times.items()}}]


def _shown(outcome: peer_times.Outcome) -> str:
    return outcome if isinstance(outcome, str) else short(outcome * 1e3)


def _exponent(found: Mapping[int, peer_times.Outcome]) -> str:
    finished = [(m, seconds) for m, seconds in found.items() if isinstance(seconds, float)]
    return f"{slope(*zip(*finished, strict=True)):.2f}" if len(finished) > 1 else ""


def main(quick: bool = False) -> dict[str, list[Row]]:
    data: dict[str, list[Row]] = {}
    if yardstick("dp") is None:
        skipped("growth")
        return data
    for family, (case, sizes) in SIZES.items():
        data[family] = grown(case, sizes[:2] if quick else sizes, 5.0 if quick else 20.0)
        paste(f"{family} (ms)", data[family])
    return data


if __name__ == "__main__":
    main()
