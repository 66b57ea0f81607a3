"""The commands and their options. Numbers go to standard output, everything else to standard error."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from io import TextIOWrapper
from pathlib import Path

import tallytree
from tallytree import demo
from tallytree.cli import reports
from tallytree.cli.completion import SHELLS, script
from tallytree.cli.exits import MEANINGS, Exit, exit_of
from tallytree.cli.inputs import FORMATS, format_of_path, problem_of, write
from tallytree.cli.progress import progress
from tallytree.errors import InfeasibleError, ModelError, TallytreeError
from tallytree.explorer import write_page
from tallytree.io import problem_schema
from tallytree.io.problems import MOST_OPERATIONS

__all__ = ["main", "parser"]

Command = Callable[[Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without τ shows ?, and no traceback
    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, perhaps `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except (TallytreeError, OSError, KeyboardInterrupt) as error:
        return _failed(error, getattr(options, "json", False))
    return code


def _failed(error: BaseException, as_json: bool) -> int:
    text = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
    if isinstance(error, OSError) and not isinstance(error, TallytreeError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if as_json:
        print(reports.as_json({"error": {"kind": type(error).__name__, "message": text}}))
    sys.stderr.write(f"tallytree: {text}\n")
    return exit_of(error)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 100_000


def _budget(options: Namespace) -> dict[str, float | None]:
    return {"memory_limit": options.memory, "operation_limit": options.operations or None}


def _shown(options: Namespace) -> bool:
    return not (options.quiet or options.json)


# --- the commands -------------------------------------------------------------------------------------------


def _solve(options: Namespace) -> int:
    problem = problem_of(options)
    with progress("solving", shown=_shown(options)):
        solution = problem.solve(**_budget(options))
    if options.json:
        told = {"explanation": solution.explain()} if options.explain else {}
        print(reports.as_json({**reports.solution_json(problem, solution), **told}))
    else:
        _print(reports.solution_lines(problem, solution, _width()))
        if options.explain:
            _print(["", solution.explain()])
    return Exit.OK


def _plan(options: Namespace) -> int:
    problem = problem_of(options)
    plan = problem.plan(memory_limit=options.memory, operation_limit=None)
    print(reports.as_json(reports.plan_json(plan)) if options.json else plan)
    return Exit.OK


def _profile(options: Namespace) -> int:
    problem = problem_of(options)
    with progress("profile", shown=_shown(options)):
        profile = problem.profile(**_budget(options))
    if not len(profile):
        raise InfeasibleError("every labelling is forbidden by a -inf factor, so there is no profile")
    if options.json:
        print(reports.as_json(reports.profile_json(problem, profile)))
    else:
        _print(reports.profile_lines(problem, profile, options.limit or None))
    return Exit.OK


def _k_best(options: Namespace) -> int:
    problem = problem_of(options)
    with progress(f"the {options.number} best", shown=_shown(options)):
        found = problem.k_best(options.number, **_budget(options))
    if options.json:
        print(reports.as_json([reports.solution_json(problem, solution) for solution in found]))
    else:
        _print(reports.ranked_lines(problem, found, _width()))
    if not found:
        sys.stderr.write("tallytree: no labelling satisfies the constraint\n")
    return Exit.OK if found else Exit.INFEASIBLE


def _convert(options: Namespace) -> int:
    kind = options.to or format_of_path(options.output)
    if kind is None:
        raise ModelError(f"say with --to what format {options.output} is to have: {', '.join(FORMATS)}")
    said = write(problem_of(options), options.output, kind, options.decimals)
    if said and not options.quiet:
        sys.stderr.write(f"{said}\n")
    return Exit.OK


def _explore(options: Namespace) -> int:
    problem = problem_of(options)
    named = "problem" if options.file == "-" else Path(options.file).stem
    output = options.output or f"{named}.html"
    with progress("the profile and its labellings", shown=not options.quiet):
        write_page(problem, output, title=options.title or named, **_budget(options))
    print(output)
    if options.open:
        webbrowser.open(Path(output).resolve().as_uri())
    return Exit.OK


def _demo(options: Namespace) -> int:
    demo.main([] if options.png is None else ["--png", options.png])
    return Exit.OK


def _schema(options: Namespace) -> int:
    print(reports.as_json(problem_schema()))
    return Exit.OK


def _completion(options: Namespace) -> int:
    print(script(parser(), options.shell))
    return Exit.OK


# --- the parser ---------------------------------------------------------------------------------------------

_EXITS = "\n".join(f"  {code:>4}  {meaning}" for code, meaning in MEANINGS.items())
_EPILOG = f"""examples:
  tallytree solve problem.json
  tallytree solve model.uai --evidence model.evid --count ones=1 --where "ones <= 5"
  tallytree profile model.cfn --count ones=1
  cat model.uai | tallytree k-best - -k 10 --json
  tallytree convert model.wcsp problem.json

