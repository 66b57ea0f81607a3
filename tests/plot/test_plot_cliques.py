"""The plot of a clique tree: what is on the axes, and the cost of a table by definition."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import problems

import tallytree as tt
from tallytree.plot import clique_tree_picture
from tallytree.plot.cliques import _tables, _tree_of_plan

Text = pytest.importorskip("matplotlib.text").Text


def spread(statistic: tt.Statistic) -> int:
    """How many numbers the sum can be at most: the ranges of its parts add up."""
    parts = [
        np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:])).reshape(len(block), -1)
        for block in statistic.blocks
    ]
    total = 1 + sum(int((part.max(axis=1) - part.min(axis=1)).sum()) for part in parts)
    return total if statistic.cap is None else min(total, max(statistic.cap, 0) + 1)


@settings(max_examples=60)
@given(problems(largest=6))
def test_the_root_pays_for_all_tallies(drawn):
    model, statistics = drawn
    tree = tt.clique_tree(model, statistics)
    costs = [rows * tallies for rows, tallies in _tables(tree, model, statistics)]
    states = [int(np.prod(model.cardinalities[list(clique)])) for clique in tree.cliques]
    scoped = [
        tt.Statistic.from_blocks([block for block in s.blocks if block.arity], s.name, s.cap)
        for s in statistics
    ]
    assert costs[tree.root] == states[tree.root] * int(np.prod([spread(s) for s in scoped], dtype=int))
    assert all(cost >= n for cost, n in zip(costs, states, strict=True))


def test_every_clique_is_drawn_and_the_dearest_stands_out():
    model = tt.Model.tree([-1, 0, 0, 1], np.zeros((4, 3)), np.zeros((3, 3)))
    ax = clique_tree_picture(model, [tt.count(state=1)])
    *names, told = [text.get_text() for text in ax.texts]
    assert sorted(names) == ["0 1", "0 2", "1 3"]
    assert told == "9 states x 5 tallies"
    lines, dots = ax.collections
    assert len(lines.get_segments()) == 2
    sizes = dots.get_sizes().tolist()
    assert len(sizes) == 3
    assert max(sizes) == 420
    assert len(set(sizes)) > 1
    assert ax.get_title() == "3 cliques, width τ = 1; the largest table has 45 entries"


def colours(ax) -> list[tuple[float, ...]]:
    return [tuple(colour) for colour in ax.collections[1].get_facecolors()]


def test_the_dearest_clique_has_its_own_colour():
    rows = np.random.default_rng(0).normal(size=(5, 2))
    ax = clique_tree_picture(tt.Model.chain(rows, np.eye(2)), [tt.count(state=1)], order=range(5))
    *others, root = sorted(colours(ax), key=colours(ax).count, reverse=True)
    assert len(set(others)) == 1
    assert root not in others


def test_no_clique_stands_out_if_all_cost_the_same():
    ax = clique_tree_picture(tt.Model.chain(np.zeros((5, 3)), np.zeros((3, 3))))
    assert sorted(text.get_text() for text in ax.texts) == ["0 1", "1 2", "2 3", "3 4"]
    assert ax.get_title() == "4 cliques, width τ = 1; each table has 9 entries"
    plain = set(colours(ax))
    assert len(plain) == 1
    assert plain < set(colours(clique_tree_picture(chain(5), [tt.count(state=1)])))


def test_a_single_tally_is_told_in_the_singular():
    model = tt.Model([3, 3, 2], [((0, 1), np.zeros((3, 3))), ((1, 2), np.zeros((3, 2)))])
    assert clique_tree_picture(model).texts[-1].get_text() == "9 states x 1 tally"


def test_names_and_a_tree_of_ones_own():
    model = tt.Model([2, 2], [((0, 1), np.zeros((2, 2)))], variables=["sun", "rain"])
    tree = tt.CliqueTree.from_edges([(0, 1), (1,)], [(0, 1)], scopes=[(0, 1)])
    ax = clique_tree_picture(model, tree=tree)
    assert sorted(text.get_text() for text in ax.texts[:-1]) == ["rain", "sun rain"]


def test_many_cliques_have_no_names():
    ax = clique_tree_picture(tt.Model.chain(np.zeros((60, 2)), np.zeros((2, 2))))
    assert not ax.texts
    lines, dots = ax.collections
    assert (len(lines.get_segments()), len(dots.get_offsets())) == (58, 59)


def star(leaves: int) -> tt.Model:
    return tt.Model.tree([-1] + [0] * leaves, np.zeros((leaves + 1, 2)), np.zeros((2, 2)))


def chain(length: int) -> tt.Model:
    return tt.Model.chain(np.zeros((length, 2)), np.zeros((2, 2)))


@pytest.mark.parametrize(
    "model", [chain(2), chain(5), chain(20), chain(60), chain(900), star(4), star(20), star(40), star(300)]
)
def test_pictures_fit_a_page_and_cliques_do_not_touch(model):
    ax = clique_tree_picture(model, [tt.count(state=1)])
    wide, high = ax.figure.get_size_inches()
    assert 5 <= wide <= 12
    assert 1.6 <= high <= 8
    assert high <= wide
    ax.figure.canvas.draw()
    dots = ax.collections[1]
    middles, sizes = ax.transData.transform(dots.get_offsets()), np.sqrt(dots.get_sizes())
    apart = np.linalg.norm(middles[:, None] - middles, axis=-1) * 72 / ax.figure.dpi
    reach = (sizes[:, None] + sizes) / 2
    crowded = len(sizes) > 150  # too many for separate dots: they are as small as can be seen
    assert crowded or (apart + 1e9 * np.eye(len(sizes)) > reach).all()
    assert not crowded or sizes.max() <= 3
    texts = [Text.get_window_extent(text) for text in ax.texts]
    told, (x, y) = texts[-1], middles.T
    behind = (told.x0 <= x) & (x <= told.x1) & (told.y0 <= y) & (y <= told.y1)
    assert not behind.any()
    assert all(0 <= box.x0 <= box.x1 <= ax.figure.bbox.width for box in texts)
    assert all(0 <= box.y0 <= box.y1 <= ax.figure.bbox.height for box in texts)


def test_long_names_are_shortened():
    names = [f"temperature_at_station_{i}" for i in range(9)]
    plain = chain(9)
    ax = clique_tree_picture(tt.Model.from_blocks(plain.cardinalities, plain.blocks, variables=names))
    shown = {text.get_text() for text in ax.texts}
    assert shown == {f"tempe…on_{i} tempe…on_{i + 1}" for i in range(8)}
    assert ax.figure.get_size_inches()[1] <= 5


def test_shortened_names_can_be_told_apart():
    names = [f"2026-11-{day:02d} 00:00:00" for day in range(1, 10)]
    plain = chain(9)
    ax = clique_tree_picture(tt.Model.from_blocks(plain.cardinalities, plain.blocks, variables=names))
    shown = [text.get_text() for text in ax.texts]
    assert len(set(shown)) == len(shown) == 8
    assert "2026-11-01 0…02 00:00:00" in shown


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (3, 6), (6, 11)])
def test_the_tree_of_the_plan_is_drawn(rows, columns):
    model = tt.Model.grid(np.zeros((rows, columns, 2)), np.eye(2), np.eye(2))
    plan = tt.plan(model, [tt.count(state=1)])
    assert f"width τ = {plan.width};" in clique_tree_picture(model, [tt.count(state=1)]).get_title()
    natural = clique_tree_picture(model, order=range(rows * columns)).get_title()
    assert f"width τ = {tt.plan(model, order=range(rows * columns)).width};" in natural


@settings(max_examples=60)
@given(problems(largest=6))
def test_the_tree_of_a_plan_has_its_width(drawn):
    model, statistics = drawn
    assert _tree_of_plan(model, statistics, None).width == tt.plan(model, statistics).width


def test_a_model_that_is_too_large_to_solve_can_be_drawn():
    grid = tt.Model.grid(np.zeros((16, 16, 2)), np.eye(2), np.eye(2))
    with pytest.raises(tt.BudgetError):
        tt.plan(grid, [tt.count(state=1)], memory_limit=1e8)
    assert "width τ = 16;" in clique_tree_picture(grid, [tt.count(state=1)]).get_title()


def test_what_is_no_picture():
    with pytest.raises(tt.ModelError, match="a tree of 2999 cliques is too large to draw"):
        clique_tree_picture(tt.Model.chain(np.zeros((3000, 2)), np.zeros((2, 2))))


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(tt.TallytreeError, match=r"pip install 'tallytree\[plot\]'"):
        clique_tree_picture(tt.Model([2]))
