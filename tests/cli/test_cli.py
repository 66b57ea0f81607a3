"""The command line: every command, its exit code, and what people and machines see."""

import io
import json
import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.cli.commands import parser
from tallytree.cli.exits import Exit, exit_of
from tallytree.cli.progress import progress
from tallytree.io import Problem, Source, problem_schema, read_problem, write_problem, write_uai

MODEL = tt.Model.chain(
    [[0, 1.5], [0, -2.5], [0, 3], [0, -1.25], [0, 0.5], [0, -0.75], [0, 2]],
    [[1, 0], [0, 1]],
    states=["dry", "wet"],
)
WET = tt.count(MODEL, state="wet", name="wet")
PROBLEM = Problem(MODEL, [WET], "score - abs(wet - target)", where="wet <= 6", parameters={"target": 3})


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write_problem(PROBLEM, "week.json")
    write_uai(MODEL, "week.uai")
    Path("week.evid").write_text("1 0 0")
    Path("two.wcsp").write_text("two 2 2 2 10   2 2   1 0 0 1  0 3   2 0 1 -1 wsum hard 10 == 1")
    Path("latin.json").write_bytes(b'{"tallytree": 1,\r\n "caf\xe9": 2}')
    Path("latin.cfn").write_bytes(b"{\n\xe9}")
    Path("two.cfn").write_text("{{p <10} {x 2 y 2} {{scope [x] costs [3 0]} {scope [x y] costs [0 1 5 2]}}}")
    return tmp_path


def run(*arguments: str) -> int:
    return main([str(argument) for argument in arguments])


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(*arguments) == Exit.OK
    return capsys.readouterr().out


def test_solve_for_people(files, capsys):
    assert said(capsys, "solve", "week.json") == (
        "value  8.5\nscore  8.5\ntally  wet = 3\n\n0   1   2   3   4   5   6\nwet dry wet dry dry dry wet\n"
    )


def test_solve_for_machines(files, capsys):
    best = PROBLEM.solve()
    assert json.loads(said(capsys, "solve", "week.json", "--json")) == {
        "value": best.value,
        "score": best.score,
        "tally": {"wet": 3},
        "assignment": best.assignment.tolist(),
        "labels": best.labels.tolist(),
    }


def test_solve_in_single_precision(files, capsys):
    tenths = tt.Model.chain([[0.0, 0.1], [0.0, 0.7]], [[0.0, -0.3], [0.0, 0.2]])
    write_problem(Problem(tenths), "tenths.json")
    found = json.loads(said(capsys, "solve", "tenths.json", "--precision", "single", "--json"))
    assert found["score"] == tt.solve(tenths).score
    assert 0 < found["gap"] < 1e-6
    lines = said(capsys, "solve", "tenths.json", "--precision", "single", "--explain").splitlines()
    assert lines[:2] == [f"score  {found['score']:.10g}", f"gap    {found['gap']:.2g}"]
    assert (
        f"optimal up to a gap of {found['gap']:.2g}: no labelling has a higher score by more than that"
        in lines
    )
    plans = [
        json.loads(said(capsys, "plan", "week.json", "--precision", p, "--json"))
        for p in ("single", "double")
    ]
    assert [plan["precision"] for plan in plans] == ["single", "double"]


@pytest.mark.parametrize(
    ("arguments", "score"),
    [
        (("week.json", "--objective", "score"), 9.0),
        (("week.json", "--set", "target=1"), 7.0),
        (("week.json", "--where", "wet >= 5", "--where", "wet != 6"), 8.5),
        (("week.json", "--fix", "2=dry", "--objective", "score"), 7.5),
        (("week.uai",), 9.0),
        (("week.uai", "--count", "ones=1", "--where", "ones == 2"), 8.0),
        (("week.uai", "--count", "any=0,1", "--where", "any == 7"), 9.0),
        (("week.uai", "--count", "k=1", "--objective", "score - w*k", "--set", "w=1e3"), 6.0),
        (("week.uai", "--evidence", "week.evid"), 8.5),
        (("two.wcsp",), 0.0),
        (("two.cfn",), -2.0),
    ],
)
def test_options_add_to_the_file(files, capsys, arguments, score):
    found = json.loads(said(capsys, "solve", *arguments, "--json"))
    assert found["score"] == pytest.approx(score)


def test_solve_explains(files, capsys):
    assert "optimal: no labelling" in said(capsys, "solve", "week.json", "--explain")
    assert "optimal" in json.loads(said(capsys, "solve", "week.json", "--explain", "--json"))["explanation"]


