"""The command about itself: demo, schema, completion."""

from __future__ import annotations

from argparse import Namespace

from tallytree import demo
from tallytree.cli import reports
from tallytree.cli.completion import SHELLS, script
from tallytree.cli.exits import Exit
from tallytree.cli.options import Commands
from tallytree.io import problem_schema


def add(commands: Commands) -> None:
    """Declare the commands."""
    tour = commands.add("demo", _demo, "show a tour in the terminal")
    tour.add_argument("--png", metavar="FILE", help="also draw the profile, with matplotlib")
    commands.add("schema", _schema, "print the JSON Schema of problem files")

    def _completion(options: Namespace) -> int:
        print(script(commands.top, options.shell))
        return Exit.OK

    completion = commands.add(
        "completion",
        _completion,
        "print a script that completes commands and options",
        "bash > ~/.local/share/bash-completion/completions/tallytree",
        "fish > ~/.config/fish/completions/tallytree.fish",
    )
    completion.add_argument("shell", choices=SHELLS)


def _demo(options: Namespace) -> int:
    demo.main([] if options.png is None else ["--png", options.png])
    return Exit.OK


def _schema(options: Namespace) -> int:
    print(reports.as_json(problem_schema()))
    return Exit.OK
