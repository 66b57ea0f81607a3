"""Clique trees, checked by definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.paper.cliquetree import CliqueTree, check_clique_tree, clique_tree
from tallytree.statistics.recipes import count
from tallytree.statistics.statistic import Statistic

Scopes = list[tuple[int, ...]]
METHODS = ("elimination", "triangulation")
methods = st.sampled_from(METHODS)


@st.composite
def scope_lists(draw: st.DrawFn, most: int = 8) -> tuple[int, Scopes]:
    """A number of variables and random scopes over them, empty ones and repeated ones included."""
    variables = draw(st.integers(0, most))
    size = st.integers(0, min(3, variables))
    scopes = [
        tuple(draw(st.permutations(range(variables)))[: draw(size)]) for _ in range(draw(st.integers(0, 9)))
    ]
    return variables, scopes


def model_over(variables: int, scopes: Iterable[Sequence[int]], states: int = 2) -> Model:
    return Model([states] * variables, factors=[(tuple(s), np.zeros((states,) * len(s))) for s in scopes])


def star(leaves: int) -> Model:
    return model_over(leaves + 1, [(0, leaf) for leaf in range(1, leaves + 1)])


def separators_at(tree: CliqueTree, i: int) -> Counter[tuple[int, ...]]:
    own = [] if tree.parent[i] == -1 else [tree.separators[i]]
    return Counter([*own, *(tree.separators[k] for k, j in enumerate(tree.parent) if j == i)])


def connected(nodes: set[int], edges: Iterable[tuple[int, int]]) -> bool:
    reached = set(sorted(nodes)[:1])
    for _ in nodes:
        reached |= {v for e in edges if reached & {*e} for v in e if v in nodes and {*e} <= nodes}
    return reached == nodes


def assert_clique_tree(tree: CliqueTree, variables: int, scopes: Scopes) -> None:
    """The definition, written a second time and as slowly as it reads."""
    nodes = set(range(len(tree.cliques)))
    assert len(tree.edges) == len(nodes) - 1
    assert connected(nodes, tree.edges)
    assert {v for clique in tree.cliques for v in clique} == set(range(variables))
    for v in range(variables):
        assert connected({i for i in nodes if v in tree.cliques[i]}, tree.edges)
    for scope in {tuple(sorted(s)) for s in scopes}:
        (home,) = [i for i in nodes if scope in tree.scopes[i]]
        assert set(scope) <= set(tree.cliques[home])
    for i, j in tree.edges:
        assert tree.separators[i] == tuple(sorted(set(tree.cliques[i]) & set(tree.cliques[j])))


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
