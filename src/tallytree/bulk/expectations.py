"""Sums over all labellings of many chains, and objectives of their tallies with all derivatives.

Needed in every step of probabilistic training: the log-partition of each chain with the expected
labels and pairs (:func:`sum_chains`), or a function of the log-partitions of all tallies of a loss and
its derivatives with respect to every score (:func:`objective_of_chains`). Everything in between is native.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.bulk.chain_sums import (
    ChainSums,
    LaidChains,
    check_refused,
    check_scores,
    put_packed,
    sum_laid_chains,
)
from tallytree.bulk.chains import Chains
from tallytree.bulk.chunk_tables import summable_tables, truth_tables
from tallytree.bulk.kind_tables import Integers
from tallytree.bulk.quotients import Quotient, quotient_of, turned_quotient
from tallytree.bulk.risks import risks_of_quotients
from tallytree.bulk.truth_tables import TruthTables
from tallytree.errors import ModelError
from tallytree.kernels import native
from tallytree.losses.base import Loss
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit, thread_count
from tallytree.planning.orders import skeleton

Floats = NDArray[np.float64]

LossObjective = Literal["softmax-margin", "risk"]

_OBJECTIVES = {"softmax-margin": native.Objective.SOFTMAX_MARGIN, "risk": native.Objective.RISK}


class SparseRows(NamedTuple):
    """A sparse matrix with native products with tables of labels.

    Attributes
    ----------
    starts, columns, values
        As in SciPy's CSR matrices, with 64-bit starts, 32-bit columns and floating-point values.
    """

    starts: Integers
    columns: NDArray[np.int32]
    values: Floats

    @classmethod
    def of(cls, matrix: Any) -> SparseRows:
        """Return one of SciPy's CSR matrices in this form."""
        columns, values = matrix.indices.astype(np.int32, copy=False), np.asarray(matrix.data, np.float64)
        return cls(matrix.indptr.astype(np.int64, copy=False), columns, values)

    def matrix(self, columns: int) -> Any:
        """Return one of SciPy's CSR matrices with so many columns."""
        from scipy import sparse  # an optional dependency

        shape = len(self.starts) - 1, columns
        return sparse.csr_matrix((self.values, self.columns, self.starts), shape=shape)

    def times(self, table: Floats, threads: int | None = None) -> Floats:
        """Return the product with a table; the result does not depend on the number of threads."""
        return native.sparse_times(*self, table, thread_count(threads))


def sum_chains(chains: Chains, importance: Floats | None = None, threads: int | None = None) -> ChainSums:
    """Sum over all labellings of chains.

    Parameters
    ----------
    chains : Chains
        Label scores; -inf forbids a label.
    importance : array, optional
        A factor for the derivatives of each chain.
    threads : int, optional
        The number of processors by default. The result does not depend on it.

    Examples
    --------
    >>> chains = Chains(np.log([[1.0, 3.0], [1.0, 1.0]]), np.zeros((2, 2)), [2], None)
    >>> found = sum_chains(chains)
    >>> np.exp(found.values), found.labels
    (array([8.]), array([[0.25, 0.75],
           [0.5 , 0.5 ]]))
    """
    weights = _importance(importance, len(chains.lengths))
    return sum_laid_chains(laid_chains(chains), weights, thread_count(threads))


def laid_chains(chains: Chains) -> LaidChains:
    """Return concatenated chains with their start positions."""
    starts = np.cumsum([0, *chains.lengths], dtype=np.int64)
    return LaidChains(chains.emissions, chains.links, starts[:-1], np.diff(starts))


