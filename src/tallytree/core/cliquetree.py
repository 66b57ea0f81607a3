"""Clique trees: the objects of the paper, to look at and to teach with.

A clique tree of a set of scopes is a tree whose nodes are cliques ``C_i`` (sets of variables) such that

* it preserves families: every scope lies in the clique that it is assigned to;
* it has the running intersection property: the cliques that hold a variable are connected.

The separator of an edge is ``C_i ∩ C_j``. The width ``τ`` is the size of the largest clique minus one, the
degree ``ν`` the largest number of neighbours; Algorithm 1 of the paper takes ``O(M · N^(τ+1) · R^(ν−1))``.
Reshaping (Proposition 1) bounds ``ν`` by the width, cloning (Corollary 1) brings it down to 3.

Inference does not go through this file: its programs join two tables at a time, which beats cloning. Where a
clique tree of your own should guide it, hand over its :meth:`CliqueTree.order`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallytree.core.blocks import Block
from tallytree.core.model import Model
from tallytree.core.statistics import Recipe, Statistic
from tallytree.errors import ModelError

__all__ = ["CliqueTree", "check_clique_tree", "clique_tree"]

Scope: TypeAlias = tuple[int, ...]
States: TypeAlias = tuple[int, ...]
Tally: TypeAlias = tuple[int, ...]
Message: TypeAlias = dict[States, dict[Tally, float]]
Graph: TypeAlias = dict[int, set[int]]

ROOT = -1
MOST_LINES = 40


@dataclass(frozen=True, repr=False)
class CliqueTree:
    """A rooted clique tree, checked when it is made.

    Parameters
    ----------
    cliques : tuple of tuples of int
        The variables of each clique, sorted.
    parent : tuple of int
        The parent of each clique; -1 for the root. Components that share no variable hang together by empty
        separators, so that there is one root.
    scopes : tuple of tuples of scopes
        The scopes assigned to each clique, sorted. Each occurs once in the tree: all factors and statistics
        over these variables belong there.

    Examples
    --------
    >>> tree = CliqueTree.from_edges([(0, 1), (1, 2), (1, 3)], edges=[(0, 1), (0, 2)], scopes=[(2, 1), (0,)])
    >>> print(tree)
    clique tree: 3 cliques, width τ = 1, degree ν = 2
      0  {0, 1}  root              holds {0}
      1  {1, 2}  under 0 over {1}  holds {1, 2}
      2  {1, 3}  under 0 over {1}
    >>> tree.order()
    (2, 3, 0, 1)
    """

    cliques: tuple[Scope, ...]
    parent: tuple[int, ...]
    scopes: tuple[tuple[Scope, ...], ...]

    def __post_init__(self) -> None:
        """Refuse what is not a clique tree."""
        check_clique_tree(self)

    @classmethod
    def from_edges(
        cls,
        cliques: Iterable[Iterable[int]],
        edges: Iterable[tuple[int, int]],
        scopes: Iterable[Iterable[int]] = (),
        root: int = 0,
    ) -> CliqueTree:
        """Make a tree from cliques and undirected edges between their positions.

        Each scope is assigned to the first clique that holds it.

        Examples
        --------
        >>> CliqueTree.from_edges([(0, 1), (1, 2)], [(0, 1)], root=1).parent
        (1, -1)
        """
        sorted_cliques = tuple(tuple(sorted(set(clique))) for clique in cliques)
        parent = _hang(len(sorted_cliques), list(edges), root)
        return cls(sorted_cliques, parent, _assign(scopes, sorted_cliques))

    @property
    def root(self) -> int:
        """The clique that has no parent."""
        return self.parent.index(ROOT)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Pairs (child, parent)."""
        return tuple((i, j) for i, j in enumerate(self.parent) if j != ROOT)

    @cached_property
    def separators(self) -> tuple[Scope, ...]:
        """The separator of each clique towards its parent; empty for the root."""
        return tuple(
            () if j == ROOT else tuple(sorted({*self.cliques[i]}.intersection(self.cliques[j])))
            for i, j in enumerate(self.parent)
        )

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each clique, in order."""
        return _children(self.parent)

    @property
    def width(self) -> int:
        """``τ``: the size of the largest clique minus one; -1 where there are no variables."""
        return max(map(len, self.cliques)) - 1

    @property
    def degree(self) -> int:
        """``ν``: the largest number of neighbours of a clique."""
        return max(len(c) + (j != ROOT) for c, j in zip(self.children, self.parent, strict=True))

    def reshaped(self) -> CliqueTree:
        """Move children with the same separator below each other (Proposition 1).

        Two children of one clique with the same separator ``S`` meet in ``S`` and nothing else, so one may
        hang below the other instead. Afterwards no separator occurs at a clique more than twice, once towards
        the parent and once towards a child. In a connected graph with maximal cliques a separator is neither
        empty nor a whole clique, which leaves ``ν ≤ 2^(τ+2) − 4``; components joined by empty separators add
        2 to that.

        Examples
        --------
        >>> star = Model([2] * 7, factors=[((0, leaf), np.zeros((2, 2))) for leaf in range(1, 7)])
        >>> tree = clique_tree(star)
        >>> tree.degree, tree.reshaped().degree
        (5, 2)
        """
        parent = list(self.parent)
        below = [list(c) for c in self.children]
        separator = self.separators
        queue = [self.root]
        for i in queue:
            keep: dict[Scope, int] = {}
            for child in below[i]:
                twin = keep.get(separator[child])
                if twin is not None:
                    parent[child] = twin
                    below[twin].append(child)
                keep[separator[child]] = child
            below[i] = [child for child in below[i] if parent[child] == i]
            queue.extend(below[i])
        return CliqueTree(self.cliques, tuple(parent), self.scopes)

    def cloned(self) -> CliqueTree:
        """Spread the neighbours of a clique with more than three over a chain of clones (Corollary 1).

        The clique itself keeps its first neighbour (the parent, if it has one) and its scopes; each clone
        carries one more neighbour and no scope. The separator between clones is the whole clique. Afterwards
        ``ν ≤ 3``.

        Examples
        --------
        >>> star = Model([2] * 7, factors=[((0, leaf), np.zeros((2, 2))) for leaf in range(1, 7)])
        >>> tree = clique_tree(star)
        >>> len(tree.cliques), tree.degree
        (6, 5)
        >>> len(tree.cloned().cliques), tree.cloned().degree
        (10, 3)
        """
        cliques, parent = list(self.cliques), list(self.parent)
        for i, children in enumerate(self.children):
            own = 1 if self.parent[i] == ROOT else 0
            if len(children) - own < 3:
                continue
            last = i
            for child in children[own:]:
                cliques.append(self.cliques[i])
                parent.append(last)
                last = parent[child] = len(cliques) - 1
        none: tuple[Scope, ...] = ()
        scopes = self.scopes + (none,) * (len(cliques) - len(self.cliques))
        return CliqueTree(tuple(cliques), tuple(parent), scopes)

    def order(self) -> Scope:
        """Give an elimination order that needs no clique larger than this tree's.

        From the leaves to the root, each clique gives up the variables that its parent does not have.
        Planning with it (``order=tree.order()``) follows this tree.

        Examples
        --------
        >>> chain = Model.chain(np.zeros((4, 2)), np.zeros((2, 2)))
        >>> clique_tree(chain).order()
        (0, 1, 2, 3)
        """
        upwards = _upwards(self)
        return tuple(v for i in upwards for v in self.cliques[i] if v not in self.separators[i])

    def profile(
        self, model: Model, statistics: Sequence[Statistic | Recipe] = ()
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Find the best score for every attainable tally, by Algorithm 1 of the paper to the letter.

        ``μ_i(y_S, l_i) = max f_i(y_C) + Σ_k μ_k(y_Sk, l_k)``, over the variables of ``C_i`` outside its
        separator ``S`` and the tallies ``l_k`` of its children ``k`` with ``Σ_k l_k = l_i − g_i(y_C)``. It is
        written in dictionaries to be read, and takes ``R^(ν−1)`` steps per state as the paper's does: small
        problems only.

        Parameters
        ----------
        model : Model
            The model; its scopes must be assigned in this tree.
        statistics : sequence of Statistic or Recipe
            Likewise. A capped one has its minima moved out first.

        Returns
        -------
        tallies, scores : arrays of shapes (S, P) and (S,)
            In the lexicographic order of the tallies.

        Examples
        --------
        >>> model = Model.chain(np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([[0.0, 0.0], [0.0, -5.0]]))
        >>> ones = Statistic([((0,), [0, 1]), ((1,), [0, 1])], name="ones")
        >>> tallies, scores = clique_tree(model, [ones]).profile(model, [ones])
        >>> tallies.tolist(), scores.tolist()
        ([[0], [1], [2]], [0.0, 2.0, -2.0])
        """
        potentials = _Potentials(self, model, [statistic.on(model) for statistic in statistics])
        messages: dict[int, Message] = {}
        for i in _upwards(self):
            messages[i] = self._message(i, potentials, {k: messages.pop(k) for k in self.children[i]})
        best = {potentials.lifted(t): score for t, score in messages[self.root].get((), {}).items()}
        tallies = np.array(sorted(best), dtype=np.int64).reshape(len(best), len(statistics))
        return tallies, np.array([best[t] for t in sorted(best)], dtype=np.float64)

    def _message(self, i: int, potentials: _Potentials, received: Mapping[int, Message]) -> Message:
        """Compute the message of clique ``i`` to its parent: a table ``[separator states][tally]``."""
        message: Message = {}
        for y in product(*(range(potentials.cardinalities[v]) for v in self.cliques[i])):
            row = message.setdefault(self._restrict(i, y, i), {})
            below = [table[self._restrict(i, y, k)] for k, table in received.items()]
            f, g = potentials.score(i, y), potentials.tally(i, y)
            for parts in product(*(table.items() for table in below)):
                tally = potentials.add([g, *(t for t, _ in parts)])
                score = f + sum(s for _, s in parts)
                if score > row.get(tally, -np.inf):
                    row[tally] = score
        return message

    def _restrict(self, i: int, y: States, k: int) -> States:
        """Restrict the states ``y`` of clique ``i`` to the separator of clique ``k`` towards its parent."""
        return tuple(y[self.cliques[i].index(v)] for v in self.separators[k])

    def __repr__(self) -> str:
        """One line."""
        return f"<CliqueTree: {self._summary()}>"

    def __str__(self) -> str:
        """Cliques, separators and what each clique holds."""
        rows = [self._row(i) for i in range(min(len(self.cliques), MOST_LINES))]
        columns = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, columns, strict=True)).rstrip() for row in rows
        ]
        more = len(self.cliques) - len(rows)
        tail = [f"  … and {more} more"] if more else []
        return "\n".join([f"clique tree: {self._summary()}", *lines, *tail])

    def _summary(self) -> str:
        cliques = "1 clique" if len(self.cliques) == 1 else f"{len(self.cliques)} cliques"
        return f"{cliques}, width τ = {self.width}, degree ν = {self.degree}"

    def _row(self, i: int) -> tuple[str, str, str, str]:
        above = (
            "root" if self.parent[i] == ROOT else f"under {self.parent[i]} over {_braces(self.separators[i])}"
        )
        holds = "holds " + ", ".join(map(_braces, self.scopes[i])) if self.scopes[i] else ""
        return f"  {i}", _braces(self.cliques[i]), above, holds


