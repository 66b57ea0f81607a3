"""Options of other commands, infinities in JSON, and long lines."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import run, said

import tallytree as tt
from tallytree.cli.exits import Exit
from tallytree.io import ProblemFile, write_problem, write_uai


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("solve", "week.uai", "--given", "wet=2"),
            "--given is an option of plan, distribution, marginals and sample",
        ),
        (("solve", "--limit=3", "week.uai"), "--limit is an option of profile and distribution"),
        (("solve", "week.uai", "-n", "3"), "-n is an option of sample"),
        (
            ("solve", "week.uai", "--givn", "a=1"),
            "did you mean --given, an option of plan, distribution, marginals and sample?",
        ),
        (("sample", "week.uai", "--gven", "a=1"), "did you mean --given?"),
        (("train", "chunk", "c.txt", "-o", "m.npz", "-C", "1"), "arguments: -C 1; did you mean --C?"),
        (
            ("train", "chunk", "c.txt", "-o", "m.npz", "--los", "f1", "--epochs=3", "-n=3"),
            "; --los: did you mean --loss?; --epochs: did you mean --passes?; -n: -n is an option of sample",
        ),
        (
            ("train", "week.uai"),
            "week.uai is a file: give the task before it",
        ),
        (("train", "tag", "week.uai"), "the following arguments are required: -o/--output"),
    ],
)
def test_options_of_other_commands(files, capsys, arguments, says):
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    assert stopped.value.code == Exit.USAGE
    assert capsys.readouterr().err.rstrip().endswith(says)


def test_infinities_are_null_in_json(files, capsys):
    forbids = ("--objective", "where(wet <= 3, score, -inf)")
    values = json.loads(said(capsys, "profile", "week.json", *forbids, "--json"))["values"]
    assert [value is None for value in values] == [False] * 4 + [True] * 4
    even = tt.Statistic([((v,), [0, 2]) for v in range(600)], name="even")
    write_problem(ProblemFile(tt.Model([2] * 600), [even], where="even == 3"), "odd.json")
    found = json.loads(said(capsys, "relax", "odd.json", "--iterations", "1", "--json"))  # stopped early
    assert found["solution"] is None
    assert found["gap"] is None


def test_long_labellings(files, capsys, monkeypatch):
    """One line in a file; wrapped to COLUMNS where it is set, and to the terminal."""
    write_uai(tt.Model.chain(np.zeros((228, 2)), np.eye(2)), "long.uai")
    monkeypatch.delenv("COLUMNS")
    lines = said(capsys, "solve", "long.uai").splitlines()
    assert [len(line.split()) for line in lines[-2:]] == [228, 228]
    monkeypatch.setenv("COLUMNS", "60")
    wrapped = said(capsys, "solve", "long.uai").splitlines()
    assert max(map(len, wrapped)) <= 60
    assert " ".join(wrapped[3::3]).split() == lines[-1].split()
    rows = said(capsys, "k-best", "long.uai", "-k", "2").splitlines()
    assert len(rows[1].split()) == 230  # rows are only cut on a terminal


@pytest.mark.parametrize(("module", "suffix"), [("lzma", "xz"), ("bz2", "bz2"), ("gzip", "gz")])
def test_compressed_as_toulbar2_reads_them(files, capsys, module, suffix):
    packer = pytest.importorskip(module)
    expected = said(capsys, "solve", "two.cfn")
    data = packer.compress(Path("two.cfn").read_bytes())
    Path(f"two.cfn.{suffix}").write_bytes(data)
    assert said(capsys, "solve", f"two.cfn.{suffix}") == expected
    name = {"bz2": "bzip2", "lzma": "xz"}.get(module, module)
    for wrong in (data[:-8], data[:9] + bytes(10) + data[19:]):
        Path(f"cut.cfn.{suffix}").write_bytes(wrong)
        assert run("solve", f"cut.cfn.{suffix}") == Exit.MALFORMED
        assert f"cut.cfn.{suffix} is compressed by {name}, but damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("solve", "week.uai", "two.cfn"),
            "unrecognized arguments: two.cfn; tallytree solve takes only file and options",
        ),
        (("solve", "week.uai", "--order", "sweeep"), "got 'sweeep'; did you mean sweep?"),
    ],
)
def test_usage(files, capsys, arguments, says):
    with pytest.raises(SystemExit):
        run(*arguments)
    assert capsys.readouterr().err.rstrip().endswith(says)


def test_what_to_do_next(files, capsys):
    Path("junk").write_text("junk")
    Path("cut").write_text("two 2 2 2 10 2 2")
    Path("cut.uai").write_text("MARKOV 225 2 2")
    for arguments, says in [
        (("solve", "junk"), "the format of junk is not recognised, by its name or its content"),
        (("solve", "cut"), "(read as wcsp, by its content; --format sets another format)"),
        (("solve", "cut.uai"), "at most 2 by the length of the file, got '225'; is it cut off?"),
        (
            ("solve", "week.uai", "--objective", "score - ones"),
            "available are score; add one with --count NAME=STATE",
        ),
        (("solve", "week.uai", "--objective=-score"), "the objective decreases in the score: it is"),
    ]:
        assert run(*arguments) == Exit.MALFORMED
        assert says in capsys.readouterr().err
    said(capsys, "solve", "week.uai", "--memory", "2 G")
    write_uai(tt.Model.grid(np.zeros((30, 30, 2)), np.eye(2), np.eye(2)), "wide.uai")
    assert run("profile", "wide.uai", "--count", "ones=1", "--memory", "2G") == Exit.BUDGET
    err = capsys.readouterr().err
    assert (
        "Even without statistics, the tables exceed the limit. Raise --memory, or use a better "
        "elimination order (--order); for wide graphs, a branch-and-bound solver such as toulbar2" in err
    )


def test_names_that_a_format_does_not_have(files, capsys):
    for kind in ("uai", "wcsp"):
        run("convert", "two.cfn", f"plain.{kind}")
        assert (
            f"{kind} files cannot store names; variables and states become numbers" in capsys.readouterr().err
        )
    for source, target in (("two.cfn", "a.json"), ("two.cfn", "a.cfn"), ("week.uai", "a.wcsp")):
        run("convert", source, target)
        assert "names" not in capsys.readouterr().err


def test_a_network_is_recognised_by_its_content(files, capsys):
    said(capsys, "convert", "week.uai", "week.cfn")
    Path("week.cfn").rename("network")  # its name in the file is tallytree
    assert said(capsys, "solve", "network", "--json") == said(
        capsys, "solve", "network", "--format", "cfn", "--json"
    )


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", "MARKOV 1 2 0", "(read as json, by its name; it looks like uai: use --format uai)"),
        ("a.uai", '{"tallytree": 1}', "(read as uai, by its name; it looks like json: use --format json)"),
        ("a.json", "", "a.json, line 1, column 1: the file is empty\n"),
        ("a.json", '{"model": {}}', "the key 'tallytree' is missing; write \"tallytree\": 1\n"),
        ("a.json", '{"tallytree": 2, "model": {}}', "expected the version of the format, 1, got 2\n"),
        (
            "a.json",
            '{"tallytree": 1, "model": {"cardinalities": [2]}, "fixed": {"0": 7}}',
            "a.json: fixed: fixed[0] is 7, which is not a state of variable 0; its states are 0 to 1\n",
        ),
    ],
)
def test_files_that_cannot_be_read(files, capsys, name, content, says):
    Path(name).write_text(content)
    assert run("solve", name) == Exit.MALFORMED
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--set", "target=nan"), Exit.USAGE, "--set target: expected a finite number, got 'nan'"),
        (("--fix", "0=dri"), Exit.MALFORMED, "--fix 0: 'dri' is not a state of this variable; its states"),
        (("--where", "wet == 2.5"), Exit.INFEASIBLE, "the nearest attainable tallies are (wet=2), (wet=3)"),
        (("--where", "wet <= 0.5 * target * wet"), Exit.MALFORMED, "multiply both sides to get rid of"),
        (("--where", "score > 2"), Exit.MALFORMED, "only use statistics and parameters (target, wet)"),
    ],
)
def test_options_that_cannot_be_right(files, capsys, arguments, code, says):
    assert run("solve", "week.json", *arguments) == code
    assert says in capsys.readouterr().err


def test_a_condition_on_numbers_alone(files, capsys):
    assert run("solve", "week.uai", "--where", "1 == 2") == Exit.INFEASIBLE
    assert "it compares only numbers and is always false" in capsys.readouterr().err


def test_a_distance_needs_the_score_as_objective(files, capsys):
    assert run("k-best", "week.json", "-k", "2", "--distance", "2") == Exit.MALFORMED
    assert "remove --distance, or use --objective score" in capsys.readouterr().err


def test_the_plan_of_a_profile_has_no_bounds(files, capsys):
    lines = said(capsys, "plan", "week.uai", "--count", "wet=1", "--where", "wet == 2")
    solve, profile = lines.split("profile:")
    assert "by bounds" in solve and "by bounds" not in profile


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("week.json", "--where", "wet==3"),
            "this problem has the objective 'score - abs(wet - target)' (drop it with --objective score)\n",
        ),
        (("week.uai",), "under a constraint, but this problem has no constraint (add one with --where)\n"),
    ],
)
def test_what_is_in_the_way_of_a_relaxation(files, capsys, arguments, says):
    assert run("relax", *arguments) == Exit.MALFORMED
    assert capsys.readouterr().err.endswith(says)


def test_a_gap_of_a_relaxation_mentions_solve(files, capsys, monkeypatch):
    def relaxed(problem: ProblemFile, **_: object) -> tt.Relaxation:
        return tt.Relaxation(9.5, problem.solve(), 2.5, (0.0,), 1)

    monkeypatch.setattr(ProblemFile, "relax", relaxed)
    lines = said(capsys, "relax", "week.uai", "--count", "n=1", "--where", "n == 4").splitlines()
    assert lines[1] == "gap    2.5; `tallytree solve` may find the best labelling"


def test_reading_from_a_terminal_is_mentioned(files, capsys, monkeypatch):
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(Path("week.uai").read_bytes())))
    assert run("solve", "-") == Exit.OK
    assert capsys.readouterr().err == (
        "tallytree: reading standard input, up to Ctrl-D; give a file to read that instead\n"
    )


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{\n\xf3", "data); if it is Latin-1 text, convert it with `iconv -f latin1 -t utf-8`\n"),
        ("{}".encode("utf-16"), "(invalid start byte); convert it with `iconv -f utf-16 -t utf-8`\n"),
    ],
)
def test_other_encodings_are_named(files, capsys, data, says):
    Path("other.json").write_bytes(data)
    assert run("solve", "other.json") == Exit.MALFORMED
    assert capsys.readouterr().err.endswith(says)
