"""Clique trees: the objects of the paper, for inspection and teaching.

A clique tree of a set of scopes is a tree whose nodes are cliques ``C_i`` (sets of variables) such that

* it preserves families: every scope is contained in the clique that it is assigned to;
* it has the running intersection property: the cliques that contain a variable are connected.

The separator of an edge is ``C_i ∩ C_j``. The width ``τ`` is the size of the largest clique minus one, the
degree ``ν`` the largest number of neighbours; Algorithm 1 of the paper takes ``O(M · N^(τ+1) · R^(ν−1))``.
Reshaping (Proposition 1) bounds ``ν`` by the width, cloning (Corollary 1) reduces it to 3.

Inference does not use this file: its programs join two tables at a time, which beats cloning. To let
your own clique tree guide it, pass its :meth:`CliqueTree.order`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.paper.cliquetree.messages import best_scores
from tallytree.paper.cliquetree.rules import (
    ROOT,
    Scope,
    assign,
    braces,
    check_clique_tree,
    children_of,
    hang,
    upwards,
)
from tallytree.paper.cliquetree.triangulation import (
    checked_order,
    eliminated,
    graph,
    merged,
    min_fill,
    scopes_of,
    spanning_tree,
)
from tallytree.statistics.statistic import Recipe, Statistic

MOST_LINES = 40


@dataclass(frozen=True, repr=False)
class CliqueTree:
    """A rooted clique tree, checked on creation.

    Parameters
    ----------
    cliques : tuple of tuples of int
        The variables of each clique, sorted.
    parent : tuple of int
        The parent of each clique; -1 for the root. Components without a common variable are joined by empty
        separators, so that there is one root.
    scopes : tuple of tuples of scopes
        The scopes assigned to each clique, sorted. Each occurs once in the tree: all factors and statistics
        over these variables belong to it.

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
        """Raise an error unless this is a clique tree."""
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

        Each scope is assigned to the first clique that contains it.

        Examples
        --------
        >>> CliqueTree.from_edges([(0, 1), (1, 2)], [(0, 1)], root=1).parent
        (1, -1)
        """
        sorted_cliques = tuple(tuple(sorted(set(clique))) for clique in cliques)
        parent = hang(len(sorted_cliques), list(edges), root)
        return cls(sorted_cliques, parent, assign(scopes, sorted_cliques))

    @property
    def root(self) -> int:
        """The clique without a parent."""
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
        return children_of(self.parent)

    @property
    def width(self) -> int:
        """``τ``: the size of the largest clique minus one; -1 if there are no variables."""
        return max(map(len, self.cliques)) - 1

    @property
    def degree(self) -> int:
        """``ν``: the largest number of neighbours of a clique."""
        return max(len(c) + (j != ROOT) for c, j in zip(self.children, self.parent, strict=True))

    def reshaped(self) -> CliqueTree:
        """Move children with the same separator below each other (Proposition 1).

        Two children of one clique with the same separator ``S`` only share ``S``, so one may
        be moved below the other. Afterwards no separator occurs at a clique more than twice, once towards
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
        """Distribute the neighbours of a clique with more than three over a chain of clones (Corollary 1).

        The clique itself keeps its first neighbour (the parent, if it has one) and its scopes; each clone
        has one more neighbour and no scope. The separator between clones is the whole clique. Afterwards
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
        """Return an elimination order that needs no clique larger than this tree's.

        From the leaves to the root, each clique eliminates the variables that its parent does not have.
        Planning with it (``order=tree.order()``) follows this tree.

        Examples
        --------
        >>> chain = Model.chain(np.zeros((4, 2)), np.zeros((2, 2)))
        >>> clique_tree(chain).order()
        (0, 1, 2, 3)
        """
        return tuple(v for i in upwards(self.parent) for v in self.cliques[i] if v not in self.separators[i])

    def profile(
        self, model: Model, statistics: Sequence[Statistic | Recipe] = ()
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Find the best score for every attainable tally, literally by Algorithm 1 of the paper.

        ``μ_i(y_S, l_i) = max f_i(y_C) + Σ_k μ_k(y_Sk, l_k)``, over the variables of ``C_i`` outside its
        separator ``S`` and the tallies ``l_k`` of its children ``k`` with ``Σ_k l_k = l_i − g_i(y_C)``. It is
        written with dictionaries to be read, and takes ``R^(ν−1)`` steps per state as in the paper: for small
        problems only.

        Parameters
        ----------
        model : Model
            The model; its scopes must be assigned in this tree.
        statistics : sequence of Statistic or Recipe
            Their scopes must be assigned, too. The minima of capped statistics are moved out first.

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
        best = best_scores(self, model, [statistic.on(model) for statistic in statistics])
        tallies = np.array(sorted(best), dtype=np.int64).reshape(len(best), len(statistics))
        return tallies, np.array([best[t] for t in sorted(best)], dtype=np.float64)

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
            "root" if self.parent[i] == ROOT else f"under {self.parent[i]} over {braces(self.separators[i])}"
        )
        holds = "holds " + ", ".join(map(braces, self.scopes[i])) if self.scopes[i] else ""
        return f"  {i}", braces(self.cliques[i]), above, holds


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
        Their scopes count like those of factors.
    method : {"elimination", "triangulation"}
        "elimination" records the clique of each variable when it is eliminated and puts it below
        that of the next of its variables in the order; cliques contained in others are merged into those.
        "triangulation" takes the same maximal cliques (those of the graph with the fill-in edges, which is
        chordal) and connects them by a spanning tree with the largest separators. Parts of the model that
        share no variable are joined by empty separators.
    order : sequence of int, optional
        The elimination order of all variables. By default min-fill: the variable whose neighbours lack the
        fewest edges comes first, with ties broken by the smaller index.

    Examples
    --------
    >>> loop = Model([2] * 4, factors=[((i, (i + 1) % 4), np.zeros((2, 2))) for i in range(4)])
    >>> print(clique_tree(loop))
    clique tree: 2 cliques, width τ = 2, degree ν = 1
      0  {0, 1, 3}  under 1 over {1, 3}  holds {0, 1}, {0, 3}
      1  {1, 2, 3}  root                 holds {1, 2}, {2, 3}
    """
    scopes = scopes_of(model, [statistic.on(model) for statistic in statistics])
    neighbours = graph(len(model.cardinalities), scopes)
    chosen = min_fill(neighbours) if order is None else checked_order(order, len(neighbours))
    cliques, parent = merged(*eliminated(neighbours, chosen))
    if method == "triangulation":
        parent = spanning_tree(cliques)
    elif method != "elimination":
        raise ModelError(f"method must be 'elimination' or 'triangulation', got {method!r}")
    return CliqueTree(cliques, parent, assign(scopes, cliques))
