"""Profiles by clique trees, and invalid trees."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from clique_trees import (
    Scopes,
    assert_clique_tree,
    methods,
    model_over,
    scope_lists,
    star,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.paper.cliquetree import CliqueTree, clique_tree
from tallytree.statistics.recipes import count
from tallytree.statistics.statistic import Statistic

# The profile


def brute_force(model: Model, statistics: Sequence[Statistic]) -> dict[tuple[int, ...], float]:
    best: dict[tuple[int, ...], float] = {}
    for y in product(*(range(n) for n in model.cardinalities.tolist())):
        score = float(model.score(np.array(y, dtype=int)))
        tally = tuple(int(s.tally(np.array(y, dtype=int))) for s in statistics)
        if score > best.get(tally, -np.inf):
            best[tally] = score
    return best


@st.composite
def problems(draw: st.DrawFn) -> tuple[Model, list[Statistic]]:
    """Small, so that the literal algorithm is quick on a clique with many neighbours too."""
    variables, scopes = draw(scope_lists(most=5))
    cardinalities = draw(st.lists(st.integers(1, 3), min_size=variables, max_size=variables))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def shape(scope: tuple[int, ...]) -> list[int]:
        return [cardinalities[v] for v in scope]

    def scores(scope: tuple[int, ...]) -> np.ndarray:
        table = rng.normal(size=shape(scope))
        return np.where(rng.random(table.shape) < 0.15, -np.inf, table)

    half = len(scopes) // 2
    model = Model(cardinalities, factors=[(s, scores(s)) for s in scopes[half:]])
    statistics = [
        Statistic([(s, rng.integers(-2, 3, size=shape(s))) for s in scopes[p:half]], name=f"s{p}", cap=cap)
        for p, cap in enumerate(draw(st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=2)))
    ]
    return model, statistics


@settings(deadline=None)
@given(problems(), methods)
def test_all_trees_give_the_profile_of_brute_force(
    problem: tuple[Model, list[Statistic]], method: str
) -> None:
    model, statistics = problem
    expected = brute_force(model, statistics)
    tree = clique_tree(model, statistics, method=method)  # type: ignore[arg-type]
    for same in (tree, tree.reshaped(), tree.cloned()):
        tallies, scores = same.profile(model, statistics)
        assert tallies.shape == (len(expected), len(statistics))
        assert [tuple(t) for t in tallies.tolist()] == sorted(expected)
        np.testing.assert_allclose(scores, [expected[t] for t in sorted(expected)], atol=1e-12)


def test_the_profile_of_a_star_reshaped_and_cloned() -> None:
    rng = np.random.default_rng(0)
    model = Model([2] * 6, factors=[((0, leaf), rng.normal(size=(2, 2))) for leaf in range(1, 6)])
    ones = Statistic([((v,), [0, 1]) for v in range(6)], name="ones")
    any_one = Statistic([((v,), [0, 1]) for v in range(6)], name="any", cap=1)
    expected = brute_force(model, [ones, any_one])
    tree = clique_tree(model, [ones, any_one])
    assert tree.degree == 4
    for same in (tree, tree.reshaped(), tree.cloned()):
        tallies, scores = same.profile(model, [ones, any_one])
        assert tallies.tolist() == [[k, min(k, 1)] for k in range(7)]
        np.testing.assert_allclose(scores, [expected[t] for t in sorted(expected)])


def test_recipes_are_bound_to_the_model() -> None:
    model = model_over(3, [(0, 1), (1, 2)])
    tallies, _ = clique_tree(model, [count(state=1)]).profile(model, [count(state=1)])
    assert tallies.tolist() == [[0], [1], [2], [3]]


def test_a_tree_of_another_model_is_refused() -> None:
    tree = clique_tree(model_over(3, [(0, 1), (1, 2)]))
    with pytest.raises(ModelError, match=r"has no scope \{0, 2\}"):
        tree.profile(model_over(3, [(0, 2)]))
    with pytest.raises(ModelError, match=r"cover the variables \{0, 1, 2\}, but the model has 4"):
        tree.profile(model_over(4, []))


# Trees that are none


@pytest.mark.parametrize(
    ("cliques", "parent", "scopes", "message"),
    [
        ([], [], [], "and a clique; got 0 cliques"),
        ([(0,)], [-1, 0], [()], "got 1 cliques, 2 parents"),
        ([(1, 0)], [-1], [()], r"must be sorted and distinct, got \(1, 0\)"),
        ([(0, 0)], [-1], [()], r"must be sorted and distinct, got \(0, 0\)"),
        ([(0,), (0,)], [-1, -1], [(), ()], "needs one root .parent -1., got 2"),
        ([(0,), (0,)], [-1, 5], [(), ()], "must be a clique or -1 for the root, got 5"),
        ([(0,), (1,), (1,)], [-1, 2, 1], [(), (), ()], "clique 1 is not below the root"),
        ([(0,)], [-1], [((1,),)], r"scope \{1\} is not contained in clique 0, \{0\}"),
        ([(0,), (0,)], [-1, 0], [((0,),), ((0,),)], r"scope \{0\} is assigned twice, to cliques 0 and 1"),
        ([(0,), (1,), (0,)], [-1, 0, 1], [(), (), ()], "cliques with variable 0 are not connected"),
    ],
)
def test_what_is_no_clique_tree_is_refused(
    cliques: Scopes, parent: list[int], scopes: list[tuple[tuple[int, ...], ...]], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        CliqueTree(tuple(cliques), tuple(parent), tuple(scopes))


@pytest.mark.parametrize(
    ("edges", "root", "message"),
    [
        ([(0, 1)], 0, "a tree of 3 cliques needs 2 edges, got 1"),
        ([(0, 1), (1, 0)], 0, "do not connect all cliques"),
        ([(0, 1), (1, 3)], 0, r"must join two of the 3 cliques, got \(1, 3\)"),
        ([(0, 1), (1, 2)], 3, "root must be one of the 3 cliques, got 3"),
    ],
)
def test_edges_that_make_no_tree_are_refused(edges: list[tuple[int, int]], root: int, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        CliqueTree.from_edges([(0, 1), (1, 2), (2, 3)], edges, root=root)


def test_a_scope_that_no_clique_holds_is_refused() -> None:
    with pytest.raises(ModelError, match=r"no clique contains the scope \{0, 2\}"):
        CliqueTree.from_edges([(0, 1), (1, 2)], [(0, 1)], scopes=[(2, 0)])


@given(scope_lists(), st.data())
def test_any_root_will_do(problem: tuple[int, Scopes], data: st.DataObject) -> None:
    variables, scopes = problem
    tree = clique_tree(model_over(*problem))
    root = data.draw(st.integers(0, len(tree.cliques) - 1))
    turned = CliqueTree.from_edges(tree.cliques, tree.edges, scopes, root=root)
    assert turned.root == root
    assert_clique_tree(turned, variables, scopes)
    assert {frozenset(e) for e in turned.edges} == {frozenset(e) for e in tree.edges}


# Printing


def test_it_prints_cliques_separators_width_and_degree() -> None:
    text = str(clique_tree(model_over(4, [(0, 1), (1, 2), (2,)])))
    assert text.splitlines()[0] == "clique tree: 3 cliques, width τ = 1, degree ν = 2"
    assert "{0, 1}" in text
    assert "over {1}" in text
    assert "over {}" in text
    assert "holds {1, 2}, {2}" in text


def test_a_long_tree_prints_short() -> None:
    text = str(clique_tree(star(100)))
    assert len(text.splitlines()) == 42
    assert text.endswith("… and 60 more")
    assert repr(clique_tree(star(3))) == "<CliqueTree: 3 cliques, width τ = 1, degree ν = 2>"
