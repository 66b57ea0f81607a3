"""The map of the sources is true: what it names exists, and what exists it names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE, NATIVE = ROOT / "src" / "tallytree", ROOT / "native"
PAGES = {
    name: (ROOT / name).read_text() for name in ("docs/architecture.md", "docs/program.md", "CONTRIBUTING.md")
}


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page):
    named = set(re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:py|cpp|h|md|toml|txt))`", PAGES[page]))
    assert named
    assert [
        name for name in sorted(named) if not any((root / name).exists() for root in (ROOT, SOURCE, NATIVE))
    ] == []


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_folders_that_are_named_exist(page):
    named = set(re.findall(r"`((?:[\w-]+/)+)`", PAGES[page]))
    assert [
        name for name in sorted(named) if not any((root / name).is_dir() for root in (ROOT, SOURCE))
    ] == []


def test_every_folder_is_on_the_map():
    walk = PAGES["docs/architecture.md"]
    folders = [folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()]
    missing = [name for name in sorted(folders) if name != "kernels" and f"{name}/" not in walk]
    assert missing == []
    assert [f.name for f in sorted(NATIVE.iterdir()) if f.is_dir() and f"`{f.name}`" not in walk] == []


def test_every_native_file_is_in_the_table():
    table = PAGES["docs/program.md"]
    stems = {file.stem for file in NATIVE.rglob("*") if file.suffix in (".cpp", ".h")}
    assert [stem for stem in sorted(stems) if f"`{stem}`" not in table] == []


def test_tests_mirror_the_sources():
    folders = {folder.name for folder in SOURCE.iterdir() if folder.is_dir()} | {"data"}
    ours = {
        folder.name
        for folder in (ROOT / "tests").iterdir()
        if folder.is_dir() and folder.name != "__pycache__"
    }
    assert ours <= folders
