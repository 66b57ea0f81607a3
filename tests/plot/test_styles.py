"""Plots are legible in every style: on a dark background, too."""

import numpy as np
import pytest

import tallytree as tt

plt = pytest.importorskip("matplotlib.pyplot")
colors = pytest.importorskip("matplotlib.colors")
pytest.importorskip("clarabel")  # tallytree.learning needs it

from tallytree import plot  # noqa: E402
from tallytree.learning import SequenceSVM  # noqa: E402
from tallytree.plot.inks import contrast_of, inks  # noqa: E402

STYLES = ("default", "dark_background", "ggplot", "Solarize_Light2")


def _sequences(week, wet):
    return plot.side_by_side(tt.k_best(week, 3))[0]


def _training(week, wet):
    svm = SequenceSVM(C=10.0).fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
    return plot.training_curves({"one": svm, "two": svm})[1]


def _tree(week, wet):
    right = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))))")
    wrong = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat)) (NP (NN fish)))")
    return plot.tree_picture(wrong, gold=right)


PLOTS = {
    "curve": lambda week, wet: plot.profile_curve(tt.profile(week, [wet]), where=wet <= 2),
    "cliques": lambda week, wet: plot.clique_tree_picture(week, [wet]),
    "reliability": lambda week, wet: plot.reliability_curve([0.9, 0.9, 0.1], [True, True, False]),
    "sequences": _sequences,
    "training": _training,
    "tree": _tree,
}


def _behind(ax, text):
    """The colour behind a text: its box, a picture, or the axes."""
    box = text.get_bbox_patch()
    if box is not None:
        return colors.to_hex(box.get_facecolor())
    if ax.images and text in ax.texts:
        return "#dfe5ec"  # the colour of the first state
    return colors.to_hex(ax.get_facecolor() if ax.axison and text in ax.texts else ax.figure.get_facecolor())


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", PLOTS)
def test_texts_are_legible_in_every_style(week, wet, style, name):
    with plt.style.context(style):
        ax = PLOTS[name](week, wet)
        texts = [*ax.texts, *([ax.title] if ax.get_title() else [])]
        worst = min((contrast_of(colors.to_hex(t.get_color()), _behind(ax, t)) for t in texts), default=21)
        assert worst >= 2.9


@pytest.mark.parametrize("style", STYLES)
def test_allowed_points_are_emphasised(week, wet, style):
    with plt.style.context(style):
        ax = plot.profile_curve(tt.profile(week, [wet]), where=wet <= 2)
        excluded, allowed = (
            contrast_of(colors.to_hex(line.get_color()), inks(ax).paper)
            for line in ax.lines
            if line.get_marker() == "o"
        )
    assert allowed >= 7 > 2 * excluded


@pytest.mark.parametrize("style", STYLES)
def test_curves_are_visible_in_every_style_and_excluded_points_are_hollow(week, wet, style):
    with plt.style.context(style):
        for objective in (None, "score - wet", "score + wet"):
            ax = plot.profile_curve(tt.profile(week, [wet]), objective, where=wet <= 2)
        paper = inks(ax).paper
        assert min(contrast_of(colors.to_hex(line.get_color()), paper) for line in ax.lines) >= 3
        fills = [line.get_markerfacecolor() for line in ax.lines if line.get_marker() == "o"]
        assert [colors.to_hex(fill) == paper for fill in fills] == [True, False] * 3


@pytest.mark.parametrize("style", STYLES)
def test_no_two_inks_of_a_style_look_the_same(style):
    with plt.style.context(style):
        ink = inks(plt.subplots()[1])
    assert contrast_of(ink.text, ink.paper) >= 7
    assert 1.1 < contrast_of(ink.faint, ink.paper) < contrast_of(ink.pale, ink.paper) < 3
    assert min(contrast_of(colour, ink.paper) for colour in ink.curves) >= 3
    assert len(set(ink.curves)) == len(ink.curves)


def test_axes_of_another_style_and_transparent_ones(week, wet):
    with plt.style.context("dark_background"):
        dark = plt.subplots()[1]
        clear = plt.subplots(facecolor="none", subplot_kw={"facecolor": "none"})[1]
        assert inks(clear).paper == "#000000"
    assert contrast_of(inks(dark).text, "#000000") >= 7
    assert inks(plt.subplots()[1]).line == "#22395b"


def test_curves_on_one_axes_have_their_own_lines_and_a_legend(week, wet):
    profile = tt.profile(week, [wet])
    plot.profile_curve(profile, label="scores")
    ax = plot.profile_curve(profile, lambda score, k: score - k, label="values")
    lines = [line.get_color() for line in ax.lines if line.get_marker() == "None"]
    assert len(lines) == len(set(lines)) == 2
    assert [text.get_text() for text in ax.legend().get_texts()] == ["scores", "values"]
    with pytest.raises(tt.ModelError, match="label= names a curve"):
        plot.profile_curve(tt.profile(week, [wet, tt.count(state="dry")]), label="both")


def test_one_axes_where_one_is_drawn(week, wet):
    several = plt.subplots(1, 3)[1]
    with pytest.raises(tt.ModelError, match=r"a single matplotlib Axes, got 3 elements .* such as ax\[0\]"):
        plot.profile_curve(tt.profile(week, [wet]), ax=several)
    with pytest.raises(tt.ModelError, match=r"must be a matplotlib Axes, .* got Figure"):
        plot.profile_curve(tt.profile(week, [wet]), ax=several[0].figure)
    [ax] = plot.side_by_side(tt.k_best(week, 2), ax=several[0])
    assert ax is several[0]
    assert not ax.figure.legends
    grid = tt.Model.grid(np.zeros((2, 3, 2)), np.eye(2), np.eye(2))
    assert plot.side_by_side(tt.solve(grid), ax=several[1]) == [several[1]]
    with pytest.raises(tt.ModelError, match="2 grids need as many axes"):
        plot.side_by_side(tt.k_best(grid, 2), ax=several[1])
    svm = SequenceSVM(C=10.0).fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
    assert plot.training_curves(svm, ax=plt.subplots(1, 3)[1])[0].get_ylabel() == "objective"
    with pytest.raises(tt.ModelError, match=r"ax must be three axes, .* got 1"):
        plot.training_curves(svm, ax=several[0])


def test_one_frame_for_each_run_of_differences():
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(300, 2)), np.eye(2))
    first = np.zeros(300, dtype=int)
    second = first.copy()
    second[[0, 1, 2, 50, 298, 299]] = 1
    [ax] = plot.side_by_side([first, second], model=model)
    frames = [(patch.get_x(), patch.get_width()) for patch in ax.patches]
    np.testing.assert_allclose(frames, [(-0.42, 2.84), (49.58, 0.84), (297.58, 1.84)])
