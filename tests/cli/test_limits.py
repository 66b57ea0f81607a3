"""Budgets, their units, and what is beside a file."""

import numpy as np
import pytest
from command_line import run, said

import tallytree as tt
from tallytree.cli.exits import Exit
from tallytree.io import ProblemFile, write_problem


def test_plan_exits_as_solve_does(files, capsys):
    rng = np.random.default_rng(0)
    grid = tt.Model.grid(rng.normal(size=(8, 24, 2)), np.eye(2), np.eye(2))  # its tables take 3.4 MB
    write_problem(ProblemFile(grid, [tt.count(state=1, name="ones")], where="ones == 90"), "grid.json")
    for limits in (("--memory", "200K"), ("--memory", "2M"), ("--operations", "10"), ()):
        codes = [run(command, "grid.json", *limits) for command in ("plan", "solve")]
        capsys.readouterr()
        assert codes[0] == codes[1]
    assert said(capsys, "plan", "grid.json", "--memory", "2M").startswith("solve: by bounds, about ")
    told = said(capsys, "plan", "grid.json", "--operations", "4M")
    assert "without tables: the plan takes" in told
    assert "but --operations is 4e+06\n" in told


def test_units_of_bytes_and_operations(files, capsys):
    assert run("solve", "week.json", "--operations", "0.001K") == Exit.BUDGET
    assert "--operations is 1;" in capsys.readouterr().err
    for line, expected in (
        ("solve week.json --operations -1", "a number of operations such as 500M or 1e9, got '-1'"),
        ("solve week.json --operations 2GB", "a number of operations such as 500M or 1e9, got '2GB'"),
        ("solve week.json --memory=-1", "a number of bytes such as 500M or 2G, got '-1'"),
        ("k-best week.json --distance 0", "expected a positive integer, got '0'"),
    ):
        with pytest.raises(SystemExit) as stopped:
            run(*line.split())
        assert stopped.value.code == Exit.USAGE
        assert expected in capsys.readouterr().err


def test_evidence_beside_a_model_is_mentioned(files, capsys):
    with open("week.uai.evid", "w", encoding="ascii") as file:
        file.write("1 0 0\n")
    assert run("solve", "week.uai") == Exit.OK
    assert "week.uai.evid is not used; to use it, add --evidence week.uai.evid" in capsys.readouterr().err
    assert run("solve", "week.uai", "--evidence", "week.uai.evid") == Exit.OK
    assert not capsys.readouterr().err
    with open("week.uai.evid", "w", encoding="ascii") as file:
        file.write("0\n")
    assert run("solve", "week.uai") == Exit.OK
    assert not capsys.readouterr().err
