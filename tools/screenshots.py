"""Take the pictures of the explorer that the documentation shows; needs chromium.

python tools/screenshots.py docs/images
"""

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import tallytree as tt
from tallytree.explorer import write_page
from tallytree.io import Parameter, Problem


def segments() -> Problem:
    """Forty frames of a noisy signal: how many are active, and how often does it change?"""
    rng = np.random.default_rng(4)
    truth = np.repeat([0, 1, 0, 1, 0], [9, 8, 7, 10, 6])
    evidence = 2 * truth - 1 + rng.normal(scale=1.6, size=len(truth))
    model = tt.Model.chain(
        np.column_stack((np.zeros(len(truth)), evidence)), 0.8 * np.eye(2), states=["off", "on"]
    )
    changes = [((t, t + 1), 1 - np.eye(2, dtype=int)) for t in range(len(truth) - 1)]
    return Problem(
        model,
        [tt.count(state="on", name="active"), tt.Statistic(changes, name="changes")],
        "score - penalty*changes - abs(active - target)/4",
        where="changes <= 20",
        parameters={"penalty": Parameter(0.5, 0, 3), "target": Parameter(20, 0, 40)},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no chromium on the path")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        page = Path(place) / "page.html"
        write_page(segments(), page, title="Forty frames")
        subprocess.run(
            [
                browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={place}/browser", "--window-size=1100,720",
                f"--screenshot={folder / 'explorer.png'}", page.as_uri(),
            ],
            check=True,
            capture_output=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
