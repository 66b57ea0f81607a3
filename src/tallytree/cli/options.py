"""Shared by the commands: declaring commands, the options of problems, and parsing numbers."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from tallytree.cli.arguments import CommandParser
from tallytree.cli.exits import UsageError
from tallytree.cli.inputs import FORMATS
from tallytree.cli.text import in_options
from tallytree.errors import ModelError
from tallytree.io.problems import MOST_OPERATIONS
from tallytree.losses.names import as_loss
from tallytree.planning.options import Strategy
from tallytree.planning.orders import METHODS
from tallytree.values import nearest

Command = Callable[[Namespace], int]


class Commands:
    """The commands of a parser."""

    def __init__(self, top: ArgumentParser) -> None:
        self.top = top
        self._added = top.add_subparsers(
            title="commands", required=True, metavar="COMMAND", parser_class=CommandParser
        )

    def add(self, name: str, run: Command, about: str, *examples: str) -> ArgumentParser:
        """Declare a command: the function to run, a line of help, and examples without the command name."""
        lines = "".join(f"  tallytree {name} {example}\n" for example in examples)
        made = self._added.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=f"examples:\n{lines}" if lines else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        made.set_defaults(run=run)
        made._others = self._added.choices
        return made


# --- options ------------------------------------------------------------------------------------------------


def input_options(command: ArgumentParser) -> None:
    """Add the arguments of a problem."""
    add = command.add_argument
    add(
        "file",
        help="a problem (.json) or a model (.uai, .wcsp, .cfn), also .gz, .xz, .bz2; - for standard input",
    )
    add("--format", choices=FORMATS, help="the format of the file (default: from its name)")
    add("--evidence", metavar="FILE", help="observed variables of a UAI model")
    count_options(command, "NAME=STATE[,STATE]", "count the variables in a state", "statistics")
    add("--objective", metavar="FORMULA", help="the formula to maximise instead of the objective in the file")
    add("--set", action="append", default=[], metavar="NAME=NUMBER", help="set a parameter; may be repeated")
    about = "fix the state of a variable; may be repeated"
    add("--fix", action="append", default=[], metavar="VARIABLE=STATE", help=about)
    add(
        "--memory",
        type=amount,
        metavar="BYTES",
        help="the memory limit, such as 2G (default: half of the machine's memory)",
    )
    add(
        "--order",
        type=order,
        metavar="ORDER",
        help=f"elimination order: {', '.join(METHODS)}, or variable numbers such as 2,0,1",
    )
    quiet_option(command)


def count_options(command: ArgumentParser, form: str, about: str, names: str) -> None:
    """Add options for counts and constraints."""
    add = command.add_argument
    add("--count", action="append", default=[], metavar=form, help=f"{about}; may be repeated")
    help_text = f"a constraint on {names}; may be repeated"
    add("--where", action="append", default=[], metavar="FORMULA", help=help_text)


def given_option(command: ArgumentParser) -> None:
    """Add an option for tallies to condition on."""
    command.add_argument(
        "--given",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="the tally of a statistic to condition on; may be repeated",
    )


def operations_option(command: ArgumentParser) -> None:
    """Add the operation limit."""
    command.add_argument(
        "--operations",
        type=operations,
        default=MOST_OPERATIONS,
        metavar="N",
        help="the maximum number of operations, such as 500M or 1e9 (default 1T; 0 for no limit)",
    )


def precision_option(command: ArgumentParser) -> None:
    """Add the precision of the tables."""
    command.add_argument(
        "--precision",
        choices=("double", "single"),
        default="double",
        help="single uses half the memory; the answer is optimal up to a reported gap",
    )


def strategy_option(command: ArgumentParser) -> None:
    """Add the strategy."""
    command.add_argument(
        "--strategy",
        choices=get_args(Strategy),
        default="auto",
        help="full computes full tables, bounds rules out most tallies first; auto chooses (default)",
    )


def json_option(command: ArgumentParser, about: str = "print JSON") -> None:
    """Add JSON output."""
    command.add_argument("--json", action="store_true", help=about)


def quiet_option(command: ArgumentParser) -> None:
    """Add an option to hide progress."""
    command.add_argument("--quiet", action="store_true", help="do not show progress")


# --- what the options say -----------------------------------------------------------------------------------


def refuse(options: Namespace, names: Iterable[str], why: str, remedy: str = "remove it") -> None:
    """Raise an error for options that do not apply; unset ones are None or False."""
    for name in names:
        given = getattr(options, name)
        if given is not None and given is not False:
            raise UsageError(f"--{name.replace('_', '-')} has no effect {why}; {remedy}")


def filled(options: Namespace, usual: Mapping[str, Any]) -> Namespace:
    """Return the options with defaults for those not given."""
    given = {name: value for name, value in vars(options).items() if value is not None}
    return Namespace(**{**vars(options), **usual, **given})


def budget(options: Namespace) -> dict[str, Any]:
    """Return the limits of a run, and its elimination order."""
    return {**memory(options), "operation_limit": options.operations or None}


def memory(options: Namespace) -> dict[str, Any]:
    """Return the memory limit of a run, and its elimination order."""
    return {"memory_limit": options.memory, "order": options.order}


def shown(options: Namespace) -> bool:
    """Return whether progress is shown."""
    return not (options.quiet or options.json)


UNLIMITED = 100_000


def terminal_width() -> int:
    """Return the width at which rows are cut off: that of the terminal; unlimited for a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED


