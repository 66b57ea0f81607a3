"""How the times of other solvers grow with the size of a problem, compared with ours.

Each peer gets the sizes in order, 20 s each, until one takes longer. The exponent is that of a power law
fitted to the sizes that a solver finished; it is missing if there are fewer than two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import cases
import numpy as np
import peer_times
import phases
from common import Row, interleaved, show, skipped, slope, yardstick
from peers import NAMES

import tallytree as tt

SIZES: dict[str, tuple[str, tuple[int, ...]]] = {
    "binary chain, a count fixed": ("B1", (40, 200, 1000, 5000, 50_000)),
    "chain, N = 5, F1, margin scaling": ("B2", (40, 100, 400, 1000)),
    "chain, N = 45, Hamming loss, slack scaling": ("B3", (5, 40, 200, 1000)),
    "random tree, N = 3, two counts fixed": ("B4", (40, 100, 300)),
    "binary grid 6 x M, a count fixed": ("B5", (10, 40, 160, 640)),
}


def question(case: str, m: int) -> Callable[[], object]:
    """Return the call that a user would write, from arrays; F1 is a loss of the library."""
    end = cases.make(case, m)
    if case != "B2":
        return end.run
    positives = end.problem.task[1]
    loss = tt.losses.FBeta(np.where(positives.any(1), positives.argmax(1), 0), background=0)
    asked = partial(tt.loss_augmented, loss=loss, threads=1)
    assert np.isclose(asked(end.model()).score, end.run().score)
    return lambda: asked(end.model())


def ours(case: str, m: int) -> dict[str, float]:
    """Return the seconds of a call with a new shape, and with a shape seen before."""
    ask = question(case, m)

    def cold() -> object:
        phases.forget()
        return ask()

    return interleaved({"cold": cold, "warm": ask}, rounds=20, budget=1.0)


def grown(case: str, sizes: tuple[int, ...], patience: float) -> list[Row]:
    """Return the milliseconds of each solver for each size, and the exponents."""
    times: dict[str, list[peer_times.Outcome]] = {"cold": [], "warm": []}
    for m in sizes:
        for how, seconds in ours(case, m).items():
            times[how].append(seconds)
        for solver in peer_times.available():
            before = times.setdefault(NAMES[solver], [])
            gave_up = bool(before) and isinstance(before[-1], str)
            before.append("" if gave_up else peer_times.solve(case, m, solver, patience))
    rows: list[Row] = [
        {"M": f"{m:,}", **{who: _shown(found[i]) for who, found in times.items()}}
        for i, m in enumerate(sizes)
    ]
    return [*rows, {"M": "exponent", **{who: _exponent(sizes, found) for who, found in times.items()}}]


def _shown(outcome: peer_times.Outcome) -> str:
    return outcome if isinstance(outcome, str) else f"{outcome * 1e3:,.3g}"


def _exponent(sizes: tuple[int, ...], found: list[peer_times.Outcome]) -> str:
    finished = [(m, t) for m, t in zip(sizes, found, strict=True) if isinstance(t, float)]
    return f"{slope(*zip(*finished, strict=True)):.2f}" if len(finished) > 1 else ""


def main(quick: bool = False) -> dict[str, list[Row]]:
    data: dict[str, list[Row]] = {}
    if yardstick("dp") is None:
        skipped("growth")
        return data
    for family, (case, sizes) in SIZES.items():
        data[family] = grown(case, sizes[:2] if quick else sizes, 5.0 if quick else 20.0)
        show(f"{family} (ms)", data[family])
    return data


if __name__ == "__main__":
    main()
