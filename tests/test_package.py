"""What ``import tallytree`` provides."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tallytree as tt

LAZY = ("explorer", "learning", "plot", "testing", "torch")


def test_heavy_packages_are_reached_but_not_imported_with_the_core():
    program = f"""
import sys
import tallytree as tt
print(sorted(m for m in ("matplotlib", "sklearn", "scipy", "tallytree.learning") if m in sys.modules))
print(all(hasattr(tt, name) and name in dir(tt) for name in {LAZY}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "True"]


def test_what_few_programs_need_is_imported_on_first_use():
    program = """
import sys
import tallytree as tt
print(sorted({m.split(".")[1] for m in sys.modules if m.startswith("tallytree.")}))
assert "k_best" not in vars(tt) and callable(tt.k_best) and tt.k_best is vars(tt)["k_best"]
from tallytree import *
print(set(tt.__all__) <= globals().keys())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded, every = done.stdout.splitlines()
    for name in ("bulk", "kbest", "losses", "paper", "relaxation", "score_ranges", "transducers", "io"):
        assert repr(name) not in loaded
    assert every == "True"


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'plots'"):
        tt.plots  # noqa: B018


def test_python_suggests_the_name_that_was_meant():
    for program, meant in (("tt.solv", "solve"), ("tt.losses.FBetta", "FBeta")):
        done = subprocess.run(
            [sys.executable, "-c", f"import tallytree as tt; {program}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr.endswith(f". Did you mean: {meant!r}?\n")


def test_a_package_without_its_dependencies_is_no_attribute_and_says_what_to_install():
    program = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import tallytree as tt
print(hasattr(tt, "torch"))
try:
    tt.torch
except AttributeError as error:
    print(error)
from tallytree import torch
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    needs = "tallytree.torch needs torch; install it with pip install 'tallytree[torch]'"
    assert done.stdout.splitlines() == ["False", f"module 'tallytree' has no attribute 'torch': {needs}"]
    assert f"ImportError: {needs}" in done.stderr


def test_one_version_everywhere():
    root = Path(__file__).parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    cited = (root / "CITATION.cff").read_text()
    newest, date = re.search(r"^## \[(.+?)\] - (\S+)$", (root / "CHANGELOG.md").read_text(), re.M).groups()
    assert project["version"] == tt.__version__ == newest
    assert f"\nversion: {newest}\ndate-released: {date}\n" in cited
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)
    shown = subprocess.run(
        [sys.executable, "-m", "tallytree", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"tallytree {newest}\n"


def test_dir_lists_public_names():
    """Tab completion shows what users need: no imports, no modules behind the scenes."""
    import tallytree as tt

    assert {*dir(tt)} == {*tt.__all__, *LAZY, "__version__"}
    for name in ("bounds", "io", "losses", "parsing", "explorer", "testing"):
        module = getattr(tt, name)
        assert dir(module) == sorted(module.__all__)
        assert all(hasattr(module, public) for public in dir(module))
