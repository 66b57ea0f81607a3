"""How the command line ends: exit codes, error messages, interrupts, and streams that fail."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from command_line import run

import tallytree as tt
from tallytree.cli.exits import Exit, exit_of
from tallytree.io import ProblemFile, write_problem, write_uai


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("solve", "missing.json"), Exit.USAGE, "missing.json: No such file or directory"),
        (("solve", "week.json", "--where", "wet > 9"), Exit.INFEASIBLE, "no labelling satisfies"),
        (("solve", "week.json", "--where", "wet >"), Exit.MALFORMED, "expected a number"),
        (("solve", "week.json", "--objective=-score"), Exit.MALFORMED, "decreases in the score"),
        (("solve", "week.json", "--count", "wet"), Exit.USAGE, "--count takes NAME=VALUE, got 'wet'"),
        (("solve", "week.json", "--set", "target=x"), Exit.USAGE, "expected a number, got 'x'"),
        (("solve", "week.json", "--evidence", "week.evid"), Exit.USAGE, "--evidence is for UAI files"),
        (("solve", "week.json", "--memory", "10"), Exit.BUDGET, "the limit is 10 bytes"),
        (("solve", "week.json", "--operations", "10"), Exit.BUDGET, "--operations is 10"),
        (("solve", "week.uai", "--format", "json"), Exit.MALFORMED, "week.uai, line 1, column 1"),
        (("solve", "week.json", "--set", "target=1", "--set", "target=2"), Exit.USAGE, "'target' twice"),
        (("solve", "week.json", "--fix", "0=dry", "--fix", "0=wet"), Exit.USAGE, "--fix sets '0' twice"),
        (
            ("solve", "week.json", "--set", "tarket=1"),
            Exit.USAGE,
            "tarket: no formula uses it; did you mean 'target'?",
        ),
        (
            ("solve", "week.json", "--where", ""),
            Exit.MALFORMED,
            '--where: "", character 1: expected',
        ),
        (("solve", "week.json", "--where", "wet>1) or (wet<1"), Exit.MALFORMED, '--where: "wet>1) or'),
        (("solve", "week.json", "--objective", ""), Exit.MALFORMED, 'objective: "", character 1: expected'),
        (("solve", "week.json", "--count", "w=weet"), Exit.MALFORMED, "Did you mean 'wet'?"),
        (("profile", "week.json", "--objective", "wet/0"), Exit.MALFORMED, "is nan at tally (wet=0)"),
        (
            ("solve", "week.json", "--objective", "1/wet"),
            Exit.MALFORMED,
            "or -inf to exclude the tally, for example with where(condition, a, b)",
        ),
        (("profile", "week.json", "--objective", "1/wet"), Exit.MALFORMED, "is inf at tally (wet=0)"),
        (("k-best", "week.json", "--objective", "1/wet"), Exit.MALFORMED, "is inf at tally (wet=0)"),
        (("profile", "week.json", "--objective=-score"), Exit.MALFORMED, "decreases in the score"),
        (("solve", "latin.json"), Exit.MALFORMED, "latin.json is not UTF-8 text: line 2 has the byte 0xe9"),
        (("solve", "latin.cfn"), Exit.MALFORMED, "latin.cfn is not UTF-8 text: line 2 has the byte 0xe9"),
    ],
)
def test_exit_codes(files, capsys, arguments, code, message):
    assert run(*arguments) == code
    assert message in capsys.readouterr().err
    assert run(*arguments, "--json") == code
    assert message in json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.parametrize(
    "arguments",
    [(), ("solve",), ("bake", "x"), ("solve", "x", "--memory", "lots"), ("k-best", "x", "-k", "-1")],
)
def test_wrong_usage(capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    assert stopped.value.code == Exit.USAGE
    assert "usage: tallytree" in capsys.readouterr().err


def test_errors_have_codes_of_their_own():
    codes = [exit_of(e("x")) for e in (tt.InfeasibleError, tt.BudgetError, tt.ModelError, tt.TallytreeError)]
    assert codes == [Exit.INFEASIBLE, Exit.BUDGET, Exit.MALFORMED, Exit.FAILURE]
    assert exit_of(KeyboardInterrupt()) == Exit.INTERRUPTED


def test_an_interrupt_is_no_traceback(files, capsys, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ProblemFile, "solve", interrupted)
    assert run("solve", "week.json") == Exit.INTERRUPTED
    assert capsys.readouterr().err == "tallytree: interrupted\n"


def test_memory_that_is_not_there_is_no_traceback(files, capsys, monkeypatch):
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 16.0 EiB")

    monkeypatch.setattr(ProblemFile, "solve", greedy)
    assert run("solve", "week.json") == Exit.BUDGET
    assert "this machine does not have enough memory: Unable to" in capsys.readouterr().err


def test_as_a_process(files):
    command = [sys.executable, "-m", "tallytree"]
    done = subprocess.run([*command, "solve", "week.json"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("value  8.5")
    plain = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [*command, "plan", "week.json"], capture_output=True, text=True, check=True, env=plain
    )
    assert "width ? = 1" in done.stdout
    reader = subprocess.Popen([*command, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    reader.stdout.close()
    assert reader.wait() == 0
    assert reader.stderr.read() == b""
    reader.stderr.close()


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        ("solve week.json --json > /dev/full", Exit.USAGE, "tallytree: No space left on device"),
        ("solve week.json >&-", Exit.OK, ""),
        ("solve - <&-", Exit.USAGE, "tallytree: standard input: it is closed, so nothing can be read"),
        ("solve week.json 2>&-", Exit.OK, ""),
    ],
)
def test_streams_that_are_full_or_closed(files, line, code, error, unbuffered):
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m tallytree {line}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    assert (done.returncode, done.stderr.strip()) == (code, error)


@pytest.fixture
def questions(files):
    """More files to ask about: scores beyond single precision, and a model without a labelling."""
    rng = np.random.default_rng(0)
    large = tt.Model.chain(1e38 * rng.normal(size=(30, 4)), np.zeros((4, 4)))
    write_problem(ProblemFile(large), "large.json")
    write_problem(ProblemFile(tt.Model([2], [((0,), [-np.inf, -np.inf])])), "none.json")
    write_uai(tt.Model.chain(rng.normal(size=(90, 4)), np.zeros((4, 4))), "long.uai")
    write_uai(tt.Model.chain(np.zeros((4, 3)), np.zeros((3, 3))), "short.uai")


_COUNTS = ("--count", "a=1", "--count", "b=2", "--count", "c=3")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("solve large.json --precision single", "remove --precision single"),
        ("solve none.json", "or by fixed or observed states, so"),
        ("k-best none.json", "or by fixed or observed states, so"),
        ("marginals none.json", "or by fixed or observed states, so"),
        ("solve short.uai --fix 0=7", "--fix 0: 7 is not a state of this variable"),
        ("solve short.uai --order 1,2", "must list each of the 4 variables once, got (1, 2)"),
        ("solve short.uai --where a>=1", "there are none; add one with --count NAME=STATE"),
        ("relax long.uai --count a=1 --where a==3|a==5", "relax each alternative of `or` separately"),
        ("relax long.uai --count a=1 --where a==3 --memory 1k", "raise --memory"),
        ("profile long.uai +counts --memory 200k", "raise --memory. If you only need one"),
        ("solve long.uai +counts --where a==b|c==4 --memory 200k --strategy full", "joined by `and`"),
        (
            "solve long.uai +counts --where a==b --strategy bounds --operations 9",
            "Raise --operations or --mem",
        ),
        ("k-best long.uai --count a=1 --memory 60k", "raise --memory"),
        ("marginals long.uai --count a=1 --memory 150k", "raise --memory"),
        ("solve long.uai --count a=1 --where score>=3", "use an objective such as where(score >= 3"),
    ],
)
def test_messages_speak_of_options(questions, capsys, line, says):
    """Messages contain no names of arguments or functions of the library."""
    words = [word.replace("|", " or ") for word in line.split()]
    asked = [part for word in words for part in (_COUNTS if word == "+counts" else (word,))]
    assert run(*asked) != Exit.OK
    text = capsys.readouterr().err
    assert says in text
    assert not re.search(r"\b(tt|tallytree|np)\.\w|\b[a-z_]{3,}=(?=[ ,.;)'\"]|$)|\w_\w+\b", text)
