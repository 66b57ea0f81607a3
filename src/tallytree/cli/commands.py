"""The whole command line. Answers go to standard output, everything else to standard error."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import suppress

import tallytree
from tallytree.cli import (
    about,
    forecasts,
    labelling,
    outputs,
    parses,
    probabilities,
    questions,
    reports,
    training,
)
from tallytree.cli.arguments import Parser
from tallytree.cli.exits import MEANINGS, Exit, end_workers, error_json, exit_of, stoppable
from tallytree.cli.options import Commands
from tallytree.cli.streams import drop_output, usable_streams
from tallytree.cli.text import in_options, visible, visible_lines
from tallytree.errors import TallytreeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    as_json = False
    with usable_streams(), stoppable():
        try:
            options = parser().parse_args(arguments)
            as_json = getattr(options, "json", False)
            code: int = options.run(options)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of the answers, for example `head`, has closed the pipe
            drop_output()
            return Exit.OK
        except (TallytreeError, OSError, MemoryError, KeyboardInterrupt) as error:
            return _failed(error, as_json)
    return code


def _failed(error: BaseException, as_json: bool) -> int:
    text = _ended(error) if isinstance(error, KeyboardInterrupt) else str(error)
    if isinstance(error, OSError) and not isinstance(error, TallytreeError) and error.strerror:
        text = f"{_name(error.filename)}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, TallytreeError):
        text = in_options(text)
    elif isinstance(error, MemoryError):
        text = f"this machine does not have enough memory: {error}"
    try:
        if as_json:
            print(reports.as_json(error_json(error, text)))
        sys.stdout.flush()
    except OSError:  # standard error itself may have failed
        drop_output()
    with suppress(OSError):  # a closed terminal accepts nothing
        sys.stderr.write(f"tallytree: {visible_lines(text)}\n")
        sys.stderr.flush()
    return exit_of(error)


def _name(path: object) -> str:
    """Return a path with control characters made visible, and otherwise unchanged."""
    return visible(os.fsdecode(path) if isinstance(path, bytes) else path)


def _ended(error: KeyboardInterrupt) -> str:
    """Stop everything that is still running, and report the signal."""
    end_workers()
    number = getattr(error, "number", signal.SIGINT)
    return "interrupted" if number == signal.SIGINT else f"stopped by {signal.Signals(number).name}"


_EXITS = "\n".join(f"  {code:>4}  {meaning}" for code, meaning in MEANINGS.items())
_EPILOG = f"""examples:
  tallytree solve problem.json
  tallytree solve model.uai --evidence model.evid --count ones=1 --where "ones <= 5"
  tallytree profile model.cfn --count ones=1
  cat model.uai | tallytree k-best - -k 10 --json
  tallytree convert model.wcsp -o problem.json
  tallytree train chunk train.txt -o chunker.npz --loss chunk-f1 --scaling slack
  tallytree chunk chunker.npz test.txt --score

exit codes:
{_EXITS}
"""


def parser() -> ArgumentParser:
    """Build the parser of the command line."""
    top = Parser(
        prog="tallytree",
        description="Exact MAP inference with counts over the whole labelling.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"tallytree {tallytree.__version__}")
    commands = Commands(top)
    for group in (questions, forecasts, probabilities, outputs, training, labelling, parses, about):
        group.add(commands)
    return top
