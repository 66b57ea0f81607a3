"""The explorer: the page holds every answer, and a real browser finds the same optimum as the library."""

import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.colours import state_colour
from tallytree.explorer import page, write_page
from tallytree.io import Parameter, ProblemFile, write_problem

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


def embedded(text: str) -> dict:
    return json.loads(
        re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1]
    )


@pytest.mark.parametrize("make", [chain, grid])
def test_the_page_has_the_best_labelling_of_every_tally(make):
    problem = make()
    data = embedded(page(problem, problem.profile()))
    for tally, score, text in zip(data["tallies"], data["scores"], data["labellings"], strict=True):
        labelling = [data["digits"].index(digit) for digit in text]
        assert [s.tally(labelling) for s in problem.statistics] == tally
        assert problem.model.score(labelling) == pytest.approx(score)


def test_the_page_loads_nothing():
    text = page(chain(), chain().profile(), title="</script><script>alert(1)</script>")
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)\s*=|url\(|fetch\(|XMLHttp|import ", text)
    assert text.count("<script") == 2
    assert text.count("</script") == 2


def test_sliders_have_ends():
    problem = ProblemFile(
        tt.Model([2], [((0,), [0.0, 1.0])]), parameters={"a": 0.25, "b": -3.0, "c": Parameter(2, 5)}
    )
    found = {
        p["name"]: (p["low"], p["high"], p["step"])
        for p in embedded(page(problem, problem.profile()))["parameters"]
    }
    assert found == {
        "a": (0.0, 1.0, 0.005),
        "b": (-6.0, 1.0, 1.0),
        "c": (2.0, 4.0, 0.01),
    }


def test_many_states_are_written_as_numbers():
    problem = ProblemFile(tt.Model([100], [((0,), np.arange(100.0))]))
    data = embedded(page(problem, problem.profile()))
    assert data["labellings"] == [[99]]
    assert data["digits"] is None
    assert data["colours"] == [state_colour(state) for state in range(100)]


def test_what_is_too_much_for_a_page(monkeypatch):
    problem = chain()
    monkeypatch.setattr("tallytree.explorer.MOST_LABELS", 50)
    with pytest.raises(
        tt.BudgetError, match="10 tallies of 9 variables are 90 labels, but a page can hold at most 50"
    ):
        page(problem, problem.profile())
    nothing = ProblemFile(tt.Model([2], [((0,), [-np.inf, -np.inf])]))
    with pytest.raises(tt.InfeasibleError, match="nothing to explore"):
        page(nothing, nothing.profile())


def test_on_the_command_line(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    write_problem(chain(), "chain.json")
    assert main(["explore", "chain.json"]) == 0
    assert capsys.readouterr().out == "chain.html\n"
    assert embedded(Path("chain.html").read_text())["title"] == "chain"
    assert main(["explore", "chain.json", "-o", "x.html", "--title", "mine", "--open"]) == 0
    assert embedded(Path("x.html").read_text())["title"] == "mine"
    assert opened == [(tmp_path / "x.html").as_uri()]


def test_what_is_no_problem_is_refused(tmp_path: Path):
    model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    for given in (model, tt.distribution(model)):
        with pytest.raises(tt.ModelError, match=rf"got {type(given).__name__}; pass tallytree.profile"):
            write_page(given, tmp_path / "page.html")


# --- in a browser -------------------------------------------------------------------------------------------

ASK = """
<pre id="results"></pre>
<script>
const results = [];
for (const settings of SETTINGS) {
  for (const [id, value] of Object.entries(settings)) {
    document.getElementById(id).value = value;
    document.getElementById(id).dispatchEvent(new Event("input"));
  }
  results.push({
    answer: document.getElementById("answer").textContent,
    labels: [...document.querySelectorAll(".cell")].map((cell) => cell.lastChild.textContent),
    rings: document.querySelectorAll(".ring").length,
    address: location.hash,
  });
}
document.getElementById("results").textContent = JSON.stringify(results);
</script>
"""


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


def asked(problem: ProblemFile, settings: list[dict[str, float]], folder: Path) -> list[dict]:
    """Move sliders in a browser; return what the page says after each setting."""
    return scripted(problem, ASK.replace("SETTINGS", json.dumps(settings)), folder)


def solved(problem: ProblemFile, setting: dict[str, float]) -> tt.Solution | None:
    """The library's answer to the same question."""
    values = {key.removeprefix("parameter-"): v for key, v in setting.items() if key.startswith("parameter-")}
    parts = [f"({problem.where.text})"]
    for key, value in setting.items():
        end, _, name = key.partition("-")
        if end in ("low", "high"):
            parts.append(f"{name} {'>=' if end == 'low' else '<='} {value}")
    asked = problem.with_parameters(**values)
    asked = ProblemFile(
        asked.model, asked.statistics, asked.objective, where=" and ".join(parts), parameters=asked.parameters
    )
    profile = asked.profile()
    try:
        return profile.best(asked.function(asked.statistics), where=asked.constraint)
    except tt.InfeasibleError:
        return None


@in_a_browser
@pytest.mark.parametrize("make", [chain, grid])
def test_the_browser_finds_the_same_optimum(make, tmp_path: Path):
    problem = make()
    data = embedded(page(problem, problem.profile()))
    draw = random.Random(3)
    settings = []
    for _ in range(60):
        setting = {}
        for p in data["parameters"]:
            steps = round((p["high"] - p["low"]) / p["step"])
            setting[f"parameter-{p['name']}"] = round(p["low"] + p["step"] * draw.randint(0, steps), 6)
        for i, name in enumerate(data["statistics"]):
            low, high = (f(tally[i] for tally in data["tallies"]) for f in (min, max))
            a, b = draw.randint(low, high), draw.randint(low, high)
            setting |= {f"low-{name}": min(a, b), f"high-{name}": max(a, b)}
        settings.append(setting)
    infeasible = 0
    for setting, shown in zip(settings, asked(problem, settings, tmp_path), strict=True):
        best = solved(problem, setting)
        if best is None:
            infeasible += 1
            assert shown["answer"] == "no labelling satisfies the constraints"
            assert shown["labels"] == []
            continue
        tally = "".join(f"{name} {number}" for name, number in zip(problem.names, best.tally, strict=True))
        assert shown["answer"] == f"value {best.value:.6g}score {best.score:.6g}{tally}"
        assert shown["labels"] == [str(label) for label in np.ravel(best.labels)]
        assert shown["rings"] == 1
    assert 0 < infeasible < len(settings)


@in_a_browser
def test_the_address_keeps_the_state(tmp_path: Path):
    problem = chain()
    write_page(problem, tmp_path / "page.html")
    best = solved(problem, {"parameter-w": 0.5, "high-b": 2})
    text = browsed(tmp_path / "page.html", "#w=0.5&high.b=2")
    assert f'<b id="score">{best.score:.6g}</b>' in text


@in_a_browser
def test_the_address_keeps_names_of_any_kind(tmp_path: Path):
    model, some = chain().model, tt.count(state="B", name="100% & B-NP=1.5")
    problem = ProblemFile(model, [some], where=some >= 0)
    write_page(problem, tmp_path / "page.html")
    best = tt.solve(model, where=some <= 1)
    assert best.score < tt.solve(model).score
    assert f'<b id="score">{best.score:.6g}</b>' in browsed(
        tmp_path / "page.html", f"#high.{quote(some.name)}=1"
    )


MEASURE = """
<pre id="results"></pre>
<script>
const box = document.getElementById("labelling").getBoundingClientRect(), view = document.documentElement;
document.getElementById("results").textContent = JSON.stringify({
  width: innerWidth, overflow: view.scrollWidth - view.clientWidth, left: box.left, right: box.right,
  bottom: box.bottom, card: document.getElementById("labelling").parentElement.getBoundingClientRect().right,
  written: getComputedStyle(document.querySelector(".cell")).fontSize !== "0px",
  key: document.getElementById("states").textContent,
  letters: 12 * document.querySelector("#picture svg").getScreenCTM().a,
});
</script>
"""


def image(rows: int, columns: int) -> ProblemFile:
    evidence = np.zeros((rows, columns, 2))
    evidence[:, :, 1] = -1.0
    evidence[1:-1, 1:-1, 1] = 1.0
    model = tt.Model.grid(evidence, 0.1 * np.eye(2), 0.1 * np.eye(2), states=["sky", "roof"])
    return ProblemFile(model, [tt.count(state=1, name="roof")])


@in_a_browser
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
@pytest.mark.parametrize("shape", [(3, 4), (12, 16), (6, 60)])
def test_grids_stay_in_their_card(shape, size, tmp_path: Path):
    found = scripted(image(*shape), MEASURE, tmp_path, size)
    assert found["width"] == size[0]
    assert found["overflow"] == 0
    assert found["letters"] >= 9  # pixels of the numbers at the axes
    assert found["left"] >= 0
    assert found["right"] <= found["card"]
    assert found["written"] == (shape == (3, 4))
    assert found["key"] == ("" if found["written"] else "skyroof")
    if size[0] == 1280:
        assert found["bottom"] <= 800  # seen without scrolling


CLICK = """
<pre id="results"></pre>
<script>
const dot = document.querySelectorAll(".dot")[2].getBoundingClientRect();
const near = { clientX: dot.x + dot.width / 2 + 8, clientY: dot.y + dot.height / 2 - 8, bubbles: true };
document.querySelector("#picture svg").dispatchEvent(new MouseEvent("click", near));
const said = document.getElementById("answer").textContent;
document.getElementById("results").textContent = JSON.stringify(said);
</script>
"""


@in_a_browser
def test_a_click_picks_the_nearest_point(tmp_path: Path):
    problem = image(3, 4)
    third = problem.profile().at(2)
    assert scripted(problem, CLICK, tmp_path).startswith(f"score {third.score:.6g}roof 2")