def clique_tree(
    model: Model,
    statistics: Sequence[Statistic | Recipe] = (),
    *,
    method: Literal["elimination", "triangulation"] = "elimination",
    order: Sequence[int] | None = None,
) -> CliqueTree:
    """Build a clique tree for the scopes of a model and of statistics, with maximal cliques.

    Parameters
    ----------
    model : Model
        The model.
    statistics : sequence of Statistic or Recipe
        Their scopes count like factors'.
    method : {"elimination", "triangulation"}
        "elimination" records the clique that each variable makes when it is eliminated and hangs it below
        that of the next of its variables to go; cliques that lie in others are merged into those.
        "triangulation" takes the same maximal cliques (those of the graph with the fill-in edges, which is
        chordal) and connects them by a spanning tree with the largest separators. Parts of the model that
        share no variable are joined by empty separators.
    order : sequence of int, optional
        The elimination order of all variables. By default min-fill: the variable whose neighbours lack the
        fewest edges goes first, ties to the smaller index.

    Examples
    --------
    >>> loop = Model([2] * 4, factors=[((i, (i + 1) % 4), np.zeros((2, 2))) for i in range(4)])
    >>> print(clique_tree(loop))
    clique tree: 2 cliques, width τ = 2, degree ν = 1
      0  {0, 1, 3}  under 1 over {1, 3}  holds {0, 1}, {0, 3}
      1  {1, 2, 3}  root                 holds {1, 2}, {2, 3}
    """
    scopes = _scopes_of(model, [statistic.on(model) for statistic in statistics])
    graph = _graph(len(model.cardinalities), scopes)
    chosen = _min_fill(graph) if order is None else _checked_order(order, len(graph))
    cliques, parent = _merged(*_eliminated(graph, chosen))
    if method == "triangulation":
        parent = _spanning_tree(cliques)
    elif method != "elimination":
        raise ModelError(f"a clique tree is built by 'elimination' or 'triangulation', not {method!r}")
    return CliqueTree(cliques, parent, _assign(scopes, cliques))


