"""Sequences: a label for each position, scored by the position's features and by pairs of neighbours.

The weights are a table of F features by N labels, then one of N by N labels for neighbours:
``F(y) = Σ_m ⟨W_emission[:, y_m], x_m⟩ + Σ_m W_transition[y_m, y_{m+1}]``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from tallytree.core.model import Model
from tallytree.errors import ModelError
from tallytree.learning.planes import Features, Floats, Integers
from tallytree.learning.problem import Problem
from tallytree.losses import Loss

__all__ = ["SequenceProblem", "chains"]


def chains(
    sequences: Sequence[sparse.csr_matrix], weights: Floats, labels: int, states: Sequence[str] | None = None
) -> list[Model]:
    """Return the models of sequences at given weights.

    Parameters
    ----------
    sequences : sequence of sparse matrices of shape (M_i, F)
        The features of each.
    weights : array of shape (F·N + N·N,)
        Emissions, then transitions.
    labels : int
        N.
    states : sequence of str, optional
        The names of the labels.
    """
    if not len(sequences):
        return []
    lengths = [matrix.shape[0] for matrix in sequences]
    return _cut(sparse.vstack(sequences, format="csr"), lengths, weights, labels, states)


def _cut(
    rows: sparse.csr_matrix,
    lengths: Sequence[int],
    weights: Floats,
    labels: int,
    states: Sequence[str] | None,
) -> list[Model]:
    """Return the models of sequences whose positions are stacked in one matrix."""
    size = rows.shape[1] * labels
    scores = np.asarray(rows @ weights[:size].reshape(-1, labels))
    links = weights[size:].reshape(labels, labels).copy()
    parts = np.split(scores, np.cumsum(lengths)[:-1])
    return [Model.chain(part, links, states=states) for part in parts]


class SequenceProblem(Problem):
    """Sequences with sparse features of positions and a table of transitions.

    Parameters
    ----------
    sequences : sequence of sparse matrices of shape (M_i, F)
        The features of each sequence.
    truths : sequence of integer arrays of shape (M_i,)
        The right labels, by number.
    labels : int
        N, the number of labels.
    loss : Loss
        A recipe.
    states : sequence of str, optional
        The names of the labels, where the loss uses them.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> from scipy import sparse
    >>> from tallytree.learning import SequenceProblem, train
    >>> problem = SequenceProblem(
    ...     [sparse.csr_matrix(np.eye(2)[[0, 1, 1, 0]])],
    ...     [np.array([0, 1, 1, 0])],
    ...     labels=2,
    ...     loss=tt.losses.HammingDistance(),
    ... )
    >>> trained = train(problem, C=10.0, tolerance=1e-4)
    >>> tt.solve(problem.model(0, trained.weights)).assignment
    array([0, 1, 1, 0])
    """

    def __init__(
        self,
        sequences: Sequence[sparse.csr_matrix],
        truths: Sequence[Integers],
        labels: int,
        loss: Loss,
        states: Sequence[str] | None = None,
    ) -> None:
        lengths = [matrix.shape[0] for matrix in sequences]
        if lengths != [len(truth) for truth in truths]:
            raise ModelError("each sequence needs one label for each of its positions, and each its labels")
        self.loss, self.labels, self.states = loss, labels, states
        self._rows = sparse.vstack(sequences, format="csr")
        self._starts = np.cumsum([0, *lengths])
        self._truths = np.concatenate(truths).astype(np.int64)
        self._emissions = self._rows.shape[1] * labels
        self.dimension = self._emissions + labels * labels

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self._starts) - 1

    def _range(self, example: int) -> slice:
        return slice(int(self._starts[example]), int(self._starts[example + 1]))

    def truth(self, example: int) -> Integers:
        """Return the right labels of a sequence."""
        return self._truths[self._range(example)]

    def model(self, example: int, weights: Floats) -> Model:
        """Return the chain of a sequence."""
        return self.models([example], weights)[0]

    def models(self, examples: Sequence[int], weights: Floats) -> list[Model]:
        """Return the chains of several sequences; their emission scores are one product."""
        ranges = [np.arange(self._starts[one], self._starts[one + 1]) for one in examples]
        rows = self._rows[np.concatenate(ranges)]
        return _cut(rows, [len(one) for one in ranges], weights, self.labels, self.states)

    def features(self, example: int, labelling: Integers) -> Features:
        """Return the features of a labelled sequence."""
        everywhere = np.arange(len(labelling))
        indices, values = self._at(example, everywhere, labelling)
        pairs = self._pairs(labelling)
        return np.concatenate((indices, pairs)), np.concatenate((values, np.ones(len(pairs))))

    def difference(self, example: int, labelling: Integers) -> Features:
        """Return the features of the truth less those of a labelling: only positions that differ count."""
        truth = self.truth(example)
        differs = np.flatnonzero(truth != labelling)
        right, values = self._at(example, differs, truth)
        wrong, _ = self._at(example, differs, labelling)
        before, after = self._pairs(truth), self._pairs(labelling)
        changed = before != after
        ones = np.ones(int(changed.sum()))
        return (
            np.concatenate((right, wrong, before[changed], after[changed])),
            np.concatenate((values, -values, ones, -ones)),
        )

    def _at(self, example: int, positions: Integers, labelling: Integers) -> Features:
        """Return the emission features of some positions with their labels."""
        starts = self._rows.indptr[self._starts[example] + positions].astype(np.int64)
        sizes = self._rows.indptr[self._starts[example] + positions + 1] - starts
        places = np.arange(int(sizes.sum())) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        chosen = np.repeat(labelling[positions], sizes)
        columns = self._rows.indices[places].astype(np.int64)
        return columns * self.labels + chosen, self._rows.data[places]

    def _pairs(self, labelling: Integers) -> Integers:
        pairs: Integers = self._emissions + labelling[:-1] * self.labels + labelling[1:]
        return pairs

    def fingerprint(self) -> str:
        """Return a digest of the features, the truths and the loss."""
        digest = hashlib.sha256(super().fingerprint().encode())
        for array in (self._rows.indptr, self._rows.indices, self._rows.data):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()
