"""Distributions conditioned on tallies: ``p(y | the condition holds)``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from tallytree.errors import InfeasibleError, ModelError
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.linear import Term
from tallytree.torch.eager import eager
from tallytree.torch.functions import kept
from tallytree.torch.structured import Structured, TopK
from tallytree.torch.tally import Tally


def checked_condition(condition: Any) -> Constraint:
    """Return a condition on tallies; raise an error if it is invalid."""
    if not isinstance(condition, Constraint):
        raise ModelError(
            f"a condition must compare tallies, as in chain.tally(count) == 3, got {condition!r}"
        )
    if condition.reducing:
        raise ModelError(
            f"'{condition}' is not a condition on tallies alone; use topk(k, where=…) for other constraints"
        )
    return condition


class Conditioned(Structured):
    """The distribution over the structures that satisfy a condition, as returned by :meth:`Chain.given`.

    Its marginals and entropy have no gradient.

    Attributes
    ----------
    whole : Chain or Chart
        The distribution without the condition.
    condition : Constraint
        The condition.

    Examples
    --------
    >>> import tallytree as tt
    >>> from tallytree.torch import Chain
    >>> chain = Chain(torch.zeros(1, 4, 2), torch.zeros(2, 2))
    >>> chain.given(tt.count(state=1) == 1).marginals[0, 0]
    tensor([0.7500, 0.2500])
    """

    def __init__(self, whole: Structured, condition: Constraint | str) -> None:
        self.whole = whole
        self.condition = checked_condition(self._constraint(condition, "the condition"))

    @cached_property
    def _statistics(self) -> tuple[Any, ...]:
        return tuple(self.condition.statistics)

    # --- sums ----------------------------------------------------------------------------------------------

    def _allowed(self, tally: Tally) -> Tensor:
        """Return which tallies satisfy the condition."""
        grids = [grid.cpu().numpy() for grid in tally.grids]
        held = self.condition.holds(dict(zip(self._statistics, grids, strict=False)))
        return torch.from_numpy(held).to(tally.exact.device)

    @kept
    def _tally(self) -> Tally:
        """The tally of the condition's statistics, given the condition."""
        return self.tally(*self._statistics)

    @eager
    def tally(self, *statistics: Any) -> Tally:
        """Return the distribution of tallies given the condition, as :meth:`Chain.tally` does."""
        more = [one for one in statistics if one not in self._statistics]
        joint = self.whole.tally(*self._statistics, *more)
        masked = joint.exact.masked_fill(~self._allowed(joint), -torch.inf)
        kept = [(*self._statistics, *more).index(one) for one in statistics]
        left = [axis for axis in range(len(joint.low)) if axis not in kept]
        moved = masked.permute(0, *(axis + 1 for axis in kept), *(axis + 1 for axis in left))
        summed = logsumexp(moved.flatten(len(kept) + 1), -1) if left else moved
        return Tally(tuple(statistics), summed, tuple(joint.low[axis] for axis in kept), self.dtype)

    @kept
    def _exact_partition(self) -> Tensor:
        return logsumexp(self._tally.exact.flatten(1), 1)

    @property
    def log_condition(self) -> Tensor:
        """The log-probability of the condition itself for each sentence, with gradient."""
        return (self._exact_partition - self.whole._exact_partition).to(self.dtype)

    def _exact_score(self, labels: Tensor) -> Tensor:
        return self.whole._exact_score(labels)

    @eager
    def log_prob(self, labels: Tensor) -> Tensor:
        """Return the log-probability of structures given the condition; -inf for those that violate it."""
        found = super().log_prob(labels)
        flat = labels.detach().cpu().reshape(-1, *self.event_shape)
        held = [self._holds(one, i % len(self.lengths)) for i, one in enumerate(flat)]
        possible = torch.tensor(held, device="cpu").view(found.shape).to(found.device)
        return torch.where(possible, found, -torch.inf)

    def _holds(self, labels: Tensor, number: int) -> bool:
        """Return whether a structure of a sentence satisfies the condition."""
        counted = self._counted(labels, number, self._statistics)
        return bool(self.condition.holds(dict(zip(self._statistics, counted, strict=True))))

    # --- structures ----------------------------------------------------------------------------------------

    @kept
    @eager
    def argmax(self) -> Tensor:
        """The structure with the highest score among those that satisfy the condition."""
        found = self.topk(1)
        missing = torch.nonzero(found.scores[0] == -torch.inf)
        if len(missing):
            raise InfeasibleError(f"nothing in sentence {int(missing[0])} satisfies '{self.condition}'")
        return found.labels[0]

    def topk(self, k: int, where: Constraint | str | None = None) -> TopK:
        """Find the k best structures that satisfy the condition, as :meth:`Chain.topk` does."""
        further = self._constraint(where)
        return self.whole.topk(k, self.condition if further is None else self.condition & further)

    def given(self, condition: Constraint | str) -> Conditioned:
        """Return the distribution given a further condition, as :meth:`Chain.given` does."""
        further = checked_condition(self._constraint(condition, "the condition"))
        return Conditioned(self.whole, self.condition & further)

    @eager
    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw structures that satisfy the condition, as :meth:`Chain.sample` does."""
        return self.draw(sample_shape, generator, self._statistics, self._tally)

    # --- those of the whole --------------------------------------------------------------------------------

    @property
    def lengths(self) -> Tensor:  # type: ignore[override]
        """The number of positions of each sentence."""
        return self.whole.lengths

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The scores."""
        return self.whole.tensors

    def with_tensors(self, *tensors: Tensor) -> Conditioned:
        """Return the same distribution with other scores."""
        return Conditioned(self.whole.with_tensors(*tensors), self.condition)

    def _apart(self) -> Conditioned:
        return Conditioned(self.whole._apart(), self.condition)

    def subjects(self) -> list[Any]:
        """Return the sentences without the condition, for use with the rest of the library."""
        return self.whole.subjects()

    @property
    def event_shape(self) -> torch.Size:
        """The shape of a structure."""
        return self.whole.event_shape

    @property
    def _names(self) -> Sequence[str] | None:
        return self.whole._names

    def _count(self, name: str) -> Term:
        return self.whole._count(name)

    def _written(self, answer: Any, number: int) -> Tensor:
        return self.whole._written(answer, number)

    def _counted(self, labels: Any, number: int, statistics: tuple[Any, ...]) -> list[int]:
        return self.whole._counted(labels, number, statistics)

    def __repr__(self) -> str:
        return f"{self.whole!r} given {self.condition}"


def logsumexp(logits: Tensor, dimension: int) -> Tensor:
    """Return the log of a sum of exponentials; if all of them are 0, -inf with zero derivatives."""
    nothing = (logits == -torch.inf).all(dimension, keepdim=True)
    safe = torch.logsumexp(logits.masked_fill(nothing, 0.0), dimension)
    return safe.masked_fill(nothing.squeeze(dimension), -torch.inf)
