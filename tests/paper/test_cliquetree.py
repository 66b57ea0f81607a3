"""Clique trees, checked by definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from random import Random

import numpy as np
import pytest
from clique_trees import (
    METHODS,
    Scopes,
    assert_clique_tree,
    methods,
    model_over,
    scope_lists,
    star,
)
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.paper.cliquetree import CliqueTree, check_clique_tree, clique_tree
from tallytree.statistics.statistic import Statistic


def separators_at(tree: CliqueTree, i: int) -> Counter[tuple[int, ...]]:
    own = [] if tree.parent[i] == -1 else [tree.separators[i]]
    return Counter([*own, *(tree.separators[k] for k, j in enumerate(tree.parent) if j == i)])


def width_of_order(order: Sequence[int], variables: int, scopes: Scopes) -> int:
    edges = {frozenset(e) for scope in scopes for e in combinations(scope, 2)}
    width = -1
    for v in order:
        neighbours = {u for e in edges if v in e for u in e} - {v}
        width = max(width, len(neighbours))
        edges = {e for e in edges if v not in e} | {frozenset(e) for e in combinations(neighbours, 2)}
    return width


def naive_min_fill(variables: int, scopes: Scopes) -> list[int]:
    edges = {frozenset(e) for scope in scopes for e in combinations(scope, 2)}
    left, order = set(range(variables)), []

    def fill(v: int) -> set[frozenset[int]]:
        neighbours = {u for e in edges if v in e for u in e} - {v}
        return {frozenset(e) for e in combinations(neighbours, 2)} - edges

    while left:
        v = min(left, key=lambda u: (len(fill(u)), u))
        edges = {e for e in edges | fill(v) if v not in e}
        left.remove(v)
        order.append(v)
    return order


# Construction


@given(scope_lists(), methods)
def test_both_methods_build_clique_trees_with_maximal_cliques(
    problem: tuple[int, Scopes], method: str
) -> None:
    variables, scopes = problem
    tree = clique_tree(model_over(*problem), method=method)  # type: ignore[arg-type]
    assert_clique_tree(tree, variables, scopes)
    check_clique_tree(tree, scopes)
    assert not any(
        set(a) <= set(b) for i, a in enumerate(tree.cliques) for b in tree.cliques[:i] + tree.cliques[i + 1 :]
    )


@given(scope_lists(), methods, st.randoms(use_true_random=False))
def test_any_order_will_do(problem: tuple[int, Scopes], method: str, random: Random) -> None:
    variables, scopes = problem
    order = list(range(variables))
    random.shuffle(order)
    tree = clique_tree(model_over(*problem), method=method, order=order)  # type: ignore[arg-type]
    assert_clique_tree(tree, variables, scopes)
    assert tree.width == width_of_order(order, variables, scopes)


@given(scope_lists())
def test_the_default_order_is_min_fill(problem: tuple[int, Scopes]) -> None:
    model = model_over(*problem)
    assert clique_tree(model) == clique_tree(model, order=naive_min_fill(*problem))


@given(scope_lists())
def test_all_clique_trees_of_a_chordal_graph_have_the_same_separators(problem: tuple[int, Scopes]) -> None:
    trees = [clique_tree(model_over(*problem), method=method) for method in METHODS]  # type: ignore[arg-type]
    trees += [tree.reshaped() for tree in trees]
    assert len({tuple(sorted(tree.cliques)) for tree in trees}) == 1
    assert len({tuple(sorted(tree.separators[i] for i, _ in tree.edges)) for tree in trees}) == 1


@given(scope_lists(), methods)
def test_its_order_needs_no_larger_clique(problem: tuple[int, Scopes], method: str) -> None:
    variables, scopes = problem
    tree = clique_tree(model_over(*problem), method=method)  # type: ignore[arg-type]
    for same in (tree, tree.reshaped(), tree.cloned()):
        assert sorted(same.order()) == list(range(variables))
        assert width_of_order(same.order(), variables, scopes) == tree.width


def test_statistics_add_their_scopes() -> None:
    model = model_over(3, [(0, 1)])
    far = Statistic([((2, 0), np.ones((2, 2), dtype=int))], name="far")
    tree = clique_tree(model, [far])
    assert_clique_tree(tree, 3, [(0, 1), (2, 0)])


def test_no_variables() -> None:
    tree = clique_tree(Model([], factors=[((), 1.5)]))
    assert (tree.cliques, tree.width, tree.degree, tree.order()) == (((),), -1, 0, ())
    assert tree.scopes == (((),),)


@pytest.mark.parametrize("method", METHODS)
def test_isolated_variables_are_joined_by_empty_separators(method: str) -> None:
    tree = clique_tree(model_over(5, []), method=method)  # type: ignore[arg-type]
    assert_clique_tree(tree, 5, [])
    assert set(tree.separators) == {()}
    assert tree.reshaped().degree <= 2


def test_a_wrong_order_is_refused() -> None:
    with pytest.raises(ModelError, match=r"each of the variables 0 to 2 once, got \[0, 1, 1\]"):
        clique_tree(model_over(3, []), order=[0, 1, 1])


def test_a_wrong_method_is_refused() -> None:
    with pytest.raises(ModelError, match="'elimination' or 'triangulation', got 'magic'"):
        clique_tree(model_over(3, []), method="magic")  # type: ignore[arg-type]


# Reshaping and cloning


@given(scope_lists(most=10), methods)
def test_reshaping_leaves_each_separator_at_most_twice(problem: tuple[int, Scopes], method: str) -> None:
    variables, scopes = problem
    tree = clique_tree(model_over(*problem), method=method)  # type: ignore[arg-type]
    reshaped = tree.reshaped()
    assert_clique_tree(reshaped, variables, scopes)
    assert (reshaped.cliques, reshaped.scopes) == (tree.cliques, tree.scopes)
    assert all(
        number <= 2 for i in range(len(tree.cliques)) for number in separators_at(reshaped, i).values()
    )
    joined = any(reshaped.separators[i] == () for i, _ in reshaped.edges)
    if tree.width >= 1 or not joined:
        assert reshaped.degree <= max(0, 2 ** (tree.width + 2) - 4 + 2 * joined)


@given(scope_lists(most=10), methods)
def test_cloning_leaves_at_most_three_neighbours(problem: tuple[int, Scopes], method: str) -> None:
    variables, scopes = problem
    tree = clique_tree(model_over(*problem), method=method)  # type: ignore[arg-type]
    cloned = tree.cloned()
    assert_clique_tree(cloned, variables, scopes)
    assert cloned.degree <= 3
    assert cloned.width == tree.width
    assert cloned.scopes[: len(tree.cliques)] == tree.scopes
    for clone in range(len(tree.cliques), len(cloned.cliques)):
        assert cloned.scopes[clone] == ()
        assert cloned.separators[clone] == cloned.cliques[clone] == cloned.cliques[cloned.parent[clone]]
    if tree.degree <= 3:
        assert cloned == tree


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 5, 60])
def test_a_star(method: str, leaves: int) -> None:
    model = star(leaves)
    tree = clique_tree(model, method=method)  # type: ignore[arg-type]
    scopes = [(0, leaf) for leaf in range(1, leaves + 1)]
    assert (tree.width, tree.degree) == (1, leaves - 1)
    assert tree.reshaped().degree == min(2, leaves - 1)
    assert tree.cloned().degree == min(3, leaves - 1)
    assert len(tree.cloned().cliques) == leaves + (leaves - 2 if leaves > 4 else 0)
    for same in (tree, tree.reshaped(), tree.cloned()):
        assert_clique_tree(same, leaves + 1, scopes)


def test_a_large_star_takes_no_time() -> None:
    tree = clique_tree(star(2000))
    assert (tree.degree, tree.reshaped().degree, tree.cloned().degree) == (1999, 2, 3)
    assert len(tree.reshaped().order()) == 2001
