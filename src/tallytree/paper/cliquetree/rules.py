"""The definition of a clique tree, as checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

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
    """List every clique after its parent, depth first."""
    below = children_of(parent)
    stack, seen = [parent.index(ROOT)], []
    while stack:
        seen.append(stack.pop())
        stack.extend(below[seen[-1]])
    return seen


def upwards(parent: Sequence[int]) -> list[int]:
    """List every clique before its parent."""
    return downwards(parent)[::-1]


def hang(size: int, edges: list[tuple[int, int]], root: int) -> tuple[int, ...]:
    """Return the parents of a tree of undirected edges, given its root."""
    if not 0 <= root < size:
        raise ModelError(f"the root must be one of the {size} cliques, got {root}")
    if len(edges) != size - 1:
        raise ModelError(
            f"a tree of {size} cliques needs {size - 1} edges, got {len(edges)}; "
            "cliques without a common variable must be joined, too"
        )
    neighbours: list[list[int]] = [[] for _ in range(size)]
    for i, j in edges:
        if not (0 <= i < size and 0 <= j < size):
            raise ModelError(f"an edge must join two of the {size} cliques, got {(i, j)}")
        neighbours[i].append(j)
        neighbours[j].append(i)
    parent = {root: ROOT}
    queue = [root]
    for i in queue:
        new = [j for j in neighbours[i] if j not in parent]
        parent.update(dict.fromkeys(new, i))
        queue.extend(new)
    if len(parent) < size:
        raise ModelError("the edges do not connect all cliques: some form a cycle")
    return tuple(parent[i] for i in range(size))


def assign(scopes: Iterable[Iterable[int]], cliques: Sequence[Scope]) -> tuple[tuple[Scope, ...], ...]:
    """Assign each scope to the first clique that contains it, searching those of its rarest variable."""
    having: dict[int, list[int]] = {}
    for i, clique in enumerate(cliques):
        for v in clique:
            having.setdefault(v, []).append(i)
    held: list[list[Scope]] = [[] for _ in cliques]
    for scope in sorted({tuple(sorted(scope)) for scope in scopes}):
        candidates = min((having.get(v, []) for v in scope), key=len, default=[0])
        home = next((i for i in candidates if {*scope} <= {*cliques[i]}), None)
        if home is None:
            raise ModelError(f"no clique contains the scope {braces(scope)}")
        held[home].append(scope)
    return tuple(map(tuple, held))


def braces(scope: Iterable[int]) -> str:
    """Format a scope as a set."""
    return "{" + ", ".join(map(str, scope)) + "}"


if TYPE_CHECKING:
    from tallytree.paper.cliquetree.tree import CliqueTree


def check_clique_tree(tree: CliqueTree, scopes: Iterable[Iterable[int]] = ()) -> None:
    """Raise an error unless this is a clique tree of these scopes, by definition.

    Parameters
    ----------
    tree : CliqueTree
        One node is the root and all others are below it; each of its scopes is contained in its clique and
        is assigned once; the cliques with a variable in common are connected.
    scopes : iterable of scopes
        All of them must be assigned.

    Raises
    ------
    ModelError
        The message says which of the rules is violated, and where.

    Examples
    --------
    >>> from tallytree.paper.cliquetree import CliqueTree
    >>> tree = CliqueTree.from_edges([(0, 1), (1, 2)], [(0, 1)], scopes=[(0, 1)])
    >>> check_clique_tree(tree, [(1, 0)])
    >>> check_clique_tree(tree, [(0, 2)])
    Traceback (most recent call last):
    tallytree.errors.ModelError: the clique tree has no scope {0, 2}: build it for this model and ...
    """
    _check_shape(tree)
    _check_tree(tree)
    _check_families(tree)
    _check_running_intersection(tree)
    held = {scope for scopes in tree.scopes for scope in scopes}
    for scope in scopes:
        if tuple(sorted(scope)) not in held:
            raise not_held(scope)


def not_held(scope: Iterable[int]) -> ModelError:
    """Return the error for a tree that was built for other scopes."""
    return ModelError(
        f"the clique tree has no scope {braces(sorted(scope))}: build it for this model and these statistics"
    )


def _check_shape(tree: CliqueTree) -> None:
    if not len(tree.cliques) == len(tree.parent) == len(tree.scopes) > 0:
        lengths = (
            f"{len(tree.cliques)} cliques, {len(tree.parent)} parents, {len(tree.scopes)} lists of scopes"
        )
        raise ModelError(
            f"a clique tree needs a parent and a list of scopes per clique, and a clique; got {lengths}"
        )
    for clique in (*tree.cliques, *(scope for scopes in tree.scopes for scope in scopes)):
        if any(a >= b for a, b in pairwise(clique)):
            raise ModelError(f"the variables of a clique or scope must be sorted and distinct, got {clique}")


def _check_tree(tree: CliqueTree) -> None:
    """Check that there is one root, and that every clique is reachable from it."""
    strangers = [j for j in tree.parent if j != ROOT and not 0 <= j < len(tree.parent)]
    if strangers:
        raise ModelError(f"a parent must be a clique or {ROOT} for the root, got {strangers[0]}")
    if tree.parent.count(ROOT) != 1:
        raise ModelError(f"a clique tree needs one root (parent {ROOT}), got {tree.parent.count(ROOT)}")
    lost = set(range(len(tree.parent))).difference(downwards(tree.parent))
    if lost:
        raise ModelError(f"clique {min(lost)} is not below the root: the parents form a cycle")


def _check_families(tree: CliqueTree) -> None:
    home: dict[Scope, int] = {}
    for i, scopes in enumerate(tree.scopes):
        for scope in scopes:
            if not {*scope} <= {*tree.cliques[i]}:
                raise ModelError(
                    f"scope {braces(scope)} is not contained in clique {i}, {braces(tree.cliques[i])}"
                )
            if scope in home:
                raise ModelError(f"scope {braces(scope)} is assigned twice, to cliques {home[scope]} and {i}")
            home[scope] = i


def _check_running_intersection(tree: CliqueTree) -> None:
    """In a tree, nodes are connected if and only if they are one more than the edges between them."""
    parts: dict[int, int] = {}
    for variables, sign in ((tree.cliques, 1), (tree.separators, -1)):
        for variable in (v for scope in variables for v in scope):
            parts[variable] = parts.get(variable, 0) + sign
    torn = [variable for variable, number in parts.items() if number != 1]
    if torn:
        raise ModelError(
            f"the cliques with variable {min(torn)} are not connected: "
            "every clique on the path between two of them must have it"
        )
