"""Pictures show what they are given: checked by what is on the axes, not by pixels."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import tallytree as tt
from tallytree.plot import profile_curve, side_by_side


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


def test_a_constraint_that_nothing_satisfies_marks_nothing(week, wet):
    ax = profile_curve(tt.profile(week, [wet]), where=wet >= 9)
    assert points(ax, "*") == []


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
    with pytest.raises(tt.ModelError, match=r"reads dry, but the plot shows 1 statistic: wet"):
        profile_curve(tt.profile(week, [wet]), where=other >= 1)


def test_drawing_on_given_axes(week, wet):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert profile_curve(tt.profile(week, [wet]), ax=ax) is ax


def test_sequences_side_by_side(week, tmp_path):
    found = tt.diverse_k_best(week, 3, distance=3)
    [ax] = side_by_side(found)
    assert (ax.images[0].get_array() == [s.assignment for s in found]).all()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["9", "8.5", "6.75"]
    differ = sum(int((s.assignment != found[0].assignment).sum()) for s in found)
    assert len(ax.patches) == differ
    assert [text.get_text() for text in ax.texts[:2]] == ["wet", "dry"]
    ax.figure.savefig(tmp_path / "rows.png")


def test_grids_side_by_side():
    rng = np.random.default_rng(0)
    model = tt.Model.grid(rng.normal(size=(3, 4, 2)), np.eye(2), np.eye(2))
    found = tt.diverse_k_best(model, 2, distance=4)
    drawn = side_by_side(found, titles=["first", "second"])
    for ax, solution in zip(drawn, found, strict=True):
        assert (ax.images[0].get_array() == solution.assignment.reshape(3, 4)).all()
    assert [ax.get_title() for ax in drawn] == ["first", "second"]
    assert len(drawn[1].patches) == int((found[0].assignment != found[1].assignment).sum())


def test_many_states_have_many_colours():
    model = tt.Model.chain(np.eye(12), np.zeros((12, 12)))
    [ax] = side_by_side([tt.solve(model)])
    assert len({tuple(ax.images[0].cmap(n)) for n in range(12)}) == 12


def test_what_cannot_be_put_side_by_side(week):
    with pytest.raises(tt.ModelError, match="nothing to plot"):
        side_by_side([])
    with pytest.raises(tt.ModelError, match="need as many titles, got 1"):
        side_by_side(tt.k_best(week, 2), titles=["one"])
    other = tt.Model.chain(np.zeros((3, 2)), np.eye(2))
    with pytest.raises(tt.ModelError, match="of the same model"):
        side_by_side([tt.solve(week), tt.solve(other)])


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
