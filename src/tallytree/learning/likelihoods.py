"""The objectives of CRFs: functions of the probabilities of all labellings, with their gradients.

With ``p(y) ∝ exp F(y)`` and ``y*`` the truth of an example, the objectives are

* ``likelihood``: ``−log p(y*) = log Σ_y exp F(y) − F(y*)``;
* ``softmax-margin``: ``log Σ_y exp(F(y) + κ Δ(y)) − F(y*)``, so that labellings with a large loss count more;
  κ, the margin, is 1 by default;
* ``risk``: ``Σ_y p(y) Δ(y)``, the expected loss itself.

The first two are convex in the weights and non-negative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tallytree.bulk.chain_sums import ChainSums
from tallytree.bulk.chains import Chains
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.counted import Counts, evidence_of_counts
from tallytree.bulk.expectations import SparseRows, folded_losses, objective_of_chains, sum_chains
from tallytree.learning.accepted import one_of
from tallytree.learning.planes import Floats, Integers
from tallytree.learning.sequences import SequenceProblem

ObjectiveKind = Literal["likelihood", "softmax-margin", "risk"]


OBJECTIVE = one_of(*get_args(ObjectiveKind))


class Objective(ABC):
    """The objective to minimise, without the penalty: a sum over examples.

    Attributes
    ----------
    kind : {"likelihood", "softmax-margin", "risk"}
        The name of the objective.
    dimension : int
        The number of learned weights.
    examples : int
        The number of examples.
    """

    kind: ObjectiveKind
    dimension: int
    examples: int

    @abstractmethod
    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the value at some weights, and the gradient."""

    def spread(self, weights: Floats) -> Floats:
        """Return the weights of the problem, with 0 for those not learned; by default all are learned."""
        return weights

    def gathered(self, weights: Floats) -> Floats:
        """Return the problem's weights that are learned; by default all."""
        return weights

    @property
    def convex(self) -> bool:
        """Whether a small gradient proves that the optimum is close."""
        return self.kind != "risk"

    @property
    def tallied(self) -> bool:
        """Whether it is computed from tables of tallies, which takes far longer than the likelihood."""
        return self.kind != "likelihood"


class SequenceObjective(Objective):
    """A probabilistic objective for sequences.

    Parameters
    ----------
    problem : SequenceProblem
        The sequences and their truths.
    kind : {"likelihood", "softmax-margin", "risk"}
        The name of the objective.
    importance : array
        A non-negative factor for the value of each sequence.
    all_states : bool
        Whether a feature has a weight for every label, or only for those that it occurs with in a truth.
    threads : int, optional
        The number of processors by default. The result does not depend on it.
    margin : float
        The factor of the loss in a softmax margin.

    Examples
    --------
    >>> import tallytree as tt
    >>> rows = sparse.csr_matrix(np.eye(2))
    >>> problem = SequenceProblem([rows], [np.array([0, 1])], 2, tt.losses.HammingDistance())
    >>> objective = SequenceObjective(problem, "likelihood", np.ones(1))
    >>> value, gradient = objective(np.zeros(objective.dimension))
    >>> round(value, 4), gradient
    (1.3863, array([-0.5 , -0.5 ,  0.25, -0.75,  0.25,  0.25]))
    """

    def __init__(
        self,
        problem: SequenceProblem,
        kind: ObjectiveKind,
        importance: Floats,
        all_states: bool = False,
        threads: int | None = None,
        margin: float = 1.0,
    ) -> None:
        self.kind, self.threads, self._margin = kind, threads, margin
        self._loss, self._names = problem.loss, problem.states
        rows, lengths, self._truths = problem.stacked()
        self._labels, self.examples = problem.labels, len(lengths)
        some = np.flatnonzero(lengths)  # an empty sequence has a single labelling, which is correct
        self._lengths = [lengths[number] for number in some]
        self._importance = np.ascontiguousarray(importance[some], dtype=np.float64)
        self._rows, self._columns = SparseRows.of(rows), SparseRows.of(rows.T.tocsr())
        self._size = rows.shape[1] * self._labels
        self._learned = _learned(rows, self._truths, self._labels, all_states)
        self.dimension = len(self._learned)
        self._whole = np.zeros(self._size + self._labels**2)
        self._look_at_truths()

    def _look_at_truths(self) -> None:
        """Record the positions of the truths, and the weight of each position and each pair of neighbours."""
        owners = np.repeat(np.arange(len(self._lengths)), self._lengths)
        self._weight = self._importance[owners]
        inside = np.flatnonzero(owners[1:] == owners[:-1])
        self._observed = np.zeros((self._labels, self._labels))
        np.add.at(self._observed, (self._truths[inside], self._truths[inside + 1]), self._weight[inside])

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the value at some weights, and the gradient."""
        chains = self.chains(weights)
        sums = self._sums(chains)
        value = float(self._importance @ sums.values)
        by_labels, by_links = sums.labels, sums.links
        if self.kind != "risk":
            value -= float(self._importance @ chains.scores(self._truths))
            by_labels[np.arange(len(self._truths)), self._truths] -= self._weight
            by_links = by_links - self._observed
        return value, self.gradient(self._columns, ChainSums(sums.values, by_labels, by_links))

    def gradient(self, columns: SparseRows, found: ChainSums) -> Floats:
        """Return derivatives with respect to weights from those with respect to scores."""
        by_features = columns.times(found.labels, self.threads)
        return np.concatenate((by_features.ravel(), found.links.ravel()))[self._learned]

    def chains(self, weights: Floats) -> Chains:
        """Return the scores of all non-empty sequences."""
        return self.scored(self._rows, self._lengths, weights)

    def scored(self, rows: SparseRows, lengths: Sequence[int], weights: Floats) -> Chains:
        """Return the scores of sequences, given their features."""
        self._whole[self._learned] = weights
        table, links = self._whole[: self._size], self._whole[self._size :]
        scores = rows.times(table.reshape(-1, self._labels), self.threads)
        names = None if self._names is None else tuple(self._names)
        return Chains(scores, links.reshape(self._labels, self._labels), lengths, names)

    @property
    def tallied(self) -> bool:
        """Whether it is computed from tables of tallies; linear losses are added to the scores instead."""
        if self.kind != "softmax-margin":
            return super().tallied
        tables = truth_tables(self._loss, self._labels, self._names)
        return tables is not None and folded_losses(self._lengths, tables, self._truths) is None

    @property
    def features(self) -> int:
        """The number of features."""
        return int(self._size) // self._labels

    def _sums(self, chains: Chains) -> ChainSums:
        if self.kind == "likelihood" or not self._lengths:
            return sum_chains(chains, self._importance, self.threads)
        return objective_of_chains(
            chains, self._loss, self._truths, self.kind, self._importance, self.threads, self._margin
        )

    def spread(self, weights: Floats) -> Floats:
        """Return the weights of the problem, with 0 for those that are not learned."""
        whole = np.zeros_like(self._whole)
        whole[self._learned] = weights
        return whole

    def gathered(self, weights: Floats) -> Floats:
        """Return the problem's weights that are learned."""
        return weights[self._learned]


