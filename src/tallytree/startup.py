"""Runs first: a command that is interrupted while it is still loading exits without a traceback."""

# Python has already loaded all of these; the module `signal`, which wraps `_signal`, takes time to import.
import _signal  # type: ignore[import-not-found]
import os
import sys


def is_command() -> bool:
    """Whether Python was started to run this library's command line."""
    name = sys.argv[0] if sys.argv else ""
    if name == "-m":  # its name until the module is found
        given = sys.orig_argv
        return given[given.index("-m") + 1].partition(".")[0] == "tallytree" if "-m" in given[:-1] else False
    return _runs_tallytree(name)


def _runs_tallytree(path: str) -> bool:
    return os.path.splitext(os.path.basename(path))[0] == "tallytree"


def _is_worker() -> bool:
    """Whether this process works for the command: it has the command's name, but was started otherwise."""
    return _runs_tallytree(sys.argv[0]) and not any(map(_runs_tallytree, sys.orig_argv))


def end_quietly() -> None:
    """Let Ctrl-C end the process at once; before a command has started there is nothing to clean up."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _end)


def _end(number: int, frame: object) -> None:
    try:
        if not _is_worker():  # the command itself says so
            os.write(2, b"tallytree: interrupted\n")
    finally:
        os._exit(128 + number)


if is_command():
    end_quietly()