def test_a_narrow_terminal(files, capsys, monkeypatch):
    monkeypatch.setattr("tallytree.cli.questions.terminal_width", lambda: 12)
    assert said(capsys, "solve", "week.uai").splitlines()[2:5] == ["0 1 2 3 4 5", "1 0 1 1 1 1", ""]


def test_grids_are_shown_as_grids(files, capsys):
    grid = tt.Model.grid(np.array([[[0, 1], [0, -1]], [[0, -1], [0, 1]]]), np.zeros((2, 2)), np.zeros((2, 2)))
    write_problem(Problem(grid), "grid.json")
    assert said(capsys, "solve", "grid.json") == "score  2\n\n1 0\n0 1\n"


def test_plan(files, capsys):
    assert said(capsys, "plan", "week.json").startswith("plan for 7 variables and 1 statistic (wet)\n")
    plan = json.loads(said(capsys, "plan", "week.json", "--json"))
    assert plan["width"] == 1
    assert sorted(plan["order"]) == list(range(7))


def test_profile(files, capsys):
    lines = said(capsys, "profile", "week.json").splitlines()
    assert lines[0].split() == ["wet", "score", "value"]
    assert lines[4].split() == ["3", "8.5", "8.5", "<-", "best"]
    assert lines[8].split() == ["7", "8.5", "4.5", "not", "allowed"]
    document = json.loads(said(capsys, "profile", "week.json", "--json"))
    assert document["scores"] == PROBLEM.profile().scores.tolist()
    assert document["best"] == 3
    assert document["allowed"] == [True] * 7 + [False]
    short = said(capsys, "profile", "week.json", "--limit", "2").splitlines()
    assert [line.split()[0] for line in short] == ["wet", "0", "1", "…", "3", "2"]
    assert said(capsys, "profile", "week.uai").split() == ["score", "9", "<-", "best"]


def test_a_profile_of_nothing(files, capsys):
    write_problem(Problem(tt.Model([2], [((0,), [-np.inf, -np.inf])])), "none.json")
    assert run("profile", "none.json") == Exit.INFEASIBLE
    assert "every labelling is forbidden" in capsys.readouterr().err


def test_k_best(files, capsys):
    lines = said(capsys, "k-best", "week.json", "-k", "3").splitlines()
    assert lines[0].split() == ["value", "score", "wet", "labelling"]
    assert lines[1].split()[:4] == ["1", "8.5", "8.5", "3"]
    found = json.loads(said(capsys, "k-best", "week.json", "-k", "3", "--json"))
    assert [one["value"] for one in found] == [s.value for s in PROBLEM.k_best(3)]
    assert run("k-best", "week.json", "--where", "wet > 9") == Exit.INFEASIBLE
    assert run("k-best", "week.json", "-k", "0") == Exit.OK


def test_convert(files, capsys):
    for source, target in [
        ("week.uai", "a.json"),
        ("a.json", "b.wcsp"),
        ("b.wcsp", "c.cfn"),
        ("c.cfn", "d.uai"),
    ]:
        said(capsys, "convert", source, target)
    scores = [json.loads(said(capsys, "solve", name, "--json"))["labels"] for name in ("week.uai", "d.uai")]
    assert scores[0] == scores[1]
    assert run("convert", "week.uai", "out.txt") == Exit.MALFORMED
    assert run("convert", "week.json", "out.uai") == Exit.MALFORMED
    assert "holds a model and nothing else" in capsys.readouterr().err
    said(capsys, "convert", "week.json", "out.txt", "--to", "json")
    assert read_problem("out.txt").solve().value == 8.5


def test_what_is_written_can_go_to_standard_output(files, capsys):
    out = said(capsys, "convert", "week.uai", "-", "--to", "json")
    assert read_problem(Source("out", out.encode())).solve().score == 9.0
    told = json.loads(said(capsys, "convert", "week.uai", "w.wcsp", "--json", "--decimals", "2"))
    assert told == {"output": "w.wcsp", "format": "wcsp", "offset": told["offset"], "scale": 100.0}
    assert said(capsys, "explore", "week.json", "-o", "-").startswith("<!doctype html>")
    assert json.loads(said(capsys, "explore", "week.json", "--json")) == {"output": "week.html"}