def _learned(rows: sparse.csr_matrix, truths: Integers, labels: int, every: bool) -> NDArray[np.int64]:
    """Return which weights are learned: those of features that occur in a truth, and all of neighbours."""
    size = rows.shape[1] * labels
    if every:
        return np.arange(size + labels * labels, dtype=np.int64)
    sizes = np.diff(rows.indptr)
    seen = np.unique(rows.indices.astype(np.int64) * labels + np.repeat(truths, sizes))
    return np.concatenate((seen, size + np.arange(labels * labels)))


class CountedObjective(Objective):
    """An objective of labelled sequences, and of others with known label counts only.

    Parameters
    ----------
    labelled : SequenceObjective
        The objective of the labelled ones, with all of its weights learned.
    rows : sequence of sparse matrices
        The features of the others.
    counts : sequence of mappings of label numbers to (least, largest)
        The known counts.
    weight : float
        A factor for ``−log p(counts)``.
    """

    def __init__(
        self,
        labelled: SequenceObjective,
        rows: Sequence[sparse.csr_matrix],
        counts: Sequence[Counts],
        weight: float = 1.0,
    ) -> None:
        self.kind, self._labelled, self._weight = labelled.kind, labelled, weight
        self.dimension, self.examples = labelled.dimension, labelled.examples + len(rows)
        self._groups = []
        some = [(matrix, known) for matrix, known in zip(rows, counts, strict=True) if matrix.shape[0]]
        for names in sorted({tuple(known) for _, known in some}):
            mine = [(matrix, known) for matrix, known in some if tuple(known) == names]
            stacked = sparse.vstack([matrix for matrix, _ in mine], format="csr")
            lengths = [matrix.shape[0] for matrix, _ in mine]
            self._groups.append((SparseRows.of(stacked), lengths, [known for _, known in mine]))
        self._turned = [SparseRows.of(group[0].matrix(labelled.features).T.tocsr()) for group in self._groups]

    @property
    def convex(self) -> bool:
        """False: the sum over allowed labellings enters with a negative sign."""
        return False

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the value at some weights, and the gradient."""
        value, gradient = self._labelled(weights)
        for (rows, lengths, counts), turned in zip(self._groups, self._turned, strict=True):
            chains = self._labelled.scored(rows, lengths, weights)
            importance = np.full(len(lengths), self._weight)
            evidence = evidence_of_counts(chains, counts, importance, self._labelled.threads)
            value += self._weight * float(evidence.values.sum())
            gradient = gradient + self._labelled.gradient(turned, evidence)
        return value, gradient

    def spread(self, weights: Floats) -> Floats:
        """Return the weights of the problem."""
        return self._labelled.spread(weights)

    def gathered(self, weights: Floats) -> Floats:
        """Return the problem's weights that are learned."""
        return self._labelled.gathered(weights)
