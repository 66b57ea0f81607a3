"""The requirements of a fresh machine, and the messages if something is missing."""

import os
import shutil
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


@pytest.fixture
def clone(tmp_path):
    """The files that ``make install`` looks at, with an environment that is up to date; oldest first."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    needed = ["pyproject.toml", "tools/requirements.py", "tools/check_machine.py", "CMakeLists.txt"]
    needed += ["native/walk/a.h", "native/walk/a.cpp", "src/tallytree/a.py", ".venv/.build", ".venv/.native"]
    for when, name in enumerate(needed):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (when, when))
    return tmp_path


def commands(clone: Path) -> list[str]:
    """What ``make demo`` would run."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    asked = ["make", "--dry-run", "demo"]
    done = subprocess.run(asked, cwd=clone, env=alone, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
TOLD = "Compiling tallytree: about three minutes on two idle cores"


@needs_make
@pytest.mark.parametrize(
    "changed", ["native/walk/a.h", "native/walk/a.cpp", "CMakeLists.txt", ".venv/.native"]
)
def test_the_time_to_compile_is_told_before(clone, changed):
    (clone / changed).unlink()
    if not changed.startswith(".venv"):
        (clone / changed).touch()
    told, installed = commands(clone)[-4:-2]
    assert told.startswith(f'echo "{TOLD}')
    assert installed.endswith("-e .")


@needs_make
def test_nothing_is_told_if_there_is_nothing_to_compile(clone):
    ran = "\n".join(commands(clone))  # modules are new here, so the package is installed
    assert "-e ." in ran
    assert "Compiling" not in ran


def test_pages_agree_on_the_time_to_compile():
    for page in ("README.md", "docs/start.md"):
        assert "about three minutes on two idle cores" in " ".join((ROOT / page).read_text().split())
