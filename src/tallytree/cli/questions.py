"""Solve problems: solve, profile, k-best, relax."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial

from tallytree.answers.solution import Solution
from tallytree.cli import reports
from tallytree.cli.exits import Exit, UnfinishedError
from tallytree.cli.forecasts import expected_seconds
from tallytree.cli.inputs import problem_of
from tallytree.cli.options import (
    Commands,
    budget,
    input_options,
    json_option,
    memory,
    natural,
    number,
    operations_option,
    precision_option,
    print_lines,
    shown,
    strategy_option,
    terminal_width,
    wrapping_width,
)
from tallytree.cli.text import in_options, progress, visible_lines
from tallytree.errors import BudgetError, InfeasibleError
from tallytree.io import ProblemFile
from tallytree.relaxation.result import WITHOUT_SOLUTION
from tallytree.values import counted


def add(commands: Commands) -> None:
    """Declare the commands."""
    solve = commands.add(
        "solve",
        _solve,
        "find the best labelling",
        "problem.json",
        'model.uai --count ones=1 --where "ones == 3"',
        'model.cfn --count wet=wet --objective "score - 2*abs(wet - 3)" --json',
    )
    profile = commands.add(
        "profile",
        _profile,
        "show the best score for every tally",
        "model.uai --count ones=1",
        "p.json --json",
    )
    k_best = commands.add(
        "k-best", _k_best, "find the k best labellings", "problem.json -k 10", "model.uai -k 5 --distance 3"
    )
    relax = commands.add(
        "relax",
        _relax,
        "bound the best score under a constraint when tables with counts do not fit in memory",
        'model.uai --count ones=1 --where "ones == 300"',
    )
    for command in (solve, profile, k_best, relax):
        input_options(command)
        json_option(command)
    for command in (solve, profile, k_best):
        operations_option(command)
    _add_own(solve, profile, k_best, relax)


def _add_own(
    solve: ArgumentParser, profile: ArgumentParser, k_best: ArgumentParser, relax: ArgumentParser
) -> None:
    """Add the options of single commands."""
    precision_option(solve)
    strategy_option(solve)
    solve.add_argument("--explain", action="store_true", help="explain why the answer is optimal")
    profile.add_argument(
        "--limit",
        type=natural,
        default=reports.MOST_ROWS,
        metavar="ROWS",
        help=f"the number of rows to show (default {reports.MOST_ROWS}; 0 for all)",
    )
    k_best.add_argument(
        "-k", "--number", type=natural, default=10, metavar="K", help="the number of labellings (default 10)"
    )
    k_best.add_argument(
        "--distance",
        type=number,
        metavar="N",
        help="diverse list: each labelling differs from all previous ones in at least N variables",
    )
    relax.add_argument(
        "--iterations",
        type=number,
        default=200,
        metavar="N",
        help="the maximum number of MAP problems to solve (default 200)",
    )


def _solve(options: Namespace) -> int:
    problem = problem_of(options)
    with progress("solving", shown=shown(options), expected=partial(expected_seconds, problem, options)):
        solution = problem.solve(**budget(options), precision=options.precision, strategy=options.strategy)
    if options.json:
        details: dict[str, object] = {"gap": solution.gap} if options.precision == "single" else {}
        details.update(reports.proof_json(solution))
        if options.explain:
            details["explanation"] = solution.explain()
        print(reports.as_json({**reports.solution_json(problem, solution), **details}))
    else:
        print_lines(reports.solution_lines(problem, solution, wrapping_width()))
        print_lines(reports.proof_lines(solution))
        if options.explain:
            print_lines(["", visible_lines(solution.explain())])
    return Exit.OK


def _profile(options: Namespace) -> int:
    problem = problem_of(options)
    whole = partial(expected_seconds, problem, options, whole=True)
    with progress("profile", shown=shown(options), expected=whole):
        profile = problem.profile(**budget(options))
    if not len(profile):
        raise InfeasibleError("every labelling is forbidden by a -inf factor, so there is no profile")
    if options.json:
        print(reports.as_json(reports.profile_json(problem, profile)))
    else:
        print_lines(reports.profile_lines(problem, profile, options.limit or None))
    return Exit.OK


def _fewer(found: int, distance: int | None) -> str:
    there = f"there {'is' if found == 1 else 'are'} only {counted(found, 'labelling')}"
    return there if distance is None else f"{there} at this distance"


def _k_best(options: Namespace) -> int:
    problem = problem_of(options)
    with progress(f"the {options.number} best", shown=shown(options)):
        solutions, error = _found(problem, options)
    if options.number and not solutions:
        problem.solve(**budget(options))  # its error says which tallies are the nearest
        raise InfeasibleError("no labelling satisfies the constraint")
    listed = [reports.solution_json(problem, solution) for solution in solutions] if options.json else []
    if error is not None and options.json:
        raise UnfinishedError(str(error), {"labellings": listed})
    if options.json:
        print(reports.as_json(listed))
    else:
        print_lines(reports.ranked_lines(problem, solutions, terminal_width()))
    if error is not None:
        raise error
    if len(solutions) < options.number and not options.json:
        sys.stderr.write(f"tallytree: {_fewer(len(solutions), options.distance)}, not {options.number}\n")
    return Exit.OK


def _found(problem: ProblemFile, options: Namespace) -> tuple[Sequence[Solution], BudgetError | None]:
    """Return the best labellings; and the error that ended a diverse list, after those found before it."""
    try:
        return problem.k_best(options.number, distance=options.distance, **budget(options)), None
    except BudgetError as error:
        if not error.found:
            raise
        return error.found, error


def _relax(options: Namespace) -> int:
    problem = problem_of(options)
    with progress("relaxation", shown=shown(options)):
        relaxation = problem.relax(iterations=options.iterations, **memory(options))
    if options.json:
        best = None if relaxation.solution is None else reports.solution_json(problem, relaxation.solution)
        document = {"upper_bound": relaxation.upper_bound, "gap": relaxation.gap, "solution": best}
        print(reports.as_json({**document, "multipliers": list(relaxation.multipliers)}))
        return Exit.OK
    print(f"bound  {relaxation.upper_bound:.10g}: no allowed labelling has a higher score")
    exact = "" if relaxation.solution is None else "; `tallytree solve` may find the best labelling"
    gap = "0: the labelling is optimal" if relaxation.optimal else f"{relaxation.gap:.6g}{exact}"
    print(f"gap    {gap}")
    if relaxation.solution is None:
        print(f"no allowed labelling was found: {in_options(WITHOUT_SOLUTION)}")
    else:
        print_lines(reports.solution_lines(problem, relaxation.solution, wrapping_width()))
    return Exit.OK
