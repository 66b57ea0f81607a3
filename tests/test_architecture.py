"""The architecture page is complete and correct: it names every part of the sources, and nothing else."""

import ast
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


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def functions(path):
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]


def lines(function):
    """Count the lines of a function without those of its docstring."""
    first, documented = function.body[0], ast.get_docstring(function) is not None
    return function.end_lineno - function.lineno + 1 - documented * (first.end_lineno - first.lineno + 1)


def test_files_are_short():
    others = ("benchmarks", "examples", "experiments", "tests", "tools")
    beside = [path for name in others for path in (ROOT / name).rglob("*.py")]
    files = [*SOURCE.rglob("*.py"), *NATIVE.rglob("*.h"), *NATIVE.rglob("*.cpp"), *beside]
    assert [str(file) for file in files if len(file.read_text().splitlines()) > 350] == []


def test_functions_are_short_and_take_few_parameters():
    long, wide = [], []
    beside = [path for name in ("benchmarks", "experiments", "tools") for path in (ROOT / name).rglob("*.py")]
    for path in (*SOURCE.rglob("*.py"), *beside):
        for function in functions(path):
            given = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
            long += [f"{path}: {function.name}"] if lines(function) > 40 else []
            constructor = function.name == "__init__" and path.parent.name == "learning"  # of an estimator
            taken = [one.arg for one in given if one.arg not in ("self", "cls")]
            wide += [f"{path}: {function.name}"] if len(taken) > 10 and not constructor else []
    assert long == []
    assert wide == []


@pytest.mark.parametrize("path", sorted(NATIVE.rglob("*.cpp")), ids=lambda path: path.stem)
def test_compiled_functions_are_short(path):
    """A function begins in the first column, and ends with a brace there."""
    begin = None
    for number, line in enumerate(path.read_text().splitlines()):
        if line.startswith("}") and begin is not None:
            assert number - begin < 60, f"{path}, line {begin + 1}"
            begin = None
        elif line[:1].isalpha() and "(" in line and not line.endswith(";"):
            begin = number


SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w.*\n---|\Z)", re.MULTILINE | re.DOTALL)


def test_sections_of_docstrings_are_lists_of_names():
    """The site reads a sentence behind a list of parameters as one of them, and is not built."""
    sentences = []
    for path in SOURCE.rglob("*.py"):
        nodes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, DOCUMENTED))
        for text in filter(None, map(ast.get_docstring, nodes)):
            listed = "\n".join(SECTION.findall(text))
            sentences += [f"{path}: {line}" for line in re.findall(r"^\w.*\.$", listed, re.MULTILINE)]
    assert sentences == []
