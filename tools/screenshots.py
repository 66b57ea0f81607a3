"""Take a picture of everything that the library draws: the explorer, notebooks, and all of `make pictures`.

    python tools/screenshots.py build/screenshots

The explorer and notebooks need chromium. Of these pictures the repository keeps those that the documentation
shows: docs/images/explorer.png, and docs/pictures by `make pictures`.
"""

import argparse
import runpy
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import tallytree as tt
from tallytree.explorer import write_page
from tallytree.io import Parameter, ProblemFile

DOCS = Path(__file__).resolve().parents[1] / "docs"


def segments() -> ProblemFile:
    """Forty frames of a noisy signal: how many are active, and how often does it change?"""
    rng = np.random.default_rng(4)
    truth = np.repeat([0, 1, 0, 1, 0], [9, 8, 7, 10, 6])
    evidence = 2 * truth - 1 + rng.normal(scale=1.6, size=len(truth))
    model = tt.Model.chain(
        np.column_stack((np.zeros(len(truth)), evidence)), 0.8 * np.eye(2), states=["off", "on"]
    )
    return ProblemFile(
        model,
        [tt.count(state="on", name="active"), tt.changes()],
        "score - penalty*changes - abs(active - target)/4",
        where="changes <= 20",
        parameters={"penalty": Parameter(0.5, 0, 3), "target": Parameter(20, 0, 40)},
    )


def notebook(page: Path) -> None:
    """Write what a notebook shows of a model, a plan, a profile, a distribution and a solution."""
    model, wet = (
        tt.Model.chain(
            [[0, 1.5], [0, -2.5], [0, 3.0], [0, -1.25], [0, 0.5]], np.eye(2), states=["dry", "wet"]
        ),
        tt.count(state="wet", name="wet"),
    )
    profile = tt.profile(model, [wet])
    spread = tt.distribution(model, [wet])
    shown = (model, tt.plan(model, [wet]), profile, spread, profile.at(3))
    body = "\n".join(f"<div style='margin: 1.5em'>{one._repr_html_()}</div>" for one in shown)
    style = "font-family: sans-serif; display: flex; flex-wrap: wrap"
    page.write_text(f"<!doctype html><meta charset='utf-8'><body style='{style}'>{body}")


def photographed(browser: str, page: Path, picture: Path) -> None:
    subprocess.run(
        [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={page.parent}/browser", "--window-size=1100,720",
            "--force-device-scale-factor=2",  # for sharp screens
            f"--screenshot={picture}", page.as_uri(),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    print(picture)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in runpy.run_path(str(DOCS / "pictures.py"))["PICTURES"].items():
        draw().figure.savefig(folder / f"{name}.png", metadata={"Software": None})
        plt.close("all")
        print(folder / f"{name}.png")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no chromium on the path: no pictures of the explorer and of notebooks")
    with tempfile.TemporaryDirectory() as place:
        write_page(segments(), Path(place) / "explorer.html", title="Forty frames")
        notebook(Path(place) / "notebook.html")
        for name in ("explorer", "notebook"):
            photographed(browser, Path(place) / f"{name}.html", folder / f"{name}.png")


if __name__ == "__main__":
    main()
