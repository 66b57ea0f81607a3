"""Helpers for tests of the command line: a problem, and a way to run a command."""

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
COLUMNS = """-DOCSTART- -X- O

the DT B-NP
cat NN I-NP
sat VB B-VP

a DT B-NP
dog NN I-NP
ran VB B-VP
fast RB O
"""
TREES = [
    "(S (NP (DT the) (NN cat)) (VP (VB sat)))",
    "(S (NP (DT a) (NN dog)) (VP (VB saw) (NP (NN fish)) (PP (IN with) (NP (NN milk)))))",
    "(S (NP (NP (DT a) (NN dog)) (PP (IN with) (NP (NN milk)))) (VP (VB sat)))",
    "(S (NP (NN milk)) (VP (VB saw) (NP (NN fish))))",
]


def run(*arguments: str) -> int:
    return main([str(argument) for argument in arguments])


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(*arguments) == Exit.OK
    return capsys.readouterr().out


def conllu(*sentences: str) -> str:
    blocks = []
    for number, sentence in enumerate(sentences, 1):
        rows = [
            [str(i), word, "_", tag, tag.lower(), "_", "0", "_", "_", "_"]
            for i, (word, tag) in enumerate((one.split("/") for one in sentence.split()), 1)
        ]
        rows.insert(1, ["1-2", "x", *"________"])
        lines = "".join("\t".join(row) + "\n" for row in rows)
        blocks.append(f"# sent_id = {number}\n{lines}\n")
    return "".join(blocks)
