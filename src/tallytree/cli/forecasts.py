"""The cost of a problem, without solving it: plan."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from tallytree.cli import reports
from tallytree.cli.exits import Exit
from tallytree.cli.inputs import problem_of
from tallytree.cli.options import Commands, input_options, json_option, memory, precision_option
from tallytree.cli.speed import Speed, measured
from tallytree.cli.text import in_options, visible_lines
from tallytree.errors import BudgetError, TallytreeError
from tallytree.io import ProblemFile
from tallytree.planning.plan import Plan
from tallytree.solving import plan as plan_of


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
    speed = measured()
    if options.json:
        document = _json(solving, speed)
        if isinstance(solving, BudgetError):
            document["bounds"] = reports.search_json(problem.search_price(order=options.order), speed)
        if whole is not None:
            document["profile"] = _json(whole, speed)
        print(reports.as_json(document))
    else:
        print("\n".join(_lines("solve", solving, speed)))
        if whole is not None:
            print("\n".join(_lines("profile", whole, speed)))
    return Exit.OK


def _json(found: Plan | BudgetError, speed: Speed) -> dict[str, Any]:
    if isinstance(found, BudgetError):
        return {"error": in_options(str(found))}
    return reports.plan_json(found, speed)


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


def _lines(command: str, found: Plan | BudgetError, speed: Speed) -> Iterator[str]:
    yield f"{command}: {visible_lines(in_options(str(found)))}"
    if isinstance(found, BudgetError):
        return
    seconds = f"about {_seconds(speed.seconds(found))}"
    if found.search is not None:
        seconds += f" for the tables, {_seconds(speed.seconds(found.search))} by bounds"
    yield f"  {seconds}, {speed}"


def _seconds(seconds: float) -> str:
    if seconds < 0.01:
        return "0.01 s or less"
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def expected_seconds(problem: ProblemFile, options: Namespace, *, whole: bool = False) -> float | None:
    """Estimate the time to solve with tables, or for the whole profile; None if it is unknown."""
    try:
        if whole:
            made: Plan = plan_of(problem.model, problem.statistics, **memory(options))
        else:
            made = problem.plan(operation_limit=None, precision=options.precision, **memory(options))
            if options.strategy == "bounds" or (made.search is not None and made.search.tried):
                return None
    except TallytreeError:
        return None
    return measured().seconds(made)