exit codes:
{_EXITS}
"""


def parser() -> ArgumentParser:
    """Make the parser of the command line."""
    top = ArgumentParser(
        prog="tallytree",
        description="Exact MAP inference with counts of the whole labelling.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"tallytree {tallytree.__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, run: Command, about: str, *examples: str) -> ArgumentParser:
        shown = "".join(f"  tallytree {name} {example}\n" for example in examples)
        made = commands.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=f"examples:\n{shown}" if shown else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(run=run)
        return made

    solve = command(
        "solve",
        _solve,
        "find the best labelling",
        "problem.json",
        'model.uai --count ones=1 --where "ones == 3"',
        'model.cfn --count wet=wet --objective "score - 2*abs(wet - 3)" --json',
    )
    plan = command("plan", _plan, "show what solving would cost, without doing it", "problem.json")
    profile = command(
        "profile",
        _profile,
        "show the best score for every tally",
        "model.uai --count ones=1",
        "p.json --json",
    )
    k_best = command("k-best", _k_best, "find the k best labellings", "problem.json -k 10")
    convert = command(
        "convert",
        _convert,
        "write a problem in another format",
        "model.wcsp problem.json",
        "- out.uai --format cfn",
    )
    for one in (solve, plan, profile, k_best, convert):
        _input_options(one)
    for one in (solve, plan, profile, k_best):
        one.add_argument("--json", action="store_true", help="print JSON")
    for one in (solve, profile, k_best):
        _operations_option(one)
    solve.add_argument("--explain", action="store_true", help="say why the answer is optimal")
    profile.add_argument(
        "--limit",
        type=_natural,
        default=reports.MOST_ROWS,
        metavar="ROWS",
        help="show so many rows; 0 for all",
    )
    k_best.add_argument(
        "-k", "--number", type=_natural, default=10, metavar="K", help="how many (default 10)"
    )
    convert.add_argument("output", help="the file to write")
    convert.add_argument("--to", choices=FORMATS, help="its format; by default from its name")
    convert.add_argument(
        "--decimals",
        type=_natural,
        metavar="N",
        help="digits of costs in .wcsp and .cfn (default: as many as there are, at most 6)",
    )
    explore = command(
        "explore",
        _explore,
        "write a page for the browser, with sliders for parameters and constraints",
        "problem.json",
        "model.uai --count ones=1 -o ones.html --open",
    )
    _input_options(explore)
    _operations_option(explore)
    explore.add_argument(
        "-o", "--output", metavar="FILE", help="the page (default: the file's name with .html)"
    )
    explore.add_argument("--title", help="the title of the page")
    explore.add_argument("--open", action="store_true", help="show it in the browser")
    tour = command("demo", _demo, "show a tour in the terminal")
    tour.add_argument("--png", metavar="FILE", help="also draw the profile, with matplotlib")
    command("schema", _schema, "print the JSON Schema of problem files")
    completion = command(
        "completion",
        _completion,
        "print a script that completes commands and options",
        "bash > ~/.local/share/bash-completion/completions/tallytree",
        "fish > ~/.config/fish/completions/tallytree.fish",
    )
    completion.add_argument("shell", choices=SHELLS)
    return top


def _operations_option(command: ArgumentParser) -> None:
    command.add_argument(
        "--operations",
        type=_amount,
        default=MOST_OPERATIONS,
        metavar="N",
        help="refuse to run more operations than this (default 1T; 0 for no limit)",
    )


def _input_options(command: ArgumentParser) -> None:
    add = command.add_argument
    add("file", help="a problem file (.json), a model (.uai, .wcsp, .cfn), or - for standard input")
    add("--format", choices=FORMATS, help="the format, where the name does not say")
    add("--evidence", metavar="FILE", help="observed variables of a UAI model")
    add(
        "--count",
        action="append",
        default=[],
        metavar="NAME=STATE[,STATE]",
        help="count variables in a state",
    )
    add("--where", action="append", default=[], metavar="FORMULA", help="a constraint; may come again")
    add("--objective", metavar="FORMULA", help="what to maximise, instead of the file's own")
    add("--set", action="append", default=[], metavar="NAME=NUMBER", help="the value of a parameter")
    add(
        "--fix",
        action="append",
        default=[],
        metavar="VARIABLE=STATE",
        help="a state that a variable must take",
    )
    add(
        "--memory",
        type=_amount,
        metavar="BYTES",
        help="the memory limit, such as 2G (default half of it all)",
    )
    add("--quiet", action="store_true", help="show no progress")


_UNITS = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}


def _amount(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d*)?(?:e\d{1,2})?)([KMGT]?)i?B?", text, re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a number such as 500M or 2G, got {text!r}")
    return float(match[1]) * _UNITS[match[2].upper()]


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}")
    return int(text)
