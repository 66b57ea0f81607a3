"""Write problems to other files: convert, explore."""

from __future__ import annotations

import sys
import tempfile
import warnings
import webbrowser
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallytree.cli import reports
from tallytree.cli.exits import Exit, UsageError
from tallytree.cli.inputs import FORMATS, check_apart, format_of_path, problem_of, write
from tallytree.cli.options import Commands, budget, input_options, json_option, natural, operations_option
from tallytree.cli.text import for_terminal, progress, visible, visible_lines
from tallytree.explorer import write_page
from tallytree.io import CostScale, ProblemFile
from tallytree.io.cfn_writing import unsupported_names
from tallytree.io.files import unpacked_name


def add(commands: Commands) -> None:
    """Declare the commands."""
    convert = commands.add(
        "convert",
        _convert,
        "write a problem in another format",
        "model.wcsp -o problem.json",
        "- -o out.uai --format cfn",
        "model.uai -o - --to json",
    )
    convert.set_defaults(usage_error=convert.error)
    input_options(convert)
    convert.add_argument("target", nargs="?", metavar="output", help="the file to write, as with -o")
    _output_option(convert, "the file to write, or - for standard output")
    convert.add_argument("--to", choices=FORMATS, help="the format of the output (default: from its name)")
    convert.add_argument(
        "--decimals",
        type=natural,
        metavar="N",
        help="decimal digits of costs in .wcsp and .cfn files (default: as many as needed, at most 15)",
    )
    explore = commands.add(
        "explore",
        _explore,
        "write an HTML page with sliders for parameters and constraints",
        "problem.json",
        "model.uai --count ones=1 -o ones.html --open",
    )
    input_options(explore)
    operations_option(explore)
    _output_option(
        explore, "the page to write, or - for standard output (default: the file's name with .html)"
    )
    explore.add_argument("--title", help="the title of the page")
    explore.add_argument("--open", action="store_true", help="open the page in the browser")
    for one in (convert, explore):
        json_option(one, "print the name of the written file as JSON")


def _output_option(command: ArgumentParser, about: str) -> None:
    command.add_argument("-o", "--output", metavar="FILE", help=about)


def _convert(options: Namespace) -> int:
    options.output = _one_output(options)
    kind = options.to or format_of_path(options.output)
    if kind is None:
        raise UsageError(f"give the format of {options.output} with --to: {', '.join(FORMATS)}")
    problem = problem_of(options)
    with _written(options.output) as path, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scale = write(problem, path, kind, options.decimals)
    for warning in caught:
        if not options.quiet:
            sys.stderr.write(f"tallytree: {visible_lines(warning.message)}\n")
    names = _lost_names(problem, kind)
    if names and not options.quiet:
        sys.stderr.write(f"tallytree: {kind} files cannot store {names}\n")
    lost = _lost(problem, kind)
    if lost and not options.quiet:
        sys.stderr.write(f"tallytree: {kind} files cannot store statistics; omitted: {', '.join(lost)}\n")
    if options.json:
        parts = {} if scale is None else {"offset": scale.offset, "scale": scale.scale}
        _print_json(options, {"output": options.output, "format": kind, **parts})
    elif scale is not None and not options.quiet:
        sys.stderr.write(f"{_scale(scale)}\n")
    return Exit.OK


def _lost_names(problem: ProblemFile, kind: str) -> str:
    """Return which names the file will not contain, and what there is in their place."""
    model = problem.model
    if kind in ("uai", "wcsp"):
        named = model.variables is not None or (len(model) > 0 and model.states_of(0) is not None)
        return "names; variables and states become numbers" if named else ""
    variable, state = unsupported_names(model) if kind == "cfn" else (None, None)
    lost = [f"the name {visible(variable)!r}; all variables become x0, x1, ..."] if variable else []
    lost += [f"the name {visible(state)!r}; states of its variables become v0, v1, ..."] if state else []
    return ", and not ".join(lost)


def _lost(problem: ProblemFile, kind: str) -> list[str]:
    """Return the statistics that the file will not contain; a constraint contains its own."""
    if kind == "json":
        return []
    read = () if problem.constraint is None else problem.constraint.statistics
    return [s.name for s in problem.statistics if s not in read]


def _one_output(options: Namespace) -> str:
    """Return the output, which is given with -o or after the file."""
    given: list[str] = [name for name in (options.target, options.output) if name is not None]
    if not given:
        options.usage_error("give the file to write: tallytree convert FILE OUTPUT, or -o OUTPUT")
    if len(given) > 1:
        options.usage_error(f"the output is given twice: {given[0]} and -o {given[1]}")
    return given[0]


def _scale(scale: CostScale) -> str:
    """Explain how the costs that were written convert to scores."""
    cost = "cost" if scale.scale == 1 else f"cost / {scale.scale:g}"
    return f"score = {scale.offset:.15g} - {cost}" if scale.offset else f"score = -{cost}"


def _explore(options: Namespace) -> int:
    check_apart(options.output, options.file)
    if options.output not in (None, "-") and Path(options.output).suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"explore writes an HTML page, so {options.output} should end in .html")
    problem = problem_of(options)
    named = "problem" if options.file == "-" else Path(unpacked_name(options.file)).stem
    output = options.output or f"{named}.html"
    with (
        progress("computing the profile and its labellings", shown=not options.quiet),
        _written(output) as path,
    ):
        write_page(problem, path, title=options.title or named, **budget(options))
    if options.json:
        _print_json(options, {"output": output})
    elif output != "-":
        print(visible(output))
    if options.open and output != "-":
        webbrowser.open(Path(output).resolve().as_uri())
    return Exit.OK


@contextmanager
def _written(output: str) -> Iterator[str]:
    """Yield the path to write to; output for standard output is copied there at the end."""
    if output != "-":
        yield output
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "output"
        yield str(path)
        sys.stdout.write(for_terminal(path.read_text(encoding="utf-8"), sys.stdout))


def _print_json(options: Namespace, document: dict[str, object]) -> None:
    """Print a JSON document; to standard error if standard output is in use."""
    stream = sys.stderr if options.output == "-" else sys.stdout
    stream.write(reports.as_json(document) + "\n")
