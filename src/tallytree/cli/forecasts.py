"""The cost of a problem, without solving it: plan."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

from tallytree.cli import reports
from tallytree.cli.exits import Exit
from tallytree.cli.inputs import problem_of
from tallytree.cli.options import Commands, input_options, json_option, memory, precision_option
from tallytree.cli.text import in_options, visible_lines
from tallytree.errors import BudgetError
from tallytree.io import ProblemFile
from tallytree.model.model import Model
from tallytree.planning.plan import Plan
from tallytree.solving import plan as plan_of
from tallytree.solving import profile
from tallytree.statistics.recipes import count


def add(commands: Commands) -> None:
    """Declare the command."""
    plan = commands.add(
        "plan",
        _plan,
        "show the cost of solve and profile without running them",
        "problem.json",
        "model.uai --count ones=1",
    )
    input_options(plan)
    json_option(plan)
    precision_option(plan)


def _plan(options: Namespace) -> int:
    problem = problem_of(options)
    solving = _solve_plan(problem, options)
    whole = _profile_plan(problem, solving, options)
    rate = _rate()
    if options.json:
        document = _json(solving, rate)
        if isinstance(solving, BudgetError):
            document["bounds"] = reports.search_json(problem.search_price(order=options.order), rate)
        if whole is not None:
            document["profile"] = _json(whole, rate)
        print(reports.as_json(document))
    else:
        print("\n".join(_lines("solve", solving, rate)))
        if whole is not None:
            print("\n".join(_lines("profile", whole, rate)))
    return Exit.OK


def _json(found: Plan | BudgetError, rate: float) -> dict[str, Any]:
    if isinstance(found, BudgetError):
        return {"error": in_options(str(found))}
    return reports.plan_json(found, rate)


def _solve_plan(problem: ProblemFile, options: Namespace) -> Plan | BudgetError:
    """Return the plan of the tables, or the reason why there is none, if bounds can solve it without them."""
    try:
        return problem.plan(operation_limit=None, precision=options.precision, **memory(options))
    except BudgetError as error:
        if options.precision == "single" or problem.search_price(order=options.order) is None:
            raise
        return error


def _profile_plan(
    problem: ProblemFile, solving: Plan | BudgetError, options: Namespace
) -> Plan | BudgetError | None:
    """Return the plan of the full profile, or the reason why there is none; None if it is that of solving."""
    if isinstance(solving, Plan) and solving.statistics == problem.statistics and not solving.window:
        return None
    try:
        whole: Plan = plan_of(problem.model, problem.statistics, **memory(options))
    except BudgetError as error:
        return error
    return whole


def _lines(command: str, found: Plan | BudgetError, rate: float) -> Iterator[str]:
    if isinstance(found, BudgetError):
        yield f"{command}: {visible_lines(in_options(str(found)))}"
        return
    yield f"{command}: {visible_lines(found)}"
    seconds = f"about {_seconds(found.operations / rate)}"
    if found.search is not None:
        seconds += f" for the tables, {_seconds(found.search.operations / rate)} by bounds"
    yield f"  {seconds}, at {rate / 1e9:.2g} Gop/s as just measured"


def _seconds(seconds: float) -> str:
    if seconds < 0.01:
        return "0.01 s or less"
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _rate() -> float:
    """Return the add-max operations per second of this machine: the best of a few small runs."""
    model = Model.chain(np.zeros((200, 8)), np.zeros((8, 8)))
    made: Any = plan_of(model, [count(state=1)])
    times = []
    for _ in range(3):
        start = perf_counter()
        profile(model, made.statistics, plan=made)
        times.append(perf_counter() - start)
    return float(made.operations / min(times))
