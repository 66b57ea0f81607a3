"""Autograd functions: values with their first derivatives.

A backend computes values and returns them with their vector-Jacobian product, which maps derivatives
with respect to values to derivatives with respect to scores. One autograd function serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from tallytree.torch.backends import Backend, backend_of
from tallytree.torch.eager import eager


class Scores(NamedTuple):
    """The input of a backend: tensors on its device, in float64 or another supported dtype.

    Attributes
    ----------
    emissions : tensor of shape (B, T, C)
        The scores of tags at all positions.
    transitions : tensor of shape (C, C) or (B, T - 1, C, C)
        The scores of pairs of tags, from row to column.
    lengths : int64 tensor of shape (B,)
        The number of positions of each sentence.
    """

    emissions: Tensor
    transitions: Tensor
    lengths: Tensor


Slopes = tuple[Tensor, Tensor]
"""Derivatives with respect to emissions and transitions."""

Pull = Callable[[Tensor], Slopes]
"""A vector-Jacobian product with respect to the scores."""

Compute = Callable[[Any, Scores], tuple[Tensor, Pull]]
"""Computes values with a backend's functions."""


class Given(NamedTuple):
    """The scores given by the user, of any floating-point dtype and on any device; parts may be missing."""

    emissions: Tensor
    transitions: Tensor
    start: Tensor | None = None  # (C,): added to the first emissions
    end: Tensor | None = None  # (C,): added to the last ones

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of results: that of the scores."""
        return torch.promote_types(self.emissions.dtype, self.transitions.dtype)

    def detached(self) -> Given:
        """Return the scores detached from the graph."""
        start, end = (None if one is None else one.detach() for one in self[2:])
        return Given(self.emissions.detach(), self.transitions.detach(), start, end)

    def scores(self, lengths: Tensor, backend: Backend) -> Scores:
        """Return the scores in the form for a backend."""
        dtype = backend.number(self.dtype)
        emissions, transitions, start, end = (_moved(one, backend.device, dtype) for one in self.detached())
        assert emissions is not None and transitions is not None
        lengths = lengths.to(backend.device)
        if start is not None or end is not None:
            emissions = emissions.clone() if emissions.data_ptr() == self.emissions.data_ptr() else emissions
            if start is not None:
                emissions.select(1, 0).add_(start)
            if end is not None:
                emissions.flatten(0, 1).index_add_(0, _last(emissions, lengths), end.expand(len(lengths), -1))
        return Scores(emissions, transitions, lengths)


def _last(emissions: Tensor, lengths: Tensor) -> Tensor:
    """Return the indices of the last positions of sentences, with all positions numbered consecutively."""
    batch, longest = emissions.shape[:2]
    return torch.arange(-1, batch * longest - 1, longest, device=lengths.device) + lengths


def _moved(tensor: Tensor | None, device: torch.device, dtype: torch.dtype) -> Tensor | None:
    return None if tensor is None else tensor.to(device, dtype).contiguous()


Shares = Callable[[Tensor], Sequence[Tensor | None]]
"""A vector-Jacobian product with respect to tensors."""


class _Computed(torch.autograd.Function):
    """Values, with their vector-Jacobian product."""

    @staticmethod
    def forward(ctx: Any, evaluate: Callable[[], tuple[Tensor, Shares]], *tensors: Tensor | None) -> Tensor:
        values, ctx.shares = evaluate()
        ctx.device = values.device
        ctx.save_for_backward(*tensors)
        given = [one for one in tensors if one is not None]
        dtype = reduce(torch.promote_types, (one.dtype for one in given))
        return values.to(given[0].device, dtype)

    @staticmethod
    def backward(ctx: Any, *gains: Tensor) -> Any:
        tensors = ctx.saved_tensors
        with torch.no_grad():
            found = ctx.shares(gains[0].to(ctx.device, torch.float64))
            slopes = [
                None if slope is None or given is None else slope.to(given.device, given.dtype)
                for slope, given in zip(found, tensors, strict=True)
            ]
        if not torch.is_grad_enabled():
            return None, *slopes
        once: Any = _Once.apply
        return None, *once(len(slopes), *slopes, gains[0], *tensors)


class _Once(torch.autograd.Function):
    """Derivatives that cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor | None) -> tuple[Tensor | None, ...]:
        return tuple(None if one is None else one.view_as(one) for one in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gains: Tensor) -> Any:
        raise NotImplementedError(
            "tallytree.torch only supports first derivatives, but a second one was requested; call "
            "backward() without create_graph=True, or detach the tensors"
        )


T = TypeVar("T")


def kept(function: Callable[[Any], T]) -> T:
    """Make a cached property: cached once with gradients, and once without."""
    name = f"_kept_{function.__name__}"

    @wraps(function)
    def found(self: Any) -> T:
        mode = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        known: dict[tuple[bool, bool], T] = self.__dict__.setdefault(name, {})
        if mode not in known:
            known[mode] = function(self)
        return known[mode]

    return property(found)  # type: ignore[return-value]


@eager
def attached(evaluate: Callable[[], tuple[Tensor, Shares]], *tensors: Tensor | None) -> Tensor:
    """Return float64 values as part of the graph of some tensors, with their dtype and device."""
    apply: Any = _Computed.apply
    found: Tensor = apply(evaluate, *tensors)
    return found


@eager
def computed(function: str, compute: Compute, lengths: Tensor, given: Given) -> Tensor:
    """Return values that a backend computes from the scores of chains, as part of their graph.

    `function`: the backend function that is needed. `compute`: calls it.
    """

    def evaluate() -> tuple[Tensor, Shares]:
        backend = backend_of(given.emissions.device, function)
        scores = given.scores(lengths, backend)
        values, pull = compute(backend.functions, scores)

        def shares(gain: Tensor) -> list[Tensor | None]:
            by_emissions, by_transitions = pull(gain)
            start = end = None
            if given.start is not None:
                start = by_emissions.select(1, 0).sum(0)
            if given.end is not None:
                rows = by_emissions.flatten(0, 1)
                end = rows.index_select(0, _last(by_emissions, scores.lengths)).sum(0)
            return [by_emissions, by_transitions, start, end]

        return values, shares

    return attached(evaluate, *given)


def score_of(emissions: Tensor, transitions: Tensor, tags: Tensor, inside: Tensor) -> Tensor:
    """Add up the scores of taggings in float64; `inside` is the mask of sentences."""
    shape = (*tags.shape, emissions.shape[-1])
    local = emissions.expand(shape).gather(-1, tags.unsqueeze(-1)).squeeze(-1).double()
    total = local.masked_fill(~inside, 0.0).sum(-1)
    before, after = tags[..., :-1], tags[..., 1:]
    if transitions.ndim == 2:
        linked = transitions[before, after]
    else:
        batch = torch.arange(inside.shape[0], device=tags.device).unsqueeze(1)
        places = torch.arange(inside.shape[1] - 1, device=tags.device)
        linked = transitions[batch, places, before, after]
    return total + linked.double().masked_fill(~inside[:, 1:], 0.0).sum(-1)
