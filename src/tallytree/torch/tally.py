"""The distribution of a tally: the probability that a tagging has a given count."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce
from operator import mul
from typing import Any

import torch
from torch import Tensor

from tallytree.errors import ModelError
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.torch.eager import eager


class Tally:
    """The tallies of some statistics under a distribution, as returned by :meth:`Chain.tally`.

    It can be compared like a statistic: ``t == 3`` is a condition, for :meth:`Chain.given` and ``where=``.

    Attributes
    ----------
    statistics : tuple of Statistic or Recipe
        The statistics that are counted.
    logits : tensor of shape (B, K), or (B, K1, K2, …) for several statistics
        ``log Σ exp F(y)`` over the taggings with each tally, with gradient; -inf for impossible tallies.
    low : tuple of int
        The tally of the first entry of each axis.

    Examples
    --------
    >>> import tallytree as tt
    >>> from tallytree.torch import Chain
    >>> ones = Chain(torch.zeros(1, 3, 2), torch.zeros(2, 2)).tally(tt.count(state=1))
    >>> ones.values, ones.logits.exp().round()
    (tensor([0, 1, 2, 3]), tensor([[1., 3., 3., 1.]]))
    >>> ones.expect(lambda number: number**2)
    tensor([3.0000])
    """

    def __init__(
        self, statistics: tuple[Statistic | Recipe, ...], logits: Tensor, low: tuple[int, ...]
    ) -> None:
        self.statistics, self.logits, self.low = statistics, logits, low

    @cached_property
    def grids(self) -> tuple[Tensor, ...]:
        """The tallies of each statistic, with shapes that broadcast against ``logits``."""
        places = torch.meshgrid(
            *(
                torch.arange(low, low + size, device=self.logits.device)
                for low, size in zip(self.low, self.logits.shape[1:], strict=True)
            ),
            indexing="ij",
        )
        return tuple(places)

    @property
    def values(self) -> Tensor:
        """The tallies of the entries of ``logits``, if there is one statistic."""
        if len(self.grids) != 1:
            raise ModelError(f"there are {len(self.grids)} statistics; see grids for the tallies of each")
        return self.grids[0]

    @cached_property
    def _flat(self) -> Tensor:
        return self.logits.flatten(1)

    @cached_property
    def log_probs(self) -> Tensor:
        """The log-probabilities of all tallies, with the shape of ``logits``, with gradient."""
        return torch.log_softmax(self._flat, 1).view(self.logits.shape)

    @property
    def probs(self) -> Tensor:
        """The probabilities of all tallies, with gradient."""
        return torch.softmax(self._flat, 1).view(self.logits.shape)

    @eager
    def log_prob(self, *tally: Any) -> Tensor:
        """Return the log-probability of a tally for each sentence, with gradient.

        Parameters
        ----------
        *tally : int, or int tensor of shape (B,)
            One for each statistic; the result is -inf for impossible tallies.
        """
        if len(tally) != len(self.low):
            raise ModelError(f"there are {len(self.low)} statistics, but {len(tally)} tallies were given")
        sizes = self.logits.shape[1:]
        given = [one for one in tally if isinstance(one, int)]
        places: list[Any] = [one - low for one, low in zip(given, self.low, strict=False)]
        if len(places) == len(sizes) and all(
            0 <= one < size for one, size in zip(places, sizes, strict=True)
        ):
            at: Any = slice(None), *places
            return self.log_probs[at].clone()  # without tensors of numbers; the cached ones stay as they are
        rows = torch.arange(len(self.logits), device=self.logits.device)
        index: list[Tensor] = [rows]
        inside = torch.ones_like(rows, dtype=torch.bool)
        for one, low, size in zip(tally, self.low, sizes, strict=True):
            place = torch.as_tensor(one, device=rows.device).expand(rows.shape) - low
            inside = inside & (place >= 0) & (place < size)
            index.append(place.clamp(0, size - 1))
        return self.log_probs[tuple(index)].masked_fill(~inside, -torch.inf)

    def expect(self, function: Callable[..., Tensor] | Tensor | None = None) -> Tensor:
        """Return the expectation of a function of the tally for each sentence, with gradient.

        Parameters
        ----------
        function : callable or tensor, optional
            Called with the tallies of each statistic as integer tensors, elementwise; or its values, with the
            shape of the tallies, and optionally a leading batch dimension. By default the tally itself.
        """
        if function is None:
            wanted: Any = self.values
        else:
            wanted = function if isinstance(function, Tensor) else function(*self.grids)
        known = torch.as_tensor(wanted, device=self.logits.device).to(self.logits.dtype)
        try:
            shaped = known.broadcast_to(self.logits.shape)
        except RuntimeError:
            raise ModelError(
                f"the function returns values of shape {tuple(known.shape)}, but the tallies have shape "
                f"{tuple(self.logits.shape[1:])}"
            ) from None
        return torch.where(self.probs > 0, self.probs * shaped, 0.0).flatten(1).sum(1)

    @property
    def mean(self) -> Tensor:
        """The expected tally of each sentence, with gradient."""
        return self.expect()

    @property
    def variance(self) -> Tensor:
        """The variance of the tally of each sentence, with gradient."""
        return self.expect(lambda tally: tally**2) - self.mean**2

    # --- conditions ----------------------------------------------------------------------------------------

    @property
    def statistic(self) -> Any:
        """The statistic, to combine with others: ``2 * a.statistic - b.statistic <= 3``."""
        if len(self.statistics) != 1:
            raise ModelError(f"there are {len(self.statistics)} statistics; compare one of them at a time")
        return self.statistics[0]

    def __eq__(self, other: object) -> Any:
        return self.statistic == _operand(other)

    def __ne__(self, other: object) -> Any:
        return self.statistic != _operand(other)

    def __le__(self, other: Any) -> Constraint:
        return _condition(self.statistic <= _operand(other))

    def __lt__(self, other: Any) -> Constraint:
        return _condition(self.statistic < _operand(other))

    def __ge__(self, other: Any) -> Constraint:
        return _condition(self.statistic >= _operand(other))

    def __gt__(self, other: Any) -> Constraint:
        return _condition(self.statistic > _operand(other))

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        names = ", ".join(statistic.name for statistic in self.statistics)
        cells = reduce(mul, self.logits.shape[1:], 1)
        return f"Tally({names}: {cells} tallies of {len(self.logits)} sentences)"


def _operand(other: Any) -> Any:
    return other.statistic.linear() if isinstance(other, Tally) else other


def _condition(found: Any) -> Constraint:
    assert isinstance(found, Constraint)
    return found
