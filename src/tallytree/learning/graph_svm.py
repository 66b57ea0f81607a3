"""The estimator for graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallytree.errors import ModelError
from tallytree.learning.estimator import StructuredSVM
from tallytree.learning.graphs import Graph, GraphProblem
from tallytree.learning.problem import TrainingProblem
from tallytree.losses import Loss
from tallytree.model.model import Model


class GraphSVM(StructuredSVM):
    """A structural SVM for graphs of small width: multi-label classification, images with a short side.

    Parameters
    ----------
    loss, scaling, C, solver, extra, tolerance, max_passes, max_seconds
        As for :class:`SequenceSVM`.
    n_jobs, warm_start, checkpoint, verbose
        As for :class:`SequenceSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from tallytree.learning import Graph, GraphSVM
    >>> graph = Graph(np.array([[1.0, 1.0], [0.2, 1.0], [-1.0, 1.0]]), edges=[[0, 1], [1, 2]])
    >>> svm = GraphSVM(C=10.0).fit([graph], [["on", "on", "off"]])
    >>> svm.predict([graph])
    [array(['on', 'on', 'off'], dtype=object)]
    """

    widths_: tuple[int, int]

    def _learn_features(self, X: Sequence[Any]) -> None:
        self.widths_ = _widths(X[0])

    def _problem(self, X: Sequence[Any], truths: list[Any], loss: Loss) -> TrainingProblem:
        self._check(X)
        return GraphProblem(X, truths, self.labels_.count, loss, self.labels_.names)

    def _models(self, X: Sequence[Any]) -> list[Model]:
        self._check(X)
        return [graph.model(self.weights_, self.labels_.count, self.labels_.names) for graph in X]

    def _check_fit(self) -> None:
        super()._check_fit()
        nodes, edges = self.widths_
        count = self.labels_.count
        if min(nodes, edges) < 0 or len(self.weights_) != nodes * count + edges * count**2:
            raise ModelError(
                f"there are {len(self.weights_)} weights, which do not fit features {self.widths_}"
            )

    def _check(self, X: Sequence[Any]) -> None:
        for number, graph in enumerate(X):
            if _widths(graph) != self.widths_:
                raise ModelError(
                    f"example {number} has {_widths(graph)} features of nodes and edges, but those of the "
                    f"fit have {self.widths_}"
                )


def _widths(graph: object) -> tuple[int, int]:
    if not isinstance(graph, Graph):
        raise ModelError(f"the examples are Graphs, got {type(graph).__name__}")
    return int(graph.nodes.shape[1]), int(graph.edge_features.shape[1])
