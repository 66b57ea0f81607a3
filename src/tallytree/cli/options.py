"""Shared by the commands: declaring commands, the options of problems, and parsing numbers."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn, get_args

from tallytree.cli.exits import UsageError
from tallytree.cli.inputs import FORMATS
from tallytree.cli.text import in_options
from tallytree.errors import ModelError
from tallytree.io.problems import MOST_OPERATIONS
from tallytree.losses.names import as_loss
from tallytree.planning.options import Strategy
from tallytree.planning.orders import METHODS

Command = Callable[[Namespace], int]


class Parser(ArgumentParser):
    """Suggests the nearest choice for one that does not exist, and how to write values such as ``-wet``."""

    def error(self, message: str) -> NoReturn:
        """Report a mistake in the arguments, and exit."""
        dashed = message.endswith("expected one argument")
        option = message.split(":")[0].split("/")[-1].split()[-1]
        super().error(f"{message}; a value that begins with - is written {option}=-…" if dashed else message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            near = get_close_matches(str(value), map(str, action.choices or ()), n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise argparse.ArgumentError(action, f"{error.message}{hint}") from None


class Suggested(tuple[str, ...]):
    """Choices that shells complete, of an option whose type accepts others as well."""

    def __contains__(self, value: object) -> bool:
        return True


class _CommandParser(Parser):
    """Accepts files before, after and between options, even if the last of them is optional."""

    _intermixed = False
    _others: Mapping[str, ArgumentParser] = {}  # all commands by name

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse options first, then the rest; intermixed parsing itself calls this for plain parsing."""
        if self._intermixed:
            return super().parse_known_args(args, namespace)
        self._intermixed = True
        try:
            found, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixed = False
        if unknown:
            self.error(self._unknown(unknown))
        return found, unknown

    def _unknown(self, arguments: list[str]) -> str:
        """Report unrecognised arguments, with a suggestion for the first."""
        text = f"unrecognized arguments: {' '.join(arguments)}"
        option = arguments[0].split("=")[0]
        if not option.startswith("-") or option == "-":
            return f"{text}; {self.prog} takes only {_files_of(self)} and options"
        if elsewhere := self._commands_with(option):
            return f"{text}; {option} is an option of {elsewhere}"
        others = [name for other in self._others.values() for name in option_names(other)]
        for known, alike in ((option_names(self), 0.6), (others, 0.8)):
            near = get_close_matches(option, known, 1, alike) if option.startswith("--") else []
            if near:
                where = "" if known is not others else f", an option of {self._commands_with(near[0])}"
                return f"{text}; did you mean {near[0]}{where}?"
        return text

    def _commands_with(self, option: str) -> str:
        """Return the other commands that have an option."""
        *most, last = ["", *(name for name, one in self._others.items() if option in option_names(one))]
        return f"{', '.join(most[1:])} and {last}" if most[1:] else last


def _files_of(command: ArgumentParser) -> str:
    """Return what a command takes besides options."""
    names = [str(action.metavar or action.dest) for action in command._actions if not action.option_strings]
    return " and ".join(names) if names else "options only"


def option_names(command: ArgumentParser) -> list[str]:
    """Return all forms of the options of a command."""
    return [name for action in command._actions for name in action.option_strings]


class Commands:
    """The commands of a parser."""

    def __init__(self, top: ArgumentParser) -> None:
        self.top = top
        self._added = top.add_subparsers(
            title="commands", required=True, metavar="COMMAND", parser_class=_CommandParser
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
        near = get_close_matches(text, METHODS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
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
