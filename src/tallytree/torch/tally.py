"""The distribution of a tally: the probability that a tagging has a given count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tallytree.answers.tallies import whole_numbers
from tallytree.errors import ModelError
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.torch.eager import eager
from tallytree.torch.functions import kept
from tallytree.torch.inputs import shape_of


class Tally:
    """The tallies of some statistics under a distribution, as returned by :meth:`Chain.tally`.

    It can be compared like a statistic: ``t == 3`` is a condition, for :meth:`Chain.given` and ``where=``.

    Attributes
    ----------
    statistics : tuple of Statistic or Recipe
        The statistics that are counted.
    logits : tensor of shape (B, K), or (B, K1, K2, …) for several statistics
        ``log Σ exp F(y)`` over the taggings with each tally, with gradient; -inf for impossible tallies.
    exact : tensor
        The logits in float64, from which everything is computed; results have the dtype of the scores.
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
        self,
        statistics: tuple[Statistic | Recipe, ...],
        logits: Tensor,
        low: tuple[int, ...],
        dtype: torch.dtype | None = None,
    ) -> None:
        self.statistics, self.exact, self.low = statistics, logits, low
        self._dtype = logits.dtype if dtype is None else dtype

    @kept
    def logits(self) -> Tensor:
        """``log Σ exp F(y)`` of each tally, with gradient."""
        return self.exact.to(self._dtype)

    @property
    def sizes(self) -> torch.Size:
        """The shape of the tallies: the number of tallies of each statistic."""
        return self.exact.shape[1:]

    @kept
    def grids(self) -> tuple[Tensor, ...]:
        """The tallies of each statistic, with shapes that broadcast against ``logits``."""
        places = torch.meshgrid(
            *(
                torch.arange(low, low + size, device=self.exact.device)
                for low, size in zip(self.low, self.sizes, strict=True)
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

    @kept
    def _exact_log_probs(self) -> Tensor:
        flat = self.exact.flatten(1)
        nothing = (flat == -torch.inf).all(1, keepdim=True)  # a sentence in which everything is forbidden
        found = torch.log_softmax(flat.masked_fill(nothing, 0.0), 1).masked_fill(nothing, -torch.inf)
        return found.view(self.exact.shape)

    @kept
    def log_probs(self) -> Tensor:
        """The log-probabilities of all tallies, with the shape of ``logits``, with gradient."""
        return self._exact_log_probs.to(self._dtype)

    @property
    def probs(self) -> Tensor:
        """The probabilities of all tallies, with gradient."""
        return self._exact_log_probs.exp().to(self._dtype)

    def shares(self, sentence: int) -> NDArray[np.float64]:
        """Return the probabilities of all tallies of a sentence, in one row; zeros if nothing is allowed."""
        found: NDArray[np.float64] = self._exact_log_probs[sentence].detach().flatten().exp().cpu().numpy()
        return found

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
        rows = torch.arange(len(self.exact), device=self.exact.device)
        index: list[Any] = [rows]
        inside = torch.ones_like(rows, dtype=torch.bool)
        for one, low, size in zip(tally, self.low, self.sizes, strict=True):
            place = _places(one, rows) - low
            inside = inside & (place >= 0) & (place < size)
            index.append(place.clamp(0, size - 1))
        return torch.where(inside, self.log_probs[tuple(index)], -torch.inf)

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
        return self._expected(wanted).to(self._dtype)

    def _expected(self, wanted: Any) -> Tensor:
        """Return the expectation of some values of tallies in float64."""
        known = torch.as_tensor(wanted, device=self.exact.device).to(torch.float64)
        try:
            shaped = known.broadcast_to(self.exact.shape)
        except RuntimeError:
            raise ModelError(
                f"the function returns values of shape {tuple(known.shape)}, but the tallies have shape "
                f"{tuple(self.sizes)}"
            ) from None
        probs = self._exact_log_probs.exp()
        return torch.where(probs > 0, probs * shaped, 0.0).flatten(1).sum(1)

    @property
    def mean(self) -> Tensor:
        """The expected tally of each sentence, with gradient."""
        return self.expect()

    @property
    def variance(self) -> Tensor:
        """The variance of the tally of each sentence, with gradient."""
        apart = self.values - self._expected(self.values).unsqueeze(1)
        return self._expected(apart**2).to(self._dtype)

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
        return f"Tally({names}: {self.sizes.numel()} tallies of {len(self.exact)} sentences)"


_FAR = 2**62
"""Beyond all tallies."""


def _operand(other: Any) -> Any:
    if isinstance(other, Tally):
        return other.statistic.linear()
    if isinstance(other, Tensor) and other.ndim == 0 and not other.dtype.is_floating_point:
        return int(other)
    if isinstance(other, Tensor):
        raise ModelError(
            f"tallies can be compared with one integer, got a tensor {shape_of(other)} of {other.dtype}"
        )
    return other


def _places(tally: Any, rows: Tensor) -> Tensor:
    """Return a tally as one integer for each sentence."""
    if isinstance(tally, Tensor) and not tally.dtype.is_floating_point and tally.shape in ((), rows.shape):
        return tally.to(rows.device).expand(rows.shape)
    if isinstance(tally, Tensor):
        raise ModelError(
            f"a tally must be an integer, or a tensor of integers of shape {shape_of(rows)}, got a tensor "
            f"{shape_of(tally)} of {tally.dtype}"
        )
    return torch.full_like(rows, min(max(whole_numbers([tally])[0], -_FAR), _FAR))


def _condition(found: Any) -> Constraint:
    assert isinstance(found, Constraint)
    return found
