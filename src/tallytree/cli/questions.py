"""Questions about a problem: solve, plan, profile, k-best."""

from __future__ import annotations

import sys
from argparse import Namespace

from tallytree.cli import reports
from tallytree.cli.exits import Exit
from tallytree.cli.inputs import problem_of
from tallytree.cli.options import (
    Commands,
    budget,
    input_options,
    json_option,
    natural,
    operations_option,
    print_lines,
    shown,
    terminal_width,
)
from tallytree.cli.text import progress, visible_lines
from tallytree.errors import InfeasibleError


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
    plan = commands.add("plan", _plan, "show what solving would cost, without doing it", "problem.json")
    profile = commands.add(
        "profile",
        _profile,
        "show the best score for every tally",
        "model.uai --count ones=1",
        "p.json --json",
    )
    k_best = commands.add("k-best", _k_best, "find the k best labellings", "problem.json -k 10")
    for one in (solve, plan, profile, k_best):
        input_options(one)
        json_option(one)
    for one in (solve, profile, k_best):
        operations_option(one)
    for one in (solve, plan):
        one.add_argument(
            "--precision",
            choices=("double", "single"),
            default="double",
            help="single: half of the memory, and optimal up to a gap that is shown",
        )
    solve.add_argument("--explain", action="store_true", help="say why the answer is optimal")
    profile.add_argument(
        "--limit",
        type=natural,
        default=reports.MOST_ROWS,
        metavar="ROWS",
        help="show so many rows; 0 for all",
    )
    k_best.add_argument("-k", "--number", type=natural, default=10, metavar="K", help="how many (default 10)")


def _solve(options: Namespace) -> int:
    problem = problem_of(options)
    with progress("solving", shown=shown(options)):
        solution = problem.solve(**budget(options), precision=options.precision)
    if options.json:
        told: dict[str, object] = {"gap": solution.gap} if options.precision == "single" else {}
        if options.explain:
            told["explanation"] = solution.explain()
        print(reports.as_json({**reports.solution_json(problem, solution), **told}))
    else:
        print_lines(reports.solution_lines(problem, solution, terminal_width()))
        if options.explain:
            print_lines(["", visible_lines(solution.explain())])
    return Exit.OK


def _plan(options: Namespace) -> int:
    problem = problem_of(options)
    plan = problem.plan(memory_limit=options.memory, operation_limit=None, precision=options.precision)
    print(reports.as_json(reports.plan_json(plan)) if options.json else visible_lines(plan))
    return Exit.OK


def _profile(options: Namespace) -> int:
    problem = problem_of(options)
    with progress("profile", shown=shown(options)):
        profile = problem.profile(**budget(options))
    if not len(profile):
        raise InfeasibleError("every labelling is forbidden by a -inf factor, so there is no profile")
    if options.json:
        print(reports.as_json(reports.profile_json(problem, profile)))
    else:
        print_lines(reports.profile_lines(problem, profile, options.limit or None))
    return Exit.OK


def _k_best(options: Namespace) -> int:
    problem = problem_of(options)
    with progress(f"the {options.number} best", shown=shown(options)):
        found = problem.k_best(options.number, **budget(options))
    if options.json:
        print(reports.as_json([reports.solution_json(problem, solution) for solution in found]))
    else:
        print_lines(reports.ranked_lines(problem, found, terminal_width()))
    if found or not options.number:
        return Exit.OK
    sys.stderr.write("tallytree: no labelling satisfies the constraint\n")
    return Exit.INFEASIBLE
