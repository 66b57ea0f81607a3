"""The explorer: the page contains every answer, and a real browser finds the same optimum as the library."""

import json
import random
import re
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from explorer_pages import browsed, chain, grid, in_a_browser, scripted

import tallytree as tt
from tallytree.cli import main
from tallytree.colours import state_colour
from tallytree.explorer import page, write_page
from tallytree.io import Parameter, ProblemFile, write_problem


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
        tt.BudgetError,
        match="10 tallies of 9 variables are 90 labels, but a page can hold at most 50; cap the",
    ):
        page(problem, problem.profile())
    with pytest.raises(tt.BudgetError, match="use fewer statistics, or cap them"):
        page(grid(), grid().profile())
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
            assert shown["answer"] == f"no labelling in these ranges satisfies {problem.where.text}"
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


@pytest.mark.parametrize(
    ("objective", "parameters"),
    [
        ("-score", None),
        ("score * weight", {"weight": Parameter(0.5, -1, 1)}),
        ("score * (1 - weight)", {"weight": 0.9}),
        ("score * (1 - a - b)", {"a": Parameter(0, 0, 0.9), "b": Parameter(0, 0, 0.9)}),
    ],
)
def test_objectives_that_decrease_in_the_score_are_refused(tmp_path, objective, parameters):
    """Also if they do so only at the end of a slider, or at the ends of several.

    A slider without an upper end has one at twice its value.
    """
    profile = tt.profile(tt.Model.chain([[0, 1], [0, 2], [0, -4]], [[0, 0], [0, 0]]), [tt.count(state=1)])
    with pytest.raises(tt.ObjectiveError, match="decreases in the score"):
        write_page(profile, tmp_path / "page.html", objective=objective, parameters=parameters)
    assert not list(tmp_path.iterdir())


def test_the_settings_at_which_an_objective_decreases_are_named():
    model = tt.Model.chain([[0, 1], [0, 2], [0, -4]], [[0, 0], [0, 0]])
    sliders = {"a": Parameter(0, 0, 0.9), "b": Parameter(0, 0, 0.9)}
    problem = ProblemFile(model, [tt.count(state=1)], "score * (1 - a - b)", parameters=sliders)
    with pytest.raises(tt.ObjectiveError, match=r"^with a = 0.9, b = 0.9, at the end of a slider, the obj"):
        page(problem)


@pytest.mark.parametrize(
    "objective", ["score / a", "where(count_1 >= 9 * a, -inf, score)", "score + 0 * log(a)"]
)
def test_settings_without_a_value_are_left_to_the_page(objective):
    """At the lower end of the slider, the objective is not a number somewhere, or nothing is allowed."""
    model = tt.Model.chain([[0, 1], [0, 2], [0, -4]], [[0, 0], [0, 0]])
    page(ProblemFile(model, [tt.count(state=1)], objective, parameters={"a": Parameter(1, 0, 2)}))


def test_an_infinite_objective_is_refused_unless_the_constraint_excludes_it():
    model = tt.Model.chain([[0, 1], [0, 2], [0, -4]], [[0, 0], [0, 0]])
    ones = tt.count(state=1, name="ones")
    with pytest.raises(tt.ObjectiveError, match=r"^the objective is inf at tally \(ones=0\)"):
        page(ProblemFile(model, [ones], "score + 1/ones"))
    page(ProblemFile(model, [ones], "score + 1/ones", where="ones >= 1"))
    page(ProblemFile(model, [ones], "score + 1/ones", where="ones >= 9"))


DECREASES = "score * ((a - 1) ** 2 + b - 0.1) + ones"


@in_a_browser
def test_no_optimum_is_shown_where_the_objective_decreases(tmp_path: Path):
    """Between the ends of sliders, and beyond them: the page checks its own settings."""
    model = tt.Model.chain(np.random.default_rng(1).normal(size=(8, 3)), np.eye(3))
    sliders = {"a": Parameter(0, 0, 2), "b": Parameter(0, 0, 1)}
    problem = ProblemFile(
        model, [tt.count(state=1, name="ones")], DECREASES, where="1 == 1", parameters=sliders
    )
    settings = [
        {"parameter-a": a, "parameter-b": b}
        for a, b in ((0, 0), (1, 0), (1, 0.2), (0.75, 0.02), (0.75, 0.04), (2, 1))
    ]
    seen = []
    for setting, shown in zip(settings, asked(problem, settings, tmp_path), strict=True):
        try:
            best = solved(problem, setting)
        except tt.ObjectiveError:
            assert shown["answer"].startswith("The objective decreases in the score: at ones = ")
            assert (shown["rings"], shown["labels"]) == (0, [])
            seen.append(False)
        else:
            assert shown["answer"] == f"value {best.value:.6g}score {best.score:.6g}ones {best.tally.ones}"
            assert shown["rings"] == 1
            seen.append(True)
    assert seen == [True, False, True, False, True, True]
