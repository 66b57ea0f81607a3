"""The picture of a clique tree: what is on the axes, and what a table costs by definition."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import problems

import tallytree as tt
from tallytree.plot import clique_tree_picture
from tallytree.plot.cliques import _costs

pytest.importorskip("matplotlib")


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
    costs = _costs(tree, model, statistics)
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
    assert sorted(text.get_text() for text in ax.texts) == ["0 1", "0 2", "1 3"]
    assert len(ax.lines) == 2
    sizes = [scatter.get_sizes()[0] for scatter in ax.collections]
    assert max(sizes) == 420
    assert len(set(sizes)) > 1
    assert ax.get_title() == "3 cliques, width τ = 1; the largest table has 45 entries"


def test_names_and_a_tree_of_ones_own():
    model = tt.Model([2, 2], [((0, 1), np.zeros((2, 2)))], variables=["sun", "rain"])
    tree = tt.CliqueTree.from_edges([(0, 1), (1,)], [(0, 1)], scopes=[(0, 1)])
    ax = clique_tree_picture(model, tree=tree)
    assert sorted(text.get_text() for text in ax.texts) == ["rain", "sun rain"]


def test_many_cliques_have_no_names():
    ax = clique_tree_picture(tt.Model.chain(np.zeros((60, 2)), np.zeros((2, 2))))
    assert not ax.texts
    assert len(ax.collections) == 59


def test_what_is_no_picture():
    with pytest.raises(tt.ModelError, match="a tree of 2999 cliques is too large to draw"):
        clique_tree_picture(tt.Model.chain(np.zeros((3000, 2)), np.zeros((2, 2))))


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(tt.TallytreeError, match=r"pip install 'tallytree\[plot\]'"):
        clique_tree_picture(tt.Model([2]))
