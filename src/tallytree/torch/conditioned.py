"""Distributions conditioned on tallies: ``p(y | the condition holds)``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from tallytree.errors import InfeasibleError, ModelError
from tallytree.statistics.constraints import Constraint
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


class Conditioned:
    """The distribution over the structures that satisfy a condition, as returned by :meth:`Chain.given`.

    It has the methods of :class:`Chain` and :class:`Chart`.

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
        self.whole, self.condition = whole, checked_condition(whole.condition(condition, "the condition"))

    @cached_property
    def _statistics(self) -> tuple[Any, ...]:
        return tuple(self.condition.statistics)

    def _allowed(self, tally: Tally) -> Tensor:
        """Return which tallies satisfy the condition."""
        grids = [grid.cpu().numpy() for grid in tally.grids]
        held = self.condition.holds(dict(zip(self._statistics, grids, strict=False)))
        return torch.from_numpy(held).to(tally.logits.device)

    @kept
    def _tally(self) -> Tally:
        """The tally of the condition's statistics, given the condition."""
        return self.tally(*self._statistics)

    @eager
    def tally(self, *statistics: Any) -> Tally:
        """Return the distribution of tallies given the condition, as :meth:`Chain.tally` does."""
        more = [one for one in statistics if one not in self._statistics]
        joint = self.whole.tally(*self._statistics, *more)
        masked = joint.logits.masked_fill(~self._allowed(joint), -torch.inf)
        kept = [(*self._statistics, *more).index(one) for one in statistics]
        left = [axis for axis in range(len(joint.low)) if axis not in kept]
        moved = masked.permute(0, *(axis + 1 for axis in kept), *(axis + 1 for axis in left))
        summed = logsumexp(moved.flatten(len(kept) + 1), -1) if left else moved
        return Tally(tuple(statistics), summed, tuple(joint.low[axis] for axis in kept))

    @kept
    def log_partition(self) -> Tensor:
        """``log Σ exp F(y)`` over the structures that satisfy the condition, with gradient."""
        return logsumexp(self._tally.logits.flatten(1), 1)

    @property
    def log_condition(self) -> Tensor:
        """The log-probability of the condition itself for each sentence, with gradient."""
        return self.log_partition - self.whole.log_partition

    @eager
    def log_prob(self, labels: Tensor) -> Tensor:
        """Return the log-probability of structures given the condition; -inf for those that violate it."""
        scores = self.whole.score(labels)
        flat = labels.detach().cpu().reshape(-1, *self.whole.event_shape)
        batch = len(self.whole.lengths)
        held = torch.tensor([self._holds(one, i % batch) for i, one in enumerate(flat)])
        possible = held.view(scores.shape).to(scores.device)
        return (scores - self.log_partition).masked_fill(~possible, -torch.inf)

    def _holds(self, labels: Tensor, number: int) -> bool:
        """Return whether a structure of a sentence satisfies the condition."""
        counted = self.whole._counted(labels, number, self._statistics)
        return bool(self.condition.holds(dict(zip(self._statistics, counted, strict=True))))

    @cached_property
    @eager
    def marginals(self) -> Tensor:
        """The probability of each part given the condition, with the shape of the scores; no gradient."""
        leaves = [one.detach().requires_grad_() for one in self.whole.tensors]
        with torch.enable_grad():
            total = Conditioned(self.whole.with_tensors(*leaves), self.condition).log_partition.sum()
        return torch.autograd.grad(total, leaves[0])[0]

    @cached_property
    @eager
    def argmax(self) -> Tensor:
        """The structure with the highest score among those that satisfy the condition."""
        found = self.whole.topk(1, self.condition)
        missing = torch.nonzero(found.scores[0] == -torch.inf)
        if len(missing):
            raise InfeasibleError(f"nothing in sentence {int(missing[0])} satisfies '{self.condition}'")
        return found.labels[0]

    def topk(self, k: int) -> TopK:
        """Find the k best structures that satisfy the condition, as :meth:`Chain.topk` does."""
        return self.whole.topk(k, self.condition)

    @eager
    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw structures that satisfy the condition, as :meth:`Chain.sample` does."""
        return self.whole.draw(sample_shape, generator, self._statistics, self._tally)

    def __repr__(self) -> str:
        return f"{self.whole!r} given {self.condition}"


def logsumexp(logits: Tensor, dimension: int) -> Tensor:
    """Return the log of a sum of exponentials; if all of them are 0, -inf with zero derivatives."""
    nothing = (logits == -torch.inf).all(dimension, keepdim=True)
    safe = torch.logsumexp(logits.masked_fill(nothing, 0.0), dimension)
    return safe.masked_fill(nothing.squeeze(dimension), -torch.inf)
