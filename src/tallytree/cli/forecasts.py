"""The cost of a problem, without solving it: plan."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from math import inf
from typing import Any

from tallytree.bounding.answering import check_operations
from tallytree.bounding.strategy import also
from tallytree.cli import reports
from tallytree.cli.exits import Exit
from tallytree.cli.inputs import condition_of, problem_of
from tallytree.cli.options import (
    Commands,
    budget,
    given_option,
    input_options,
    json_option,
    memory,
    operations_option,
    precision_option,
)
from tallytree.cli.speed import Speed, SumSpeed, measured, measured_sums
from tallytree.cli.text import in_options, visible, visible_lines
from tallytree.errors import BudgetError, TallytreeError
from tallytree.io import ProblemFile
from tallytree.planning.budget import readable_bytes, readable_count
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan
from tallytree.planning.printed import printed
from tallytree.planning.search_price import SearchPrice
from tallytree.solving import plan as plan_of


def add(commands: Commands) -> None:
    """Declare the command."""
    plan = commands.add(
        "plan",
        _plan,
        "show the cost of solve, profile and probabilities without running them",
        "problem.json",
        "model.uai --count ones=1",
        "model.uai --count ones=1 --given ones=5",
    )
    input_options(plan)
    given_option(plan)
    json_option(plan)
    operations_option(plan)
    precision_option(plan)


def _plan(options: Namespace) -> int:
    problem = problem_of(options)
    solving = _solve_plan(problem, options)
    whole = _profile_plan(problem, solving, options)
    sums = _sum_plan(problem, solving if whole is None else whole, options)
    speed = measured()
    if options.json:
        document = _json(solving, speed)
        if isinstance(solving, BudgetError):
            document["bounds"] = reports.search_json(problem.search_price(order=options.order), speed)
        if whole is not None:
            document["profile"] = _json(whole, speed)
        if isinstance(sums, Plan):
            document["probabilities"] = _sums_json(sums, speed)
        print(reports.as_json(document))
        return Exit.OK
    if isinstance(solving, BudgetError):
        print("\n".join(_search_lines(solving, problem.search_price(order=options.order), speed)))
    else:
        print("\n".join(_lines("solve", solving, speed)))
    unread = [name for name in problem.names if isinstance(solving, Plan) and name not in solving.names]
    if unread and problem.constraint is None:
        print(f"  without {visible(', '.join(unread))}, which the objective does not use")
    if whole is not None:
        print("\n".join(_lines("profile", whole, speed)))
    print(_sums_line(sums, speed))
    return Exit.OK


def _json(found: Plan | BudgetError, speed: Speed) -> dict[str, Any]:
    if isinstance(found, BudgetError):
        return {"error": in_options(str(found))}
    return reports.plan_json(found, speed)


def _solve_plan(problem: ProblemFile, options: Namespace) -> Plan | BudgetError:
    """Return the plan of the tables, or the reason why there is none, if bounds can solve it without them."""
    try:
        return problem.plan(precision=options.precision, **budget(options))
    except BudgetError as error:
        none = error.too_wide or options.precision == "single"
        price = None if none else problem.search_price(order=options.order)
        if price is not None and _within_limits(price, options):
            return error
        if price is None or error.cause:  # an error about memory has the cost of a search
            raise
        operations = readable_count(price.operations)
        search = f"A search by bounds is expected to exceed the limits, too: {operations} operations"
        raise BudgetError(also(error, f"{search}, {price.words}")) from None


def _within_limits(price: SearchPrice, options: Namespace) -> bool:
    """Whether a search by bounds is expected to stay within the limits."""
    room = PlanOptions(memory_limit=options.memory).limit
    return price.peak_bytes <= room and price.operations <= (options.operations or inf)


def _profile_plan(
    problem: ProblemFile, solving: Plan | BudgetError, options: Namespace
) -> Plan | BudgetError | None:
    """Return the plan of the full profile, or the reason why there is none; None if it is that of solving."""
    if isinstance(solving, Plan) and solving.statistics == problem.statistics and not solving.window:
        return None
    try:
        whole: Plan = plan_of(problem.model, problem.statistics, **memory(options))
        check_operations(whole, options.operations or None)
    except BudgetError as error:
        return error
    return whole


def _sum_plan(problem: ProblemFile, known: Plan | BudgetError, options: Namespace) -> Plan | BudgetError:
    """Return the plan of probabilities given a condition, or the reason why there is none."""
    where = condition_of(problem, options)
    if where is None and (isinstance(known, BudgetError) or known.statistics == problem.statistics):
        return known
    try:
        return problem.distribution_plan(where=where, **budget(options))
    except BudgetError as error:
        return error


def _sums_json(plan: Plan, speed: Speed) -> dict[str, Any]:
    return {
        "operations": plan.operations,
        **{
            command: {"seconds": seconds, "peak_bytes": size}
            for command, seconds, size in _sum_prices(plan, speed)
        },
    }


def _sums_line(found: Plan | BudgetError, speed: Speed) -> str:
    """Return the cost of probabilities in one line."""
    if isinstance(found, BudgetError):
        return "distribution, sample, marginals: the tables exceed the limits"
    lines = []
    for command, seconds, size in _sum_prices(found, speed):
        over = f", over the limit of {readable_bytes(found.limit)}" if size > found.limit else ""
        also = " and sample" if command == "distribution" else ""
        lines.append(f"{command}{also}: about {_seconds(seconds)}, {readable_bytes(size)}{over}")
    return "\n".join(lines)


def _sum_prices(plan: Plan, speed: Speed) -> list[tuple[str, float, float]]:
    """Return seconds and bytes: sums are slower than maxima, and marginals need a second set of tables."""
    sums: SumSpeed = measured_sums(tallied=plan.tallies > 1)
    once, twice = plan.every_table_bytes, plan.every_table_bytes + plan.table_bytes
    up = plan.operations / sums.upward + once / speed.bytes
    down = plan.operations / sums.downward + plan.table_bytes / speed.bytes
    return [("distribution", up, once), ("marginals", up + down, twice)]


def _search_lines(error: BudgetError, price: SearchPrice | None, speed: Speed) -> Iterator[str]:
    """Return the cost of solving by bounds, and why there are no tables."""
    assert price is not None
    yield f"solve: by bounds, {price.words}"
    yield f"  about {_seconds(speed.seconds(price))} on an idle machine; longer on a busy one ({speed})"
    yield "  this is an expectation: the search may still reach a limit, and solve then exits with 5"
    yield f"  the tables exceed the limits: {visible(in_options(_cause(error)))}"


def _cause(error: BudgetError) -> str:
    """Return what is wrong, without advice."""
    return str(error).splitlines()[0].split("; raise ")[0].split(". ")[0]


def _lines(command: str, found: Plan | BudgetError, speed: Speed) -> Iterator[str]:
    if isinstance(found, BudgetError):
        yield f"{command}: {visible_lines(in_options(str(found)))}"
        return
    single = command == "solve"  # bounds answer one question, so they do not give a profile
    yield f"{command}: {visible_lines(in_options(printed(found, search=single)))}"
    seconds = f"about {_seconds(speed.seconds(found))}"
    if single and found.search is not None:
        seconds += f" for the tables, {_seconds(speed.seconds(found.search))} by bounds,"
    yield f"  {seconds} on an idle machine; longer on a busy one ({speed})"


def _seconds(seconds: float) -> str:
    if seconds < 0.01:
        return "0.01 s or less"
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def expected_sums(plan: Plan, *, marginals: bool) -> float:
    """Estimate the time of the sums of a plan, or of the further pass for marginals."""
    (_, up, _), (_, both, _) = _sum_prices(plan, measured())
    return both - up if marginals else up


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
