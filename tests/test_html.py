"""What notebooks show: well formed, escaped, and true."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import problems

import tallytree as tt

ODD = tt.Model.chain([[0, 1], [2, 0], [0, 3]], [[1, 0], [0, 1]], states=["<b>", 'a"&'])
ONES = tt.count(ODD, state=1, name="ones")
GRID = tt.Model.grid(np.zeros((2, 3, 2)), np.eye(2), np.eye(2))


def parsed(thing: object) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{thing._repr_html_().replace('<br>', '<br/>')}</div>")


def text(thing: object) -> str:
    return " ".join(part for part in parsed(thing).itertext() if part.strip())


def test_a_model():
    assert text(ODD) == (
        "Model variables 3 states '<b>', 'a\"&' (or 0 to 1) factors of 1 variable 3 of shape (2,) "
        "factors of 2 variables 2 of shape (2, 2)"
    )
    named = tt.Model([2, 3], variables=["x", "y"])
    assert text(named) == "Model variables 2: x, y states 2, 3"
    assert "grid 2 x 3" in text(GRID)


def test_a_plan():
    plan = tt.plan(ODD, [ONES])
    assert text(plan).startswith("Plan for 3 variables and 1 statistic (ones) width τ 1 ")


def test_a_profile():
    profile = tt.profile(ODD, [ONES])
    assert len(parsed(profile).findall(".//polyline")) == 1
    scores = [row[-1].text for row in parsed(profile).findall(".//tr")][1:]
    assert scores == [f"{score:.6g}" for score in sorted(profile.scores, reverse=True)]
    assert "the 10 best of 41" in text(
        tt.profile(tt.Model.chain(np.zeros((40, 2)), np.eye(2)), [tt.count(state=1)])
    )
    nothing = tt.profile(tt.Model([1], [((0,), [-np.inf])]))
    assert text(nothing) == "0 tallies"


def test_a_solution():
    solution = tt.solve(ODD, [ONES])
    labels = [span.text for span in parsed(solution).findall(".//span")]
    assert labels == solution.labels.tolist()
    assert "ones" in text(solution)
    grid = parsed(tt.solve(GRID))
    assert "repeat(3,auto)" in grid.findall(".//div")[0].get("style")
    long = parsed(tt.solve(tt.Model.chain(np.zeros((1000, 2)), np.eye(2))))
    assert long.findall(".//span")[-1].text == "… 600 more"


@settings(max_examples=40)
@given(problems(largest=5))
def test_anything_can_be_shown(drawn):
    model, statistics = drawn
    profile = tt.profile(model, statistics)
    for thing in (model, profile.plan, profile, profile.best()):
        parsed(thing)


def backgrounds(solution: tt.Solution) -> list[str]:
    return [span.get("style").split("background:")[1] for span in parsed(solution).findall(".//span")]


def test_states_beyond_the_palette_have_colours():
    model = tt.Model([30] * 30, [((v,), np.eye(30)[v]) for v in range(30)])
    colours = backgrounds(tt.solve(model))
    assert len(set(colours)) == 30
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours)


def test_states_have_the_colours_of_plots():
    to_hex = pytest.importorskip("matplotlib.colors").to_hex
    solution = tt.solve(tt.Model.chain(np.eye(12), np.zeros((12, 12))))
    [ax] = tt.plot.side_by_side(solution)
    image = ax.images[0]
    assert [to_hex(image.cmap(image.norm(state))) for state in solution.assignment] == backgrounds(solution)


@pytest.mark.parametrize("names", [None, ["<x>", "y", "z"]])
def test_names_are_titles(names):
    model = tt.Model.from_blocks(ODD.cardinalities, ODD.blocks, variables=names)
    titles = [span.get("title") for span in parsed(tt.solve(model)).findall(".//span")]
    assert titles == (names or [None] * 3)