def test_standard_input(files, capsys, monkeypatch):
    for name in ("week.json", "week.uai", "two.wcsp", "two.cfn"):
        data = Path(name).read_bytes()
        expected = said(capsys, "solve", name)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert said(capsys, "solve", "-") == expected


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("solve", "missing.json"), Exit.USAGE, "missing.json: No such file or directory"),
        (("solve", "week.json", "--where", "wet > 9"), Exit.INFEASIBLE, "no labelling satisfies"),
        (("solve", "week.json", "--where", "wet >"), Exit.MALFORMED, "expected a number"),
        (("solve", "week.json", "--objective=-score"), Exit.MALFORMED, "decreases in the score"),
        (("solve", "week.json", "--count", "wet"), Exit.MALFORMED, "--count takes NAME=VALUE, got 'wet'"),
        (("solve", "week.json", "--set", "target=x"), Exit.MALFORMED, "expected a number, got 'x'"),
        (("solve", "week.json", "--evidence", "week.evid"), Exit.MALFORMED, "--evidence goes with UAI files"),
        (("solve", "week.json", "--memory", "10"), Exit.BUDGET, "the limit is 10 bytes"),
        (("solve", "week.json", "--operations", "10"), Exit.BUDGET, "operation_limit is 10"),
        (("solve", "week.uai", "--format", "json"), Exit.MALFORMED, "week.uai, line 1, column 1"),
        (("solve", "week.json", "--set", "target=1", "--set", "target=2"), Exit.MALFORMED, "'target' twice"),
        (("solve", "week.json", "--fix", "0=dry", "--fix", "0=wet"), Exit.MALFORMED, "--fix has '0' twice"),
        (("solve", "week.json", "--set", "tarket=1"), Exit.MALFORMED, "--set tarket: no formula reads it"),
        (
            ("solve", "week.json", "--where", ""),
            Exit.MALFORMED,
            '--where: "", character 1: expected',
        ),
        (("solve", "week.json", "--where", "wet>1) or (wet<1"), Exit.MALFORMED, '--where: "wet>1) or'),
        (("solve", "week.json", "--objective", ""), Exit.MALFORMED, 'objective: "", character 1: expected'),
        (("solve", "week.json", "--count", "w=weet"), Exit.MALFORMED, "Did you mean 'wet'?"),
        (("profile", "week.json", "--objective", "wet/0"), Exit.MALFORMED, "gave nan at tally (wet=0)"),
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


def test_no_limit_on_operations(files, capsys):
    said(capsys, "solve", "week.json", "--operations", "0", "--memory", "1.5G")


