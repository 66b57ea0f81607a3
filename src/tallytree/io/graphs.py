"""Conversion from and to networkx graphs, and contraction paths as elimination orders.

A pairwise model is a graph whose nodes and edges have tables: ``scores`` of a node has one entry per state,
``scores`` of an edge ``(a, b)`` one row per state of ``a`` and one column per state of ``b``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, final

import numpy as np

from tallytree.errors import ModelError
from tallytree.io.factors import each_factor
from tallytree.io.files import needed
from tallytree.model.model import Model


def from_networkx(
    graph: Any, *, scores: str = "scores", edge_scores: Any = None, states: Sequence[str] | None = None
) -> Model:
    """Make a pairwise model from a networkx graph.

    Parameters
    ----------
    graph : networkx graph
        Every node has a table of scores, one per state; so does every edge, unless ``edge_scores`` is given.
    scores : str
        The name of the attribute with the table.
    edge_scores : array-like, optional
        One table for all edges. Its axes are the first and the second node of an edge, as the graph lists it.
    states : sequence of str, optional
        The names of the states.

    Returns
    -------
    Model
        Its variables are the nodes, in the graph's order and with their names as strings.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.path_graph(["mo", "tu", "we"])
    >>> for day, wet in zip(graph, [1.5, -2.5, 3.0]):
    ...     graph.nodes[day]["scores"] = [0.0, wet]
    >>> model = from_networkx(graph, edge_scores=[[1, 0], [0, 1]], states=["dry", "wet"])
    >>> model
    Model(3 variables of 2 states, 5 factors)
    >>> model.score(["wet", "dry", "wet"])
    4.5
    """
    numbers = {node: i for i, node in enumerate(graph.nodes)}
    singles = [np.asarray(_table(data, scores, f"node {node!r}")) for node, data in graph.nodes(data=True)]
    if any(table.ndim != 1 for table in singles):
        raise ModelError(f"the attribute {scores!r} of a node must be a list of scores, one per state")
    pairs: list[Any] = [((i,), table) for i, table in enumerate(singles)]
    for a, b, data in graph.edges(data=True):
        table = edge_scores if edge_scores is not None else _table(data, scores, f"edge {(a, b)!r}")
        pairs.append(((numbers[a], numbers[b]), table))
    return Model(
        [len(table) for table in singles], pairs, variables=[str(node) for node in numbers], states=states
    )


def _table(data: dict[str, Any], name: str, what: str) -> Any:
    if name not in data:
        raise ModelError(f"{what} has no attribute {name!r}; give it a table of scores")
    return data[name]


def to_networkx(model: Model) -> Any:
    """Convert a model to a graph: variables that share a factor are connected.

    Parameters
    ----------
    model : Model
        Any model. Tables of one variable are summed in ``scores`` of its node, tables of two variables in
        ``scores`` of their edge, first node first; larger factors give edges without tables.

    Returns
    -------
    networkx.Graph
        Nodes are the names of variables, or their numbers; each has its ``states``.

    Raises
    ------
    ModelError
        networkx is not installed.

    Examples
    --------
    >>> graph = to_networkx(Model.chain([[0, 1], [2, 0], [0, 3]], [[1, 0], [0, 1]]))
    >>> sorted(graph.edges), graph.nodes[1]["scores"].tolist()
    ([(0, 1), (1, 2)], [2.0, 0.0])
    """
    graph = needed("networkx").Graph()
    nodes = list(model.variables) if model.variables is not None else list(range(len(model)))
    for v, node in enumerate(nodes):
        size = int(model.cardinalities[v])
        graph.add_node(node, scores=np.zeros(size), states=list(model.states_of(v) or range(size)))
    for scope, table in each_factor(model):
        names = [nodes[v] for v in scope]
        if len(scope) == 1:
            graph.nodes[names[0]]["scores"] = graph.nodes[names[0]]["scores"] + table
        elif len(scope) == 2:
            _add_to_edge(graph, scope, names, table)
        else:
            graph.add_edges_from((a, b) for i, a in enumerate(names) for b in names[:i])
    return graph


def _add_to_edge(graph: Any, scope: Sequence[int], names: Sequence[Any], table: Any) -> None:
    """Add to the table of an edge, whose first axis is for the variable that comes first."""
    (a, b), turned = (names, table) if scope[0] < scope[1] else (names[::-1], table.T)
    before = graph.edges[a, b].get("scores", 0.0) if graph.has_edge(a, b) else 0.0
    graph.add_edge(a, b, scores=before + turned)


@final
class ContractionPath:
    """An opt_einsum path over the factors of a model, as an elimination order.

    A path is a list of steps; each removes some operands from a list by their positions and appends their
    product. A variable is eliminated at the step after which no operand has it. Pass it as
    ``order=`` to :func:`plan`, :func:`profile` or :func:`solve`.

    Parameters
    ----------
    model : Model
        The model whose factors are the operands, in the order of :meth:`operands`.
    path : sequence of tuples of int
        For example ``opt_einsum.contract_path(…)[0]``.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model.chain([[0, 1], [2, 0], [0, 3]], [[1, 0], [0, 1]])
    >>> ContractionPath.operands(model)
    [(0,), (1,), (2,), (0, 1), (1, 2)]
    >>> path = ContractionPath(model, [(0, 3), (0, 3), (0, 1), (0, 1)])
    >>> path.order()
    [0, 2, 1]
    >>> tt.solve(model, order=path).score
    6.0
    """

    def __init__(self, model: Model, path: Iterable[Sequence[int]]) -> None:
        self._order = _eliminated([set(scope) for scope in self.operands(model)], path, len(model))

    @staticmethod
    def operands(model: Model) -> list[tuple[int, ...]]:
        """Return the scopes of the factors, in the order in which a path numbers them."""
        return [scope for scope, _ in each_factor(model)]

    def order(self) -> list[int]:
        """Return the variables in the order in which they are eliminated."""
        return list(self._order)


def _eliminated(operands: list[set[int]], path: Iterable[Sequence[int]], variables: int) -> list[int]:
    order: list[int] = []
    free = set(range(variables)) - set().union(*operands)
    for step in path:
        places = sorted(set(step), reverse=True)
        if len(places) != len(step) or not all(0 <= place < len(operands) for place in places):
            raise ModelError(
                f"step {tuple(step)} of the path does not give distinct operands among the "
                f"remaining {len(operands)}"
            )
        product = set().union(*(operands.pop(place) for place in places))
        kept = product & set().union(*operands)
        order += sorted(product - kept)
        operands.append(kept)
    rest = set(range(variables)) - set(order)
    return [*order, *sorted(rest - free), *sorted(free)]
