"""Rooted trees as lists of parents, and scopes as tuples of variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tallytree.errors import ModelError

Scope: TypeAlias = tuple[int, ...]

ROOT = -1


def children_of(parent: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """List the children of each clique, in order."""
    below: list[list[int]] = [[] for _ in parent]
    for i, j in enumerate(parent):
        if j != ROOT:
            below[j].append(i)
    return tuple(map(tuple, below))


def downwards(parent: Sequence[int]) -> list[int]:
    """Every clique after its parent, depth first."""
    below = children_of(parent)
    stack, seen = [parent.index(ROOT)], []
    while stack:
        seen.append(stack.pop())
        stack.extend(below[seen[-1]])
    return seen


def upwards(parent: Sequence[int]) -> list[int]:
    """Every clique before its parent."""
    return downwards(parent)[::-1]


def hang(size: int, edges: list[tuple[int, int]], root: int) -> tuple[int, ...]:
    """Hang a tree of undirected edges up by its root: the parents."""
    if not 0 <= root < size:
        raise ModelError(f"the root must be one of the {size} cliques, got {root}")
    if len(edges) != size - 1:
        raise ModelError(
            f"a tree of {size} cliques has {size - 1} edges, got {len(edges)}; "
            "cliques without a common variable are joined too"
        )
    neighbours: list[list[int]] = [[] for _ in range(size)]
    for i, j in edges:
        if not (0 <= i < size and 0 <= j < size):
            raise ModelError(f"an edge joins two of the {size} cliques, got {(i, j)}")
        neighbours[i].append(j)
        neighbours[j].append(i)
    parent = {root: ROOT}
    queue = [root]
    for i in queue:
        new = [j for j in neighbours[i] if j not in parent]
        parent.update(dict.fromkeys(new, i))
        queue.extend(new)
    if len(parent) < size:
        raise ModelError("the edges do not connect all cliques: some run in a circle")
    return tuple(parent[i] for i in range(size))


def assign(scopes: Iterable[Iterable[int]], cliques: Sequence[Scope]) -> tuple[tuple[Scope, ...], ...]:
    """Give each scope to the first clique that holds it, looking at its rarest variable's cliques only."""
    having: dict[int, list[int]] = {}
    for i, clique in enumerate(cliques):
        for v in clique:
            having.setdefault(v, []).append(i)
    held: list[list[Scope]] = [[] for _ in cliques]
    for scope in sorted({tuple(sorted(scope)) for scope in scopes}):
        candidates = min((having.get(v, []) for v in scope), key=len, default=[0])
        home = next((i for i in candidates if {*scope} <= {*cliques[i]}), None)
        if home is None:
            raise ModelError(f"no clique holds the scope {braces(scope)}")
        held[home].append(scope)
    return tuple(map(tuple, held))


def braces(scope: Iterable[int]) -> str:
    """Write a scope as a set."""
    return "{" + ", ".join(map(str, scope)) + "}"
