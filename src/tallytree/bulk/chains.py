"""The best labellings of many chains over one set of labels, from a few long arrays.

The same answers as :func:`solve_batch` and :func:`loss_augmented_batch`, for learning, which needs hundreds
of thousands of them: no models are built for the chains, and no statistics for the truths. What a loss counts
is stored in tables that serve all truths (:mod:`tallytree.bulk.truth_tables`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.bulk.batch import solve_batch
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.kind_tables import Integers
from tallytree.bulk.labellings import Labellings
from tallytree.bulk.loss_batch import most_violated
from tallytree.bulk.truth_tables import BY_ESTIMATE, Search, TruthTables
from tallytree.errors import PerformanceWarning
from tallytree.kernels import native
from tallytree.losses.base import Loss
from tallytree.losses.scaling import Scaling, checked_scaling
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit, readable_bytes, thread_count
from tallytree.planning.orders import skeleton

Found = list[tuple[Integers, float]]
"""Labellings of a chain and their losses, the best one first."""


class Chains(NamedTuple):
    """Chains over one set of labels."""

    emissions: NDArray[np.float64]  # (T, N): the label scores at all positions, chains concatenated
    # (N, N): the scores of pairs of labels; or (L, N, N): those of each pair of neighbours, in order
    links: NDArray[np.float64]
    lengths: Sequence[int]  # the lengths of the chains
    names: tuple[str, ...] | None  # the labels

    @property
    def plain(self) -> bool:
        """Whether all scores are finite and no chain is empty, so that no models are needed."""
        finite = np.isfinite(self.emissions).all() and np.isfinite(self.links).all()
        return bool(finite) and min(self.lengths, default=0) > 0

    def scores(self, labels: Integers) -> NDArray[np.float64]:
        """Return the score of a labelling of each chain; labels are concatenated."""
        count = len(self.lengths)
        owners = np.repeat(np.arange(count), self.lengths)
        same = owners[1:] == owners[:-1]
        pairs = labels[:-1][same], labels[1:][same]
        linked = np.zeros(len(same))
        linked[same] = self.links[pairs if self.links.ndim == 2 else (np.arange(len(pairs[0])), *pairs)]
        given = self.emissions[np.arange(len(labels)), labels]
        counted = np.bincount(owners, given, count) + np.bincount(owners[1:], linked, count)
        return np.asarray(counted, dtype=np.float64)

    def models(self) -> list[Model]:
        """Return the chains as models."""
        return self.at(range(len(self.lengths)))

    def part(self, first: int, last: int) -> Chains:
        """Return some of them."""
        begin, end = sum(self.lengths[:first]), sum(self.lengths[:last])
        links = self.links if self.links.ndim == 2 else self.links[begin - first : end - last]
        return self._replace(
            emissions=self.emissions[begin:end], links=links, lengths=self.lengths[first:last]
        )

    def at(self, numbers: Sequence[int]) -> list[Model]:
        """Return some of the chains as models."""
        each = (self.part(i, i + 1) for i in numbers)
        return [Model.chain(one.emissions, one.links, states=one.names) for one in each]


def best_of_chains(
    chains: Chains,
    loss: Loss | None = None,
    truths: Sequence[Integers] = (),
    scaling: Scaling = "margin",
    count: int = 1,
    threads: int | None = None,
    search: Search = BY_ESTIMATE,
) -> list[Found]:
    """Find the labellings of the highest score, or those that most violate the margin.

    `chains`: label scores. `loss`: a recipe. Without one, the labelling with the highest score is found for
    each chain. `truths`: the true labels, as numbers, if there is a loss. `scaling`: how the loss enters.
    `count`: with a loss, how many labellings per chain: the best of each of the best tallies, fewer if
    there are fewer. For one, a linear loss is folded into the scores. `threads`: by default the number of
    processors; the answers do not depend on it. Returns the best first. Chains that exceed the
    memory limit are solved as models, with a warning; so are all chains, without a warning, if a score is not
    finite or the loss has no tables.

    Examples
    --------
    >>> import tallytree as tt
    >>> chains = Chains(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)), [3], ("O", "B"))
    >>> best_of_chains(chains, tt.losses.FBeta(background="O"), [np.array([0, 0, 1])], "slack")
    [[(array([1, 1, 1]), 0.5)]]
    >>> best_of_chains(chains)
    [[(array([1, 1, 1]), 0.0)]]
    """
    if loss is None and (labels := best_labels(chains, threads)) is not None:
        ends = np.cumsum(chains.lengths).tolist()
        return [[(labels[end - n : end], 0.0)] for end, n in zip(ends, chains.lengths, strict=True)]
    work = _Work(chains, loss, truths, scaling, count, threads, search)
    if not chains.plain or (loss is not None and work.tables is None):
        return work.in_models(range(len(chains.lengths)))
    found, refused = work.in_batch()
    if len(refused):
        warnings.warn(
            f"the tables of {len(refused)} chains exceed the memory limit (one needs "
            f"{readable_bytes(refused['bytes'][0])} or more): they are solved as models, which takes longer",
            PerformanceWarning,
            stacklevel=2,
        )
        numbers = refused["item"].tolist()
        for number, some in zip(numbers, work.in_models(numbers), strict=True):
            found[number] = some
    return found


def best_labels(chains: Chains, threads: int | None = None) -> Integers | None:
    """Find the labellings of the highest score, concatenated, without plans and their tables.

    None if a score is not finite, a chain is empty, neighbours have their own tables, the memory limit is
    too low, or a labelling does not have the score that the messages promise: :func:`best_of_chains` solves
    these, or raises an error.

    Examples
    --------
    >>> best_labels(Chains(np.array([[0., 1], [2, 0], [0, 4]]), np.zeros((2, 2)), [2, 1], None))
    array([1, 0, 1])
    """
    emissions, links, lengths, _ = chains
    if links.ndim != 2 or not chains.plain:
        return None
    labels = emissions.shape[1]
    used = thread_count(threads)
    if threads is None and emissions.size * labels < _WORTH_THREADS:
        used = 1
    if used * _ROW_BYTES * (labels + 8) * (max(lengths) + 2 * labels) > default_memory_limit():
        return None
    starts = np.cumsum([0, *lengths], dtype=np.int64)
    found, wrong = native.chain_labels(emissions, links, starts[:-1], np.diff(starts), used)
    return None if wrong.any() else found


_ROW_BYTES = 8  # for each label at a position
_WORTH_THREADS = 1_000_000
"""The number of operations of plain passes below which threads cost more than they save."""


class _Work(NamedTuple):
    """The arguments of :func:`best_of_chains`."""

    chains: Chains
    loss: Loss | None
    truths: Sequence[Integers]
    scaling: Scaling
    tallies: int
    threads: int | None
    search: Search

    @property
    def tables(self) -> TruthTables | None:
        """What the loss counts."""
        labels = self.chains.emissions.shape[1]
        return None if self.loss is None else truth_tables(self.loss, labels, self.chains.names)

    def in_batch(self) -> tuple[list[Found], NDArray[np.void]]:
        """Return the results of one native batch, and the chains that it rejected."""
        emissions, links, lengths, _ = self.chains
        batch = native.Batch(native.TallyMode.AUTO, default_memory_limit())
        tables, truths, folded = self.tables, None, True
        if tables is None:
            skeletons = [plain_chain(length, emissions.shape[1]) for length in lengths]
        else:
            checked_scaling(self.scaling, tables.recipe)
            labels = np.concatenate(self.truths)
            truths, folded = tables.truths(
                labels, lengths, self.scaling, count=self.tallies, folds=True, search=self.search
            )
            skeletons = [tables.chain(length, not folded) for length in lengths]
        batch.add_chains(skeletons, emissions, links, truths)
        small = folded and emissions.size * emissions.shape[1] < _WORTH_THREADS
        batch.run(1 if self.threads is None and small else thread_count(self.threads))
        answers = Labellings(*batch.labellings())
        answers.certify()
        found: list[Found] = [[] for _ in lengths]
        for chain, begin, end, loss in answers.columns("item", "labels_begin", "labels_end", "loss"):
            found[chain].append((answers.labels[begin:end], loss))
        return found, batch.refused

    def in_models(self, numbers: Sequence[int]) -> list[Found]:
        """Return the results for some of the chains as models."""
        models = self.chains.at(numbers)
        if self.loss is None:
            return [[(one.assignment, 0.0)] for one in solve_batch(models, threads=self.threads)]
        truths = [self.truths[i] for i in numbers]
        found = most_violated(models, self.loss, truths, self.scaling, self.tallies, self.threads)
        return [[(one.assignment, one.loss) for one in some] for some in found]


@lru_cache(maxsize=1024)
def plain_chain(length: int, labels: int) -> native.Skeleton:
    """Return the program of a chain without statistics."""
    return skeleton(Model.chain(np.zeros((length, labels)), np.zeros((labels, labels))), [])
