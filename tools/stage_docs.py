"""Put together the pages that mkdocs builds: those in docs/, those in the root, and a reference of all names.

    python tools/stage_docs.py build/docs

Pages in the root and in docs/ link to each other as they lie in the repository; links are rewritten to where
they lie in the site.
"""

import re
import shutil
import sys
from pathlib import Path

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


def reference() -> str:
    """Return a page with every public name."""
    import tallytree

    names = [name for name in tallytree.__all__ if name not in ("io", "losses")]
    parts = ["# Reference\n\nEvery public name, from its docstring.\n"]
    parts += [f"\n::: tallytree.{name}\n" for name in names]
    for module in ("io", "losses"):
        listed = getattr(getattr(tallytree, module, None), "__all__", [])
        parts += [f"\n# tallytree.{module}\n", *(f"\n::: tallytree.{module}.{name}\n" for name in listed)]
    return "".join(parts)


def main() -> None:
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    others: set[Path] = set()
    for page in target.rglob("*.md"):
        folder = ROOT / "docs" / page.relative_to(target).parent
        page.write_text(rewritten(page.read_text(encoding="utf-8"), folder, others), encoding="utf-8")
    for name, new in FROM_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        (target / new).write_text(rewritten(text, ROOT, others), encoding="utf-8")
    for place in others:
        if place.is_file():
            shutil.copy(place, target / place.name)
    (target / "reference.md").write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
