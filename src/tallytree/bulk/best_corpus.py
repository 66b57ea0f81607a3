"""A single F-measure over all sequences of a corpus: the labellings that maximise it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.bulk.chains import Chains
from tallytree.bulk.expectations import Floats
from tallytree.bulk.kind_tables import Integers
from tallytree.bulk.least_loss import Nodes, likely_nodes, nodes_of, spelled, too_far
from tallytree.errors import ModelError
from tallytree.kernels import native
from tallytree.losses.base import Loss
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.nodes import FBeta
from tallytree.planning.budget import thread_count


class BestCorpus(NamedTuple):
    """Labellings of all sequences of a corpus, chosen for a single F-measure over all of them.

    Attributes
    ----------
    labels : int64 array
        The labels of one chain after the other.
    f : float
        The F-measure of expected counts, ``(1 + β²) E[TP] / (β² E[S] + k)``, the largest over all
        labellings.
    within : float
        How far the expected F-measure itself can be from that, for this and any other labelling.
    """

    labels: Integers
    f: float
    within: float


def best_of_corpus(chains: Chains, loss: Loss, threads: int | None = None) -> BestCorpus:
    """Find the labellings with the best F-measure over a corpus whose truths are drawn from the chains.

    Parameters
    ----------
    chains, threads
        As for :func:`least_loss`.
    loss : FBeta or ChunkFBeta
        A recipe, with a background.

    Notes
    -----
    The ratio of expected counts is maximised by Dinkelbach's method: a node is worth ``(1 + β²) P(c) − λ``,
    where ``λ`` is the best ratio so far. With ``D = β² S + k``, and ``F = (1 + β²) TP / D`` between 0 and 1,
    ``|E[F] − (1 + β²) E[TP] / E[D]| = |Cov(F, D)| / E[D] ≤ ½ sd(D) / E[D]``, which is small for a large
    corpus: sequences are independent.

    Examples
    --------
    >>> import tallytree as tt
    >>> scores = np.tile([[0.5, 0.0], [0.0, 9.0]], (50, 1))
    >>> chains = Chains(scores, np.zeros((2, 2)), [2] * 50, ("O", "B"))
    >>> found = best_of_corpus(chains, tt.losses.FBeta(background="O"))
    >>> found.labels[:4], round(found.f, 3), round(found.within, 3)
    (array([0, 1, 0, 1]), 0.84, 0.014)
    """
    nodes = nodes_of(loss, chains.emissions.shape[1], chains.names)
    if nodes is None or type(loss) not in (FBeta, ChunkFBeta) or not isinstance(loss, FBeta):
        raise ModelError(
            f"a whole corpus can be decoded for FBeta with a background or for ChunkFBeta, got {loss!r}"
        )
    mean, variance = _sizes(chains, nodes, threads)
    weight, starts = loss.beta**2, np.cumsum([0, *chains.lengths])
    gain = 1.0 + weight

    def measure(chunks: NDArray[np.void]) -> float:
        whole = weight * mean + len(chunks)
        return gain * float(chunks["probability"].sum()) / whole if whole > 0.0 else 1.0

    chunks = likely_nodes(chains, loss, 0.5, threads)  # no two of them overlap
    ratio = measure(chunks)
    likely = likely_nodes(chains, loss, ratio / gain if len(chunks) else 0.0, threads)
    while True:
        found = _best_set(likely, gain * likely["probability"] - ratio, starts)
        if measure(found) <= ratio * (1.0 + 1e-12):
            break
        chunks, ratio = found, measure(found)
    whole = weight * mean + len(chunks)
    within = 0.5 * weight * np.sqrt(variance) / whole if whole > 0.0 else 0.0
    return BestCorpus(spelled(chunks, nodes, chains.lengths), ratio, float(within))


def _best_set(chunks: NDArray[np.void], worth: Floats, starts: Integers) -> NDArray[np.void]:
    """Return the non-overlapping chunks with the largest total value."""
    begins, ends = (starts[chunks["chain"]] + chunks[side] for side in ("first", "last"))
    order = np.lexsort((begins, ends))
    order = order[worth[order] > 0.0]
    before = np.searchsorted(ends[order], begins[order])  # how many end before each begins
    best, taken = [0.0], []
    for number, (free, one) in enumerate(zip(before.tolist(), worth[order].tolist(), strict=True)):
        taken.append(best[free] + one > best[number])
        best.append(max(best[free] + one, best[number]))
    chosen, number = [], len(taken)
    while number > 0:
        if taken[number - 1]:
            chosen.append(order[number - 1])
            number = int(before[number - 1])
        else:
            number -= 1
    return chunks[np.sort(np.array(chosen, dtype=np.int64))]


def _sizes(chains: Chains, nodes: Nodes, threads: int | None) -> tuple[float, float]:
    """Return the mean and the variance of the total number of nodes in the truths."""
    starts = np.cumsum([0, *chains.lengths], dtype=np.int64)
    found = native.chunk_numbers(
        chains.emissions, chains.links, starts, nodes.types, nodes.boundaries, thread_count(threads)
    )
    if found is None:
        raise too_far()
    means, variances = found
    return float(means.sum()), float(variances.sum())
