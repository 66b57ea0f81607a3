"""Graphs: a label for each node, scored by features of nodes and of edges.

The weights are a table of F node features by N labels, then one of E edge features by N by N labels:
``F(y) = Σ_v ⟨W_node[:, y_v], x_v⟩ + Σ_(u,v) ⟨W_edge[:, y_u, y_v], x_uv⟩``. Inference is exact, so graphs
must have a small width: trees, bands, grids with a short side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tallytree.errors import ModelError
from tallytree.learning.accepted import COUNT
from tallytree.learning.examples import brief
from tallytree.learning.planes import Features, Floats, Integers
from tallytree.learning.problem import TrainingProblem
from tallytree.losses import Loss
from tallytree.model.blocks import Block, unary_scopes
from tallytree.model.model import Model
from tallytree.values import read_only


@dataclass(frozen=True, eq=False)
class Graph:
    """The features of an example whose variables are the nodes of a graph.

    Parameters
    ----------
    nodes : matrix of shape (M, F), dense or sparse
        The features of each node.
    edges : integer array-like of shape (K, 2)
        Pairs of nodes. The first axis of an edge's table is for its first node.
    edge_features : matrix of shape (K, E), dense or sparse, optional
        By default a constant 1 for each edge.
    shape : tuple of int, optional
        The shape of a labelling, such as (rows, columns) for a grid; (M,) by default.
    """

    nodes: Any
    edges: ArrayLike
    edge_features: Any = None
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        nodes = _matrix(self.nodes, "nodes")
        edges = _pairs(self.edges, nodes.shape[0])
        given = np.ones((len(edges), 1)) if self.edge_features is None else self.edge_features
        features = _matrix(given, "edge_features")
        if features.shape[0] != len(edges):
            raise ModelError(f"there are {len(edges)} edges, but {features.shape[0]} rows of edge features")
        shape = (nodes.shape[0],) if self.shape is None else _shape(self.shape, nodes.shape[0])
        object.__setattr__(self, "nodes", nodes)
        object.__setattr__(self, "edges", read_only(edges))
        object.__setattr__(self, "edge_features", features)
        object.__setattr__(self, "shape", shape)

    def model(self, weights: Floats, labels: int, states: Sequence[str] | None = None) -> Model:
        """Return the model of this graph at given weights."""
        size = self.nodes.shape[1] * labels
        single = np.asarray(self.nodes @ weights[:size].reshape(-1, labels))
        pairs = np.asarray(self.edge_features @ weights[size:].reshape(-1, labels * labels))
        scopes, key = unary_scopes(len(single))
        blocks = [
            Block(scopes, read_only(single), key),
            Block(np.asarray(self.edges), read_only(pairs.reshape(-1, labels, labels))),
        ]
        return Model.from_blocks(np.full(len(single), labels), blocks, shape=self.shape, states=states)


def _pairs(edges: Any, nodes: int) -> NDArray[np.int32]:
    """Return edges as an array of pairs of nodes."""
    given = np.asarray(edges)
    pairs = given.reshape(-1, 2) if given.size == 0 else given
    whole = pairs.dtype.kind in "iu" or (pairs.dtype.kind == "f" and bool((pairs % 1 == 0).all()))
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not whole:
        raise ModelError(f"edges must be pairs of nodes, of shape (K, 2), got {brief(edges)}")
    if pairs.size and (pairs.min() < 0 or pairs.max() >= nodes):
        raise ModelError(f"edges join nodes 0 to {nodes - 1}, got {int(pairs.min())} to {int(pairs.max())}")
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if len(loops):
        node = int(pairs[loops[0], 0])
        raise ModelError(f"edge {loops[0]} joins node {node} with itself; use a feature of the node instead")
    return pairs.astype(np.int32)


def _shape(shape: Any, nodes: int) -> tuple[int, ...]:
    """Return the shape of a labelling."""
    sizes = tuple(shape) if isinstance(shape, Iterable) else ()
    if not sizes or not all(isinstance(size, Integral) for size in sizes):
        raise ModelError(f"shape must be a tuple of integers, got {shape!r}")
    if prod(sizes) != nodes:
        raise ModelError(f"shape {sizes} has {prod(sizes)} entries, but there are {nodes} nodes")
    return tuple(map(int, sizes))


def _numbers(values: Any, name: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{name} must be numbers, got {brief(values)}") from None


def _matrix(values: Any, name: str) -> sparse.csr_matrix:
    dense = values if sparse.issparse(values) else _numbers(values, name)
    if dense.ndim != 2:
        raise ModelError(f"{name} must have two axes, got shape {dense.shape}")
    matrix = sparse.csr_matrix(dense, dtype=np.float64, copy=True)
    if not np.isfinite(matrix.data).all():
        raise ModelError(f"{name} must be finite, got nan or infinity; impute or remove them first")
    return matrix


def grid_graph(features: ArrayLike) -> Graph:
    """Return the graph of an image: pixels with features, connected to their neighbours below and right.

    Parameters
    ----------
    features : array-like of shape (R, C, F)
        The features of each pixel. The shorter side is the width of the model: keep it small.

    Notes
    -----
    Vertical and horizontal edges have separate weights.

    Examples
    --------
    >>> grid_graph(np.zeros((2, 3, 1))).edges.tolist()
    [[0, 3], [1, 4], [2, 5], [0, 1], [1, 2], [3, 4], [4, 5]]
    """
    pixels = _numbers(features, "features")
    if pixels.ndim != 3:
        raise ModelError(f"features must have shape (rows, columns, features), got {pixels.shape}")
    rows, columns, size = pixels.shape
    places = np.arange(rows * columns).reshape(rows, columns)
    below = np.column_stack((places[:-1].ravel(), places[1:].ravel()))
    beside = np.column_stack((places[:, :-1].ravel(), places[:, 1:].ravel()))
    kinds = np.repeat(np.eye(2), [len(below), len(beside)], axis=0)
    return Graph(pixels.reshape(-1, size), np.concatenate((below, beside)), kinds, (rows, columns))


def label_graphs(X: ArrayLike, labels: int, edges: ArrayLike) -> list[Graph]:
    """Return graphs for multi-label classification: a node with two states for each label.

    Parameters
    ----------
    X : array-like of shape (n, D)
        The features of each example.
    labels : int
        The number of labels.
    edges : array-like of shape (K, 2)
        The pairs of labels that are scored together, preferably a tree.

    Notes
    -----
    Every label has its own weights for the D features and a bias, and so does every pair.

    Examples
    --------
    >>> graphs = label_graphs([[0.5, 2.0]], labels=2, edges=[[0, 1]])
    >>> graphs[0].nodes.toarray()
    array([[0.5, 2. , 1. , 0. , 0. , 0. ],
           [0. , 0. , 0. , 0.5, 2. , 1. ]])
    """
    COUNT.check("labels", labels)
    inputs = _numbers(X, "X")
    if inputs.ndim != 2:
        raise ModelError(f"X must have shape (examples, features), got {inputs.shape}")
    rows = np.column_stack((inputs, np.ones(len(inputs))))
    pairs = np.asarray(edges, dtype=np.int32).reshape(-1, 2)
    own = sparse.identity(len(pairs), format="csr")
    return [
        Graph(sparse.kron(sparse.identity(labels), row[None, :], format="csr"), pairs, own) for row in rows
    ]


class GraphProblem(TrainingProblem):
    """Graphs with features of nodes and edges.

    Parameters
    ----------
    graphs : sequence of Graph
        All with the same numbers of node and of edge features.
    truths : sequence of integer arrays
        The true labels, by number, one for each node.
    labels : int
        N, the number of labels.
    loss : Loss
        A recipe.
    states : sequence of str, optional
        The names of the labels, if the loss uses them.
    """

    def __init__(
        self,
        graphs: Sequence[Graph],
        truths: Sequence[Integers],
        labels: int,
        loss: Loss,
        states: Sequence[str] | None = None,
    ) -> None:
        widths = {(graph.nodes.shape[1], graph.edge_features.shape[1]) for graph in graphs}
        if len(widths) != 1:
            raise ModelError(
                f"all graphs need the same numbers of node and edge features, got {sorted(widths)}"
            )
        self.graphs, self.labels, self.loss = list(graphs), labels, loss
        self.states = None if states is None else tuple(states)
        self._truths = [read_only(np.array(truth, dtype=np.int64).reshape(-1)) for truth in truths]
        ((nodes, edges),) = widths
        self._node_weights = nodes * labels
        self.dimension = nodes * labels + edges * labels * labels

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.graphs)

    @property
    def truths(self) -> list[Integers]:
        """The true labels of all graphs."""
        return self._truths

    def truth(self, example: int) -> Integers:
        """Return the true labels of a graph."""
        return self._truths[example]

    def model(self, example: int, weights: Floats) -> Model:
        """Return the model of a graph."""
        return self.graphs[example].model(weights, self.labels, self.states)

    def features(self, example: int, labelling: Integers) -> Features:
        """Return the features of a labelled graph."""
        graph = self.graphs[example]
        edges = np.asarray(graph.edges)
        kinds = labelling[edges[:, 0]] * self.labels + labelling[edges[:, 1]]
        single, first = _labelled(graph.nodes, labelling, self.labels)
        pairs, second = _labelled(graph.edge_features, kinds, self.labels**2)
        return np.concatenate((single, self._node_weights + pairs)), np.concatenate((first, second))


def _labelled(matrix: sparse.csr_matrix, labels: Integers, count: int) -> Features:
    """Return the entries of rows, in the columns of their labels."""
    chosen = np.repeat(labels, np.diff(matrix.indptr))
    return matrix.indices.astype(np.int64) * count + chosen, matrix.data
