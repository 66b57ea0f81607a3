"""Options of other commands, infinities in JSON, and long lines."""

import json

import numpy as np
import pytest
from command_line import run, said

import tallytree as tt
from tallytree.cli.exits import Exit
from tallytree.io import ProblemFile, write_problem, write_uai


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("solve", "week.uai", "--given", "wet=2"), "--given is an option of plan, marginals and sample"),
        (("solve", "--limit=3", "week.uai"), "--limit is an option of profile and distribution"),
        (("solve", "week.uai", "-n", "3"), "-n is an option of sample"),
        (
            ("solve", "week.uai", "--givn", "a=1"),
            "did you mean --given, an option of plan, marginals and sample?",
        ),
        (("sample", "week.uai", "--gven", "a=1"), "did you mean --given?"),
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
    even = tt.Statistic([((v,), [0, 2]) for v in range(12)], name="even")
    write_problem(ProblemFile(tt.Model([2] * 12), [even], where="even == 3"), "odd.json")
    found = json.loads(said(capsys, "relax", "odd.json", "--json"))
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
