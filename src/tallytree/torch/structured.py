"""Shared by all distributions over structures: their methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from tallytree.errors import InfeasibleError, ModelError
from tallytree.kbest import k_best
from tallytree.model.inputs import whole_number
from tallytree.solving import distribution
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.formula_constraints import as_condition_on
from tallytree.statistics.formulas import Formula
from tallytree.statistics.linear import Term
from tallytree.torch.eager import eager
from tallytree.torch.functions import attached, dtype_of, kept, slopes_of

if TYPE_CHECKING:
    from tallytree.torch.conditioned import Conditioned
    from tallytree.torch.tally import Tally


class TopK(NamedTuple):
    """The best structures of each sentence, best first.

    Attributes
    ----------
    labels : int64 tensor of shape (k, B, …)
        For chains the tags, (k, B, T); for charts ones where there are constituents. 0 in the padding, and
        if there are fewer than k.
    scores : tensor of shape (k, B)
        Their scores, as part of the graph; -inf if there are fewer than k.
    """

    labels: Tensor
    scores: Tensor


class Structured(ABC):
    """A distribution ``p(y) ∝ exp F(y)`` over the structures of each sentence of a batch."""

    lengths: Tensor

    # --- implemented for each kind of structure ------------------------------------------------------------

    @property
    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """The scores; marginals are for the first tensor."""

    @property
    @abstractmethod
    def _exact_partition(self) -> Tensor:
        """The log-partition in float64, with gradient."""

    @abstractmethod
    def _exact_score(self, labels: Tensor) -> Tensor:
        """Return the scores of structures in float64, with gradient."""

    @abstractmethod
    def tally(self, *statistics: Any) -> Tally:
        """Return the distribution of the tally, with gradient."""

    @abstractmethod
    def with_tensors(self, *tensors: Tensor) -> Self:
        """Return the same distribution with other scores."""

    def _apart(self) -> Structured:
        """Return the same distribution with scores of its own for each sentence."""
        return self

    @abstractmethod
    def subjects(self) -> list[Any]:
        """Return the sentences as models or forests, for use with the rest of the library."""

    @property
    @abstractmethod
    def event_shape(self) -> torch.Size:
        """The shape of a structure."""

    @property
    @abstractmethod
    def _names(self) -> Sequence[str] | None:
        """The names of tags or labels, which stand for their counts in a condition given as a string."""

    @abstractmethod
    def _count(self, name: str) -> Term:
        """Return the statistic that a name stands for."""

    @abstractmethod
    def _written(self, answer: Any, number: int) -> Tensor:
        """Convert a structure of a sentence from the library's form to a tensor."""

    @abstractmethod
    def _counted(self, labels: Any, number: int, statistics: tuple[Any, ...]) -> list[int]:
        """Return the tallies of a structure of a sentence."""

    # --- methods -------------------------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        """The device of the scores and results."""
        return self.tensors[0].device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of results: that of the scores."""
        return dtype_of(self.tensors)

    @kept
    def log_partition(self) -> Tensor:
        """``log Σ_y exp F(y)`` of each sentence, of shape (B,), with gradient."""
        return self._exact_partition.to(self.dtype)

    @eager
    def score(self, labels: Tensor) -> Tensor:
        """Return ``F`` of structures, with gradient.

        Parameters
        ----------
        labels : int tensor of shape (..., B, T) for chains, or (..., B, T, T[, C]) for charts
            Tags; or ones where there are constituents. Whether these form a tree is not checked.
        """
        return self._exact_score(labels).to(self.dtype)

    @eager
    def log_prob(self, labels: Tensor) -> Tensor:
        """Return ``log p`` of structures, given as for :meth:`score`, with gradient.

        It is -inf for a forbidden structure, and its derivatives are all 0.
        """
        scores = self._exact_score(labels)
        found = torch.where(scores == -torch.inf, -torch.inf, scores - self._exact_partition)
        return found.to(self.dtype)

    @kept
    def marginals(self) -> Tensor:
        """The probability of each part, with the shape of the scores; 0 in the padding; no gradient."""
        return self._slopes[0].to(self.dtype)

    @cached_property
    @eager
    def _slopes(self) -> tuple[Tensor, ...]:
        """The derivatives of the sum of all log-partitions, in float64."""
        return slopes_of(lambda *leaves: self.with_tensors(*leaves)._exact_partition.sum(), self.tensors)

    @eager
    def entropy(self) -> Tensor:
        """Return the entropy ``−Σ p log p`` of each sentence, in nats; no gradient."""
        with torch.no_grad():
            total, expected = self._exact_partition, self._apart()._expected_score()
            found = torch.where(total == -torch.inf, 0.0, total - expected)
            values = found.clamp(min=0.0)
        return attached(lambda: (values, _no_slopes), *self.tensors)

    def _expected_score(self) -> Tensor:
        """Return the mean of ``F`` of each sentence."""
        parts = [_mean(t.detach(), s) for t, s in zip(self.tensors, self._slopes, strict=True)]
        return torch.stack(parts).sum(0)

    @property
    @abstractmethod
    def argmax(self) -> Tensor:
        """The structure with the highest score for each sentence; 0 in the padding."""

    @property
    def max(self) -> Tensor:
        """The highest score of each sentence, with gradient."""
        return self.score(self.argmax)

    def _constraint(self, where: Constraint | str | None, what: str = "where") -> Constraint | None:
        """Return a constraint; in a string, the name of a tag or label stands for its count."""
        if not isinstance(where, str):
            return where
        if self._names is None:
            raise ModelError(
                f"{where!r} uses tags by name, but they have no names; pass states=, or use a constraint "
                "such as tt.count(state=1) >= 2"
            )
        return as_condition_on(what, Formula(where), [], self._names, self._count)

    def given(self, condition: Constraint | str) -> Conditioned:
        """Return the distribution over the structures that satisfy a condition on tallies.

        Parameters
        ----------
        condition : Constraint or str
            A condition such as ``tt.count(state=1) <= 3``, or on a tally, ``t == 3``; several are joined by
            ``&`` and ``|``. In a string, the name of a tag or label stands for its count:
            ``"'B-NP' >= 3 or O == 0"``.
        """
        from tallytree.torch.conditioned import Conditioned

        return Conditioned(self, condition)

    @eager
    def topk(self, k: int, where: Constraint | str | None = None) -> TopK:
        """Find the k structures with the highest scores, exactly, among those that satisfy a constraint.

        Parameters
        ----------
        k : int
            The number of structures.
        where : Constraint or str, optional
            The constraint to satisfy, as for :func:`tallytree.solve`; strings as for :meth:`given`.

        Examples
        --------
        >>> import tallytree as tt
        >>> from tallytree.torch import Chain
        >>> chain = Chain(torch.tensor([[[0.0, 1.0], [0.0, 2.0]]]), torch.zeros(2, 2))
        >>> found = chain.topk(2, where=tt.count(state=1) <= 1)
        >>> found.labels[:, 0], found.scores[:, 0]
        (tensor([[0, 1],
                [1, 0]]), tensor([2., 1.]))
        """
        count, batch = whole_number(k, "k", least=1), len(self.lengths)
        constraint = self._constraint(where)
        labels = torch.zeros(count, batch, *self.event_shape, dtype=torch.int64, device="cpu")
        found = torch.zeros(count, batch, dtype=torch.bool, device="cpu")
        for number, subject in enumerate(self.subjects()):
            for rank, one in enumerate(k_best(subject, count, where=constraint)):
                labels[rank, number] = self._written(one, number)
                found[rank, number] = True
        labels, found = labels.to(self.device), found.to(self.device)
        scores = self.score(labels.masked_fill(~_spread(found, labels), 0))
        return TopK(labels, scores.masked_fill(~found, -torch.inf))

    @abstractmethod
    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw exact samples.

        Parameters
        ----------
        sample_shape : tuple of int
            The number of samples: ``sample((n,))`` has a leading dimension of n.
        generator : torch.Generator, optional
            The random generator, on the CPU; PyTorch's default otherwise.
        """

    def draw(
        self,
        sample_shape: Sequence[int],
        generator: torch.Generator | None,
        statistics: tuple[Any, ...] = (),
        tallies: Tally | None = None,
    ) -> Tensor:
        """Draw structures one sentence at a time, with tallies of the given probabilities."""
        shape = torch.Size(sample_shape)
        sizes = shape.numel(), len(self.lengths), *self.event_shape
        drawn = torch.zeros(sizes, dtype=torch.int64, device="cpu")
        for number, subject in enumerate(self.subjects()):
            seed = torch.randint(2**62, (2,), generator=generator, device="cpu")
            rng = np.random.default_rng(seed.tolist())
            try:
                known = distribution(subject, statistics)
            except InfeasibleError:
                raise InfeasibleError(
                    f"scores of -inf forbid everything in sentence {number}, so nothing can be drawn"
                ) from None
            for rows, tally in _drawn_tallies(tallies, number, len(drawn), rng):
                some = known.sample(len(rows), tally=tally, rng=rng)
                for row, one in zip(rows.tolist(), some, strict=True):
                    drawn[row, number] = self._written(one, number)
        return drawn.to(self.device).reshape(*shape, *drawn.shape[1:])


