"""The Python blocks of the README and of docs/ run, page by page from top to bottom, and show what they say.

Behind an expression, ``# → text`` is its value, or what it prints. A ``text`` block right below a Python
block is all that the block prints. ``…`` stands for anything, and a decimal number is right to the digits
shown; behind an expression, it has all digits. In a plan, the memory limit is the machine's own.
"""

import ast
import contextlib
import io
import re
import runpy
import shlex
import tokenize
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from tallytree.cli import main

ROOT = Path(__file__).parents[1]
NOTATION = ROOT / "docs" / "architecture.md"  # its one line of code is a sketch
PAGES = [ROOT / "README.md", *sorted(set((ROOT / "docs").glob("*.md")) - {NOTATION})]
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]

FENCE = re.compile(
    r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```\n(\n?)(?=(```text\n(.*?)^```)?)', re.MULTILINE | re.DOTALL
)
DECIMAL = r"-?\d+\.\d*(?:e[-+]?\d+)?"
LIMIT = re.compile(r"limit [\d.,]+ \w+")  # of the memory, which is the machine's own


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


def agrees(shown: str, got: str, *, rounded: bool = True) -> bool:
    shown, got = (LIMIT.sub("#", " ".join(text.split())) for text in (shown, got))
    parts = re.split(f"({DECIMAL}|…)", shown)
    numbers = [part for part in parts[1::2] if part != "…"]
    pattern = "".join(
        re.escape(part) if i % 2 == 0 else ".*?" if part == "…" else f"({DECIMAL}|-?\\d+)"
        for i, part in enumerate(parts)
    )
    match = re.fullmatch(pattern, got)
    if match is None or not all(map(close, numbers, match.groups())):
        return False
    return rounded or all(decimals(a) >= decimals(b) for a, b in zip(numbers, match.groups(), strict=True))


def decimals(number: str) -> int:
    return len(number.partition("e")[0].partition(".")[2])


def close(shown: str, got: str) -> bool:
    mantissa, _, exponent = shown.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return abs(float(shown) - float(got)) <= 0.5001 * 10.0**-digits


def promises(code: str) -> dict[int, str]:
    """Return what the comments promise, by line."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    comments = {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}
    return {line: text.partition("→")[2] for line, text in comments.items() if text.startswith("# →")}


def run_statement(statement: ast.stmt, page: Path, names: dict) -> tuple[str, str]:
    """Run one statement; return what it prints, and what its value looks like or else what it prints."""
    out = io.StringIO()
    value = None
    with contextlib.redirect_stdout(out):
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), str(page), "eval"), names)
        else:
            exec(compile(ast.Module([statement], []), str(page), "exec"), names)
    return out.getvalue(), out.getvalue() if value is None else repr(value)


def run_block(code: str, printed: str | None, page: Path, names: dict) -> None:
    promised, out = promises(code), ""
    for statement in ast.parse(code).body:
        text, seen = run_statement(statement, page, names)
        promise, source = promised.pop(statement.end_lineno, None), ast.get_source_segment(code, statement)
        check(promise, seen, source, rounded=False)
        out += text
    check(printed, out, code)
    if promised:
        raise AssertionError(f"{page.name}: no statement ends where these are promised: {promised}")


def run_console(text: str) -> None:
    """Run each ``$ tallytree …`` and compare what it says with what follows."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        program, *arguments = shlex.split(line)
        assert program == "tallytree", f"only tallytree runs in a console block, got {line}"
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            main(arguments)
        check(shown, out.getvalue(), line)


def check(shown: str | None, got: str, code: str | None, *, rounded: bool = True) -> None:
    if shown is not None and not agrees(shown, got, rounded=rounded):
        raise AssertionError(f"{code}\n--- shows\n{shown}\n--- gives\n{got}")


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in FENCE.finditer(page.read_text(encoding="utf-8")):
        if block[1] == "python":
            run_block(block[3], block[6], page, names)
        elif block[1] == "console":
            run_console(block[3])
        elif block[2]:
            Path(block[2]).write_text(block[3], encoding="utf-8")


@pytest.mark.parametrize("page", TEXTS, ids=relative)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize(
    ("shown", "got", "right"),
    [
        ("2.5", "2.5049", True),
        ("2.5", "2.56", False),
        ("-1.5e-07", "-1.52e-07", True),
        ("[1.00 … 3]", "[1.001, 2, 3]", False),
        ("[1.00, … 3]", "[1.001, 2, 3]", True),
        ("a  b", "a\nb", True),
        ("7 tallies", "8 tallies", False),
        ("2.0 KiB at the peak (limit 11.8 GiB)", "2.0 KiB at the peak (limit 4.0 TiB)", True),
        ("2.0 KiB at the peak (limit 11.8 GiB)", "128 bytes at the peak (limit 4.0 TiB)", False),
        ("8 steps, 5.4 k add-max operations", "8 steps, 10 add-max operations", False),
    ],
)
def test_what_counts_as_shown(shown, got, right):
    assert agrees(shown, got) is right


@pytest.mark.parametrize(
    "code", ["1 + 1  # → 3", "print('a')  # → b", "(1,\n 2)  # → (1, 3)", "x = 1\n# → 1", "2 / 3  # → 0.67"]
)
def test_a_false_promise_is_found(code):
    with pytest.raises(AssertionError):
        run_block(code, None, ROOT, {})


def test_a_false_console_is_found():
    run_console("$ tallytree completion zsh\nautoload …\n")
    with pytest.raises(AssertionError, match="gives"):
        run_console("$ tallytree solve nowhere.json\nall is well\n")


def test_false_print_is_found():
    run_block("print('a')\nprint('b')", "a b", ROOT, {})
    with pytest.raises(AssertionError, match="gives"):
        run_block("print('a')", "b", ROOT, {})


@pytest.mark.parametrize("package", ["", "io", "losses", "learning", "parsing", "bounds", "testing", "torch"])
def test_the_reference_has_a_task_for_every_public_name(package):
    tasks = runpy.run_path(str(ROOT / "tools" / "reference_tasks.py"))["TASKS"]
    if package in ("learning", "torch"):
        pytest.importorskip({"learning": "sklearn", "torch": "torch"}[package])
    module = import_module(f"tallytree.{package}".rstrip("."))
    listed = " ".join(tasks[package or "tallytree"].values()).split()
    own = [name for name in module.__all__ if package or not isinstance(getattr(module, name), ModuleType)]
    assert sorted(listed) == sorted(own)


def test_only_members_that_exist_are_left_out_of_the_reference():
    for name, members in runpy.run_path(str(ROOT / "tools" / "reference_tasks.py"))["HIDDEN"].items():
        package, _, own = name.rpartition(".")
        owner = getattr(import_module(f"tallytree.{package}".rstrip(".")), own)
        assert [member for member in members.split() if not hasattr(owner, member)] == []


def test_pages_have_plain_code_for_roles_unbroken_options_and_pictures_that_can_be_enlarged():
    changed = runpy.run_path(str(ROOT / "tools" / "site_hooks.py"))["on_page_content"]
    assert changed("see :func:<code>solve</code>") == "see <code>solve</code>"
    assert (
        changed("<code>--where</code>, <code>a</code>")
        == '<code class="unbroken">--where</code>, <code>a</code>'
    )
    assert changed("<code>" + "a-" * 20 + "</code>") == "<code>" + "a-" * 20 + "</code>"
    picture = '<img alt="a week" src="images/week.png" />'
    assert changed(f"<p>{picture}</p>") == f'<p><a href="images/week.png">{picture}</a></p>'
    drawn = '<a href="pictures/week.png"><img src="pictures/week.png" srcset="pictures/week.png 2x" /></a>'
    assert changed('<img src="pictures/week.png" />') == drawn


def test_tables_on_the_site(monkeypatch):
    """Code in tables has no backslashes there, and the names on the start page link to the reference."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    staged = runpy.run_path(str(ROOT / "tools" / "stage_docs.py"))
    assert staged["unescaped"](r"| `a \| b`, c \| d |") == r"| `a | b`, c \| d |"
    assert staged["unescaped"](r"not a table: `a \| b`") == r"not a table: `a \| b`"
    for row, links in {
        "| `Plan`, `.width` | x |": "| [`Plan`][tallytree.Plan], [`.width`][tallytree.Plan.width] | x |",
        "| `losses`, `no_name` | `count` |": "| [`losses`](reference-losses.md), `no_name` | `count` |",
        "| `io.Token`, `Source` |": "| [`io.Token`][tallytree.io.Token], [`Source`][tallytree.io.Source] |",
    }.items():
        assert staged["linked"](row) == links
