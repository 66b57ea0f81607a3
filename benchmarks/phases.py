"""Where the time of one ``solve`` goes: clocks around the functions that it calls, one phase each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cases import End
from common import Row

from tallytree.answers import profile, tally_table
from tallytree.planning import orders, plan, planner

# phase: the (object, attribute) that does it; the skeleton is inside the plan and is taken out of it
CLOCKED: dict[str, tuple[Any, str]] = {
    "skeleton": (plan, "table_programs"),
    "plan": (planner, "_planned"),
    "messages": (profile, "pass_upward"),
    "objective": (tally_table, "evaluate_objective"),
    "decode": (profile.Profile, "_decoded"),
    "certify": (profile.Profile, "_certified"),
}


def forget() -> None:
    """Clear cached programs and plans, so that the next plan is cold."""
    for recent in (orders._RECENT, planner._RECENT):
        for key in list(recent._values):
            recent.forget(key)


@contextmanager
def clocks() -> Iterator[dict[str, float]]:
    """Sum up the seconds spent in each phase."""
    spent = dict.fromkeys(CLOCKED, 0.0)
    originals = {phase: getattr(owner, name) for phase, (owner, name) in CLOCKED.items()}

    def clocked(phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                spent[phase] += time.perf_counter() - start

        return run

    try:
        for phase, (owner, name) in CLOCKED.items():
            setattr(owner, name, clocked(phase, originals[phase]))
        yield spent
    finally:
        for phase, (owner, name) in CLOCKED.items():
            setattr(owner, name, originals[phase])


def measure(end: End, *, cold: bool, repeats: int) -> Row:
    """Return the milliseconds of each phase, in the quickest of several runs."""
    best: Row = {}
    with clocks() as spent:
        for _ in range(repeats):
            row = _one(end, spent, cold)
            if not best or row["total"] < best["total"]:
                best = row
    return best


def _one(end: End, spent: dict[str, float], cold: bool) -> Row:
    spent.update(dict.fromkeys(spent, 0.0))
    if cold:
        forget()
    start = time.perf_counter()
    model = end.model()
    modelled = time.perf_counter()
    statistics = end.statistics(model)
    counted = time.perf_counter()
    end.solve(model, statistics)
    stop = time.perf_counter()
    layout = spent["plan"] - spent["skeleton"]
    parts = {"model": modelled - start, "statistics": counted - modelled, "skeleton": spent["skeleton"]}
    parts |= {"layout": layout, **{phase: spent[phase] for phase in list(spent)[2:]}}
    parts["other"] = stop - start - sum(parts.values())
    return {name: seconds * 1e3 for name, seconds in {**parts, "total": stop - start}.items()}
