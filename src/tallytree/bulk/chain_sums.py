"""Sums over all labellings of chains stored in long arrays, padded or concatenated.

If scores are close enough together (-inf is allowed), sums are plain products, computed natively
for all chains at once. Other chains are summed in log space, by the tables of plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.bulk.chains import Chains, plain_chain
from tallytree.bulk.kind_tables import Integers
from tallytree.errors import BudgetError, InfeasibleError, ModelError
from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit, readable_bytes
from tallytree.solving import distribution

Floats = NDArray[np.float64]


class ChainSums(NamedTuple):
    """Sums over all labellings of chains, and their derivatives.

    Attributes
    ----------
    values : array with one number for each chain
        ``log Σ_y exp F(y)``, or another objective.
    labels : array of shape (T, N)
        The derivatives of the sum of the values, weighted by the importance of each chain, with respect to
        the label scores: for log-partitions, the probability of each label at each position.
    links : array of shape (N, N), or (L, N, N)
        The derivatives with respect to the pair scores: for log-partitions, the expected count of each pair.
    """

    values: Floats
    labels: Floats
    links: Floats


class LaidChains(NamedTuple):
    """Chains in long arrays.

    Attributes
    ----------
    emissions : array of shape (T, N)
        The label scores at all positions.
    links : array of shape (N, N), or (L, N, N)
        The scores of pairs of labels: one table for all, or one for each pair of neighbours. Those of
        chain ``i`` start at ``starts[i] - i``, so that arrays ``(B, T, N)`` and ``(B, T - 1, N, N)`` work.
    starts, lengths : int64 arrays
        The first position of each chain, in order, and its length.
    """

    emissions: Floats
    links: Floats
    starts: Integers
    lengths: Integers

    @classmethod
    def padded(cls, emissions: Floats, links: Floats, lengths: Integers) -> LaidChains:
        """Return the chains at the start of each row of a padded array (B, T, N)."""
        chains, longest, labels = emissions.shape
        starts = np.arange(chains, dtype=np.int64) * longest
        tables = links if links.ndim == 2 else links.reshape(-1, labels, labels)
        return cls(emissions.reshape(-1, labels), tables, starts, lengths)

    def positions(self, numbers: Integers) -> Integers:
        """Return the positions of some of the chains, concatenated."""
        lengths = self.lengths[numbers]
        first = self.starts[numbers] - np.concatenate(([0], np.cumsum(lengths)[:-1]))
        return np.repeat(first, lengths) + np.arange(lengths.sum())

    def places(self, numbers: Integers) -> Integers:
        """Return the indices of the pair tables of some of the chains, if each has its own."""
        links = self._replace(starts=self.starts - np.arange(len(self.starts)), lengths=self.lengths - 1)
        return links.positions(numbers)

    def packed(self, numbers: Integers, names: tuple[str, ...] | None = None) -> Chains:
        """Return some of the chains, concatenated."""
        at = self.positions(numbers)
        emissions = self.emissions if len(at) == len(self.emissions) else self.emissions[at]
        links = self.links
        if links.ndim == 3 and len(places := self.places(numbers)) != len(links):
            links = links[places]
        return Chains(emissions, links, self.lengths[numbers].tolist(), names)

    def tables(self, number: int) -> slice:
        """Return the indices of the pair tables of a chain, if it has its own."""
        first = int(self.starts[number]) - number
        return slice(first, first + max(int(self.lengths[number]) - 1, 0))

    def model(self, number: int, states: tuple[str, ...] | None = None) -> Model:
        """Return one of the chains as a model."""
        start, length = int(self.starts[number]), int(self.lengths[number])
        links = self.links if self.links.ndim == 2 else self.links[self.tables(number)]
        return Model.chain(self.emissions[start : start + length], links, states=states)


def sum_laid_chains(
    chains: LaidChains, importance: Floats, threads: int, truths: Integers | None = None
) -> ChainSums:
    """Sum over all labellings of chains.

    Parameters
    ----------
    chains : LaidChains
        Scores; -inf forbids a label.
    importance : array
        A factor for the derivatives of each chain.
    threads : int
        The result does not depend on it.
    truths : int64 array, optional
        A label for each position, also outside all chains. Values are then
        ``log Σ_y exp F(y) − F(truth)``: infinite for a forbidden truth, and all derivatives of that
        chain are 0.
    """
    values, labels, links, left_out = native.chain_sums(*chains, importance, truths, threads)
    found = ChainSums(values, labels, links)
    if left_out.any():
        _add_logarithms(chains, importance, threads, truths, np.flatnonzero(left_out), found)
    return found


def _add_logarithms(
    chains: LaidChains,
    importance: Floats,
    threads: int,
    truths: Integers | None,
    numbers: Integers,
    found: ChainSums,
) -> None:
    """Sum over some chains in log space: their scores are too far apart for plain products."""
    check_scores(chains, numbers)
    scores = np.zeros(len(numbers)) if truths is None else _truth_scores(chains, truths, numbers)
    weights = np.where(np.isfinite(scores), importance[numbers], 0.0)
    batch = native.Batch(native.TallyMode.AUTO, default_memory_limit())
    add_laid_chains(batch, chains, numbers)
    values, slopes = batch.expect(native.Objective.LIKELIHOOD, weights, threads)
    check_refused(batch, numbers)
    with np.errstate(invalid="ignore"):  # nothing is allowed
        found.values[numbers] = np.where(scores == -np.inf, np.inf, values - scores)
    put_packed(chains, numbers, (slopes[0], slopes[1]), found)
    for number, weight in zip(numbers.tolist(), weights.tolist(), strict=True):
        if truths is not None:
            at, pairs = _entries(chains, truths, number)
            found.labels[at] -= weight
            np.subtract.at(found.links, pairs, weight)


def add_laid_chains(batch: native.Batch, chains: LaidChains, numbers: Integers) -> None:
    """Add some non-empty chains to a native batch."""
    some = chains.packed(numbers)
    skeletons = [plain_chain(length, some.emissions.shape[1]) for length in some.lengths]
    batch.add_chains(skeletons, some.emissions, some.links, None)


def check_scores(chains: LaidChains, numbers: Integers) -> None:
    """Raise an error for invalid scores, except in padding."""
    every = chains.emissions, chains.links
    if all((table < np.inf).all() for table in every):
        return
    for number in numbers.tolist():
        emissions, links = scores_of(chains, number)
        for noun, table in (("emissions", emissions), ("transitions", links)):
            if np.isnan(table).any() or np.isposinf(table).any():
                raise ModelError(
                    f"the {noun} of chain {number} contain {'nan' if np.isnan(table).any() else '+inf'}; "
                    "scores must be finite, or -inf for forbidden labels"
                )


def scores_of(chains: LaidChains, number: int) -> tuple[Floats, Floats]:
    """Return the scores of a chain, as in the blocks of its model: one pair table may be shared by all."""
    start, length = int(chains.starts[number]), int(chains.lengths[number])
    links = chains.links[np.newaxis] if chains.links.ndim == 2 else chains.links[chains.tables(number)]
    return chains.emissions[start : start + length], links[: max(length - 1, 0)]


def put_packed(
    chains: LaidChains, numbers: Integers, slopes: tuple[Floats, Floats], found: ChainSums
) -> None:
    """Scatter the derivatives of packed chains to where they belong."""
    found.labels[chains.positions(numbers)] = slopes[0]
    if chains.links.ndim == 2:
        found.links[:] += slopes[1]
    else:
        found.links[chains.places(numbers)] = slopes[1]


def put_slopes(chains: LaidChains, numbers: Integers, slopes: list[Floats], found: ChainSums) -> None:
    """Scatter the derivatives of the tables of some chains to where they belong."""
    rest = iter(slopes)
    for number in numbers.tolist():
        start, length = int(chains.starts[number]), int(chains.lengths[number])
        found.labels[start : start + length] = next(rest)
        if length > 1 and chains.links.ndim == 2:
            found.links[:] += next(rest)[0]
        elif length > 1:
            found.links[chains.tables(number)] = next(rest)


def _entries(chains: LaidChains, truths: Integers, number: int) -> tuple[tuple[Integers, ...], ...]:
    """Return the positions of the scores that a truth adds up."""
    at = np.arange(chains.starts[number], chains.starts[number] + chains.lengths[number])
    tables = chains.tables(number)
    own = (np.arange(tables.start, tables.stop),) if chains.links.ndim == 3 else ()
    return (at, truths[at]), (*own, truths[at[:-1]], truths[at[1:]])


def _truth_scores(chains: LaidChains, truths: Integers, numbers: Integers) -> Floats:
    scores = []
    for number in numbers.tolist():
        at, pairs = _entries(chains, truths, number)
        scores.append(chains.emissions[at].sum() + chains.links[pairs].sum())
    return np.array(scores)


def draw_laid_chains(chains: LaidChains, uniforms: Floats, threads: int) -> Integers:
    """Draw labellings of chains with probability proportional to ``exp F``.

    Parameters
    ----------
    chains : LaidChains
        Scores; -inf forbids a label.
    uniforms : array of shape (draws, T)
        Numbers between 0 and 1, which determine the draws.
    threads : int
        The result does not depend on it.

    Returns
    -------
    int64 array of shape (draws, T)
        0 at positions outside all chains.
    """
    labels, left_out = native.chain_draws(*chains, uniforms, threads)
    numbers = np.flatnonzero(left_out)
    check_scores(chains, numbers)
    for number in numbers.tolist() if len(uniforms) else ():
        start, length = int(chains.starts[number]), int(chains.lengths[number])
        seed = (uniforms[:, start : start + length] * 2**53).astype(np.uint64).ravel()
        try:
            drawn = distribution(chains.model(number)).sample(len(uniforms), rng=seed)
        except InfeasibleError:
            raise InfeasibleError(
                f"scores of -inf forbid all labellings of chain {number}, so none can be drawn"
            ) from None
        labels[:, start : start + length] = drawn
    return labels


def check_refused(batch: native.Batch, numbers: Sequence[int] | Integers, noun: str = "chain") -> None:
    """Raise the error of the first item that exceeds the memory limit."""
    for item, needed in batch.refused[:1].tolist():
        raise BudgetError(
            f"the tables of {noun} {numbers[item]} and their derivatives need {readable_bytes(needed)} or "
            f"more, which exceeds the memory limit; shorten the {noun}, or use a loss with fewer counts"
        )
