"""The command line in tests: a problem to ask about, and a way to ask."""

import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.cli.exits import Exit
from tallytree.io import ProblemFile

MODEL = tt.Model.chain(
    [[0, 1.5], [0, -2.5], [0, 3], [0, -1.25], [0, 0.5], [0, -0.75], [0, 2]],
    [[1, 0], [0, 1]],
    states=["dry", "wet"],
)
WET = tt.count(MODEL, state="wet", name="wet")
PROBLEM = ProblemFile(MODEL, [WET], "score - abs(wet - target)", where="wet <= 6", parameters={"target": 3})


def run(*arguments: str) -> int:
    return main([str(argument) for argument in arguments])


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(*arguments) == Exit.OK
    return capsys.readouterr().out