def objective_of_chains(
    chains: Chains,
    loss: Loss,
    truths: Integers,
    objective: LossObjective,
    importance: Floats | None = None,
    threads: int | None = None,
    margin: float = 1.0,
) -> ChainSums:
    """Compute an objective of the losses of all labellings, for each of many chains, and its derivatives.

    Parameters
    ----------
    chains : Chains
        Label scores; -inf forbids a label. Chains must not be empty.
    loss : Loss
        A recipe that has tables (:func:`truth_tables`).
    truths : int64 array
        The true labels at all positions, concatenated.
    objective : {"softmax-margin", "risk"}
        ``log Σ_y exp(F(y) + margin · Δ(y))``, or the expected loss ``Σ_y p(y) Δ(y)``.
    importance, threads
        As for :func:`sum_chains`.
    margin : float
        The factor of the loss in a softmax margin.

    Raises
    ------
    BudgetError
        The tables of a chain exceed the memory limit.

    Examples
    --------
    >>> import tallytree as tt
    >>> chains = Chains(np.zeros((2, 2)), np.zeros((2, 2)), [2], ("O", "B"))
    >>> loss, truth = tt.losses.FBeta(background="O"), np.array([0, 1])
    >>> objective_of_chains(chains, loss, truth, "risk").values.round(4)
    array([0.5833])
    """
    weights, count = _importance(importance, len(chains.lengths)), thread_count(threads)
    if objective == "risk":
        return risks_of_laid_chains(laid_chains(chains), loss, chains.names, truths, weights, count)
    tables = summable_tables(loss, chains.emissions.shape[1], chains.names)
    added = folded_losses(chains.lengths, tables, truths)
    if added is None:
        return objective_by_tables(chains, loss, truths, objective, weights, threads, margin)
    constants, by_label = added
    emissions = chains.emissions + margin * by_label
    found = sum_chains(chains._replace(emissions=emissions), weights, threads)
    return found._replace(values=found.values + margin * constants)


def risks_of_laid_chains(
    chains: LaidChains,
    loss: Loss,
    names: tuple[str, ...] | None,
    truths: Integers,
    importance: Floats,
    threads: int,
) -> ChainSums:
    """Compute the expected losses of chains anywhere in long arrays, and their derivatives.

    Losses that are quotients of counts need no tables. `truths`: a label for each position, also outside all
    chains.
    """

    def by_tables(numbers: Integers) -> ChainSums:
        some, right = chains.packed(numbers, names), truths[chains.positions(numbers)]
        return objective_by_tables(some, loss, right, "risk", importance[numbers], threads, numbers=numbers)

    quotient = quotient_of(loss, chains.emissions.shape[1], names)
    return _risks(chains, quotient, truths, importance, by_tables, threads)


def _risks(
    chains: LaidChains,
    quotient: Quotient | None,
    truths: Integers,
    importance: Floats,
    by_tables: Callable[[Integers], ChainSums],
    threads: int,
) -> ChainSums:
    """Compute expected losses without tables if they are quotients, and from tables otherwise."""
    if quotient is not None:
        limit = default_memory_limit()
        return risks_of_quotients(
            chains, quotient, truths, importance, by_tables, memory_limit=limit, threads=threads
        )
    everyone = np.arange(len(chains.lengths))
    check_scores(chains, everyone)
    sums = by_tables(everyone)
    found = ChainSums(sums.values, *map(np.zeros_like, (chains.emissions, chains.links)))
    put_packed(chains, everyone, (sums.labels, sums.links), found)
    return found


def objective_by_tables(
    chains: Chains,
    loss: Loss,
    truths: Integers,
    objective: LossObjective,
    importance: Floats | None = None,
    threads: int | None = None,
    margin: float = 1.0,
    numbers: Integers | None = None,
) -> ChainSums:
    """Compute the same as :func:`objective_of_chains` from the sums of all tallies, for any loss with tables.

    `numbers`: the numbers of the chains, for errors.
    """
    tables = summable_tables(loss, chains.emissions.shape[1], chains.names)
    batch = native.Batch(native.TallyMode.AUTO, default_memory_limit())
    given, _ = tables.truths(truths, chains.lengths, "margin", margin)
    skeletons = [tables.chain(length, True) for length in chains.lengths]
    batch.add_chains(skeletons, chains.emissions, chains.links, given)
    weights = _importance(importance, len(chains.lengths))
    values, (by_labels, by_links) = batch.expect(_OBJECTIVES[objective], weights, thread_count(threads))
    check_refused(batch, np.arange(len(chains.lengths)) if numbers is None else numbers)
    return ChainSums(values, by_labels, by_links)


