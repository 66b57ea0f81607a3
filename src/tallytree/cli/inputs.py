"""From a file in any supported format, and options that add to it, to a problem."""

from __future__ import annotations

import errno
import math
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from tallytree.cli.exits import UsageError
from tallytree.cli.text import visible
from tallytree.errors import ModelError, TallytreeError
from tallytree.io import (
    CostScale,
    Parameter,
    ProblemFile,
    read_cfn,
    read_problem,
    read_uai,
    read_wcsp,
    write_cfn,
    write_problem,
    write_uai,
    write_wcsp,
)
from tallytree.io.files import Source, read_stream, source, unpacked_name
from tallytree.model.model import Model
from tallytree.statistics.constraints import Constraint, all_of
from tallytree.statistics.formulas import Formula
from tallytree.statistics.recipes import count
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import nearest

_ASSIGNED = re.compile(r"""(\s*'[^']*'\s*|\s*"[^"]*"\s*|[^=]*)(=?)(.*)""", re.DOTALL)
"""NAME=VALUE; a quoted name may contain equals signs."""

STANDARD_INPUT = "standard input"
FORMATS = ("json", "uai", "wcsp", "cfn")
_WCSP = re.compile(rb"\s*\S+(\s+\d+){4}\s")
"""A name and four numbers, with which .wcsp files begin."""
_VERSION = re.compile(rb'"tallytree"\s*:')
"""The key that every problem file has; in a network, the word can only be a name."""


def problem_of(options: Namespace) -> ProblemFile:
    """Read the file, then apply the options."""
    origin = read_source(options.file)
    known = options.format or format_of_path(options.file)
    kind = known or _sniffed(origin.data)
    if kind is None:
        raise ModelError(
            f"the format of {origin.name} is not recognised, by its name or its content; if it is a model, "
            f"set --format: {', '.join(FORMATS)}"
        )
    if options.evidence is not None and kind != "uai":
        raise UsageError(f"--evidence is for UAI files, but {origin.name} is read as {kind}; use --fix")
    try:
        problem = _uai(origin, options) if kind == "uai" else _READERS[kind](origin)
    except ModelError as error:
        hint = "" if options.format else _format_hint(known, origin.data)
        if not hint:
            raise
        raise ModelError(f"{error} ({hint})") from None
    return _extended(problem, options)


def read_source(place: str) -> Source:
    """Read a file, or standard input for ``-``."""
    return read_stream(standard_input(), STANDARD_INPUT) if place == "-" else source(place)


def name_of(place: str) -> str:
    """Return the name of a file for error messages."""
    return STANDARD_INPUT if place == "-" else place


def check_apart(output: str | None, *inputs: str | None) -> None:
    """Raise an error if the output would overwrite an input."""
    if output is None or not Path(output).is_file():
        return
    if any(place is not None and Path(place).exists() and Path(place).samefile(output) for place in inputs):
        raise UsageError(f"{output} would be overwritten, but it is also an input; give -o another name")


