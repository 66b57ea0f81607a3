"""Collect the pages that mkdocs builds: those in docs/, those in the root, and a reference of all names.

    python tools/stage_docs.py build/docs

Links between pages are relative to the repository; they are rewritten to match the layout of the site.
"""

import json
import re
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

from reference_tasks import by_task, filters

ROOT = Path(__file__).resolve().parents[1]
FROM_ROOT = {
    "README.md": "readme-page.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)]*)?(\))")


def rewritten(text: str, folder: Path, others: set[Path]) -> str:
    """Rewrite links to pages of the root and to files outside docs/, which are collected in `others`."""
    up = "../" * len(folder.relative_to(ROOT).parts[1:])

    def target(match: re.Match[str]) -> str:
        start, link, anchor, end = match[1], match[2], match[3] or "", match[4]
        if re.match(r"\w+:", link):
            return match[0]
        place = (folder / link).resolve()
        if place.is_relative_to(ROOT / "docs"):
            if folder != ROOT:
                return match[0]
            new = place.relative_to(ROOT / "docs").as_posix()
        elif place.parent == ROOT and place.name in FROM_ROOT:
            new = up + FROM_ROOT[place.name]
        else:
            others.add(place)
            new = up + place.name
        return f"{start}{new}{anchor}{end}"

    return LINK.sub(target, text)


ROW = re.compile(r"^\|.*", re.MULTILINE)
CODE = re.compile(r"`([^`]*)`")


def unescaped(text: str) -> str:
    r"""Remove the backslash of ``\|`` from code in tables: GitHub needs it, but mkdocs would show it."""
    return ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0]), text)


def linked(row: str) -> str:
    """Link the names in the first column of a table to the reference.

    A name with a leading dot, or without its package, continues the one before it.
    """
    import tallytree

    first, bar, rest = row[1:].partition("|")
    before: list[str] = []

    def link(code: re.Match[str]) -> str:
        parts = code[1].lstrip(".").split(".")
        for end in range(len(before), -1, -1):
            name = [*before[:end], *parts]
            try:
                attrgetter(".".join(name))(tallytree)
            except AttributeError:
                continue
            before[:] = name
            whole = name in [[package] for package in PACKAGES]
            return f"[{code[0]}]" + (f"(reference-{name[0]}.md)" if whole else f"[{_place('.'.join(name))}]")
        return code[0]

    return "|" + CODE.sub(link, first) + bar + rest


PACKAGES = ("io", "losses", "learning", "parsing", "bounds", "plot", "explorer", "testing", "torch")


def references() -> dict[str, str]:
    """Return a page for the names of the package itself, and one for each of its subpackages."""
    import tallytree

    top = [name for name in tallytree.__all__ if name not in PACKAGES]
    others = ", ".join(f"[tallytree.{name}](reference-{name}.md)" for name in PACKAGES)
    about = f"The public names of `tallytree`, by task. The packages have their own pages: {others}."
    pages = {"reference.md": _page("Reference", about, "tallytree", top, "")}
    for package in PACKAGES:
        module = import_module(f"tallytree.{package}")
        about = (module.__doc__ or "").strip().partition("\n")[0]
        pages[f"reference-{package}.md"] = _page(
            f"tallytree.{package}", about, package, module.__all__, f"{package}."
        )
    return pages


def _page(title: str, about: str, package: str, names: list[str], prefix: str) -> str:
    """Return a page with a heading for each task, or with the names alone if there are no tasks."""
    parts = [
        f"\n## {task}\n{_entries(group, prefix, level=3)}" if task else _entries(group, prefix)
        for task, group in by_task(package, names).items()
    ]
    return f"# {title}\n\n{about}\n" + "".join(parts)


def _entries(names: list[str], prefix: str, level: int = 2) -> str:
    return "".join(
        f"\n::: {_place(prefix + name)}\n"
        f"    options: {{heading_level: {level}, filters: {json.dumps(filters(prefix + name))}}}\n"
        for name in names
    )


def _place(name: str) -> str:
    """Return where a public name is documented: where it is defined, if a module has the same name."""
    path = f"tallytree.{name}"
    package, _, last = path.rpartition(".")
    try:
        hidden = find_spec(path) is not None  # griffe would document the module
    except ModuleNotFoundError:  # a member of a class
        return path
    found = getattr(import_module(package), last)
    return f"{found.__module__}.{found.__qualname__}" if hidden else path


def main() -> None:
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    others: set[Path] = set()
    for page in target.rglob("*.md"):
        folder = ROOT / "docs" / page.relative_to(target).parent
        text = unescaped(rewritten(page.read_text(encoding="utf-8"), folder, others))
        if page == target / "index.md":
            text = ROW.sub(lambda row: linked(row[0]), text)
        page.write_text(text, encoding="utf-8")
    for name, new in FROM_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        (target / new).write_text(unescaped(rewritten(text, ROOT, others)), encoding="utf-8")
    for place in others:
        if place.is_file():
            shutil.copy(place, target / place.name)
    for name, text in references().items():
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
