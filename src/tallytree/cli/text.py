"""Text for the terminal, and a progress line.

Control characters from files, options or errors are escaped.

A name may contain sequences that set the title of a terminal, clear it, or fake another line. Programs
get text unchanged: in JSON, which does its own escaping, in files, and through pipes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TextIO

_HIDDEN = "\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
"""Control characters of terminals, line separators, and characters that change the text direction."""

_ALL = re.compile(f"[{_HIDDEN}]")
_BUT_LAYOUT = re.compile(f"(?![\n\t])[{_HIDDEN}]")


def visible(text: object) -> str:
    r"""Return a text with all control characters escaped, including line breaks.

    Examples
    --------
    >>> print(visible("\x1b[2Jgone\r\nforged"))
    \x1b[2Jgone\r\nforged
    """
    return _ALL.sub(_escaped, str(text))


def visible_lines(text: object) -> str:
    """Return a text of several lines; all but the first are indented, so that none can be mistaken."""
    first, *rest = _BUT_LAYOUT.sub(_escaped, str(text)).split("\n")
    return "\n".join([first, *(line if line[:1] in ("", " ") else f"  {line}" for line in rest)])


_OPTIONS = {
    "memory_limit": "--memory",
    "operation_limit": "--operations",
    "order": "--order",
    "strategy": "--strategy",
    "precision": "--precision",
    "where": "--where",
    "iterations": "--iterations",
    "objective": "--objective",
    "decimals": "--decimals",
    "max_passes": "--passes",
    "max_seconds": "--seconds",
    "n_jobs": "--jobs",
}
"""The option for each parameter of the library. Messages write parameters as ``order=`` or ``order='sweep'``,
or by their name alone if it cannot be mistaken for a word."""

_PARAMETER = re.compile(rf"\b({'|'.join(_OPTIONS)})=(?:'([\w-]+)')?|\b(\w+_\w+)\b")

_FIXED = r"(?<!fixed: )\bfixed\[(.+?)\] is (.+?), which is not a state of variable [^;]+"
"""A wrong state in ``--fix``; the key of a file keeps its name."""

_PHRASES = {
    r"tallytree\.solve\(model, where=…\)": "tallytree solve --where",
    r"tallytree\.relax\(model, where=…\)": "tallytree relax",
    r"tallytree\.solve\b": "tallytree solve",
    r"use tallytree\.score_between, or an": "use an",
    r"; for a range of scores, use tallytree\.score_between": "",
    r"; a clique tree can also be passed": "",
    r"\bfixed= or allowed=": "fixed or observed states",
    _FIXED: r"--fix \1: \2 is not a state of this variable",
    r"no constraint \(give one\)": "no constraint (add one with --where)",
    r"give the objective 'score' to drop it": "drop it with --objective score",
    r"remove the distance, or give the objective 'score'": "remove --distance, or use --objective score",
    r"Ask for fewer labellings, or": "Ask for fewer labellings (-k), or",
    r"remove where=, or use decode=BestDecoder\(\)": "remove --where, or --decode and --maximise",
    r'\(horizontal=0, vertical=1, tail="single"\)': "(train with --horizontal 0 --vertical 1 --tail single)",
    r"; or pass a loss from tallytree\.losses": "",
    r"; for precision alone, use losses\.Precision.*": "",
    r"; (?:choose another|pass the negative label), as in \w+\(background=.*": "; set it with --background",
    r"such as HammingDistance, FBeta or ChunkFBeta": "such as hamming, f1 or chunk-f1",
    r"write the constraint in Python: tt\.valid_(bio(?:es)?)\(…\) & …": r"use --valid \1, of tallytree chunk",
    r": pass states= or variables= to the model, .* or use numbers": "; use numbers",
    r"joined by &": "joined by `and`",
    r"alternative of \|": "alternative of `or`",
    r"(statistic nor a parameter; available are (?!none)[^;.]+)": r"\1; add one with --count NAME=STATE",
    r"available are none": "there are none; add one with --count NAME=STATE",
    r" \(or the problem changes during training.*?fingerprint\(\)\)": "",
    r"numpy\.where, or with (where\(condition, a, b\)) in a formula": r"\1",
    r"lower C\b": "lower --C",
    r"; give the number of labellings to draw.*": "",
    r"raise c2\b": "raise --c2",
    r"raise the tolerance": "raise --tolerance",
}
"""What the command line says differently: calls, operators, and advice that it does not have."""


def in_options(text: str) -> str:
    """Return a message with the option names of the command line.

    Examples
    --------
    >>> in_options("Ask for less, or raise memory_limit=")
    'Ask for less, or raise --memory'
    >>> in_options("the plan takes 3 operations, but operation_limit is 2; remove precision='single'")
    'the plan takes 3 operations, but --operations is 2; remove --precision single'
    """
    for words, instead in _PHRASES.items():
        text = re.sub(words, instead, text)
    return _PARAMETER.sub(_as_option, text)


def _as_option(match: re.Match[str]) -> str:
    name, value, alone = match.groups()
    if alone is not None:
        return _OPTIONS.get(alone, alone)
    if value is None:
        value = "" if match.string[match.end() :][:1] not in ("'", '"') else " "
        return f"{_OPTIONS[name]}{value}"
    return f"{_OPTIONS[name]} {value}"


def for_terminal(text: str, stream: TextIO) -> str:
    """Return data for a stream: unchanged, but with control characters escaped on a terminal."""
    return _BUT_LAYOUT.sub(_escaped, text) if stream.isatty() else text


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


_PATIENCE = 0.7  # seconds before the line appears
_PACE = 0.2


@contextmanager
def progress(what: str, *, shown: bool, expected: Callable[[], float | None] | None = None) -> Iterator[None]:
    """Show a progress line while the body runs, if it takes long; the library releases the GIL.

    `expected`: estimates the time of the body in seconds, if known, to show a percentage.
    """
    if not (shown and sys.stderr.isatty()):
        yield
        return
    done = Event()
    thread = Thread(target=_tick, args=(what, done, expected), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _tick(what: str, done: Event, expected: Callable[[], float | None] | None) -> None:
    start = monotonic()
    if done.wait(_PATIENCE):
        return
    _show(what, monotonic() - start, None)  # the estimate takes a moment itself
    whole = None if expected is None else expected()
    while not done.wait(_PACE):
        _show(what, monotonic() - start, whole)
    sys.stderr.write("\r\033[K")
    sys.stderr.flush()


def _show(what: str, seconds: float, whole: float | None) -> None:
    part = f", about {min(100 * seconds / whole, 99):.0f} %" if whole else ""
    sys.stderr.write(f"\r{visible(what)}: {seconds:.0f} s{part} (Ctrl-C stops)\033[K")
    sys.stderr.flush()
