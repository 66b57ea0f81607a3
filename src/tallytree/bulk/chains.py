"""Loss-augmented inference for many chains over one set of labels, from a few long arrays.

The same answers as :func:`loss_augmented_batch`, for learning, which asks for them by the hundred thousand:
no model is made of a chain, and no statistic of a truth. What a loss counts is in tables that serve all
truths (:mod:`tallytree.bulk.truth_tables`); layout, messages, decoding and certification are native.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.bulk.chunk_tables import ChunkLoss
from tallytree.bulk.truth_tables import ChainLoss, Integers, PositionLoss, Priced
from tallytree.errors import CertificateError
from tallytree.kernels import native
from tallytree.kernels.native import BudgetExceededError
from tallytree.losses.base import Loss
from tallytree.losses.scaling import Scaling, checked_scaling
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit
from tallytree.planning.threads import thread_count

__all__ = ["BudgetExceededError", "Chains", "augmented_chains", "chain_loss"]

Found = list[tuple[Integers, float]]
"""Labellings of a chain and their losses, the most violated one first."""


class Chains(NamedTuple):
    """Chains over one set of labels.

    Attributes
    ----------
    emissions : array of shape (T, N)
        The scores of labels at all positions, one chain after the other.
    links : array of shape (N, N)
        The scores of a label followed by another.
    lengths : sequence of int
        The lengths of the chains.
    names : tuple of str or None
        The labels.
    """

    emissions: NDArray[np.float64]
    links: NDArray[np.float64]
    lengths: Sequence[int]
    names: tuple[str, ...] | None

    @property
    def plain(self) -> bool:
        """Whether all scores are finite and no chain is empty: what is solved without models."""
        finite = np.isfinite(self.emissions).all() and np.isfinite(self.links).all()
        return bool(finite) and min(self.lengths, default=0) > 0

    def models(self) -> list[Model]:
        """Return the chains as models."""
        parts = np.split(self.emissions, np.cumsum(self.lengths)[:-1])
        return [Model.chain(part, self.links, states=self.names) for part in parts]

    def part(self, first: int, last: int) -> Chains:
        """Return some of them."""
        begin, end = sum(self.lengths[:first]), sum(self.lengths[:last])
        return self._replace(emissions=self.emissions[begin:end], lengths=self.lengths[first:last])


def chain_loss(loss: Loss, labels: int, names: Sequence[str] | None) -> ChainLoss | None:
    """Return the tables of a loss for a set of labels; None for a loss that has none.

    Examples
    --------
    >>> import tallytree as tt
    >>> chain_loss(tt.losses.ChunkFBeta(), 3, ["O", "B-NP", "I-NP"]).tables.labels.shape
    (12, 4)
    """
    try:
        return _chain_loss(loss, labels, None if names is None else tuple(names))
    except TypeError:  # a loss of the user's, with a parameter that cannot be a key
        return None


@lru_cache(maxsize=16)
def _chain_loss(loss: Loss, labels: int, names: tuple[str, ...] | None) -> ChainLoss | None:
    return PositionLoss.of(loss, labels, names) or ChunkLoss.of(loss, labels, names)


def augmented_chains(
    chains: Chains,
    loss: ChainLoss,
    truths: Sequence[Integers],
    scaling: Scaling,
    count: int = 1,
    threads: int | None = None,
) -> list[Found]:
    """Find the labellings that most violate the margin: the best of each of the best tallies.

    Parameters
    ----------
    chains, loss
        Scores of labels, all of them finite; what is counted.
    truths : sequence of int64 arrays
        What is right, in numbers.
    scaling : {"margin", "slack"}
        How the loss enters.
    count : int
        The labellings of a chain, fewer where there are fewer tallies. For one, a loss that is linear folds
        into the scores.
    threads : int, optional
        By default as many as there are processors. The answers do not depend on it.

    Examples
    --------
    >>> import tallytree as tt
    >>> chains = Chains(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)), [3], ("O", "B"))
    >>> loss = chain_loss(tt.losses.FBeta(background="O"), 2, ("O", "B"))
    >>> augmented_chains(chains, loss, [np.array([0, 0, 1])], "slack")
    [[(array([1, 1, 1]), 0.5)]]
    """
    checked_scaling(scaling, loss.recipe)
    seen = [loss.seen(truth) for truth in truths]
    priced = [loss.priced(truth, size, scaling) for truth, (_, size) in zip(truths, seen, strict=True)]
    folds = _folds(priced, len(loss.statistics)) if count == 1 and scaling == "margin" else _NO_FOLDS
    try:
        labels, known = native.augmented_chains(
            loss.compiled,
            [loss.skeleton(length, not len(folds)) for length in chains.lengths],
            np.array(chains.lengths, dtype=np.int64),
            chains.emissions,
            chains.links,
            np.concatenate([kinds for kinds, _ in seen]),
            np.concatenate(truths),
            [one.table for one in priced],
            folds,
            count,
            default_memory_limit(),
            thread_count(threads),
        )
    except native.CertificateFailedError as error:
        raise CertificateError(
            f"the certificate failed: {error}. This is a bug in tallytree, unless a score is infinite; "
            "please report it with the scores"
        ) from None
    return _by_chain(len(chains.lengths), labels, known)


_NO_FOLDS = np.zeros((0, 0))


def _folds(priced: Sequence[Priced], statistics: int) -> NDArray[np.float64]:
    """Return what each statistic adds to the score where all losses are linear; nothing otherwise."""
    lines = [one.line for one in priced]
    coefficients = [line[1] for line in lines if line is not None]
    return _NO_FOLDS if len(coefficients) < len(lines) else np.array(coefficients).reshape(-1, statistics)


def _by_chain(chains: int, labels: Integers, known: NDArray[np.void]) -> list[Found]:
    """Return labellings and losses chain by chain."""
    found: list[Found] = [[] for _ in range(chains)]
    columns = (known[name].tolist() for name in ("chain", "begin", "end", "loss"))
    for chain, begin, end, loss in zip(*columns, strict=True):
        found[chain].append((labels[begin:end], loss))
    return found
