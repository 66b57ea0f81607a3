"""The requirements of a fresh machine, and the messages if something is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def machine(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import check_machine

    return check_machine


def test_this_machine_has_all(machine):
    assert machine.missing() == []
    assert (
        subprocess.run([sys.executable, str(ROOT / "tools" / "check_machine.py")], check=False).returncode
        == 0
    )


def test_everything_that_is_missing_is_named(machine, monkeypatch, capsys):
    monkeypatch.setattr(machine, "OLDEST", (99, 0))
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(machine.sysconfig, "get_paths", lambda: {"include": "/nowhere"})
    monkeypatch.setattr(machine.shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    assert machine.main() == 1
    told = capsys.readouterr().err
    for part in (
        "Python 3.11 or later",
        "python3-venv",
        "python3-dev",
        "a C++ compiler",
        "apt-get install git make g++",
    ):
        assert part in told


def test_an_old_compiler_is_named(machine, monkeypatch):
    monkeypatch.setenv("CXX", "false")
    assert machine.missing() == ["a compiler with C++20; false cannot compile it (GCC 10 or Clang 12 can)"]


def test_the_two_commands_stand_in_the_readme():
    readme = (ROOT / "README.md").read_text()
    assert "\nmake demo " in readme and "\nmake test " in readme


def test_a_compiler_that_is_not_there_is_named(machine, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -pipe")
    assert machine.missing() == ["the C++ compiler that CXX names, no-such-compiler -pipe"]