def _drawn_tallies(
    tallies: Tally | None, number: int, count: int, rng: np.random.Generator
) -> list[tuple[Any, list[int] | None]]:
    """Return which draws have which tally."""
    if tallies is None:
        return [(np.arange(count), None)]
    shares = tallies.shares(number)
    if not shares.any():
        raise InfeasibleError(f"nothing in sentence {number} satisfies the condition, so none can be drawn")
    cells = rng.choice(len(shares), size=count, p=shares / shares.sum())
    low, sizes = np.array(tallies.low), tallies.sizes
    return [
        (np.flatnonzero(cells == cell), (np.array(np.unravel_index(cell, sizes)) + low).tolist())
        for cell in np.unique(cells)
    ]


def _spread(found: Tensor, labels: Tensor) -> Tensor:
    return found.reshape(*found.shape, *(1 for _ in labels.shape[2:])).expand(labels.shape)


def _mean(scores: Tensor, marginals: Tensor) -> Tensor:
    """Return the contribution of scores to the mean, by sentence; forbidden parts contribute nothing."""
    weighted = torch.where(marginals == 0, 0.0, scores.double() * marginals.double())
    return weighted.flatten(1).sum(1)


def _no_slopes(gain: Tensor) -> Any:
    raise ModelError("entropy() has no gradient here; log_prob, log_partition and tallies have one")
