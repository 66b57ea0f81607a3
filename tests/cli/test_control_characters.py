"""Names and words from files are escaped: no control character reaches a terminal."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run

from tallytree.cli.exits import Exit
from tallytree.cli.text import visible, visible_lines

TITLE = "\x1b]0;pwned\x07\x1b[2J"
FORGED = "y\r\nfake line"
OTHERS = "a\x9b2Jb\u202ec\u2028d\x7fe"
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

PROBLEM = {
    "tallytree": 1,
    "model": {
        "chain": {"unary": [[0, 1], [0.5, 0], [0, 2]], "pairwise": [[0.5, 0], [0, 0.25]]},
        "variables": [FORGED, "b", OTHERS],
        "states": [TITLE, OTHERS],
    },
    "statistics": [{"name": "ones", "count": {"state": OTHERS}}],
    "parameters": {"target": 1},
    "objective": "score - target*ones",
    "title": TITLE,
}


@pytest.fixture
def problem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("p.json").write_text(json.dumps(PROBLEM))
    grid = {
        "unary": [[[0, 1], [1, 0]], [[0, 1], [1, 0]]],
        "vertical": [[1, 0], [0, 1]],
        "horizontal": [[1, 0], [0, 1]],
    }
    whole = {"tallytree": 1, "model": {"grid": grid, "states": [TITLE, FORGED]}}
    Path("grid.json").write_text(json.dumps(whole))
    return tmp_path


def is_plain(text):
    return not HIDDEN.search(text) and "fake line" not in text.splitlines()


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "p.json"),
        ("solve", "p.json", "--explain"),
        ("solve", "grid.json"),
        ("k-best", "p.json"),
        ("profile", "p.json"),
        ("plan", "p.json"),
        ("explore", "p.json", "-o", "page\x1b[2J.html"),
    ],
)
def test_answers_are_plain_text(problem, capsys, arguments):
    assert run(*arguments) == Exit.OK
    captured = capsys.readouterr()
    assert captured.out and is_plain(captured.out) and is_plain(captured.err)


def test_names_can_be_told_apart(problem, capsys):
    run("solve", "p.json")
    out = capsys.readouterr().out
    assert r"y\r\nfake line" in out and r"a\x9b2Jb\u202ec\u2028d\x7fe" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "p.json", "--fix", f"{FORGED}=nothing"),
        ("solve", "p.json", "--fix", f"b={FORGED}"),
        ("solve", "p.json", "--count", f"n={TITLE}x"),
        ("solve", "p.json", "--where", "ones > 9"),
        ("solve", "p.json", "--where", f"ones > {TITLE}"),
        ("solve", "p.json", "--set", f"{FORGED}=1"),
        ("solve", f"missing{TITLE}\r\nfake line"),
        ("convert", "p.json", "out.uai", "--objective", f"score + {OTHERS}"),
        ("solve", "bad.json"),
        ("solve", "bad.wcsp"),
        ("solve", "bad.cfn"),
        ("parse", "bad.json", "bad.cfn"),
    ],
)
def test_errors_are_plain_text(problem, capsys, arguments):
    Path("bad.json").write_text(json.dumps({"tallytree": 1, "model": {FORGED: TITLE}, TITLE: 1}))
    Path("bad.wcsp").write_text(f"{TITLE} {OTHERS}")
    Path("bad.cfn").write_text(f'{{"{TITLE}": {{ "{FORGED}": 1 ')
    assert run(*arguments) != Exit.OK
    captured = capsys.readouterr()
    assert captured.err.startswith("tallytree: ") and is_plain(captured.err) and is_plain(captured.out)


def test_json_has_the_names_themselves(problem, capsys):
    for arguments in (("solve", "p.json"), ("k-best", "p.json")):
        assert run(*arguments, "--json") == Exit.OK
        out = capsys.readouterr().out
        assert is_plain(out) and json.loads(out)
    assert set(json.loads(out)[0]["labels"]) <= {TITLE, OTHERS}
    assert run("solve", "p.json", "--fix", f"{FORGED}=nothing", "--json") != Exit.OK
    assert is_plain(capsys.readouterr().out)


TREES = f"(S (NP (DT the) (NN {TITLE.replace(']', '')})) (VP (VB saw)))\n"


def on_a_terminal(*arguments):
    """Run a command with its output on a terminal; returns what the terminal got."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:  # no /dev/pts
        pytest.skip(f"no terminals here: {error}")
    with subprocess.Popen(
        [sys.executable, "-m", "tallytree", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        got = b""
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # how Linux says that the other side is closed
                break
            if not chunk:
                break
            got += chunk
        process.wait()
    os.close(ours)
    return got.decode().replace("\r\n", "\n")


def test_words_are_plain_on_a_terminal_and_data_elsewhere(problem, capsys):
    Path("trees.mrg").write_text(TREES)
    assert run("train", "parse", "trees.mrg", "-o", "g.json") == Exit.OK
    capsys.readouterr()
    assert run("parse", "g.json", "trees.mrg") == Exit.OK
    assert capsys.readouterr().out == TREES  # as it came in
    shown = on_a_terminal("parse", "g.json", "trees.mrg")
    assert r"\x1b0;pwned\x07\x1b[2J" in shown and is_plain(shown)
    Path("text.txt").write_text(f"saw {OTHERS}\n")
    assert is_plain(on_a_terminal("parse", "g.json", "text.txt"))
    assert is_plain(on_a_terminal("convert", "p.json", "-", "--to", "json"))
    assert is_plain(on_a_terminal("solve", "p.json"))


def test_text_for_people():
    assert visible("naïve 語 \N{ZERO WIDTH NON-JOINER} 'x'") == "naïve 語 \N{ZERO WIDTH NON-JOINER} 'x'"
    assert visible(3) == "3"
    assert visible("a\tb\nc") == r"a\tb\nc"
    assert visible_lines("one\n  two\n\nthree\x1b\n") == "one\n  two\n\n  three\\x1b\n"
