"""Fingerprints as in release 0.1.0, for reading its checkpoints.

They covered the examples of the library's own problems, except where sequences are split, and ignored
the inputs of all others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tallytree.learning.graphs import GraphProblem
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.sequences import SequenceProblem
from tallytree.learning.stored import StoredSequences
from tallytree.learning.trees import TreeProblem


def former_fingerprint(problem: TrainingProblem) -> str | None:
    """Return the digest that release 0.1.0 would have written; None if it ignored the inputs."""
    known = _FORMER.get(type(problem))
    return None if known is None else known(problem)


def _digest(text: str, arrays: Iterable[Any]) -> str:
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(array if isinstance(array, bytes) else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _truths(problem: TrainingProblem) -> str:
    text = f"{type(problem).__qualname__} {len(problem)} {problem.dimension} {problem.loss}"
    return _digest(text, (np.asarray(problem.truth(e), dtype=np.int64) for e in range(len(problem))))


def _entries(matrix: Any) -> tuple[Any, ...]:
    return matrix.indptr, matrix.indices, matrix.data


def _sequences(problem: Any) -> str:
    return _digest(_truths(problem), _entries(problem._rows))


def _stored(problem: Any) -> str:
    return _digest(f"{problem._written} {problem.labels} {problem.loss}", ())


def _graphs(problem: Any) -> str:
    parts = ((g.edges, *_entries(g.nodes), *_entries(g.edge_features)) for g in problem.graphs)
    return _digest(_truths(problem), (array for part in parts for array in part))


def _trees(problem: Any) -> str:
    text = f"TreeProblem {problem.dimension} {problem.loss} {problem.scorer.prior}"
    parts = (
        (str(tree).encode(), *_entries(s.sides), *_entries(s.spans), *_entries(s.tagged), s.base)
        for tree, s in zip(problem._trees, problem._sentences, strict=True)
    )
    return _digest(text, (array for part in parts for array in part))


_FORMER: dict[type, Callable[[Any], str]] = {
    SequenceProblem: _sequences,
    StoredSequences: _stored,
    GraphProblem: _graphs,
    TreeProblem: _trees,
}