def check_clique_tree(tree: CliqueTree, scopes: Iterable[Iterable[int]] = ()) -> None:
    """Raise unless this is a clique tree of these scopes, by definition.

    Parameters
    ----------
    tree : CliqueTree
        One node is the root and all others hang below it; each scope that it holds lies in the clique that
        holds it and is held once; the cliques with a variable in common are connected.
    scopes : iterable of scopes
        All of them must be held.

    Raises
    ------
    ModelError
        It says which of the rules is broken, and where.

    Examples
    --------
    >>> tree = CliqueTree.from_edges([(0, 1), (1, 2)], [(0, 1)], scopes=[(0, 1)])
    >>> check_clique_tree(tree, [(1, 0)])
    >>> check_clique_tree(tree, [(0, 2)])
    Traceback (most recent call last):
    tallytree.errors.ModelError: the clique tree holds no scope {0, 2}: build it for this model and ...
    """
    _check_shape(tree)
    _check_tree(tree)
    _check_families(tree)
    _check_running_intersection(tree)
    held = {scope for scopes in tree.scopes for scope in scopes}
    for scope in scopes:
        if tuple(sorted(scope)) not in held:
            raise _not_held(scope)


# Rules


def _not_held(scope: Iterable[int]) -> ModelError:
    return ModelError(
        f"the clique tree holds no scope {_braces(sorted(scope))}: "
        "build it for this model and these statistics"
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
    """One root, and every clique is reached from it."""
    strangers = [j for j in tree.parent if j != ROOT and not 0 <= j < len(tree.parent)]
    if strangers:
        raise ModelError(f"a parent must be a clique or {ROOT} for the root, got {strangers[0]}")
    if tree.parent.count(ROOT) != 1:
        raise ModelError(f"a clique tree has one root (parent {ROOT}), got {tree.parent.count(ROOT)}")
    lost = set(range(len(tree.parent))).difference(_downwards(tree))
    if lost:
        raise ModelError(f"clique {min(lost)} does not hang below the root: the parents run in a circle")


def _check_families(tree: CliqueTree) -> None:
    home: dict[Scope, int] = {}
    for i, scopes in enumerate(tree.scopes):
        for scope in scopes:
            if not {*scope} <= {*tree.cliques[i]}:
                raise ModelError(
                    f"scope {_braces(scope)} does not lie in clique {i}, {_braces(tree.cliques[i])}"
                )
            if scope in home:
                raise ModelError(f"scope {_braces(scope)} is held twice, by cliques {home[scope]} and {i}")
            home[scope] = i


def _check_running_intersection(tree: CliqueTree) -> None:
    """In a tree, nodes are connected exactly if they are one more than the edges between them."""
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


# Trees


def _children(parent: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    below: list[list[int]] = [[] for _ in parent]
    for i, j in enumerate(parent):
        if j != ROOT:
            below[j].append(i)
    return tuple(map(tuple, below))


def _downwards(tree: CliqueTree) -> list[int]:
    """Every clique after its parent, depth first."""
    stack, seen = [tree.root], []
    while stack:
        seen.append(stack.pop())
        stack.extend(tree.children[seen[-1]])
    return seen


def _upwards(tree: CliqueTree) -> list[int]:
    return _downwards(tree)[::-1]


def _hang(size: int, edges: list[tuple[int, int]], root: int) -> tuple[int, ...]:
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


def _assign(scopes: Iterable[Iterable[int]], cliques: Sequence[Scope]) -> tuple[tuple[Scope, ...], ...]:
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
            raise ModelError(f"no clique holds the scope {_braces(scope)}")
        held[home].append(scope)
    return tuple(map(tuple, held))


def _braces(scope: Iterable[int]) -> str:
    return "{" + ", ".join(map(str, scope)) + "}"


# Graphs


def _scopes_of(model: Model, statistics: Sequence[Statistic]) -> set[Scope]:
    blocks = [*model.blocks, *(block for statistic in statistics for block in statistic.blocks)]
    return {tuple(sorted(scope)) for block in blocks for scope in block.scopes.tolist()}


def _graph(variables: int, scopes: Iterable[Scope]) -> Graph:
    """Variables are neighbours if they share a scope."""
    graph: Graph = {v: set() for v in range(variables)}
    for scope in scopes:
        for v in scope:
            graph[v].update(scope)
    for v, neighbours in graph.items():
        neighbours.discard(v)
    return graph


def _checked_order(order: Sequence[int], variables: int) -> list[int]:
    if sorted(order) != list(range(variables)):
        raise ModelError(
            f"an elimination order has each of the variables 0 to {variables - 1} once, got {order!r}"
        )
    return [int(v) for v in order]


def _min_fill(graph: Graph) -> list[int]:
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
    """Connect the neighbours of ``v`` and take it out; returns the variables whose number has changed."""
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


def _eliminated(graph: Graph, order: Sequence[int]) -> tuple[list[set[int]], list[int]]:
    """Find the clique that each variable makes when it is eliminated, in that order, and its parent.

    A clique hangs below that of the next of its variables to go; one without any, the last of its component,
    below the next clique that is the last of its own.
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
    """Hang each root below the next one, so that a forest becomes a tree."""
    roots = [i for i, j in enumerate(parent) if j == ROOT]
    for i, j in pairwise(roots):
        parent[i] = j
    return parent


def _merged(cliques: list[set[int]], parent: list[int]) -> tuple[tuple[Scope, ...], tuple[int, ...]]:
    """Merge each clique that lies in another into it.

    By running intersection it then lies in a neighbour, and in an elimination tree that neighbour is a child,
    which takes its place.
    """
    if not cliques:
        return ((),), (ROOT,)
    place = list(range(len(cliques)))  # the clique that each has become part of
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


def _spanning_tree(cliques: Sequence[Scope]) -> tuple[int, ...]:
    """Kruskal's tree with the largest separators, ties to the smaller indices, hung up by the last clique."""
    sets = [frozenset(clique) for clique in cliques]
    pairs = sorted(combinations(range(len(sets)), 2), key=lambda e: -len(sets[e[0]] & sets[e[1]]))
    component = list(range(len(sets)))
    edges = []
    for i, j in pairs:
        a, b = _find(component, i), _find(component, j)
        if a != b:
            component[a] = b
            edges.append((i, j))
    return _hang(len(sets), edges, len(sets) - 1)


def _find(component: list[int], i: int) -> int:
    while component[i] != i:
        component[i] = component[component[i]]
        i = component[i]
    return i


# The potentials of Algorithm 1


class _Potentials:
    """``f_i`` and ``g_i``: the sums of the tables that each clique holds, and how tallies add up."""

    def __init__(self, tree: CliqueTree, model: Model, statistics: Sequence[Statistic]) -> None:
        self.cardinalities: list[int] = model.cardinalities.tolist()
        variables = {v for clique in tree.cliques for v in clique}
        if variables != set(range(len(self.cardinalities))):
            raise ModelError(
                f"the cliques cover the variables {_braces(sorted(variables))}, "
                f"but the model has {len(self.cardinalities)}, numbered from 0"
            )
        self.scores = _placed(tree, model.blocks)
        self.tallies = [_placed(tree, statistic.blocks) for statistic in statistics]
        self.minima = [_move_minima(tables) for tables in self.tallies]
        self.caps = [statistic.cap for statistic in statistics]

    def score(self, clique: int, y: States) -> float:
        """``f_i(y_C)``."""
        return float(sum(table[tuple(y[p] for p in places)] for places, table in self.scores[clique]))

    def tally(self, clique: int, y: States) -> Tally:
        """``g_i(y_C)`` above its minimum."""
        return tuple(
            sum(int(table[tuple(y[p] for p in places)]) for places, table in tables[clique])
            for tables in self.tallies
        )

    def add(self, parts: Iterable[Tally]) -> Tally:
        """``min(cap − Σ min g, Σ parts)``: what lies above the minima, cut off where the cap is."""
        sums = map(sum, zip(*parts, strict=True))
        caps = zip(self.caps, self.minima, strict=True)
        return tuple(
            t if cap is None else min(max(cap - low, 0), t) for t, (cap, low) in zip(sums, caps, strict=True)
        )

    def lifted(self, tally: Tally) -> Tally:
        """Put the minima back."""
        parts = zip(self.caps, self.minima, tally, strict=True)
        return tuple(low + t if cap is None else min(cap, low + t) for cap, low, t in parts)


Placed: TypeAlias = list[list[tuple[list[int], NDArray[Any]]]]


def _placed(tree: CliqueTree, blocks: Iterable[Block]) -> Placed:
    """List the tables that each clique holds, with the places of their variables in it."""
    home = {scope: i for i, scopes in enumerate(tree.scopes) for scope in scopes}
    placed: Placed = [[] for _ in tree.cliques]
    for scope, table in (pair for block in blocks for pair in _pairs(block)):
        clique = home.get(tuple(sorted(scope)))
        if clique is None:
            raise _not_held(scope)
        placed[clique].append(([tree.cliques[clique].index(v) for v in scope], table))
    return placed


def _pairs(block: Block) -> Iterator[tuple[list[int], NDArray[Any]]]:
    tables = np.broadcast_to(block.tables, (len(block.scopes), *block.tables.shape[1:]))
    return zip(block.scopes.tolist(), tables, strict=True)


def _move_minima(placed: Placed) -> int:
    """Take each table's minimum out of it; returns their sum."""
    moved = 0
    for held in placed:
        for k, (places, table) in enumerate(held):
            held[k] = places, table - table.min()
            moved += int(table.min())
    return moved
