"""Distributions over the taggings of sentences: ``p(y) ∝ exp F(y)``, with scores as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tallytree.answers.solution import Solution
from tallytree.bulk.tallied_chains import bound_on
from tallytree.statistics.recipes import count
from tallytree.statistics.statistic import Recipe
from tallytree.torch.backends import Backend, backend_of
from tallytree.torch.cpu import check, laid
from tallytree.torch.eager import eager
from tallytree.torch.functions import (
    Given,
    Reduction,
    Scores,
    computed,
    ends_of,
    kept,
    right_of,
    score_of,
)
from tallytree.torch.inputs import (
    Ends,
    Lengths,
    checked_chain,
    checked_names,
    checked_statistics,
    checked_tags,
    whole_tags,
)
from tallytree.torch.structured import Structured
from tallytree.torch.tally import Tally


class Chain(Structured):
    """The distribution over the taggings of each sentence of a batch.

    The score of a tagging is ``F(y) = Σ emissions[t, y[t]] + Σ transitions[y[t], y[t + 1]]``, and its
    probability is proportional to ``exp F(y)``. Everything is exact and computed in float64; results have the
    dtype and device of the scores.

    Parameters
    ----------
    emissions : tensor of shape (B, T, C)
        The scores of C tags at T positions of B sentences; -inf forbids a tag.
    transitions : tensor of shape (C, C) or (B, T - 1, C, C)
        The scores of pairs of tags, from row to column: one table for all, or one for each pair of
        neighbouring positions.
    lengths : tensor or list of B int, optional
        The number of positions of each sentence, at least 1; T by default. Positions beyond are ignored.
    mask : bool tensor of shape (B, T), optional
        The same, as ones followed by zeros.
    states : sequence of str, optional
        The names of the tags, for use in statistics and constraints.

    Examples
    --------
    >>> emissions = torch.tensor([[[0.0, 1.0], [0.0, 2.0], [0.0, 4.0]]])
    >>> chain = Chain(emissions, torch.zeros(2, 2))
    >>> chain.argmax
    tensor([[1, 1, 1]])
    >>> chain.log_prob(chain.argmax).exp()
    tensor([0.6323])
    """

    @eager
    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor,
        lengths: Lengths | None = None,
        *,
        mask: Tensor | None = None,
        states: Sequence[str] | None = None,
    ) -> None:
        self.emissions, self.transitions = checked_chain(emissions, transitions)
        self.tags = self.emissions.shape[2]
        self._ends = ends_of(lengths, mask, self.emissions)
        self.states = None if states is None else checked_names(states, "states", self.tags)

    @kept
    def mask(self) -> Tensor:
        """Which positions belong to sentences, as a tensor (B, T)."""
        return self._ends.inside(self.emissions.device)

    @property
    def lengths(self) -> Tensor:  # type: ignore[override]
        """The number of positions of each sentence, on the CPU."""
        return self._ends.lengths

    @property
    def _given(self) -> Given:
        return Given(self.emissions, self.transitions)

    # --- sums ----------------------------------------------------------------------------------------------

    @kept
    def _exact_partition(self) -> Tensor:
        return computed(
            "log_partition",
            lambda backend, scores: backend.functions.log_partition(scores),
            self._ends,
            self._given,
            exact=True,
        )

    def _exact_score(self, labels: Tensor) -> Tensor:
        whole = whole_tags(labels, self.emissions, leading=True)
        known = checked_tags(whole, self.mask, self.tags)
        return score_of(self.emissions, self.transitions, known, self.mask)

    @eager
    def log_prob(self, labels: Tensor) -> Tensor:
        """Return ``log p`` of taggings, with gradient.

        Parameters
        ----------
        labels : int tensor of shape (B, T), or (..., B, T)
            Tags from 0; those in the padding are ignored.

        Returns
        -------
        tensor of shape (B,), or (..., B)
            -inf for a forbidden tagging, whose derivatives are all 0.
        """
        if not isinstance(labels, Tensor) or labels.ndim == 2:
            return log_prob(self._given, self._ends, whole_tags(labels, self.emissions))
        return super().log_prob(labels)

    @kept
    def marginals(self) -> Tensor:
        """The probability of each tag at each position, of shape (B, T, C), with gradient; 0 in padding."""
        return computed(
            "marginals",
            lambda backend, scores: backend.functions.marginals(scores),
            self._ends,
            self._given,
        )

    def entropy(self) -> Tensor:
        """Return the entropy ``−Σ p log p`` of each sentence, in nats, with gradient.

        Examples
        --------
        >>> Chain(torch.zeros(1, 3, 2), torch.zeros(2, 2)).entropy().exp()
        tensor([8.0000])
        """
        return computed(
            "entropy", lambda backend, scores: backend.functions.entropy(scores), self._ends, self._given
        )

    @kept
    def pair_marginals(self) -> Tensor:
        """The expected number of each pair of neighbouring tags; no gradient.

        Of shape (B, T - 1, C, C), with the probabilities at each position, if transitions have that shape;
        otherwise summed over all positions, of shape (C, C).
        """
        return self._slopes[1].to(self.dtype)

    # --- tallies -------------------------------------------------------------------------------------------

    @eager
    def tally(self, *statistics: Any) -> Tally:
        """Return the distribution of the tally, with ``log Σ exp F(y)`` for each value, with gradient.

        Parameters
        ----------
        *statistics : Statistic or Recipe
            The statistics, such as ``tt.count(state=1)``; several are counted jointly.

        Examples
        --------
        The probability that two of three tags are 1:

        >>> import tallytree as tt
        >>> chain = Chain(torch.zeros(1, 3, 2), torch.zeros(2, 2))
        >>> chain.tally(tt.count(state=1)).log_prob(2).exp()
        tensor([0.3750])
        """
        counted, low = checked_statistics(statistics), []

        def compute(backend: Backend, scores: Scores) -> Any:
            values, pull, least = backend.functions.tallied(scores, counted, self.states)
            low.extend(least)
            return values, pull

        logits = computed("tallied", compute, self._ends, self._given, exact=True)
        return Tally(counted, logits, tuple(low), self.dtype)

    # --- labellings ----------------------------------------------------------------------------------------

    def _prepared(self, function: str) -> tuple[Any, Scores]:
        backend = backend_of(self.emissions.device, function)
        return backend.functions, self._given.scores(self._ends, backend)

    @kept
    @eager
    def argmax(self) -> Tensor:
        """The tags with the highest score, of shape (B, T); 0 in the padding."""
        functions, scores = self._prepared("viterbi")
        found: Tensor = functions.viterbi(scores)
        return found.to(self.emissions.device)

    @eager
    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw exact samples.

        Parameters
        ----------
        sample_shape : tuple of int
            The number of samples: ``sample((n,))`` has shape (n, B, T), ``sample()`` has shape (B, T).
        generator : torch.Generator, optional
            The random generator, on the CPU; PyTorch's default otherwise.
        """
        shape = torch.Size(sample_shape)
        size = shape.numel(), *self.emissions.shape[:2]
        uniforms = torch.rand(size, dtype=torch.float64, generator=generator, device="cpu")
        functions, scores = self._prepared("sample")
        drawn: Tensor = functions.sample(scores, uniforms.to(scores.emissions.device))
        return drawn.to(self.emissions.device).reshape(*shape, *size[1:])

    # --- the interface of all structures --------------------------------------------------------------------

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The scores."""
        return self.emissions, self.transitions

    def with_tensors(self, *tensors: Tensor) -> Chain:
        """Return the same distribution with other scores."""
        emissions, transitions = tensors
        return Chain(emissions, transitions, self.lengths, states=self.states)

    def _apart(self) -> Chain:
        batch, longest, tags = self.emissions.shape
        shape = batch, longest - 1, tags, tags
        return self.with_tensors(self.emissions, self.transitions.expand(shape))

    def subjects(self) -> list[Any]:
        """Return the sentences as models, for use with the rest of the library (:class:`Model`)."""
        scores = self._given.scores(self._ends, backend_of(self.device, "models"))
        check(scores)
        chains = laid(scores)
        return [chains.model(number, self.states) for number in range(len(self.lengths))]

    @property
    def _names(self) -> tuple[str, ...] | None:
        return self.states

    def _count(self, name: str) -> Recipe:
        return count(state=name, name=name)

    @property
    def event_shape(self) -> torch.Size:
        """The shape of a tagging."""
        return self.emissions.shape[1:2]

    def _written(self, answer: Any, number: int) -> Tensor:
        tags = torch.zeros(self.event_shape, dtype=torch.int64, device="cpu")
        found = answer.assignment if isinstance(answer, Solution) else answer
        tags[: len(found)] = torch.from_numpy(found.copy())
        return tags

    def _counted(self, labels: Tensor, number: int, statistics: tuple[Any, ...]) -> list[int]:
        length = int(self.lengths[number])
        bound = bound_on(statistics, length, self.tags, self.states).statistics
        return [statistic.tally(labels[:length].numpy()) for statistic in bound]

    def __repr__(self) -> str:
        batch, longest, tags = self.emissions.shape
        return f"Chain({batch} sentences, up to {longest} positions, {tags} tags)"


def log_prob(given: Given, ends: Ends, tags: Tensor, reduction: Reduction = "none") -> Tensor:
    """Return ``log p(tags)`` of each sentence, or its reduction."""

    def compute(backend: Backend, scores: Scores) -> Any:
        return backend.functions.log_prob(scores, right_of(tags, scores, backend))

    return computed("log_prob", compute, ends, given, reduction)
