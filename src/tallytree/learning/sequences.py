"""Sequences: a label for each position, scored by the position's features and by pairs of neighbours.

The weights are a table of F features by N labels, then one of N by N labels for neighbours:
``F(y) = Σ_m ⟨W_emission[:, y_m], x_m⟩ + Σ_m W_transition[y_m, y_{m+1}]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tallytree.bulk.chains import Chains
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.expectations import SparseRows
from tallytree.errors import ModelError
from tallytree.learning.attributes import as_matrix
from tallytree.learning.examples import of_each
from tallytree.learning.inference import ChainTask, Task
from tallytree.learning.planes import Features, Floats, Integers, collected
from tallytree.learning.problem import TrainingProblem
from tallytree.losses import Loss
from tallytree.model.model import Model

Entries = tuple[NDArray[Any], NDArray[Any], Floats]


def chains(
    rows: SparseRows,
    lengths: Sequence[int],
    weights: Floats,
    labels: int,
    names: Sequence[str] | None = None,
    threads: int | None = None,
) -> Chains:
    """Return sequences at given weights, as chains.

    `rows`: the features of all positions, concatenated. `lengths`: the lengths of the sequences.
    `weights`: emissions, then transitions. `labels`: N. `names`: the names of the labels. `threads`: by
    default the number of processors.
    """
    size = len(weights) - labels * labels
    scores = rows.times(np.ascontiguousarray(weights[:size]).reshape(-1, labels), threads)
    links = weights[size:].reshape(labels, labels).copy()
    return Chains(scores, links, lengths, None if names is None else tuple(names))


class SequenceProblem(TrainingProblem):
    """Sequences with sparse features of positions and a table of transitions.

    Parameters
    ----------
    sequences : sequence of matrices of shape (M_i, F), sparse or dense
        The features of each sequence.
    truths : sequence of integer arrays of shape (M_i,)
        The true labels, by number.
    labels : int
        N, the number of labels.
    loss : Loss
        A recipe.
    states : sequence of str, optional
        The names of the labels, if the loss uses them.

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
        if not isinstance(loss, Loss):
            raise ModelError(f"loss must be a loss such as HammingDistance(), got {loss!r}")
        sequences = list(of_each(sequences, as_matrix))
        lengths = [matrix.shape[0] for matrix in sequences]
        if lengths != [len(truth) for truth in truths]:
            raise ModelError("each sequence needs a list of labels, with one label for each of its positions")
        self._hold(sparse.vstack(sequences, format="csr"), lengths, truths)
        self._configure(self._rows.shape[1], labels, loss, states)

    @classmethod
    def of_rows(
        cls,
        rows: sparse.csr_matrix,
        lengths: Sequence[int],
        truths: Sequence[Integers],
        labels: int,
        loss: Loss,
        states: Sequence[str] | None = None,
    ) -> SequenceProblem:
        """Return the problem of sequences whose features are concatenated."""
        problem = cls.__new__(cls)
        problem._hold(rows, lengths, truths)
        problem._configure(rows.shape[1], labels, loss, states)
        return problem

    def _hold(self, rows: sparse.csr_matrix, lengths: Sequence[int], truths: Sequence[Integers]) -> None:
        self._rows = rows
        self._starts = np.cumsum([0, *lengths])
        self._truths = np.concatenate(truths).astype(np.int64)

    def _configure(self, width: int, labels: int, loss: Loss, states: Sequence[str] | None) -> None:
        self.loss, self.labels, self.states = loss, labels, states
        self._emissions = width * labels
        self.dimension = self._emissions + labels * labels

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self._starts) - 1

    def _range(self, example: int) -> slice:
        return slice(int(self._starts[example]), int(self._starts[example + 1]))

    def truth(self, example: int) -> Integers:
        """Return the true labels of a sequence."""
        return self._truths[self._range(example)]

    def model(self, example: int, weights: Floats) -> Model:
        """Return the chain of a sequence."""
        return self.models([example], weights)[0]

    def models(self, examples: Sequence[int], weights: Floats) -> list[Model]:
        """Return the chains of several sequences; their emission scores are computed in one product."""
        return self._chains(examples, weights).models()

    @property
    def _tabulated(self) -> bool:
        """Whether the loss has tables for chains, and no subclass has its own models or losses."""
        kind = type(self)
        own = kind.loss_of is not TrainingProblem.loss_of or kind.models is not SequenceProblem.models
        return not own and truth_tables(self.loss, self.labels, self.states) is not None

    def task(self, examples: Sequence[int], weights: Floats) -> Task:
        """Return the inference task of several sequences."""
        if not self._tabulated:
            return super().task(examples, weights)
        found = self._chains(examples, weights)
        return ChainTask(found, [self.truth(example) for example in examples], self.loss)

    def truth_loss(self, example: int) -> float:
        """Return the loss of the truth itself."""
        return 0.0 if self._tabulated else super().truth_loss(example)

    def _chains(self, examples: Sequence[int], weights: Floats) -> Chains:
        rows, lengths = self._stacked(examples)
        return chains(rows, lengths, weights, self.labels, self.states)

    def _stacked(self, examples: Sequence[int]) -> tuple[SparseRows, list[int]]:
        """Return the features of several sequences, concatenated, and their lengths."""
        ends, columns, values = self._rows.indptr, self._rows.indices, self._rows.data
        bounds = [(self._starts[one], self._starts[one + 1]) for one in examples]
        sizes = np.concatenate([ends[first + 1 : last + 1] - ends[first:last] for first, last in bounds])
        entries = [slice(ends[first], ends[last]) for first, last in bounds]
        rows = SparseRows(
            np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))),
            np.concatenate([columns[some] for some in entries]).astype(np.int32, copy=False),
            np.concatenate([values[some] for some in entries]),
        )
        return rows, [int(last - first) for first, last in bounds]

    def stacked(self) -> tuple[sparse.csr_matrix, list[int], Integers]:
        """Return the features of all sequences, concatenated, their lengths, and the true labels."""
        rows, lengths = self._stacked(range(len(self)))
        truths = np.concatenate([self.truth(example) for example in range(len(self))])
        return rows.matrix(self._emissions // self.labels), lengths, truths

    def features(self, example: int, labelling: Integers) -> Features:
        """Return the features of a labelled sequence."""
        columns, values, sizes = self._at(example, np.arange(len(labelling)))
        indices = columns + np.repeat(labelling, sizes)
        pairs = self._pairs(labelling)
        return np.concatenate((indices, pairs)), np.concatenate((values, np.ones(len(pairs))))

    def difference(self, example: int, labelling: Integers) -> Features:
        """Return the features of the truth minus those of a labelling: only positions that differ matter."""
        truth = self.truth(example)
        differs = np.flatnonzero(truth != labelling)
        columns, values, sizes = self._at(example, differs)
        right, wrong = (columns + np.repeat(labels[differs], sizes) for labels in (truth, labelling))
        before, after = self._pairs(truth), self._pairs(labelling)
        changed = before != after
        ones = np.ones(int(changed.sum()))
        return (
            np.concatenate((right, wrong, before[changed], after[changed])),
            np.concatenate((values, -values, ones, -ones)),
        )

    def differences(self, examples: Sequence[int], labellings: Sequence[Integers]) -> list[Features]:
        """Return the differences of several sequences at once."""
        lengths = [len(labelling) for labelling in labellings]
        owners = np.repeat(np.arange(len(lengths)), lengths)
        found = np.concatenate(labellings)
        truth = np.concatenate([self.truth(example) for example in examples])
        differs = np.flatnonzero(truth != found)
        firsts = self._starts[np.asarray(examples)] - np.cumsum([0, *lengths[:-1]])
        columns, values, sizes = self._taken(differs + firsts[owners[differs]])
        owner = np.repeat(owners[differs], sizes)
        right, wrong = (columns + np.repeat(labels[differs], sizes) for labels in (truth, found))
        before, after = self._pairs(truth), self._pairs(found)
        changed = np.flatnonzero((before != after) & (owners[1:] == owners[:-1]))
        ones = np.ones(len(changed))
        return _collected_each(
            len(lengths),
            np.concatenate((owner, owner, owners[changed], owners[changed])),
            np.concatenate((right, wrong, before[changed], after[changed])),
            np.concatenate((values, -values, ones, -ones)),
            self.dimension,
        )

    def _taken(self, rows: Integers) -> tuple[Integers, Floats, Integers]:
        """Return the entries of some rows: the start of the weights of their columns, values, sizes."""
        return _entries_at(rows, self._rows.indptr, self._rows.indices, self._rows.data, self.labels)

    def _at(self, example: int, positions: Integers) -> tuple[Integers, Floats, Integers]:
        """Return the entries of some positions: the start of the weights of their columns, values, sizes."""
        return _entries_at(positions, *self._entries(example), self.labels)

    def _entries(self, example: int) -> Entries:
        """Return where the entries of each position start, and their columns and values."""
        own = slice(int(self._starts[example]), int(self._starts[example + 1]) + 1)
        return self._rows.indptr[own], self._rows.indices, self._rows.data

    def _pairs(self, labelling: Integers) -> Integers:
        pairs: Integers = self._emissions + labelling[:-1] * self.labels + labelling[1:]
        return pairs

    def fingerprint(self) -> str:
        """Return a digest of the features, the sequence boundaries, the truths and the loss."""
        return self._digest()


def _entries_at(
    rows: Integers, ends: NDArray[Any], columns: NDArray[Any], values: Floats, labels: int
) -> tuple[Integers, Floats, Integers]:
    """Return the entries of rows of a sparse matrix: the columns times the labels, the values, the sizes."""
    starts = ends[rows].astype(np.int64)
    sizes = ends[rows + 1] - starts
    places = np.arange(int(sizes.sum())) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    return columns[places].astype(np.int64) * labels, values[places], sizes


def _collected_each(
    count: int, owners: Integers, indices: Integers, values: Floats, dimension: int
) -> list[Features]:
    """Add up the values of equal indices for each owner."""
    keys, sums = collected(owners * dimension + indices, values)
    ends = np.searchsorted(keys, dimension * np.arange(1, count))
    return list(zip(np.split(keys % dimension, ends), np.split(sums, ends), strict=True))
