"""Labellings with the smallest expected loss, for many chains; exact if a polynomial algorithm is known.

With ``p(y) ∝ exp F(y)`` for the truth, a labelling ``h`` of ``k`` nodes (positions that are not background,
or whole chunks) has an expected loss. The F-measure and related losses are linear in the nodes that both
share once ``k`` and the number ``s`` of nodes of the truth are given, so that

    E[Δ] = Σ_s P(s) base(k, s) − Σ_(c in h) Σ_s gain(k, s) P(c in y, |y| = s).

For given ``k`` the best ``h`` is the set of ``k`` non-overlapping nodes with the largest total value: a top-k
choice for positions, a small dynamic program for chunks; trying every ``k`` is exact. The probabilities come
from a forward and a backward pass that carry the number of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.bulk.chains import Chains
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.expectations import Floats, risks_of_truths, sum_chains
from tallytree.bulk.kind_tables import Integers
from tallytree.bulk.quotients import chunk_labels
from tallytree.bulk.truth_tables import PositionTables
from tallytree.errors import ModelError
from tallytree.kernels import native
from tallytree.losses.base import Loss
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.node_numbers import FalsePositives, SymmetricDifference
from tallytree.losses.nodes import FBeta, NodeLoss, Precision, Recall
from tallytree.losses.positions import HammingDistance, HammingLoss
from tallytree.model.inputs import code_in
from tallytree.planning.budget import thread_count
from tallytree.transducers.chunks import Tag, tag_of

LINEAR = (FBeta, Precision, Recall, FalsePositives, SymmetricDifference)
"""Losses that are linear in true positives, given the sizes of both sides."""

_STEP = 16
"""Tables of losses are computed for lengths that are multiples of this, and cached."""


class LeastLoss(NamedTuple):
    """Labellings with the smallest expected loss.

    Attributes
    ----------
    labels : int64 array
        The labels of one chain after the other.
    losses : array with one number for each chain
        Their expected losses.
    """

    labels: Integers
    losses: Floats


class Nodes(NamedTuple):
    """What a loss counts as nodes, label by label.

    Attributes
    ----------
    types : int32 array
        The type of node that a label is part of; -1 for none.
    boundaries : bool array of shape (N, N)
        Whether a node ends between a label and the next.
    spelled : dict of int to tuple of four int
        For each type, the labels of the first, a middle and the last position of a node, and of a single one.
    """

    types: NDArray[np.int32]
    boundaries: NDArray[np.bool_]
    spelled: dict[int, tuple[int, int, int, int]]


WIDEST = 500.0
"""How far apart scores may be for sums of plain products, as in the native code."""


def least_loss(chains: Chains, loss: Loss, threads: int | None = None) -> LeastLoss | None:
    """Find the labellings with the smallest expected loss; None if no exact algorithm is known.

    Parameters
    ----------
    chains : Chains
        Log-probabilities of labellings, up to a constant.
    loss : Loss
        A recipe.
    threads : int, optional
        The number of processors by default. The result does not depend on it.

    Examples
    --------
    Each of three positions is probably background, but probably not all three at once:

    >>> import tallytree as tt
    >>> chains = Chains(np.array([[0.5, 0.0]] * 3), np.zeros((2, 2)), [3], ("O", "B"))
    >>> found = least_loss(chains, tt.losses.FBeta(background="O"))
    >>> found.labels, found.losses.round(3)
    (array([1, 1, 1]), array([0.514]))
    """
    if not chains.lengths:
        return LeastLoss(np.zeros(0, dtype=np.int64), np.zeros(0))
    if type(loss) in (HammingDistance, HammingLoss) or (isinstance(loss, LINEAR) and loss.one_tally):
        return _most_likely(chains, loss, threads)
    nodes = nodes_of(loss, chains.emissions.shape[1], chains.names)
    if nodes is None:
        return None
    losses, chunks = chosen_nodes(chains, nodes, loss_by_sizes(loss, longest_of(chains)), threads)
    return LeastLoss(spelled(chunks, nodes, chains.lengths), losses)


def longest_of(chains: Chains) -> int:
    """Return the length up to which tables of losses are computed."""
    return -(-max(chains.lengths) // _STEP) * _STEP


def chosen_nodes(
    chains: Chains, nodes: Nodes, tables: tuple[Floats, Floats], threads: int | None
) -> tuple[Floats, NDArray[np.void]]:
    """Return the smallest expected losses for losses by sizes, and the nodes that attain them."""
    starts = np.cumsum([0, *chains.lengths], dtype=np.int64)
    found = native.chunks_of_least_loss(
        chains.emissions, chains.links, starts, nodes.types, nodes.boundaries, *tables, thread_count(threads)
    )
    if found is None:
        raise too_far()
    return found


def _most_likely(chains: Chains, loss: Loss, threads: int | None) -> LeastLoss:
    """Choose the most likely label at each position, since positions count separately."""
    marginals = sum_chains(chains, threads=threads).labels
    right = np.bincount(
        np.repeat(np.arange(len(chains.lengths)), chains.lengths), marginals.max(axis=1), len(chains.lengths)
    )
    lengths = np.asarray(chains.lengths)
    wrong = np.maximum(lengths - right, 0.0)
    if not isinstance(loss, HammingDistance | FalsePositives):
        wrong = 2.0 * wrong if isinstance(loss, SymmetricDifference) else wrong / np.maximum(lengths, 1)
    return LeastLoss(marginals.argmax(axis=1), wrong)


def nodes_of(loss: Loss, labels: int, names: Sequence[str] | None) -> Nodes | None:
    """Return what a loss counts as nodes; None for other losses, or if sets of nodes are not labellings."""
    if type(loss) is ChunkFBeta:
        return None if names is None else _chunk_nodes(tuple(names), loss)
    if type(loss) not in LINEAR or not isinstance(loss, NodeLoss):
        return None
    background = code_in(loss.background, None if names is None else tuple(names), labels)
    if background < 0:
        raise ModelError(f"the background {loss.background!r} of the loss is not one of the labels")
    types = np.where(np.arange(labels) == background, -1, np.arange(labels)).astype(np.int32)
    alone = {label: (label,) * 4 for label in range(labels) if label != background}
    return Nodes(types, np.ones((labels, labels), dtype=np.bool_), alone)


def _chunk_nodes(names: tuple[str, ...], loss: ChunkFBeta) -> Nodes | None:
    """Return the chunks of a set of labels, if any adjacent chunks can be written in them."""
    tags = [tag_of(name, loss.scheme, loss.background) for name in names]
    numbers = {tag: number for number, tag in enumerate(tags)}
    kinds = sorted({tag.type for tag in tags if tag.type is not None})
    wanted = {"BIO": "BIIB", "BIOES": "BIES"}.get(loss.scheme)
    if wanted is None or Tag("O", None) not in numbers or len(numbers) < len(names):
        return None
    spelled: dict[int, tuple[int, int, int, int]] = {}
    for number, kind in enumerate(kinds):
        codes = [numbers.get(Tag(tag, kind), -1) for tag in wanted]
        if min(codes[0], codes[3]) < 0 or (loss.scheme == "BIOES" and min(codes) < 0):
            return None
        spelled[number] = (codes[0], codes[1], codes[2], codes[3])
    return Nodes(*chunk_labels(names, loss), spelled)


def spelled(chunks: NDArray[np.void], nodes: Nodes, lengths: Sequence[int]) -> Integers:
    """Convert nodes to labels."""
    starts = np.cumsum([0, *lengths], dtype=np.int64)
    background = int(np.flatnonzero(nodes.types < 0)[0])
    labels = np.full(starts[-1], background, dtype=np.int64)
    for chain, first, last, kind, _ in chunks.tolist():
        begin, middle, end, alone = nodes.spelled[kind]
        at = starts[chain]
        labels[at + first : at + last + 1] = middle
        labels[at + first], labels[at + last] = (alone, alone) if first == last else (begin, end)
    return labels


def likely_nodes(chains: Chains, loss: Loss, least: float, threads: int | None = None) -> NDArray[np.void]:
    """Return all nodes of the truth with more than some probability.

    Parameters
    ----------
    chains, threads
        As for :func:`least_loss`.
    loss : Loss
        Defines the nodes: ``ChunkFBeta`` for chunks.
    least : float
        The probability that nodes must exceed.

    Returns
    -------
    structured array
        The ``chain``, the ``first`` and ``last`` position, the ``type`` by number and the ``probability``.
    """
    nodes = nodes_of(loss, chains.emissions.shape[1], chains.names)
    if nodes is None:
        raise ModelError(f"{loss!r} does not define chunks for these labels")
    starts = np.cumsum([0, *chains.lengths], dtype=np.int64)
    found = native.chunks_above(
        chains.emissions, chains.links, starts, nodes.types, nodes.boundaries, least, thread_count(threads)
    )
    if found is None:
        raise too_far()
    return found


def too_far() -> ModelError:
    """Return the error for chains whose scores cannot be summed as plain products."""
    return ModelError(
        f"the scores of these chains are more than {WIDEST:g} apart, too far for sums of products; scale "
        "them down"
    )


@lru_cache(maxsize=64)
def loss_by_sizes(loss: NodeLoss, longest: int) -> tuple[Floats, Floats]:
    """Return the loss without a true positive, and the gain of one, by the sizes of both sides."""
    found, nothing = np.arange(longest + 1), np.zeros(longest + 1, dtype=np.int64)
    base = np.array([loss.of_counts(nothing, found, size) for size in range(longest + 1)]).T
    one = np.array(
        [loss.of_counts(nothing + 1, np.maximum(found - 1, 0), size) for size in range(longest + 1)]
    ).T
    gain = base - one
    gain[0] = gain[:, 0] = 0.0
    return np.ascontiguousarray(base), np.ascontiguousarray(gain)


def expected_losses(chains: Chains, loss: Loss, labels: Integers, threads: int | None = None) -> Floats:
    """Return the exact expected loss of given labellings if the truth is drawn from the chains.

    Parameters
    ----------
    chains, threads
        As for :func:`least_loss`.
    loss : Loss
        A recipe with tables.
    labels : int64 array
        The labellings, one chain after the other.

    Examples
    --------
    >>> import tallytree as tt
    >>> chains = Chains(np.array([[0.5, 0.0]] * 3), np.zeros((2, 2)), [3], ("O", "B"))
    >>> expected_losses(chains, tt.losses.FBeta(background="O"), np.array([1, 1, 1])).round(3)
    array([0.514])
    """
    if type(loss) in (HammingDistance, HammingLoss):
        marginals = sum_chains(chains, threads=threads).labels
        owners = np.repeat(np.arange(len(chains.lengths)), chains.lengths)
        wrong = np.bincount(
            owners, 1.0 - marginals[np.arange(len(labels)), labels], minlength=len(chains.lengths)
        )
        parts = np.maximum(chains.lengths, 1) if type(loss) is HammingLoss else 1.0
        return np.asarray(wrong / parts, dtype=np.float64)
    tables = truth_tables(loss, chains.emissions.shape[1], chains.names)
    if tables is None or not isinstance(loss, NodeLoss) or not isinstance(tables.recipe, NodeLoss):
        raise ModelError(
            "expected losses can be computed for Hamming losses and losses of nodes or chunks, got "
            f"{type(loss).__name__}"
        )
    if tables.statistics != ("tp", "fp") and isinstance(tables, PositionTables):
        tables = PositionTables(loss, ("tp", "fp"), chains.emissions.shape[1], tables.background)
    return risks_of_truths(chains, tables, labels, partial(_turned, loss), threads)


@lru_cache(maxsize=4096)
def _turned(loss: NodeLoss, found: int, length: int) -> native.LossTable:
    """Return the losses of a labelling with some nodes, by the nodes that a truth has in common with it."""
    values = np.zeros((found + 1, length + 1))
    for both in range(found + 1):
        tp, fp = np.array([both]), np.array([found - both])
        values[both] = [float(loss.of_counts(tp, fp, both + other)[0]) for other in range(length + 1)]
    return native.LossTable(values, [0, 0], False, 1.0)
