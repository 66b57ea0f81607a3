"""Labellings next to each other: what is drawn, and how it is explained."""

from itertools import pairwise

import numpy as np
import pytest

import tallytree as tt
from tallytree.plot import side_by_side

pytest.importorskip("matplotlib.pyplot")


def test_sequences_side_by_side(week, tmp_path):
    found = tt.diverse_k_best(week, 3, distance=3)
    [ax] = side_by_side(found)
    assert (ax.images[0].get_array() == [s.assignment for s in found]).all()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["score 9", "score 8.5", "score 6.75"]
    framed = {
        (round(frame.get_y() + 0.42), round(frame.get_x() + 0.42) + step)
        for frame in ax.patches
        for step in range(round(frame.get_width() + 0.16))
    }
    differs = np.array([s.assignment != found[0].assignment for s in found])
    assert framed == set(map(tuple, np.argwhere(differs).tolist()))
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


@pytest.mark.parametrize("shape", [(3, 4), (2, 60), (60, 2), (1, 1)])
def test_cells_of_grids_are_square(shape):
    model = tt.Model.grid(np.random.default_rng(0).normal(size=(*shape, 2)), np.eye(2), np.eye(2))
    for ax in side_by_side(tt.k_best(model, 2)):
        ax.figure.canvas.draw()
        box = ax.get_window_extent()
        assert box.width / shape[1] == pytest.approx(box.height / shape[0])
        assert box.width / shape[1] >= 0.07 * ax.figure.dpi


def test_titles_have_the_digits_that_tell_scores_apart():
    model = tt.Model([3], [((0,), [100.0, 100.001, 7.0])])
    labels = side_by_side([[0], [1], [2], [0]], model=model)[0].get_yticklabels()
    assert [label.get_text() for label in labels] == ["score 100", "score 100.001", "score 7", "score 100"]
    rounded = tt.Model([2], [((0,), [0.3, 0.1 + 0.2])])  # the same number, but for rounding
    [ax] = side_by_side([[0], [1]], model=rounded)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["score 0.3"] * 2


def test_many_grids_are_in_several_rows():
    model = tt.Model.grid(np.random.default_rng(0).normal(size=(3, 12, 2)), np.eye(2), np.eye(2))
    drawn = side_by_side(tt.k_best(model, 10))
    assert drawn[0].figure.get_size_inches()[0] <= 12
    places = [ax.get_subplotspec().rowspan.start for ax in drawn]
    assert places == sorted(places)
    assert places[-1] > 0


def test_many_states_have_many_colours():
    model = tt.Model.chain(np.eye(12), np.zeros((12, 12)))
    [ax] = side_by_side([tt.solve(model)])
    assert len({tuple(ax.images[0].cmap(n)) for n in range(12)}) == 12


def explained(ax):
    [legend] = ax.figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_the_colours_and_frames_are_explained(week):
    assert explained(side_by_side(tt.diverse_k_best(week, 3, distance=3))[0]) == [
        "dry",
        "wet",
        "differs from the first",
    ]
    grid = tt.Model.grid(np.zeros((2, 3, 2)), np.eye(2), np.eye(2))
    assert explained(side_by_side(tt.solve(grid))[0]) == ["state 0"]
    many = tt.Model.chain(np.eye(40), np.zeros((40, 40)))
    assert not side_by_side(tt.solve(many))[0].figure.legends


@pytest.mark.parametrize("length", [4, 12, 40])
def test_names_of_states_fit_their_cells(length):
    states = ["off", "talk", "background noise"]
    evidence = np.random.default_rng(0).normal(size=(length, 3))
    [ax] = side_by_side(tt.k_best(tt.Model.chain(evidence, np.zeros((3, 3)), states=states), 2))
    ax.figure.canvas.draw()
    cell = ax.get_window_extent().width / length
    assert all(text.get_window_extent().width <= cell for text in ax.texts)
    shown = {text.get_text() for text in ax.texts}
    assert shown <= set(states) if length < 8 else all(len(text) < 16 for text in shown)
    assert bool(shown) == (length < 40)  # nothing rather than a letter or two


@pytest.mark.parametrize("length", [3, 26, 300])
def test_names_of_variables_are_at_the_axis_and_do_not_overlap(length):
    names = [f"hour {hour:03d}" for hour in range(length)]
    model = tt.Model.chain(np.zeros((length, 2)), np.eye(2), variables=names)
    [ax] = side_by_side(tt.k_best(model, 2))
    ax.figure.canvas.draw()
    ticks = ax.get_xticklabels()
    assert [names[int(tick.get_position()[0])] for tick in ticks] == [tick.get_text() for tick in ticks]
    assert ticks[0].get_text() == "hour 000"
    boxes = [tick.get_window_extent() for tick in ticks]
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
    assert len(ticks) >= min(length, 5)


def test_one_solution_alone(week):
    [ax] = side_by_side(tt.solve(week))
    assert (ax.images[0].get_array() == [tt.solve(week).assignment]).all()
    assert not ax.patches


def test_labellings_as_arrays(week):
    drawn = tt.distribution(week).sample(3, rng=0)
    [ax] = side_by_side(drawn, model=week)
    assert (ax.images[0].get_array() == drawn).all()
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        f"score {week.score(y):.4g}" for y in drawn
    ]
    best = tt.solve(week)
    for one in ([best.labels.tolist(), best], np.array([best.assignment, best.assignment])):
        [ax] = side_by_side(one, model=week)
        assert (ax.images[0].get_array() == [best.assignment] * 2).all()
    [ax] = side_by_side(best.assignment, model=week)
    assert (ax.images[0].get_array() == [best.assignment]).all()
    grid = tt.Model.grid(np.zeros((2, 3, 2)), np.eye(2), np.eye(2))
    [ax] = side_by_side(np.array([[0, 1, 0], [1, 0, 0]]), model=grid)
    assert (ax.images[0].get_array() == [[0, 1, 0], [1, 0, 0]]).all()


def test_what_cannot_be_put_side_by_side(week):
    with pytest.raises(tt.ModelError, match=r"but got ndarray; .* side_by_side\(labellings, model=model\)"):
        side_by_side(np.zeros((2, 7), dtype=int))
    with pytest.raises(tt.ModelError, match=r"such as those of k_best or profile.top\(3\), got Model"):
        side_by_side(object.__new__(type("Model", (), {})))
    with pytest.raises(tt.ModelError, match=r"a labelling of this model has shape \(7,\), got shape \(3,\)"):
        side_by_side([[0, 1, 0]], model=week)
    with pytest.raises(tt.ModelError, match="nothing to plot"):
        side_by_side([])
    with pytest.raises(tt.ModelError, match="need as many titles, got 1"):
        side_by_side(tt.k_best(week, 2), titles=["one"])
    for others in ((3, 2), (len(week), 5)):
        other = tt.Model.chain(np.zeros(others), np.zeros((others[1], others[1])))
        with pytest.raises(tt.ModelError, match="of the same model"):
            side_by_side([tt.solve(week), tt.solve(other)])
    grids = [tt.Model.grid(np.zeros((*shape, 2)), np.eye(2), np.eye(2)) for shape in ((2, 3), (3, 2))]
    with pytest.raises(tt.ModelError, match="the shape of their grid"):
        side_by_side(map(tt.solve, grids))
