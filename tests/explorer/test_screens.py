"""The explorer on several screens: everything stays in its card, and clicks find the nearest point."""

from pathlib import Path

import numpy as np
import pytest
from explorer_pages import chain, grid, in_a_browser, scripted

import tallytree as tt
from tallytree.io import ProblemFile

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


OUTLINED = """
<pre id="results"></pre>
<script>
const seen = [];
for (const row of [null, 0]) {
  pick(row);
  seen.push([document.querySelectorAll(".changed").length > 0, !document.getElementById("outlined").hidden]);
}
document.getElementById("results").textContent = JSON.stringify(seen);
</script>
"""


@in_a_browser
def test_outlines_are_explained_if_there_are_any(tmp_path: Path):
    assert scripted(image(3, 4), OUTLINED, tmp_path) == [[False, False], [True, True]]


CUT = """
<pre id="results"></pre>
<script>
const drawn = document.querySelector("#picture svg"), edge = drawn.getBoundingClientRect();
const cut = [...drawn.querySelectorAll("text")].filter((text) => {
  const box = text.getBoundingClientRect();
  return box.left < edge.left || box.right > edge.right || box.top < edge.top || box.bottom > edge.bottom;
});
document.getElementById("results").textContent = JSON.stringify(cut.map((text) => text.textContent));
</script>
"""


@in_a_browser
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
@pytest.mark.parametrize("make", [chain, grid])
def test_no_text_of_the_picture_is_cut_off(make, size, tmp_path: Path):
    assert scripted(make(), CUT, tmp_path, size) == []


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


CELL = """
<pre id="results"></pre>
<script>
const root = document.querySelector("#picture svg"), cells = [...root.querySelectorAll("rect[cursor]")];
const box = cells[0].getBoundingClientRect();
const below = { clientX: box.left + 1, clientY: box.bottom + 5, bubbles: true };
root.dispatchEvent(new MouseEvent("click", below));
document.getElementById("results").textContent = JSON.stringify(
  [cells[0].textContent, document.getElementById("answer").textContent]);
</script>
"""


@in_a_browser
def test_a_click_near_a_heat_map_picks_the_nearest_cell(tmp_path: Path):
    """Cells are small on a phone."""
    told, answer = scripted(grid(), CELL, tmp_path, (390, 844))
    first = told.split(":")[0].replace(" =", "").split(", ")
    assert "".join(first) in answer
    assert "show the optimum" in answer


FIELDS = """
<pre id="results"></pre>
<script>
const typed = (id, text) => {
  const field = document.getElementById(`${id}-number`);
  field.value = text;
  field.dispatchEvent(new Event("change"));
  return Number(field.value);
};
const seen = [typed("parameter-w", 99), typed("low-b", -7), typed("high-b", 3)];
document.getElementById("results").textContent = JSON.stringify(seen);
</script>
"""


@in_a_browser
def test_numbers_stay_in_their_range(tmp_path: Path):
    assert scripted(chain(), FIELDS, tmp_path) == [5, 0, 3]


HALOS = """
<pre id="results"></pre>
<script>
const found = ["halo", "ring"].map((name) => document.querySelectorAll(`.${name}`).length);
document.getElementById("results").textContent = JSON.stringify(found);
</script>
"""


@in_a_browser
def test_rings_hide_no_point_of_a_curve(tmp_path: Path):
    assert scripted(chain(), HALOS, tmp_path) == [0, 1]
    assert scripted(grid(), HALOS, tmp_path) == [1, 1]


NAMES = """
<pre id="results"></pre>
<script>
const labels = [...document.querySelectorAll(".row label")];
const cut = labels.filter((label) => label.scrollWidth > label.clientWidth);
const lines = labels.map((label) => {
  const text = document.createRange();
  text.selectNodeContents(label);
  return new Set([...text.getClientRects()].map((box) => box.top)).size;
});
const view = document.documentElement, track = document.querySelector(".row input").getBoundingClientRect();
document.getElementById("results").textContent = JSON.stringify({
  cut: cut.length, lines: Math.max(...lines), track: track.width,
  overflow: view.scrollWidth - view.clientWidth,
});
</script>
"""


def spells(name: str, **options) -> ProblemFile:
    model = tt.Model.chain(np.zeros((30, 2)), np.eye(2), states=["calm", "storm"])
    return ProblemFile(model, [tt.count(state="storm", name=name)], **options)


