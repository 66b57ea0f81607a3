"""The CRF for graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from tallytree.bulk.expectations import GraphBatch
from tallytree.learning.graph_estimator import GraphEstimator
from tallytree.learning.graphs import GraphProblem
from tallytree.learning.likelihoods import Objective, ObjectiveKind
from tallytree.learning.planes import Floats
from tallytree.learning.structured_crf import StructuredCRF
from tallytree.losses import Loss


class GraphObjective(Objective):
    """A probabilistic objective for graphs.

    Parameters
    ----------
    problem : GraphProblem
        The graphs and their truths.
    kind, importance, threads, margin
        As for :class:`SequenceObjective`.
    """

    def __init__(
        self,
        problem: GraphProblem,
        kind: ObjectiveKind,
        importance: Floats,
        threads: int | None = None,
        margin: float = 1.0,
    ) -> None:
        self.kind, self.threads, self._margin = kind, threads, margin
        self.examples, self.dimension = len(problem), problem.dimension
        self._importance = np.ascontiguousarray(importance, dtype=np.float64)
        self._labels, truths = problem.labels, np.concatenate(problem.truths)
        loss: Loss | None = None if kind == "likelihood" else problem.loss
        nothing = np.zeros(problem.dimension)
        models = [problem.model(example, nothing) for example in range(len(problem))]
        self._batch = GraphBatch(models, loss, truths)
        graphs = problem.graphs
        self._nodes = sparse.vstack([graph.nodes for graph in graphs], format="csr")
        self._edges = sparse.vstack([graph.edge_features for graph in graphs], format="csr")
        self._node_ends = np.cumsum([graph.nodes.shape[0] for graph in graphs])[:-1]
        self._edge_ends = np.cumsum([graph.edge_features.shape[0] for graph in graphs])[:-1]
        self._observed = self._features(problem)

    def _features(self, problem: GraphProblem) -> Floats:
        """Return the features of all truths, summed with their importance."""
        observed = np.zeros(self.dimension)
        for example, weight in enumerate(self._importance):
            indices, values = problem.features(example, problem.truth(example))
            np.add.at(observed, indices, weight * values)
        return observed

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the value at some weights, and the gradient."""
        size, labels = self._nodes.shape[1] * self._labels, self._labels
        single = np.ascontiguousarray(self._nodes @ weights[:size].reshape(-1, labels))
        pairs = np.ascontiguousarray(self._edges @ weights[size:].reshape(-1, labels * labels))
        nodes = np.split(single, self._node_ends)
        edges = np.split(pairs.reshape(-1, labels, labels), self._edge_ends)
        scores = [table for both in zip(nodes, edges, strict=True) for table in both if len(table)]
        values, found = self._batch.objective(self.kind, scores, self._importance, self.threads, self._margin)
        by_nodes = self._nodes.T @ np.concatenate([table for table in found if table.ndim == 2])
        of_edges = [table.reshape(-1, labels * labels) for table in found if table.ndim == 3]
        by_edges = self._edges.T @ np.concatenate((*of_edges, np.zeros((0, labels * labels))))
        gradient = np.concatenate((np.ravel(by_nodes), np.ravel(by_edges)))
        value = float(self._importance @ values)
        if self.kind == "risk":
            return value, gradient
        return value - float(weights @ self._observed), gradient - self._observed


class GraphCRF(GraphEstimator, StructuredCRF):
    """A conditional random field for graphs of small width: multi-label classification, images.

    Parameters
    ----------
    loss, objective, c1, c2, class_weight, tolerance, max_passes, max_seconds
        As for :class:`SequenceCRF`; the loss must count node by node.
    n_jobs, warm_start, checkpoint, verbose, margin
        As for :class:`SequenceCRF`.

    Examples
    --------
    >>> from tallytree.learning import Graph, GraphCRF
    >>> graph = Graph(np.array([[1.0, 1.0], [0.2, 1.0], [-1.0, 1.0]]), edges=[[0, 1], [1, 2]])
    >>> crf = GraphCRF(c2=0.01).fit([graph], [["on", "on", "off"]])
    >>> crf.predict([graph])
    [array(['on', 'on', 'off'], dtype=object)]
    """

    def _objective(self, problem: Any, kind: ObjectiveKind, importance: Floats) -> GraphObjective:
        return GraphObjective(problem, kind, importance, self._threads, self.margin)

    def predict_marginals(self, X: Sequence[Any]) -> list[Floats]:
        """Return the probability of each label at each node.

        Returns
        -------
        list of arrays of shape (nodes, labels)
            Columns are in the order of ``classes_``.
        """
        check_is_fitted(self, "weights_")
        models = self._models(self._listed(X))
        if not models:
            return []
        scores = [block.tables for model in models for block in model.blocks]
        _, found = GraphBatch(models).objective("likelihood", scores, np.ones(len(models)), self._threads)
        return [table for table in found if table.ndim == 2]

    def log_loss(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Return the mean of ``−log p(y | x)`` over examples; smaller is better."""
        check_is_fitted(self, "weights_")
        X, y = self._some_paired(X, y)
        problem = self._problem(X, self._truths(X, y), self._recipe())
        value, _ = GraphObjective(problem, "likelihood", np.ones(len(X)), self._threads)(self.weights_)
        return value / len(X)
