"""The estimator for graphs."""

from __future__ import annotations

from tallytree.learning.graph_estimator import GraphEstimator
from tallytree.learning.structured_svm import StructuredSVM


class GraphSVM(GraphEstimator, StructuredSVM):
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
