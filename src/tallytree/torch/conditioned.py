"""A distribution given a condition on tallies: ``p(y | the condition holds)``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tallytree.errors import InfeasibleError, ModelError
from tallytree.solving import distribution
from tallytree.statistics.constraints import Constraint
from tallytree.torch.eager import eager
from tallytree.torch.tally import Tally

if TYPE_CHECKING:
    from tallytree.torch.chain import Chain, TopK


def checked_condition(condition: Any) -> Constraint:
    """Return a condition on tallies, or say what is wrong with it."""
    if not isinstance(condition, Constraint):
        raise ModelError(
            f"a condition is a comparison of tallies, as in chain.tally(count) == 3, got {condition!r}"
        )
    if condition.reducing:
        raise ModelError(
            f"'{condition}' is not a condition on tallies alone; topk(k, where=…) takes any constraint"
        )
    return condition


class ConditionedChain:
    """The distribution over the taggings that satisfy a condition, made by :meth:`Chain.given`.

    It has the verbs of :class:`Chain`.

    Attributes
    ----------
    chain : Chain
        The distribution without the condition.
    condition : Constraint
        What holds.

    Examples
    --------
    >>> import tallytree as tt
    >>> from tallytree.torch import Chain
    >>> chain = Chain(torch.zeros(1, 4, 2), torch.zeros(2, 2))
    >>> chain.given(tt.count(state=1) == 1).marginals[0, 0]
    tensor([0.7500, 0.2500])
    """

    def __init__(self, chain: Chain, condition: Constraint) -> None:
        self.chain, self.condition = chain, checked_condition(condition)

    @cached_property
    def _statistics(self) -> tuple[Any, ...]:
        return tuple(self.condition.statistics)

    def _allowed(self, tally: Tally) -> Tensor:
        """Return which tallies satisfy the condition."""
        grids = [grid.cpu().numpy() for grid in tally.grids]
        held = self.condition.holds(dict(zip(self._statistics, grids, strict=False)))
        return torch.from_numpy(held).to(tally.logits.device)

    @cached_property
    def _tally(self) -> Tally:
        """The tally of the condition's statistics, given the condition."""
        return self.tally(*self._statistics)

    @eager
    def tally(self, *statistics: Any) -> Tally:
        """Return the distribution of tallies given the condition, as :meth:`Chain.tally` does."""
        more = [one for one in statistics if one not in self._statistics]
        joint = self.chain.tally(*self._statistics, *more)
        masked = joint.logits.masked_fill(~self._allowed(joint), -torch.inf)
        kept = [(*self._statistics, *more).index(one) for one in statistics]
        left = [axis for axis in range(len(joint.low)) if axis not in kept]
        moved = masked.permute(0, *(axis + 1 for axis in kept), *(axis + 1 for axis in left))
        summed = logsumexp(moved.flatten(len(kept) + 1), -1) if left else moved
        return Tally(tuple(statistics), summed, tuple(joint.low[axis] for axis in kept))

    @cached_property
    def log_partition(self) -> Tensor:
        """``log Σ exp F(y)`` over the taggings that satisfy the condition, with gradient."""
        return logsumexp(self._tally.logits.flatten(1), 1)

    @property
    def log_condition(self) -> Tensor:
        """The log-probability of the condition itself, for each sentence, with gradient."""
        return self.log_partition - self.chain.log_partition

    @eager
    def log_prob(self, tags: Tensor) -> Tensor:
        """Return the log-probability of taggings given the condition; -inf for those that violate it."""
        scores = self.chain.score(tags)
        flat = tags.detach().cpu().reshape(-1, *tags.shape[-2:]).numpy()
        held = torch.from_numpy(np.array([self._holds(rows) for rows in flat]))
        possible = held.view(scores.shape).to(scores.device)
        return (scores - self.log_partition).masked_fill(~possible, -torch.inf)

    def _holds(self, tags: Any) -> list[bool]:
        """Return whether the tagging of each sentence satisfies the condition."""
        held = []
        for row, length in zip(tags, self.chain.lengths.tolist(), strict=True):
            bound = self.chain.bound(self._statistics, length)
            counted = [statistic.tally(row[:length]) for statistic in bound]
            held.append(bool(self.condition.holds(dict(zip(self._statistics, counted, strict=True)))))
        return held

    @cached_property
    @eager
    def marginals(self) -> Tensor:
        """The probability of each tag at each position, given the condition; no gradient."""
        chain = self.chain.detached()
        with torch.enable_grad():
            total = ConditionedChain(chain, self.condition).log_partition.sum()
        return torch.autograd.grad(total, chain.emissions)[0]

    @cached_property
    @eager
    def argmax(self) -> Tensor:
        """The tags of the highest score among those that satisfy the condition."""
        found = self.chain.topk(1, self.condition)
        missing = torch.nonzero(found.scores[0] == -torch.inf)
        if len(missing):
            raise InfeasibleError(f"no tagging of sentence {int(missing[0])} satisfies '{self.condition}'")
        return found.labels[0]

    def topk(self, k: int) -> TopK:
        """Find the k best taggings that satisfy the condition, as :meth:`Chain.topk` does."""
        return self.chain.topk(k, self.condition)

    @eager
    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw taggings that satisfy the condition, as :meth:`Chain.sample` does."""
        shape = torch.Size(sample_shape)
        batch, longest, _ = self.chain.emissions.shape
        drawn = torch.zeros(shape.numel(), batch, longest, dtype=torch.int64)
        probabilities = self._tally.probs.detach().flatten(1).cpu()
        for number, model in enumerate(self.chain.models()):
            if not probabilities[number].isfinite().all():
                raise InfeasibleError(f"no tagging of sentence {number} satisfies '{self.condition}'")
            seeds = torch.randint(2**62, (2,), generator=generator).tolist()
            given = distribution(model, self._statistics)
            rng = np.random.default_rng(seeds)
            shares = probabilities[number].double().numpy()
            cells = rng.choice(len(shares), size=len(drawn), p=shares / shares.sum())
            for cell in np.unique(cells):
                tally = np.unravel_index(cell, self._tally.logits.shape[1:]) + np.array(self._tally.low)
                some = given.sample(int((cells == cell).sum()), tally=tally.tolist(), rng=rng)
                drawn[torch.from_numpy(cells == cell), number, : len(model)] = torch.from_numpy(some)
        return drawn.to(self.chain.emissions.device).reshape(*shape, batch, longest)

    def __repr__(self) -> str:
        return f"{self.chain!r} given {self.condition}"


def logsumexp(logits: Tensor, dimension: int) -> Tensor:
    """Return the log of a sum of exponentials; where all of them are 0, -inf with derivatives that are 0."""
    nothing = (logits == -torch.inf).all(dimension, keepdim=True)
    safe = torch.logsumexp(logits.masked_fill(nothing, 0.0), dimension)
    return safe.masked_fill(nothing.squeeze(dimension), -torch.inf)
