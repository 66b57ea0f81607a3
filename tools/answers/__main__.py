"""Answers of one version compared with another, bit for bit.

``python tools/answers record FILE`` stores digests of the answers to some thousand random problems,
``compare FILE`` answers them with the installed version and reports differences, and ``show CASE`` prints one
answer. Texts (printed plans, explanations, error messages) are compared separately: if nothing else differs,
the exit status is 0.
"""

from __future__ import annotations

import argparse
import base64
import json
import multiprocessing
import os
import pprint
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import on_learning
from answering import asked, digests
from kinds import KINDS, Answered, answer_of, answered

import tallytree as tt

NAMED = 12  # how many cases of a kind are listed where they differ


def main() -> int:
    options = _arguments()
    if options.command == "show":
        pprint.pp(answer_of(options.case), width=110)
        return 0
    if options.command == "record":
        return _record(options)
    return _compare(options)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="answers", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("record", "compare"):
        command = commands.add_parser(name)
        command.add_argument("file", type=Path)
        command.add_argument("--kind", action="append", choices=KINDS, help="only this kind; may be repeated")
        command.add_argument("--cases", type=int, help="only the first so many of each kind")
        command.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    commands.add_parser("show").add_argument("case", help="such as profile:17")
    return parser.parse_args()


# --- asking -------------------------------------------------------------------------------------------------


def _cases(options: argparse.Namespace) -> list[str]:
    most = sys.maxsize if options.cases is None else options.cases
    return [f"{kind}:{k}" for kind in options.kind or KINDS for k in range(min(most, KINDS[kind].cases))]


def _ask(options: argparse.Namespace) -> dict[str, Answered]:
    """Answer all cases, in new processes that do arithmetic on one thread each."""
    cases, begin = _cases(options), time.monotonic()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    found = {}
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for number, one in enumerate(pool.imap_unordered(answered, cases, chunksize=4), 1):
            found[one.case] = one
            if sys.stderr.isatty() and number % 50 == 0:
                print(f"\r{number} of {len(cases)}", end="", file=sys.stderr, flush=True)
    print(f"{len(cases)} cases in {time.monotonic() - begin:.0f} s", file=sys.stderr)
    return {case: found[case] for case in cases}


def _loaded(files: dict[str, str]) -> dict[str, Answered]:
    """Answer with the estimators in the files that a version has saved."""
    answers = {}
    for name, text in files.items():
        answer = asked(on_learning.loaded, name, base64.b64decode(text))
        answers[f"saved:{name}"] = Answered(f"saved:{name}", *digests(answer), [])
    return answers


# --- storing and comparing ----------------------------------------------------------------------------------


def _record(options: argparse.Namespace) -> int:
    found = _ask(options)
    files = {name: base64.b64encode(data).decode() for name, data in on_learning.saved().items()}
    stored = {
        "about": {"tallytree": tt.__version__, "numpy": np.__version__, "python": sys.version.split()[0]},
        "cases": {case: [one.answer, one.text] for case, one in (found | _loaded(files)).items()},
        "files": files,
    }
    lines = json.dumps(stored, separators=(",", ":")).replace('],"', '],\n"')
    options.file.write_text(lines + "\n")
    _summarise(found)
    return 0


def _summarise(found: dict[str, Answered]) -> None:
    """Print how many cases of each kind there are, and which errors they have among their answers."""
    for kind in dict.fromkeys(_kind(case) for case in found):
        those = [one for case, one in found.items() if _kind(case) == kind]
        errors = Counter(name for one in those for name in one.errors)
        print(f"{kind:18} {len(those):5}", ", ".join(f"{n} {name}" for name, n in errors.most_common()))


def _compare(options: argparse.Namespace) -> int:
    stored = json.loads(options.file.read_text())
    old, new = stored["cases"], _ask(options) | _loaded(stored["files"])
    both = [case for case in new if case in old]
    answers = [case for case in both if new[case].answer != old[case][0]]
    texts = [case for case in both if new[case].text != old[case][1] and case not in set(answers)]
    print(f"{len(both)} answers compared, {len(answers)} differ; of the rest {len(texts)} differ in wording")
    _list("answers differ", answers)
    _list("only wording differs", texts)
    if len(both) < len(new):
        print(f"{len(new) - len(both)} cases are not in {options.file}")
    return 1 if answers or not both else 0


def _list(title: str, cases: list[str]) -> None:
    for kind, number in Counter(map(_kind, cases)).items():
        names = [case for case in cases if _kind(case) == kind][:NAMED]
        print(f"{title}: {number} of {kind}:", *names, *(["..."] if number > NAMED else []))


def _kind(case: str) -> str:
    return case.partition(":")[0]


if __name__ == "__main__":
    sys.exit(main())