@pytest.mark.parametrize(
    "arguments",
    [(), ("solve",), ("bake", "x"), ("solve", "x", "--memory", "lots"), ("k-best", "x", "-k", "-1")],
)
def test_wrong_usage(capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    assert stopped.value.code == Exit.USAGE
    assert "usage: tallytree" in capsys.readouterr().err


def test_help_has_examples_and_exit_codes(capsys):
    for arguments in (
        (),
        ("solve",),
        ("plan",),
        ("profile",),
        ("k-best",),
        ("convert",),
        ("completion",),
        ("train",),
        ("tag",),
        ("chunk",),
        ("parse",),
    ):
        with pytest.raises(SystemExit) as stopped:
            run(*arguments, "--help")
        assert stopped.value.code == 0
        out = capsys.readouterr().out
        assert "examples:\n  tallytree " in out
    with pytest.raises(SystemExit):
        run("--help")
    out = capsys.readouterr().out
    assert all(f"{code:>4}  " in out for code in Exit)
    with pytest.raises(SystemExit):
        run("--version")
    assert capsys.readouterr().out == f"tallytree {tt.__version__}\n"


def test_the_examples_of_the_help_parse():
    command_line = parser()
    texts = [command_line.epilog] + [one.epilog or "" for one in command_line._actions[-1].choices.values()]
    examples = [
        line.partition("tallytree ")[2]
        for text in texts
        for line in text.splitlines()
        if "tallytree " in line
    ]
    assert len(examples) >= 12
    for example in examples:
        words = shlex.split(example)
        command_line.parse_args(words[: words.index(">")] if ">" in words else words)


def test_schema_and_demo(capsys):
    assert json.loads(said(capsys, "schema")) == problem_schema()
    assert "The profile: the best score" in said(capsys, "demo")


def completed(script: str, *words: str) -> list[str]:
    listed = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _tallytree; echo ${{COMPREPLY[@]}}"
    return subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_completion_in_bash(files, capsys):
    script = said(capsys, "completion", "bash")
    assert completed(script, "tallytree", "so") == ["solve"]
    assert completed(script, "tallytree", "solve", "--obj") == ["--objective"]
    assert completed(script, "tallytree", "solve", "--format", "") == ["json", "uai", "wcsp", "cfn"]
    assert completed(script, "tallytree", "solve", "week.j") == ["week.json"]
    assert completed(script, "tallytree", "completion", "f") == ["fish"]
    assert completed(script, "tallytree", "train", "chunk", "--scaling", "s") == ["slack"]
    assert completed(script, "tallytree", "train", "pa") == ["parse"]


WORDS = {
    "tallytree so": "solve",
    "tallytree solve --obj": "--objective",
    "tallytree solve --format j": "json",
    "tallytree solve week.j": "week.json",
    "tallytree train ch": "chunk",
    "tallytree train chunk week.j": "week.json",
    "tallytree train chunk --scaling sl": "slack",
    "tallytree completion f": "fish",
}


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_completion_in_fish(files, capsys):
    Path("script.fish").write_text(said(capsys, "completion", "fish"))
    for typed, whole in WORDS.items():
        ask = ["fish", "--no-config", "-c", f"source script.fish; complete -C '{typed}'"]
        out = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
        assert [line.partition("\t")[0] for line in out.splitlines()] == [whole]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_completion_in_zsh(files, capsys):
    """In a terminal, because zsh completes nowhere else: each line is typed, and a tab."""
    Path("script.zsh").write_text(said(capsys, "completion", "zsh"))
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.execvp("zsh", ["zsh", "-f", "-i"])
    seen = ""

    def until(text: str) -> None:
        nonlocal seen
        while text not in seen:
            ready, _, _ = select.select([terminal], [], [], 30)
            assert ready, f"{text!r} is not in {seen!r}"
            seen += os.read(terminal, 4096).decode(errors="replace")

    try:
        os.write(terminal, b"autoload -U compinit; compinit -u -d dump; source script.zsh; echo rea''dy\n")
        until("ready\r\n")
        for typed, whole in WORDS.items():
            seen = ""
            os.write(terminal, typed.encode() + b"\t")
            until(f"{typed.rpartition(' ')[0]} {whole}")
            os.write(terminal, b"\x15")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_for_other_shells_know_the_commands(shell, capsys):
    script = said(capsys, "completion", shell)
    assert all(name in script for name in ("k-best", "train", "chunk-f1"))


def test_errors_have_codes_of_their_own():
    codes = [exit_of(e("x")) for e in (tt.InfeasibleError, tt.BudgetError, tt.ModelError, tt.TallytreeError)]
    assert codes == [Exit.INFEASIBLE, Exit.BUDGET, Exit.MALFORMED, Exit.FAILURE]
    assert exit_of(KeyboardInterrupt()) == Exit.INTERRUPTED


def test_an_interrupt_is_no_traceback(files, capsys, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Problem, "solve", interrupted)
    assert run("solve", "week.json") == Exit.INTERRUPTED
    assert capsys.readouterr().err == "tallytree: interrupted\n"


def test_memory_that_is_not_there_is_no_traceback(files, capsys, monkeypatch):
    def greedy(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 16.0 EiB")

    monkeypatch.setattr(Problem, "solve", greedy)
    assert run("solve", "week.json") == Exit.BUDGET
    assert "the memory of this machine is not enough: Unable to" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("tallytree.cli.progress._PATIENCE", 0.0)
    monkeypatch.setattr("tallytree.cli.progress._PACE", 0.01)
    with progress("solving", shown=True):
        while "solving: 0 s" not in terminal.getvalue():
            time.sleep(0.01)
    assert terminal.getvalue().endswith("\r\033[K")
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    with progress("solving", shown=False):
        pass
    assert quiet.getvalue() == ""


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
        ("solve - <&-", Exit.USAGE, "tallytree: standard input: it is closed, and nothing can be read"),
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


@pytest.mark.parametrize("name", ["week.json", "week.uai", "two.wcsp", "two.cfn"])
def test_a_mark_of_the_byte_order_and_other_line_ends(files, capsys, monkeypatch, name):
    expected = said(capsys, "solve", name)
    data = b"\xef\xbb\xbf" + Path(name).read_bytes().replace(b"\n", b"\r\n")
    (files / f"marked-{name}").write_bytes(data)
    assert said(capsys, "solve", f"marked-{name}") == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert said(capsys, "solve", "-") == expected


def test_importing_the_library_does_not_import_the_command_line():
    code = "import sys, tallytree; sys.exit('tallytree.cli' in sys.modules or 'argparse' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
