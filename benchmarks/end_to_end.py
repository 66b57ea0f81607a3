"""From arrays to a certified labelling on B1 to B7, compared with a dynamic program in C.

Model, statistics, plan, messages, decoding and certificate are all inside the clock. Cold: the shape of the
model is new, so that an elimination order has to be found; warm: it has been seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cases
import numpy as np
import phases
from common import Row, interleaved, show, skipped, yardstick


def as_good(end: cases.End, labelling: Any) -> bool:
    """Return whether a labelling, as a grid or flat, is as good as that of the C code."""
    problem = end.problem
    found, theirs = (problem.objective(np.ravel(y)) for y in (labelling, yardstick("dp").solve(problem)))
    return bool(abs(found - theirs) <= 1e-9 * max(1.0, abs(theirs)))


def contenders(end: cases.End) -> dict[str, Callable[[], object]]:
    def cold() -> object:
        phases.forget()
        return end.run()

    dp = yardstick("dp")
    return {"cold": cold, "warm": end.run, "C": lambda: dp.solve(end.problem)}


def row(case: str, budget: float) -> Row:
    end = cases.make(case)
    best = interleaved(contenders(end), rounds=20, budget=budget)
    return {
        "case": case,
        "same objective": as_good(end, end.run().assignment),
        **{f"{name} ms": seconds * 1e3 for name, seconds in best.items()},
        "C / cold": best["C"] / best["cold"],
        "C / warm": best["C"] / best["warm"],
    }


def main(quick: bool = False, only: tuple[str, ...] = tuple(cases.CASES)) -> dict[str, Any]:
    if yardstick("dp") is None:
        skipped("end to end")
        return {}
    rows = [row(case, 0.3 if quick else 1.5) for case in only]
    show("end to end (best times)", rows)
    split, repeats = {}, 15 if quick else 60
    for how in ("cold", "warm"):
        split[how] = [
            {
                "case": case,
                **phases.measure(cases.make(case), cold=how == "cold", repeats=repeats),
            }
            for case in only
        ]
        show(f"where the time goes, {how} (ms, clocks included)", split[how])
    return {"end to end": rows, "phases": split}


if __name__ == "__main__":
    main()