class GraphBatch:
    """Models of given shapes over one set of labels, whose scores change between calls.

    Parameters
    ----------
    models : sequence of Model
        One of each shape; their scores are not used.
    loss : Loss, optional
        A recipe, for objectives with a loss; it must count variable by variable.
    truths : int64 array, optional
        The true labels of the variables of all models, concatenated.
    """

    def __init__(
        self, models: Sequence[Model], loss: Loss | None = None, truths: Integers | None = None
    ) -> None:
        self._tables = None if loss is None else _position_tables(models, loss)
        shapes = [() if self._tables is None else self._tables.shapes(model) for model in models]
        self._skeletons = [skeleton(model, shape) for model, shape in zip(models, shapes, strict=True)]
        self._lengths, self._truths = [len(model) for model in models], truths

    def objective(
        self,
        kind: LossObjective | Literal["likelihood"],
        scores: Sequence[Floats],
        importance: Floats,
        threads: int | None = None,
        margin: float = 1.0,
    ) -> tuple[Floats, list[Floats]]:
        """Return the objective of each model, and the derivatives of their weighted sum.

        Parameters
        ----------
        kind : {"likelihood", "softmax-margin", "risk"}
            As for :func:`objective_of_chains`; the likelihood is just the log-partition.
        scores : sequence of arrays
            The tables of all blocks of all models, model by model.
        importance, threads
            As for :func:`sum_chains`.
        margin : float
            The factor of the loss in a softmax margin.

        Returns
        -------
        (values, list of arrays)
            Derivatives have the shapes of the scores.
        """
        batch = native.Batch(native.TallyMode.AUTO, default_memory_limit())
        given = None
        if self._tables is not None and self._truths is not None:
            given, _ = self._tables.truths(self._truths, self._lengths, "margin", margin)
        batch.add_models(self._skeletons, scores, given)
        chosen = native.Objective.LIKELIHOOD if kind == "likelihood" else _OBJECTIVES[kind]
        values, derivatives = batch.expect(chosen, importance, thread_count(threads))
        check_refused(batch, np.arange(len(self._lengths)), "graph")
        return values, derivatives


def _position_tables(models: Sequence[Model], loss: Loss) -> TruthTables:
    labels = int(models[0].cardinalities.max())
    tables = truth_tables(loss, labels, models[0].states_of(0))
    if tables is None or len(tables.tables.fits):
        raise ModelError(
            f"{loss!r} cannot be summed over labellings of graphs with {labels} labels; use a loss that "
            "counts node by node and whose background is one of the labels"
        )
    return tables


def risks_of_truths(
    chains: Chains,
    tables: TruthTables,
    labels: Integers,
    turned: Callable[[int, int], native.LossTable],
    threads: int | None = None,
) -> Floats:
    """Return the expected loss of given labellings if the truth is drawn from the chains.

    `turned`: returns the losses of a labelling of some size and length, by what a truth has in common with it
    and what it has beyond that.
    """
    laid, nothing = laid_chains(chains), np.zeros(len(chains.lengths))

    def by_tables(numbers: Integers) -> ChainSums:
        some, right = laid.packed(numbers, chains.names), labels[laid.positions(numbers)]
        kinds, sizes = tables.kinds(right, some.lengths)
        losses = list(map(turned, sizes, some.lengths))
        batch = native.Batch(native.TallyMode.AUTO, default_memory_limit())
        given = native.Truths(tables.compiled, kinds, right, losses, np.zeros((0, 0)), 1)
        batch.add_chains([tables.chain(n, True) for n in some.lengths], some.emissions, some.links, given)
        values, (by_labels, by_links) = batch.expect(
            native.Objective.RISK, nothing[numbers], thread_count(threads)
        )
        check_refused(batch, numbers)
        return ChainSums(values, by_labels, by_links)

    quotient = turned_quotient(tables.recipe, chains.emissions.shape[1], chains.names)
    return _risks(laid, quotient, labels, nothing, by_tables, thread_count(threads)).values


def folded_losses(
    lengths: Sequence[int], tables: TruthTables, truths: Integers
) -> tuple[Floats, Floats] | None:
    """Return linear losses as a number for each chain and one for each label at each position, or None."""
    kinds, sizes = tables.kinds(truths, lengths)
    lines = [one.line for one in tables.losses.each(truths, lengths, sizes, "margin")]
    if len(tables.tables.fits) or any(line is None for line in lines):
        return None
    constants, terms = zip(*(line for line in lines if line is not None), strict=True)
    by_position = np.repeat(np.array(terms, dtype=np.float64).reshape(len(lines), -1), lengths, axis=0)
    return np.array(constants), np.einsum("tp,ptn->tn", by_position, tables.tables.given[:, kinds])


def _importance(given: Floats | None, count: int) -> Floats:
    return np.ones(count) if given is None else np.ascontiguousarray(given, dtype=np.float64)
