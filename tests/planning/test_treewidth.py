"""The exact treewidth used by the benchmark of elimination orders, compared with its definition."""

from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture(scope="module")
def treewidth():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        import treewidth

        yield treewidth


@st.composite
def graphs(draw):
    size = draw(st.integers(1, 8))
    pairs = list(combinations(range(size), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    graph = {v: set() for v in range(size)}
    for a, b in edges:
        graph[a].add(b)
        graph[b].add(a)
    return graph


def by_definition(graph):
    """The least width of any elimination order, by the set of variables that have gone."""

    def degree(gone, v):
        """How many are left that v is joined to, directly or through those that have gone."""
        reached, front = {v}, [v]
        while front:
            new = graph[front.pop()] - reached
            reached |= new
            front += new & gone
        return len(reached - gone - {v})

    @cache
    def width(gone):
        return min((max(width(gone - {v}), degree(gone - {v}, v)) for v in gone), default=0)

    return width(frozenset(graph))


@settings(max_examples=60)
@given(graphs())
def test_bounds_meet_at_the_treewidth(treewidth, graph):
    exact = by_definition(graph)
    assert treewidth.bounds(graph, len(graph) - 1, 60.0) == (exact, exact)
    assert treewidth.contraction(graph) <= exact
    assert treewidth.width_of(graph, sorted(graph)) >= exact


def test_without_time_the_bounds_stay_apart(treewidth):
    cells = [(i, j) for i in range(5) for j in range(5)]
    graph = {(i, j): {(a, b) for a, b in cells if abs(a - i) + abs(b - j) == 1} for i, j in cells}
    assert treewidth.bounds(graph, 7, 60.0) == (5, 5)
    lower, upper = treewidth.bounds(graph, 7, -1.0)
    assert lower <= 5
    assert upper == 7