def standard_input() -> BinaryIO:
    """Return the bytes of standard input, which a script may have closed."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed, so nothing can be read", STANDARD_INPUT)
    if sys.stdin.isatty():
        sys.stderr.write(
            "tallytree: reading standard input, up to Ctrl-D; give a file to read that instead\n"
        )
    return sys.stdin.buffer


def format_of_path(path: str) -> str | None:
    """Return the format for a file name extension, if any; that of a compression is ignored."""
    suffix = Path(unpacked_name(path)).suffix.lower().removeprefix(".")
    return suffix if suffix in FORMATS else None


def _sniffed(data: bytes) -> str | None:
    start = data.lstrip()[:6]
    if start.startswith((b"MARKOV", b"BAYES")):
        return "uai"
    if start.startswith((b"{", b"[")):
        return "json" if _VERSION.search(data) else "cfn"
    return "wcsp" if _WCSP.match(data) else None


def _format_hint(known: str | None, data: bytes) -> str:
    """Say how the format of a file that cannot be read was found, if another one is likely."""
    likely = _sniffed(data)
    if known is None:
        return f"read as {likely}, by its content; --format sets another format"
    other = likely not in (None, "wcsp", known) and (likely == "uai" or known in ("uai", "wcsp"))
    return f"read as {known}, by its name; it looks like {likely}: use --format {likely}" if other else ""


def _uai(origin: Source, options: Namespace) -> ProblemFile:
    evidence = None if options.evidence is None else read_source(options.evidence)
    if evidence is None and not options.quiet:
        _mention_evidence(options.file)
    return ProblemFile(read_uai(origin, evidence))


def _mention_evidence(model: str) -> None:
    """Say that there is evidence beside a UAI file, which other solvers read by themselves."""
    path = Path(f"{unpacked_name(model)}.evid")
    try:
        observed = path.read_bytes().split()[:2]
    except OSError:
        return
    if observed and observed != [b"0"]:
        sys.stderr.write(
            f"tallytree: {visible(path)} is not used; to use it, add --evidence {visible(path)}\n"
        )


_READERS: Mapping[str, Callable[[Source], ProblemFile]] = {
    "json": read_problem,
    "wcsp": read_wcsp,
    "cfn": read_cfn,
}


# --- what the options add -----------------------------------------------------------------------------------


def _extended(problem: ProblemFile, options: Namespace) -> ProblemFile:
    model = problem.model.restricted(
        {_number(v): _number(unquoted(s)) for v, s in pairs(options.fix, "--fix")}
    )
    counts = [_count(name, states) for name, states in pairs(options.count, "--count")]
    values = {name: _value(name, value) for name, value in pairs(options.set, "--set")}
    statistics: list[Statistic | Recipe] = [*problem.statistics, *counts]
    where = [
        *([] if problem.where is None else [problem.where.text]),
        *(condition(text).text for text in options.where),
    ]
    joined = " and ".join(where if len(where) == 1 else [f"({text})" for text in where])
    unknown = [name for name in values if name not in problem.parameters]
    parameters: dict[str, float | Parameter] = {**problem.parameters}
    parameters.update({name: values[name] for name in unknown})
    objective = problem.objective if options.objective is None else options.objective
    extended = ProblemFile(model, statistics, objective, where=joined or None, parameters=parameters)
    _check_read(extended, unknown)
    return extended.with_parameters(**{n: v for n, v in values.items() if n not in unknown})


def _check_read(problem: ProblemFile, names: list[str]) -> None:
    """Raise an error for new parameters that no formula reads: they are probably misspelt."""
    formulas = [formula for formula in (problem.objective, problem.where) if formula is not None]
    read = {name for formula in formulas for name in formula.names}
    for name in names:
        if name not in read:
            known = [other for other in problem.parameters if other not in names]
            raise UsageError(f"--set {name}: no formula uses it; {_near(name, known, 'parameter')}")


def condition_of(problem: ProblemFile, options: Namespace) -> Constraint | None:
    """Return what probabilities are given: the constraint of the problem, and the tallies of ``--given``."""
    parts = [] if problem.constraint is None else [problem.constraint]
    known = dict(zip(problem.names, problem.statistics, strict=True))
    for name, value in pairs(getattr(options, "given", []), "--given"):
        if name not in known:
            add = "" if known else "; add one with --count NAME=STATE"
            hint = _near(name, list(known), "statistic")
            raise ModelError(f"--given {name}: there is no such statistic; {hint}{add}")
        parts.append(known[name] == _whole(name, value))
    return all_of(parts)


def _near(name: str, known: list[str], noun: str) -> str:
    """Suggest the nearest name, or list all."""
    near = nearest(name, known)
    if near:
        return f"did you mean {near!r}?"
    return f"the {noun}s are {', '.join(known)}" if known else f"this problem has no {noun}s"


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--given {name}: expected an integer, got {text!r}") from None


def condition(text: str) -> Formula:
    """Read a condition by itself, before it is put in parentheses and joined with others."""
    try:
        return Formula(text)
    except ModelError as error:
        raise ModelError(f"--where: {error}") from None


def pairs(given: list[str], option: str) -> list[tuple[str, str]]:
    """Split options of the form NAME=VALUE."""
    parts = [match.groups() for text in given if (match := _ASSIGNED.fullmatch(text)) is not None]  # always
    for name, sign, value in parts:
        if not (name.strip() and sign and value.strip()):
            raise UsageError(f"{option} takes NAME=VALUE, got {name + sign + value!r}")
    names = [unquoted(name.strip()) for name, _, _ in parts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{option} sets {twice!r} twice; give it once")
    return [(name, value.strip()) for name, (_, _, value) in zip(names, parts, strict=True)]


def unquoted(text: str) -> str:
    """Return a name without the quotes that it needs in a formula.

    Examples
    --------
    >>> unquoted("'B-NP'"), unquoted('"B-NP"'), unquoted("B-NP"), unquoted("''")
    ('B-NP', 'B-NP', 'B-NP', "''")
    """
    mark, inside = text[:1], text[1:-1]
    return (
        inside if mark in ("'", '"') and text.endswith(mark) and inside.strip(mark) == inside != "" else text
    )


def _number(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else text


def _count(name: str, states: str) -> Recipe:
    return count(state=[_number(unquoted(state.strip())) for state in states.split(",")], name=name)


def _value(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"--set {name}: expected a number, got {text!r}") from None
    if not math.isfinite(value):
        raise UsageError(f"--set {name}: expected a finite number, got {text!r}")
    return value


# --- writing ------------------------------------------------------------------------------------------------


def write(problem: ProblemFile, path: str, kind: str, decimals: int | None) -> CostScale | None:
    """Write a problem in a format; for costs, return how they convert to scores."""
    if kind == "json":
        write_problem(problem, path)
        return None
    if kind == "uai":
        write_uai(_plain(problem), path)
        return None
    return {"wcsp": write_wcsp, "cfn": write_cfn}[kind](problem, path, decimals=decimals)


def _plain(problem: ProblemFile) -> Model:
    if problem.where is not None or problem.objective is not None:
        raise ModelError(
            "a UAI file can only hold a model, but this problem has a constraint or an objective. "
            "Write a .json file, or a .cfn file if its constraint is a conjunction of counts"
        )
    return problem.model


def learning() -> ModuleType:
    """Return :mod:`tallytree.learning`, which takes a second to import."""
    try:
        import tallytree.learning as module
    except ImportError as error:
        raise TallytreeError(str(error)) from None
    return module
