"""Plots are checked by what is on the axes, not by pixels."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallytree as tt
from tallytree.plot import profile_curve, side_by_side
from tallytree.plot.reliability import wilson_interval

plt = pytest.importorskip("matplotlib.pyplot")
Text = pytest.importorskip("matplotlib.text").Text


def points(ax, marker):
    return [line.get_xydata().tolist() for line in ax.lines if line.get_marker() == marker]


def test_a_curve_has_every_tally_and_marks_the_best_allowed(week, wet, tmp_path):
    profile = tt.profile(week, [wet])
    ax = profile_curve(profile, where=wet <= 2)
    ruled_out, allowed = points(ax, "o")
    assert [x for x, _ in allowed] == [0, 1, 2]
    assert sorted(ruled_out + allowed) == np.column_stack([profile.tallies, profile.scores]).tolist()
    assert points(ax, "*") == [[[2.0, 8.0]]]
    assert ax.get_title() == "where wet <= 2"
    assert [text.get_text() for text in ax.texts] == ["8 at 2"]
    ax.figure.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000


def test_a_curve_of_an_objective(week, wet):
    ax = profile_curve(tt.profile(week, [wet]), lambda score, k: np.where(k == 3, -np.inf, score - k))
    (ruled_out, allowed), (star,) = points(ax, "o"), points(ax, "*")
    assert ruled_out == [[3.0, 8.5]]  # its score: it has no value
    assert [6.0, 3.0] in allowed
    assert star == [[0.0, 6.0]]
    assert ax.get_ylabel() == "best value"


@pytest.mark.parametrize("size", [2, 7, 40, 400])
def test_markers_of_many_tallies_do_not_merge(size):
    model = tt.Model.chain(np.random.default_rng(0).normal(size=(size, 2)), np.eye(2))
    ax = profile_curve(tt.profile(model, [tt.count(state=1)]))
    ax.figure.canvas.draw()
    line = next(line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) > 1)
    places = ax.transData.transform(line.get_xydata())[:, 0] * 72 / ax.figure.dpi
    assert line.get_markersize() <= max(1.5, np.diff(places).min())


def test_curves_that_share_axes_have_their_own_colours_and_labels(week, wet):
    profile = tt.profile(week, [wet])
    for objective in (None, lambda score, k: score - k, lambda score, k: score + 3):
        ax = profile_curve(profile, objective)
    assert (
        len({line.get_color() for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata())})
        == 3
    )
    ax.figure.canvas.draw()
    boxes = [Text.get_window_extent(text) for text in ax.texts]
    assert len(boxes) == 3
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    places = ax.transData.transform(np.vstack([line.get_xydata() for line in ax.lines]))
    assert not any(box.count_contains(places) for box in boxes)


@pytest.mark.parametrize("size", [(6, 3.2), (3.5, 2.5)])
@pytest.mark.parametrize("shift", [-6, -2, 0, 1, 6])
def test_labels_of_several_curves_have_the_colours_of_their_stars_and_are_close(week, wet, shift, size):
    ax = plt.figure(figsize=size, layout="constrained").add_subplot()
    for objective, where in (("score", wet <= 2), (f"score + {shift}", wet >= 4)):
        profile_curve(tt.profile(week, [wet]), objective, where=where, ax=ax)
    ax.figure.canvas.draw()
    stars = [line for line in ax.lines if line.get_marker() == "*"]
    colours = [star.get_color() for star in stars]
    assert [text.get_color() for text in ax.texts] == colours
    assert colours[1] in {line.get_color() for line in ax.lines if line.get_marker() == "o"}
    room, points = ax.get_window_extent(), ax.figure.dpi / 72
    for star, text in zip(stars, ax.texts, strict=True):
        [(x, y)], box = ax.transData.transform(star.get_xydata()), Text.get_window_extent(text)
        away = np.hypot(max(box.x0 - x, x - box.x1, 0), max(box.y0 - y, y - box.y1, 0))
        assert away <= 40 * points
        assert room.x0 <= box.x0 <= box.x1 <= room.x1
        assert room.y0 <= box.y0 <= box.y1 <= room.y1 + 1


@pytest.mark.parametrize("size", [(6, 3.2), (2.5, 2), (3, 1.2)])
@pytest.mark.parametrize("k", range(8))
def test_the_label_of_the_best_stays_inside_and_hides_no_point(week, wet, k, size):
    ax = plt.figure(figsize=size, layout="constrained").add_subplot()
    profile_curve(tt.profile(week, [wet]), where=wet == k, ax=ax)
    ax.figure.canvas.draw()
    box, room = Text.get_window_extent(ax.texts[0]), ax.get_window_extent()  # without its line
    assert room.x0 <= box.x0 <= box.x1 <= room.x1
    assert room.y0 <= box.y0 <= box.y1 <= room.y1 + 1
    places = ax.transData.transform(np.vstack([line.get_xydata() for line in ax.lines]))
    assert box.y0 > places[:, 1].max()


def test_the_best_of_a_heat_map_is_told_beside_it(week, wet):
    changes = tt.Statistic([((day, day + 1), [[0, 1], [1, 0]]) for day in range(6)], name="changes")
    ax = profile_curve(tt.profile(week, [wet, changes]), where=wet == 4)
    assert not ax.texts
    assert ax.figure.axes[1].get_ylabel() == r"best score ($\bigstar$ 8)"


def test_neighbouring_tallies_share_a_band(week, wet):
    ax = profile_curve(tt.profile(week, [wet]), where=(wet <= 2) | (wet == 5))
    ends = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches]
    assert [(round(end.x0, 6), round(end.x1, 6)) for end in ends] == [(-0.5, 2.5), (4.5, 5.5)]


def test_a_constraint_that_nothing_satisfies_marks_nothing(week, wet):
    ax = profile_curve(tt.profile(week, [wet]), where=wet >= 9)
    assert points(ax, "*") == []
    assert ax.get_title() == "where wet >= 9: no tally satisfies it"


def test_an_objective_without_a_value_and_an_empty_profile_are_told(week, wet):
    ax = profile_curve(tt.profile(week, [wet]), lambda score, k: np.full(len(score), -np.inf))
    assert (points(ax, "*"), ax.get_title()) == ([], "the objective is -inf for every tally")
    plt.close("all")
    nothing = tt.profile(tt.Model([2], [((0,), [-np.inf, -np.inf])]), [tt.count(state=1)])
    assert profile_curve(nothing).get_title() == "no labelling is allowed, so the profile is empty"


def test_a_title_that_is_there_already_stays(week, wet):
    _, ax = plt.subplots()
    ax.set_title("rain")
    assert profile_curve(tt.profile(week, [wet]), ax=ax).get_title() == "rain"


def test_ticks_that_are_there_already_stay(week, wet):
    _, ax = plt.subplots()
    ax.set_xticks([0, 7], ["none", "all"])
    profile_curve(tt.profile(week, [wet]), ax=ax)
    assert ax.get_xticks().tolist() == [0, 7]


def test_a_long_constraint_is_broken_into_lines(week, wet):
    where = (wet == 1) | (wet == 3) | (wet == 5) | (wet == 7) | ~(wet <= 6) | (wet * 2 == 4)
    ax = profile_curve(tt.profile(week, [wet]), where=where)
    ax.figure.canvas.draw()
    box = ax.title.get_window_extent()
    assert 0 <= box.x0 <= box.x1 <= ax.figure.bbox.width


def test_a_heat_map_of_two_statistics(week, wet):
    changes = tt.Statistic([((day, day + 1), [[0, 1], [1, 0]]) for day in range(6)], name="changes")
    profile = tt.profile(week, [wet, changes])
    ax = profile_curve(profile, where=wet + changes >= 6)
    pale, clear = (mesh.get_array().filled(np.nan).reshape(7, 8) for mesh in ax.collections[:2])
    for (x, y), score in zip(profile.tallies.tolist(), profile.scores.tolist(), strict=True):
        assert (clear if x + y >= 6 else pale)[y, x] == score
        assert np.isnan((pale if x + y >= 6 else clear)[y, x])
    best = profile.best(where=wet + changes >= 6)
    assert points(ax, "*") == [[list(map(float, best.tally))]]


def test_profiles_that_cannot_be_drawn(week, wet):
    with pytest.raises(
        tt.ModelError, match="profiles of one or two statistics can be plotted, but this one has 0"
    ):
        profile_curve(tt.profile(week))
    other = tt.count(week, state="dry", name="dry")
    with pytest.raises(tt.ModelError, match=r"uses dry, but the plot shows 1 statistic: wet"):
        profile_curve(tt.profile(week, [wet]), where=other >= 1)


def test_drawing_on_a_part_of_a_figure(week, wet):
    parts = plt.figure(figsize=(8, 3)).subfigures(1, 2)
    ax = profile_curve(tt.profile(week, [wet]), where=wet == 4, ax=parts[1].add_subplot())
    ax.figure.figure.canvas.draw()
    box, room = Text.get_window_extent(ax.texts[0]), ax.get_window_extent()
    assert room.x0 <= box.x0 <= box.x1 <= room.x1


def test_drawing_on_given_axes(week, wet):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert profile_curve(tt.profile(week, [wet]), ax=ax) is ax


def test_a_plot_after_a_picture_has_a_figure_of_its_own(week, wet):
    """In one cell of a notebook: the current axes are used if the plot fits there."""
    changes = tt.Statistic([((day, day + 1), [[0, 1], [1, 0]]) for day in range(6)], name="changes")
    profile, both = tt.profile(week, [wet]), tt.profile(week, [wet, changes])
    tree = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat)))")
    fitted = type("Fit", (), {"history_": [tt.learning.Progress(1, 2.0, 1.0, True, 0.5, 1, 0.1, None)]})
    pictures = [
        lambda: side_by_side(tt.k_best(week, 2))[-1],
        lambda: profile_curve(both),
        lambda: tt.plot.tree_picture(tree),
        lambda: tt.plot.trees_side_by_side([tree, tree])[-1],
        lambda: tt.plot.clique_tree_picture(week, [wet]),
        lambda: tt.plot.training_curves(fitted)[-1],
    ]
    for first in pictures:
        ax = first()
        curve = profile_curve(profile)
        assert curve.figure is not ax.figure
        assert curve.get_ylim()[0] < curve.get_ylim()[1]
        assert profile_curve(profile) is curve  # curves share their axes
        for second in pictures:
            assert second().figure not in (ax.figure, curve.figure)
        plt.close("all")
    _, (left, right) = plt.subplots(1, 2)
    assert profile_curve(both) is right
    plt.sca(left)
    assert tt.plot.tree_picture(tree) is left


def test_without_matplotlib_the_extra_is_named(week, wet, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(tt.TallytreeError, match=r"pip install 'tallytree\[plot\]'"):
        profile_curve(tt.profile(week, [wet]))


def test_every_picture_of_the_documentation_is_kept_and_shown():
    docs = Path(__file__).parents[2] / "docs"
    made = {f"{name}.png" for name in runpy.run_path(str(docs / "pictures.py"))["PICTURES"]}
    kept = {path.name for path in (docs / "pictures").iterdir()}
    pages = "".join(page.read_text(encoding="utf-8") for page in docs.glob("*.md"))
    assert made <= kept
    assert all(f"(pictures/{name})" in pages for name in kept)


def test_reliability_is_the_share_that_is_right_in_each_group():
    said = np.array([0.05, 0.15, 0.15, 0.95, 0.95, 1.0])
    right = np.array([False, True, False, True, True, True])
    ax = tt.plot.reliability_curve(said, right)
    curve = ax.lines[1]
    np.testing.assert_allclose(curve.get_xdata(), [0.05, 0.15, (0.95 * 2 + 1) / 3])
    np.testing.assert_allclose(curve.get_ydata(), [0.0, 0.5, 1.0])
    off = (0.05 + 2 * 0.35 + 3 * (1 - (0.95 * 2 + 1) / 3)) / 6
    assert ax.get_title() == f"off by {off:.3f} on average (6 predictions)"
    assert [text.get_text() for text in ax.texts] == ["1", "2", "3"]
    [bars] = [c for c in ax.collections if hasattr(c, "get_segments")]
    for (_, low), (_, high) in bars.get_segments():
        assert 0 <= low < high <= 1


@given(st.integers(1, 500), st.data())
def test_the_ends_of_an_interval_are_as_far_away_as_they_should_be(count, data):
    share = data.draw(st.integers(0, count)) / count
    low, high = (float(end[0]) for end in wilson_interval(np.array([share]), np.array([count])))
    assert 0 <= low <= share <= high <= 1
    assert low < high
    for end in (low, high):
        assert (share - end) ** 2 == pytest.approx(1.96**2 * end * (1 - end) / count, abs=1e-12)


@pytest.mark.parametrize(
    ("said", "right", "bins", "text"),
    [
        ([0.5], [True, False], 10, "each probability needs an outcome"),
        ([], [], 10, "each probability needs an outcome"),
        ([1.5], [True], 10, "numbers from 0 to 1"),
        ([np.nan], [True], 10, "numbers from 0 to 1"),
        ([0.5], [True], 0, "bins must be a positive integer"),
    ],
)
def test_bad_reliability_is_refused(said, right, bins, text):
    with pytest.raises(tt.ModelError, match=text):
        tt.plot.reliability_curve(said, right, bins=bins)


def test_what_several_estimators_and_sentences_are_given_as():
    class Fit:
        history_ = ()

    with pytest.raises(tt.ModelError, match="to compare estimators, use"):
        tt.plot.training_curves([Fit(), Fit()])
    with pytest.raises(tt.ModelError, match="expected arrays; concatenate those of several sentences"):
        tt.plot.reliability_curve([np.ones((2, 3)), np.ones((4, 3))], [True])


def test_a_curve_of_what_is_not_a_profile():
    with pytest.raises(tt.ModelError, match="profile_curve needs a Profile, got Model"):
        profile_curve(tt.Model([2], []))
    with pytest.raises(tt.ModelError, match=r"got Distribution; to plot probabilities, use plt.bar\("):
        profile_curve(tt.distribution(tt.Model([2], [])))
