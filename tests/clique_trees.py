"""Helpers for tests of clique trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from hypothesis import strategies as st

from tallytree.model.model import Model
from tallytree.paper.cliquetree import CliqueTree

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


def connected(nodes: set[int], edges: Iterable[tuple[int, int]]) -> bool:
    reached = set(sorted(nodes)[:1])
    for _ in nodes:
        reached |= {v for e in edges if reached & {*e} for v in e if v in nodes and {*e} <= nodes}
    return reached == nodes


def assert_clique_tree(tree: CliqueTree, variables: int, scopes: Scopes) -> None:
    """The definition, implemented a second time without optimisation."""
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