def wrapping_width() -> int:
    """Return the width at which labellings are wrapped, which loses nothing.

    That of the terminal; for a file or a pipe, the environment variable COLUMNS, or unlimited without it, so
    that scripts find one labelling in one line.
    """
    return shutil.get_terminal_size((UNLIMITED, 24)).columns if "COLUMNS" in os.environ else terminal_width()


def print_lines(lines: Iterable[str]) -> None:
    """Print lines one by one."""
    for line in lines:
        print(line)


# --- numbers ------------------------------------------------------------------------------------------------

_NUMBER = r"(\d+(?:\.\d*)?(?:e\d{1,2})?) ?([KMGT]?)"


def amount(text: str) -> float:
    """Read a number of bytes with a binary unit, such as 2G."""
    return _scaled(text, f"{_NUMBER}i?B?", 1024.0, "a number of bytes such as 500M or 2G")


def operations(text: str) -> float:
    """Read a number of operations with a decimal unit, such as 2G."""
    return _scaled(text, _NUMBER, 1000.0, "a number of operations such as 500M or 1e9")


def _scaled(text: str, form: str, unit: float, expected: str) -> float:
    if match := re.fullmatch(form, text, re.IGNORECASE):
        return float(match[1]) * unit ** " KMGT".index(match[2].upper() or " ")
    raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")


def order(text: str) -> str | tuple[int, ...]:
    """Read an elimination order: a heuristic, or variable numbers."""
    if text in METHODS:
        return text
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        near = nearest(text, METHODS)
        hint = f"; did you mean {near}?" if near else ""
        raise argparse.ArgumentTypeError(
            f"expected {', '.join(METHODS)}, or numbers such as 2,0,1; got {text!r}{hint}"
        ) from None


def natural(text: str) -> int:
    """Read a non-negative integer."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"expected a non-negative integer, got {text!r}")
    return int(text)


def number(text: str) -> int:
    """Read a positive integer."""
    if not natural(text):
        raise argparse.ArgumentTypeError("expected a positive integer, got '0'")
    return natural(text)


def positive(text: str) -> float:
    """Read a positive number."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text!r}")
    return number


def loss_name(text: str) -> str:
    """Read the name of a loss, as Python accepts it."""
    try:
        as_loss(text)
    except ModelError as error:
        raise argparse.ArgumentTypeError(in_options(str(error))) from None
    return text


def least(text: str) -> float:
    """Read a non-negative number."""
    return 0.0 if text.strip("0.") == "" and "0" in text else positive(text)
