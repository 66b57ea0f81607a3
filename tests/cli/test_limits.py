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
    chain = tt.Model.chain(rng.normal(size=(3000, 2)), np.eye(2))
    write_problem(ProblemFile(chain, [tt.count(state=1, name="ones")], where="ones == 1500"), "chain.json")
    told = said(capsys, "plan", "chain.json", "--operations", "6M")
    assert told.startswith("solve: by bounds, about ")
    assert "expectation: the search may still reach a limit, and solve then exits with 5\n" in told
    assert "the tables exceed the limits: the plan takes" in told
    assert "but --operations is 6e+06\n" in told
    assert run("solve", "chain.json", "--operations", "6M") == Exit.OK


def test_plan_counts_what_solve_counts(files, capsys):
    """The operations of the objective, and more than one pass of a search."""
    for limit, code in (("98", Exit.BUDGET), ("100", Exit.BUDGET), ("200", Exit.OK)):
        codes = [run(command, "week.json", "--operations", limit) for command in ("plan", "solve")]
        told = capsys.readouterr().err
        assert codes == [code, code]
        if code == Exit.BUDGET:
            assert told.count("140 operations (98 for its tables, 42 to evaluate the objective), but") == 2
            assert "\n  A search by bounds is expected to exceed the limits, too: " in told
            assert "\n  A search by bounds also reached its limit: no labelling has a value above" in told
            assert told.count("\n  plan for 7 variables") == 2 and "strategy auto" not in told


def test_an_order_that_was_given_is_to_be_left_out(files, capsys):
    leaves = [((leaf, 119 - hub), np.eye(2)) for leaf in range(60) for hub in range(60)]
    write_problem(ProblemFile(tt.Model([2] * 120, leaves)), "wide.json")
    assert run("plan", "wide.json", "--order", "natural") == Exit.BUDGET
    told = capsys.readouterr().err
    assert "the given elimination order has a step over" in told and "every order" not in told
    assert "Leave out --order, or use a better elimination order (--order)" in told


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