@in_a_browser
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
@pytest.mark.parametrize(("name", "lines"), [("storm_spells", 1), ("storm_spells_of_the_whole_month", 3)])
def test_names_of_statistics_are_shown_in_full(name, lines, size, tmp_path: Path):
    found = scripted(spells(name), NAMES, tmp_path, size)
    assert found["cut"] == found["overflow"] == 0
    assert found["lines"] <= lines
    assert found["track"] >= 60  # pixels of the slider


ALWAYS = """
<pre id="results"></pre>
<script>
const seen = ["question", "always"].map((id) => document.getElementById(id)?.textContent ?? "");
state.ranges[0] = [6, 12];
render();
seen.push(document.getElementById("answer").textContent);
document.getElementById("results").textContent = JSON.stringify(seen);
</script>
"""


@in_a_browser
def test_the_page_says_that_its_constraint_always_applies(tmp_path: Path):
    question, always, answer = scripted(spells("rain", where="rain <= 5"), ALWAYS, tmp_path)
    assert question == "maximise score where rain <= 5"
    assert always == "The constraint rain <= 5 always applies; these ranges restrict it further."
    assert answer == "no labelling in these ranges satisfies rain <= 5"
    assert scripted(spells("rain"), ALWAYS, tmp_path)[1] == ""


TILES = """
<pre id="results"></pre>
<script>
pick(0);
const tiles = [...document.querySelectorAll(".cell")].map((cell) => {
  const box = cell.getBoundingClientRect();
  return [box.left, box.right, box.top, box.bottom];
});
const changed = document.querySelector(".changed"), dot = getComputedStyle(changed, "::after");
document.getElementById("results").textContent = JSON.stringify({
  tiles, outline: getComputedStyle(changed).outlineStyle,
  dot: dot.content === "none" ? 0 : parseFloat(dot.width),
  told: document.getElementById("outlined").textContent,
});
</script>
"""


@in_a_browser
@pytest.mark.parametrize("size", [(1280, 800), (390, 844), (411, 844)])
@pytest.mark.parametrize("shape", [(10, 60), (12, 16)])
def test_small_cells_meet_without_gaps_and_keep_their_colour(shape, size, tmp_path: Path):
    found = scripted(image(*shape), TILES, tmp_path, size)
    left, right, top, bottom = np.moveaxis(np.reshape(found["tiles"], (*shape, 4)), 2, 0)
    assert np.ptp(top, axis=1).max() == np.ptp(bottom, axis=1).max() == 0
    assert abs(top[1:] - bottom[:-1]).max() < 0.02  # pixels
    assert abs(left[:, 1:] - right[:, :-1]).max() < 0.02
    assert found["outline"] == "none"
    assert 0 < found["dot"] < 0.4 * (right - left).min()
    assert found["told"] == "A dot marks differences from the labelling with the highest score."


@in_a_browser
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_cells_of_chains_are_in_columns(size, tmp_path: Path):
    names = [f"day {day}" for day in range(20)]
    rng = np.random.default_rng(0)
    scores, free = rng.normal(size=(20, 3)), np.zeros((3, 3))
    model = tt.Model.chain(scores, free, states=["rest", "walk", "run"], variables=names)
    found = scripted(ProblemFile(model, [tt.count(state="run", name="run")]), TILES, tmp_path, size)
    left, right, top, _ = np.transpose(found["tiles"])
    assert np.ptp(right - left) < 0.02
    columns = (top == top[0]).sum()
    assert columns > 3
    assert (left == left[np.arange(20) % columns]).all()
    assert found["outline"] == "solid"
    assert found["told"].startswith("An outline marks")


AXES = """
<pre id="results"></pre>
<script>
const view = document.documentElement;
const lines = [...document.querySelectorAll("#axes label")].map((label) => {
  const [text, choice] = [document.createRange(), label.querySelector("select").getBoundingClientRect()];
  text.selectNode(label.firstChild);
  const box = text.getBoundingClientRect();
  return [label.textContent.slice(0, 4), choice.top < box.top && box.bottom < choice.bottom];
});
document.getElementById("results").textContent = JSON.stringify([lines, view.scrollWidth - view.clientWidth]);
</script>
"""


@in_a_browser
@pytest.mark.parametrize("size", [(1280, 800), (390, 844), (360, 640)])
@pytest.mark.parametrize("name", ["storms", "storm_spells_of_the_whole_month_of_November"])
def test_axes_are_next_to_their_names(name, size, tmp_path: Path):
    problem = spells(name)
    more = [tt.count(state="calm", variables=range(5), name=f"calm_{i}") for i in range(2)]
    three = ProblemFile(problem.model, [*problem.statistics, *more])
    assert scripted(three, AXES, tmp_path, size) == [[["hori", True], ["vert", True]], 0]
