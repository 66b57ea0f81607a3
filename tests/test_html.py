"""HTML in notebooks: well-formed, escaped and correct."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import problems

import tallytree as tt
from tallytree import html

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
    assert scores == [f"{score:.6g}" for score in profile.scores]  # in the order of the curve
    two = tt.profile(ODD, [ONES, tt.count(state=0)])
    scores = [row[-1].text for row in parsed(two).findall(".//tr")][1:]
    assert scores == [f"{score:.6g}" for score in sorted(two.scores, reverse=True)]
    nothing = tt.profile(tt.Model([1], [((0,), [-np.inf])]))
    assert text(nothing) == "Profile: empty, because every labelling is forbidden"


def test_the_order_of_a_part_of_the_tallies_is_told():
    chain = tt.Model.chain(np.zeros((40, 2)), np.eye(2))
    ones = tt.count(state=1, name="ones")
    assert text(tt.profile(chain, [ones])).endswith("the 10 best of 41, sorted by ones")
    assert text(tt.distribution(chain, [ones])).endswith("the 10 most probable of 41, sorted by ones")
    two = [ones, tt.changes(chain, name="changes")]
    assert text(tt.profile(chain, two)).endswith(", sorted by score")
    assert text(tt.distribution(chain, two)).endswith(", sorted by probability")


def test_what_a_distribution_is_conditional_on():
    given = tt.distribution(ODD, where=ONES > 1)
    assert text(given) == "Distribution given ones > 1"
    assert repr(given) == "Distribution(given ones > 1)"
    some = tt.distribution(ODD, [ONES], where=ONES > 1)
    assert text(some).startswith("Distribution of ones given ones > 1: 2 tallies")
    assert repr(some) == "Distribution(2 tallies of (ones), given ones > 1)"


def test_bars_of_many_tallies_are_where_the_mass_is():
    spread = tt.distribution(tt.Model.chain(np.zeros((400, 2)), np.eye(2)), [tt.count(state=1, name="ones")])
    *_, low, high = [float(label.text) for label in parsed(spread).findall(".//text")]
    assert 100 < low < 150
    assert high == 400 - low
    outside = (spread.tallies[:, 0] < low) | (spread.tallies[:, 0] > high)
    assert spread.probabilities[outside].sum() < 3e-5


def test_long_sequences_are_strips_of_squares():
    long = tt.Model.chain(np.zeros((300, 2)), np.eye(2), states=["dry", "wet"])
    short = tt.Model.chain(np.zeros((60, 2)), np.eye(2), states=["dry", "wet"])
    squares = parsed(tt.solve(long)).findall(".//span")
    assert len(squares) == 300
    assert {(square.get("title"), square.text) for square in squares} == {("dry", None)}
    assert {cell.text for cell in parsed(tt.solve(short)).findall(".//span")} == {"dry"}


def test_bars_do_not_touch_the_scale():
    shown = parsed(tt.distribution(ODD, [ONES]))
    bars = shown.find(".//path")
    first = float(bars.get("d")[1:].split(",")[0]) - float(bars.get("stroke-width")) / 2
    ends = [float(label.get("x")) for label in shown.findall(".//text") if label.get("text-anchor") == "end"]
    assert max(ends[:2]) < first - 3


def legend(thing: object) -> list[tuple[str, str]]:
    patches = [patch for patch in parsed(thing).findall(".//i") if patch.get("style")]
    return [(patch.get("style").split("background:")[1], patch.tail.strip()) for patch in patches]


def test_squares_have_a_legend():
    states = ["dry", "wet", "snow"]
    long = tt.Model.chain([[0, 1, 0.9], [1, 0, 0]] * 150, np.zeros((3, 3)), states=states)
    assert legend(tt.solve(long)) == [("#dfe5ec", "dry"), ("#f2b134", "wet")]
    assert len(parsed(tt.k_best(long, 3)).findall(".//span")) == 900
    assert [name for _, name in legend(tt.k_best(long, 3))] == states  # once, of the states that occur
    short = tt.Model.chain([[0, 1, 0], [1, 0, 0]], np.zeros((3, 3)), states=states)
    assert legend(tt.solve(short)) == legend(tt.k_best(short, 2)) == []
    grid = tt.Model.grid(np.eye(2)[np.arange(800).reshape(20, 40) % 2], np.zeros((2, 2)), np.zeros((2, 2)))
    assert [name for _, name in legend(tt.solve(grid))] == ["state 0", "state 1"]
    many = tt.Model([13] * 70, [((v,), np.eye(13)[v % 13]) for v in range(70)])
    assert legend(tt.solve(many)) == []


@pytest.mark.parametrize(
    ("states", "width"), [(["rest", "walk", "run"], "4ch"), (None, "1ch"), (["a", "b", "c" * 50], "40ch")]
)
def test_cells_of_several_labellings_align(states, width):
    walks = tt.Model.chain([[0, 1, 2], [1, 0, 1]], np.zeros((3, 3)), states=states)
    spans = [
        span for one in (tt.k_best(walks, 4), tt.solve(walks)) for span in parsed(one).findall(".//span")
    ]
    assert {span.get("style").split("min-width:")[1].split(";")[0] for span in spans} == {width}


def test_cells_are_as_wide_as_the_longest_name_of_any_variable():
    each = tt.Model([2, 1], [((0,), [0.0, 1.0])], states=[["a", "b"], ["longer"]])
    assert all("min-width:6ch" in span.get("style") for span in parsed(tt.solve(each)).findall(".//span"))
    sizes = tt.solve(tt.Model([2, 12], [((0,), [0.0, 1.0])]))
    assert all("min-width:2ch" in span.get("style") for span in parsed(sizes).findall(".//span"))


def test_profiles_and_distributions_can_be_told_apart():
    profile, spread = tt.profile(ODD, [ONES]), tt.distribution(ODD, [ONES])
    assert text(profile).startswith("Profile of ones: 4 tallies")
    assert text(spread).startswith("Distribution of ones: 4 tallies")
    bars = parsed(spread).find(".//path").get("d")
    assert bars.count("M") == 4
    assert parsed(spread).find(".//polyline") is None
    assert text(tt.distribution(ODD)) == "Distribution"


def test_a_curve_of_many_tallies_is_thinned_but_keeps_the_best():
    many = tt.Model([5000], [((0,), -np.abs(np.arange(5000) - 1234.0))])
    shown = parsed(tt.profile(many, [tt.Statistic([((0,), np.arange(5000))], name="n")]))
    points = shown.find(".//polyline").get("points").split()
    assert len(points) <= 361
    dot = shown.find(".//circle")
    assert f"{dot.get('cx')},{dot.get('cy')}" in points
    assert [end.text for end in shown.findall(".//text")] == ["-3765", "0", "0", "4999"]


def luminance(colour: str) -> float:
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])
def test_lines_and_text_are_visible_on_light_and_dark_grounds(ground):
    for colour in (html.LINE, html.DOT):
        low, high = sorted((luminance(colour), luminance(ground)))
        assert (high + 0.05) / (low + 0.05) >= 3  # the least contrast that WCAG allows for graphics
    assert parsed(tt.profile(ODD, [ONES])).find(".//svg").get("fill") == "currentColor"


def test_factors_of_one_shape_share_a_row():
    factors = [((0, 1), np.eye(2)), ((1, 2), np.ones((2, 2))), ((0,), [0, 1]), ((2, 0), 2 * np.eye(2))]
    model = tt.Model.from_blocks([2, 2, 2], [b for f in factors for b in tt.Model([2] * 3, [f]).blocks])
    heads = [row[0].text for row in parsed(model).findall(".//tr")]
    assert sorted(heads) == ["factors of 1 variable", "factors of 2 variables", "states", "variables"]
    assert "3 of shape (2, 2)" in text(model)


def test_long_names_are_shortened_and_shown_in_full_under_the_mouse():
    long = "the number of days on which it rained in the whole of the country"
    wet = tt.count(ODD, state=1, name=long)
    for thing in (tt.profile(ODD, [wet]), tt.solve(ODD, [wet])):
        [head] = [th for th in parsed(thing).findall(".//th") if th.get("title")]
        assert (head.get("title"), len(head.text)) == (long, 40)
    named = tt.solve(tt.Model([1], [((0,), [0.0])], states=[long]))
    [cell] = parsed(named).findall(".//span")
    assert (cell.get("title"), len(cell.text)) == (long, 40)


def test_the_value_is_shown_if_it_is_not_the_score():
    assert text(tt.solve(ODD)).startswith("Solution score 6 ")
    assert text(tt.solve(ODD, [ONES], lambda score, k: score - k)).startswith("Solution value 5 score 6 ones")
    rounded = tt.solve(ODD, [ONES], lambda score, k: score * (1 + 1e-15))
    assert rounded.value != rounded.score
    assert text(rounded).startswith("Solution score 6 ones")


def test_a_solution():
    solution = tt.solve(ODD, [ONES])
    labels = [span.text for span in parsed(solution).findall(".//span")]
    assert labels == solution.labels.tolist()
    assert "ones" in text(solution)
    grid = parsed(tt.solve(GRID))
    assert "repeat(3,auto)" in grid.findall(".//div")[0].get("style")
    large = parsed(tt.solve(tt.Model.grid(np.zeros((20, 50, 2)), np.eye(2), np.eye(2))))
    squares = large.findall(".//span")
    assert (len(squares), {square.text for square in squares}) == (1000, {None})
    assert squares[0].get("title") == "0"
    long = parsed(tt.solve(tt.Model.chain(np.zeros((1000, 2)), np.eye(2))))
    assert len(long.findall(".//span")) == 1000


def test_lists_of_solutions_show_their_labels():
    best = tt.k_best(ODD, 3)
    assert isinstance(best, list)
    labels = [span.text for span in parsed(best).findall(".//span")]
    assert labels == [label for one in best for label in one.labels]
    assert [row[0].text for row in parsed(best).findall(".//tr")][1:] == [f"{one.score:.6g}" for one in best]
    heads = [head.text for head in parsed(tt.diverse_k_best(ODD, 3, distance=1)).findall(".//th")]
    assert heads == ["score", "distance_1", "distance_2", None]
    for more in (tt.diverse_k_best(ODD, 2, distance=1), tt.profile(ODD, [ONES]).top(2)):
        assert len(parsed(more).findall(".//span")) == 6
    valued = tt.profile(ODD, [ONES]).top(4, lambda score, k: score - k)
    cells = [[cell.text for cell in row[:-1]] for row in parsed(valued).findall(".//tr")]
    assert cells == [
        ["value", "score", "ones"],
        *([f"{one.value:.6g}", f"{one.score:.6g}", str(one.tally.ones)] for one in valued),
    ]
    many = tt.k_best(tt.Model.chain(np.zeros((12, 2)), np.eye(2)), 2000)
    assert text(many).endswith("the first 10 of 2,000")
    assert text(tt.k_best(ODD, where=ONES >= 9)) == "an empty list"
    forest = tt.parsing.Forest(tt.parsing.Grammar({}, {}, {"S": {"a": 0.0}}, root="S"), "a")
    assert "(S a)" in text(tt.parsing.k_best(forest, 1))


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
