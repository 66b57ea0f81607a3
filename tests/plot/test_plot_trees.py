"""Plots of parse trees and of training."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

import tallytree as tt
from tallytree.learning import Progress, SequenceCRF, SequenceSVM
from tallytree.parsing import Tree, parse_tree
from tallytree.plot import training_curves, tree_picture, trees_side_by_side
from tallytree.plot.canvas import ACCENT, RIGHT

GOLD = parse_tree("(S (NP (DT the) (NN cat)) (VP (VB ate) (NP (NN fish)) (PP (IN at) (NP (NN noon)))))")
FOUND = parse_tree("(S (NP (DT the) (NN cat)) (VP (VB ate) (NP (NP (NN fish)) (PP (IN at) (NP (NN noon))))))")


def colours(ax) -> list[tuple[str, str]]:
    return [(text.get_text(), text.get_color()) for text in ax.texts]


def test_every_node_is_drawn_above_its_words():
    ax = tree_picture(GOLD)
    assert [text.get_text() for text in ax.texts if text.get_fontstyle() == "italic"] == list(GOLD.words)
    assert len(ax.texts) == len(list(GOLD.nodes())) + len(GOLD)
    assert len(ax.lines) == len(ax.texts) - 1
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert places["S"][1] > places["VP"][1] > places["PP"][1] > places["IN"][1] > places["at"][1] == 0
    xs = [text.get_position()[0] for text in ax.texts if text.get_fontstyle() == "italic"]
    assert (np.diff(xs) > 0).all()
    ax.figure.canvas.draw()


def test_texts_do_not_overlap():
    tree = parse_tree("(S (NP (NN internationalisation)) (VP (VB is) (ADJP (JJ a))))")
    ax = tree_picture(tree)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    room = ax.figure.bbox
    assert all(box.x0 >= room.x0 and box.x1 <= room.x1 and box.y1 <= room.y1 for box in boxes)


def test_right_and_wrong_have_colours():
    shown = colours(tree_picture(FOUND, gold=GOLD))
    assert shown.count(("NP", ACCENT)) == 1
    assert shown.count(("NP", RIGHT)) == 3
    assert ("VP", RIGHT) in shown
    assert ("cat", "#000000") in shown  # the colour of text
    twice = Tree("S", [Tree("X", [Tree("X", [Tree("NN", "a")])])])
    once = parse_tree("(S (X (NN a)))")
    assert [colour for label, colour in colours(tree_picture(twice, gold=once)) if label == "X"] == [
        RIGHT,
        ACCENT,
    ]
    with pytest.raises(tt.ModelError, match="the true tree has 1 words, but this one has 6"):
        tree_picture(GOLD, gold=once)


def test_trees_stand_side_by_side():
    first, second = trees_side_by_side([GOLD, FOUND])
    assert [first.get_title(), second.get_title()] == ["6 constituents", "6 of 7 right"]
    assert ACCENT not in dict.fromkeys(colour for _, colour in colours(first))
    assert first.get_ylim() == second.get_ylim()
    plain = trees_side_by_side([GOLD, FOUND], titles=["a", "b"], compare=False)
    assert {colour for ax in plain for _, colour in colours(ax)}.isdisjoint({RIGHT, ACCENT})
    with pytest.raises(tt.ModelError, match="2 trees need as many titles, got 1"):
        trees_side_by_side([GOLD, FOUND], titles=["a"])
    with pytest.raises(tt.ModelError, match="the sequence of trees is empty"):
        trees_side_by_side([])


def history(count: int) -> list[Progress]:
    return [
        Progress(n, 1.0 + 1 / n, -np.inf if n == 1 else 1 - 1 / n, n % 3 == 0, 1 / n, 9 * n, 0.5 * n, None)
        for n in range(1, count + 1)
    ]


def test_training_is_drawn_over_passes_and_over_time():
    objective, gap, loss = training_curves(history(6))
    assert objective.get_xlabel() == "pass"
    assert [line.get_label() for line in objective.lines] == ["objective", "lower bound"]
    assert np.isnan(objective.lines[1].get_ydata()[0])  # no bound yet
    assert gap.get_yscale() == "log"
    assert loss.lines[0].get_ydata().tolist() == [1 / n for n in range(1, 7)]
    hollow, full = objective.collections[:2]
    assert (len(hollow.get_offsets()), len(full.get_offsets())) == (4, 2)
    assert [text.get_text() for text in gap.get_legend().get_texts()] == ["certified", "estimate"]
    assert training_curves(history(2))[1].get_legend() is None  # estimates alone
    both = training_curves({"a": history(3), "b": history(5)}, by="seconds")
    assert both[0].get_xlabel() == "seconds"
    assert [text.get_text() for text in both[0].get_legend().get_texts()] == ["a", "b"]
    for ax in (objective, both[0]):
        ax.figure.canvas.draw()


def test_an_objective_without_a_bound_has_a_gradient():
    run = [one._replace(dual=0.0, certified=True, gradient=0.5**one.number) for one in history(4)]
    objective, gap, loss = training_curves(run)
    assert [line.get_label() for line in objective.lines] == ["objective"]
    assert gap.lines[0].get_ydata().tolist() == [0.5, 0.25, 0.125, 0.0625]
    assert (gap.get_ylabel(), loss.get_ylabel()) == ("relative gradient norm", "mean loss")
    both = training_curves({"risk": run, "svm": history(3)})
    assert both[1].get_ylabel() == "relative gap or gradient norm"


def test_the_loss_of_a_run_need_not_be_a_hinge_loss():
    X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]
    runs = {"svm": SequenceSVM(C=10.0).fit(X, y), "crf": SequenceCRF(c2=0.1).fit(X, y)}
    assert training_curves(runs)[2].get_ylabel() == "mean loss"


def test_there_must_be_something_to_draw():
    with pytest.raises(tt.ModelError, match="a history has no passes"):
        training_curves([])
    with pytest.raises(tt.ModelError, match="was the estimator fitted"):
        training_curves(SimpleNamespace())
    assert len(training_curves(SimpleNamespace(history_=history(2)))) == 3
    with pytest.raises(tt.ModelError, match="a history has no passes"):
        training_curves({"a": history(2), "b": []})
    with pytest.raises(tt.ModelError, match="by must be 'pass' or 'seconds', got 'hour'"):
        training_curves(history(2), by="hour")


def test_wide_trees_are_in_several_rows():
    tree = tt.parsing.parse_tree(f"(S {' '.join(f'(NN word{i})' for i in range(12))})")
    drawn = trees_side_by_side([tree] * 3)
    assert drawn[0].figure.get_size_inches()[0] <= 12
    assert [ax.get_subplotspec().rowspan.start for ax in drawn] == [0, 1, 2]
