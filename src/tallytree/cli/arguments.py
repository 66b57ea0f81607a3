"""Parsers of the command line, with suggestions for what does not exist."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from tallytree.values import nearest


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
            near = nearest(str(value), map(str, action.choices or ()))
            hint = f"; did you mean {near}?" if near else ""
            if not near and Path(str(value)).is_file():
                hint = f"; {value} is a file: give the {action.dest} before it"
            raise argparse.ArgumentError(action, f"{error.message}{hint}") from None


class Suggested(tuple[str, ...]):
    """Choices that shells complete, of an option whose type accepts others as well."""

    def __contains__(self, value: object) -> bool:
        return True


_MEANT = {
    "--iterations": "--passes",
    "--max-iterations": "--passes",
    "--max-passes": "--passes",
    "--epochs": "--passes",
    "--max-seconds": "--seconds",
    "--n-jobs": "--jobs",
}
"""Options of other programs and parameters in Python, and what they are called here."""


class CommandParser(Parser):
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
        """Report unrecognised arguments, with a suggestion for each option."""
        text = f"unrecognized arguments: {' '.join(arguments)}"
        options = [one.split("=")[0] for one in arguments if one.startswith("-") and one != "-"]
        if not options:
            return f"{text}; {self.prog} takes only {_files_of(self)} and options"
        hints = {option: hint for option in options if (hint := self._hint(option))}
        several = len(hints) > 1
        return "; ".join([text, *(f"{o}: {hint}" if several else hint for o, hint in hints.items())])

    def _hint(self, option: str) -> str:
        """Return a suggestion for an option that this command does not have, if any."""
        known = option_names(self)
        if option in _MEANT and _MEANT[option] in known:
            return f"did you mean {_MEANT[option]}?"
        if elsewhere := self._commands_with(option):
            return f"{option} is an option of {elsewhere}"
        if not option.startswith("--"):
            return f"did you mean -{option}?" if f"-{option}" in known else ""
        others = [name for other in self._others.values() for name in option_names(other)]
        if near := nearest(option, known):
            return f"did you mean {near}?"
        near = nearest(option, others, 0.8)
        return f"did you mean {near}, an option of {self._commands_with(near)}?" if near else ""

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
