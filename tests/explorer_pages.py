"""Explorer pages in a real browser, and the problems that tests show in them."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.explorer import page
from tallytree.io import Parameter, ProblemFile

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
in_a_browser = pytest.mark.skipif(
    BROWSER is None or not Path("/proc/self").exists(), reason="no chromium, or no /proc, which it needs"
)


def chain() -> ProblemFile:
    rng = np.random.default_rng(5)
    model = tt.Model.chain(
        rng.normal(size=(9, 3)), rng.normal(size=(3, 3)), states=["O", "B", "</script><b>"]
    )
    return ProblemFile(
        model,
        [tt.count(state=1, name="b")],
        "where(b < 8, score, -inf) + w*exp(-abs(b - t)/2) - log(1 + b**2) + max(0, min(b, 2), -1)",
        where="not (b == skip) and b <= most",
        parameters={
            "w": Parameter(1.5, 0, 5),
            "t": Parameter(3, 0, 9),
            "skip": Parameter(4, 0, 9),
            "most": Parameter(8, 0, 9),
        },
    )


def grid() -> ProblemFile:
    rng = np.random.default_rng(6)
    model = tt.Model.grid(rng.normal(size=(3, 4, 2)), 0.5 * np.eye(2), 0.5 * np.eye(2))
    truth = rng.integers(0, 2, size=(3, 4))
    return ProblemFile(
        model,
        [
            tt.matches(model, truth, background=0, name="tp"),
            tt.mismatches(model, truth, background=0, name="fp"),
            tt.count(model, state=1, variables=[0, 1], name="corner"),
        ],
        "score + w*(1 - 2*tp/(5 + tp + fp))",
        where="tp - fp >= 0 or corner == 2",
        parameters={"w": 2.0},
    )


def browsed(path: Path, fragment: str = "") -> str:
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"]
    flags += ["--window-size=1400,1000", "--hide-scrollbars"]
    profile = f"--user-data-dir={path.parent / 'browser'}"
    done = subprocess.run(
        [BROWSER, *flags, profile, path.as_uri() + fragment],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


FRAME = """<!doctype html><pre id="results"></pre><script>
const frame = Object.assign(document.createElement("iframe"), { width: WIDTH, height: HEIGHT, srcdoc: TEXT });
frame.style.border = 0;
frame.onload = () => {
  const found = frame.contentDocument.getElementById("results").textContent;
  document.getElementById("results").textContent = found;
};
document.body.append(frame);
</script>"""


def scripted(problem: ProblemFile, script: str, folder: Path, size: tuple[int, int] = (1280, 800)) -> Any:
    """Run a script in the page, on a screen of this size; return what it wrote as its results."""
    text = page(problem, problem.profile()).replace("</body>", script + "</body>")
    framed = FRAME.replace("WIDTH", str(size[0])).replace("HEIGHT", str(size[1]))
    path = folder / "page.html"
    path.write_text(framed.replace("TEXT", json.dumps(text).replace("<", "\\u003c")), encoding="utf-8")
    found = re.search(r'<pre id="results">(.*?)</pre>', browsed(path), re.DOTALL)[1]
    return json.loads(found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
