"""Folders with small files: problems in all formats, and corpora."""

from pathlib import Path

import pytest
from command_line import COLUMNS, MODEL, PROBLEM, TREES, conllu

from tallytree.io import write_problem, write_uai
from tallytree.parsing import parse_tree, write_treebank


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


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(COLUMNS)
    Path("train.conllu").write_text(conllu("the/DET cat/NOUN sat/VERB", "a/DET dog/NOUN ran/VERB"))
    write_treebank("train.mrg", map(parse_tree, TREES))
    return tmp_path
