"""Collect the pages that mkdocs builds: those in docs/, those in the root, and a reference of all names.

    python tools/stage_docs.py build/docs

Links between pages are relative to the repository; they are rewritten to match the layout of the site.
"""

import re
import shutil
import sys
from importlib import import_module
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


TASKS = {
    "Models, statistics and single answers": (
        "Model Statistic Recipe count matches mismatches node_statistic Constraint solve profile Profile "
        "elementwise score_between Solution"
    ),
    "Patterns and machines": "regular valid_bio valid_bioes transduce Machine Reduction",
    "Several answers": "k_best iter_best exclude diverse_k_best",
    "Probabilities": "distribution Distribution",
    "Losses": "loss_augmented loss_augmented_path loss_augmented_corpus",
    "Many problems at once": "profile_batch solve_batch loss_augmented_batch",
    "Cost, and bounds without tallies": "plan Plan relax Relaxation BoundedSolution",
    "Certificates": "Certificate BoundsCertificate SentenceCertificate",
    "Errors and warnings": (
        "TallytreeError ModelError ObjectiveError BudgetError InfeasibleError CertificateError "
        "PerformanceWarning"
    ),
    "From the paper": (
        "explicit_model ExplicitModel clique_tree CliqueTree sufficient_statistics SufficientStatistics"
    ),
}
"""The public names of the package itself, grouped by task. Names missing here come last."""

PACKAGES = ("io", "losses", "learning", "parsing", "bounds", "plot", "explorer", "testing", "torch")


def by_task(names: list[str]) -> dict[str, list[str]]:
    """Group names as in `TASKS`, with the remaining ones at the end."""
    groups = {task: [name for name in listed.split() if name in names] for task, listed in TASKS.items()}
    rest = sorted(set(names) - {name for group in groups.values() for name in group})
    return groups | ({"More": rest} if rest else {})


def references() -> dict[str, str]:
    """Return a page for the names of the package itself, and one for each of its subpackages."""
    import tallytree

    top = [name for name in tallytree.__all__ if name not in PACKAGES]
    others = ", ".join(f"[tallytree.{name}](reference-{name}.md)" for name in PACKAGES)
    pages = {
        "reference.md": f"# Reference\n\nThe public names of `tallytree`, by task. "
        f"The packages have their own pages: {others}.\n"
        + "".join(f"\n## {task}\n{_entries(names, '', level=3)}" for task, names in by_task(top).items())
    }
    for package in PACKAGES:
        module = import_module(f"tallytree.{package}")
        about = (module.__doc__ or "").strip().partition("\n")[0]
        pages[f"reference-{package}.md"] = _page(f"tallytree.{package}", about, module.__all__, f"{package}.")
    return pages


def _page(title: str, about: str, names: list[str], prefix: str) -> str:
    return f"# {title}\n\n{about}\n" + _entries(names, prefix)


def _entries(names: list[str], prefix: str, level: int = 2) -> str:
    options = f"    options: {{heading_level: {level}}}\n"
    return "".join(f"\n::: tallytree.{prefix}{name}\n{options}" for name in names)


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
    for name, text in references().items():
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
