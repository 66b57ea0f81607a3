"""From the scopes of a model to maximal cliques and a tree of them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import TypeAlias

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.paper.cliquetree.rules import ROOT, Scope, hang
from tallytree.statistics.statistic import Statistic

Graph: TypeAlias = dict[int, set[int]]


def scopes_of(model: Model, statistics: Sequence[Statistic]) -> set[Scope]:
    """Collect the scopes of all factors and statistics, sorted."""
    blocks = [*model.blocks, *(block for statistic in statistics for block in statistic.blocks)]
    return {tuple(sorted(scope)) for block in blocks for scope in block.scopes.tolist()}


def graph(variables: int, scopes: Iterable[Scope]) -> Graph:
    """Return the graph in which variables are neighbours if they share a scope."""
    graph: Graph = {v: set() for v in range(variables)}
    for scope in scopes:
        for v in scope:
            graph[v].update(scope)
    for v, neighbours in graph.items():
        neighbours.discard(v)
    return graph


def checked_order(order: Sequence[int], variables: int) -> list[int]:
    """Raise an error for an order that is not a permutation of the variables."""
    if sorted(order) != list(range(variables)):
        raise ModelError(
            f"an elimination order must have each of the variables 0 to {variables - 1} once, got {order!r}"
        )
    return [int(v) for v in order]


def min_fill(graph: Graph) -> list[int]:
    """Eliminate next the variable whose neighbours lack the fewest edges; ties go to the smaller index."""
    left = {v: set(neighbours) for v, neighbours in graph.items()}
    missing = {v: _missing_edges(left, v) for v in left}
    heap = [(number, v) for v, number in missing.items()]
    heapq.heapify(heap)
    order = []
    while heap:
        number, v = heapq.heappop(heap)
        if missing.get(v) != number:
            continue  # outdated: a later entry has the right number
        order.append(v)
        del missing[v]
        for u in _eliminate(left, v, missing):
            heapq.heappush(heap, (missing[u], u))
    return order


def _missing_edges(graph: Graph, v: int) -> int:
    neighbours = graph[v]
    return sum(len(neighbours - graph[u]) - 1 for u in neighbours) // 2


def _eliminate(left: Graph, v: int, missing: dict[int, int]) -> set[int]:
    """Connect the neighbours of ``v`` and remove it; returns the variables whose number has changed."""
    neighbours = left.pop(v)
    changed = set(neighbours)
    for u in neighbours:
        left[u].discard(v)
        missing[u] -= len(left[u] - neighbours)
    for a, b in combinations(sorted(neighbours), 2):
        if b not in left[a]:
            common = left[a] & left[b]
            missing[a] += len(left[a]) - len(common)
            missing[b] += len(left[b]) - len(common)
            for u in common:
                missing[u] -= 1
            changed |= common
            left[a].add(b)
            left[b].add(a)
    return changed


def eliminated(graph: Graph, order: Sequence[int]) -> tuple[list[set[int]], list[int]]:
    """Return the clique of each variable when it is eliminated, in that order, and its parent.

    A clique is below that of the next of its variables in the order; one without any, the last of its
    component, is below the next clique that is the last of its own.
    """
    position = {v: i for i, v in enumerate(order)}
    left = {v: set(neighbours) for v, neighbours in graph.items()}
    cliques = []
    for v in order:
        neighbours = left.pop(v)
        for u in neighbours:
            left[u] |= neighbours
            left[u] -= {u, v}
        cliques.append(neighbours | {v})
    later = [[position[u] for u in clique if position[u] > i] for i, clique in enumerate(cliques)]
    return cliques, _chained([min(positions, default=ROOT) for positions in later])


def _chained(parent: list[int]) -> list[int]:
    """Put each root below the next one, so that a forest becomes a tree."""
    roots = [i for i, j in enumerate(parent) if j == ROOT]
    for i, j in pairwise(roots):
        parent[i] = j
    return parent


def merged(cliques: list[set[int]], parent: list[int]) -> tuple[tuple[Scope, ...], tuple[int, ...]]:
    """Merge each clique that is contained in another into it.

    By running intersection it is then contained in a neighbour, which in an elimination tree is a child
    and takes its place.
    """
    if not cliques:
        return ((),), (ROOT,)
    place = list(range(len(cliques)))  # the clique that each was merged into
    below: list[list[int]] = [[] for _ in cliques]
    for i, clique in enumerate(cliques):
        host = next((c for c in below[i] if clique <= cliques[c]), None)
        if host is not None:
            place[i] = host
            below[host].extend(c for c in below[i] if c != host)
        if parent[i] != ROOT:
            below[parent[i]].append(place[i])
    return _numbered(cliques, below, [i for i, p in enumerate(place) if i == p])


def _numbered(
    cliques: list[set[int]], below: list[list[int]], kept: list[int]
) -> tuple[tuple[Scope, ...], tuple[int, ...]]:
    number = {i: n for n, i in enumerate(kept)}
    parent = {c: i for i in kept for c in below[i]}
    return (
        tuple(tuple(sorted(cliques[i])) for i in kept),
        tuple(number[parent[i]] if i in parent else ROOT for i in kept),
    )


def spanning_tree(cliques: Sequence[Scope]) -> tuple[int, ...]:
    """Kruskal's tree with the largest separators, ties to the smaller indices, rooted at the last clique."""
    sets = [frozenset(clique) for clique in cliques]
    pairs = sorted(combinations(range(len(sets)), 2), key=lambda e: -len(sets[e[0]] & sets[e[1]]))
    component = list(range(len(sets)))
    edges = []
    for i, j in pairs:
        a, b = _find(component, i), _find(component, j)
        if a != b:
            component[a] = b
            edges.append((i, j))
    return hang(len(sets), edges, len(sets) - 1)


def _find(component: list[int], i: int) -> int:
    while component[i] != i:
        component[i] = component[component[i]]
        i = component[i]
    return i
