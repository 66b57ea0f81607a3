"""Shared by graph estimators: features of nodes and edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallytree.errors import ModelError
from tallytree.learning.examples import check_lengths
from tallytree.learning.graphs import Graph, GraphProblem
from tallytree.learning.structured_estimator import StructuredEstimator
from tallytree.losses import Loss
from tallytree.model.model import Model


class GraphEstimator(StructuredEstimator):
    """Base class of the graph estimators; use one of its subclasses."""

    widths_: tuple[int, int]

    def _learn_features(self, X: Sequence[Any]) -> None:
        self.widths_ = _widths(X[0])

    def _problem(self, X: Sequence[Any], truths: list[Any], loss: Loss) -> GraphProblem:
        self._check(X)
        check_lengths([graph.nodes.shape[0] for graph in X], truths, "node")
        self.labels_.check_loss(loss)
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
                f"there are {len(self.weights_)} weights, which do not match features {self.widths_}"
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
        raise ModelError(f"the examples must be Graphs, got {type(graph).__name__}")
    return int(graph.nodes.shape[1]), int(graph.edge_features.shape[1])
