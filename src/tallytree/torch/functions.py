"""Autograd functions: values with their first derivatives.

A backend computes values and returns them with their vector-Jacobian product, which maps derivatives
with respect to values to derivatives with respect to scores. One autograd function serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from tallytree.torch.backends import CPU, Backend, backend_of, looks
from tallytree.torch.eager import eager
from tallytree.torch.inputs import Ends, Lengths

Reduction = Literal["none", "sum", "mean", "token_mean"]
"""How to reduce the values of sentences; ``"token_mean"`` divides their sum by the number of positions."""


@dataclass(slots=True)
class Scores:
    """The input of a backend: tensors on its device, in float64 or another supported dtype.

    Attributes
    ----------
    emissions : tensor of shape (B, T, C)
        The scores of tags at all positions.
    transitions : tensor of shape (C, C) or (B, T - 1, C, C)
        The scores of pairs of tags, from row to column.
    ends : Ends
        The number of positions of each sentence.
    start, end : tensor of shape (C,), optional
        Added to the scores of the first and last tags; only for backends that support them.
    slopes : bool
        Whether derivatives will be needed.
    reduction : str
        How a backend that checks its inputs reduces the values of sentences.
    """

    emissions: Tensor
    transitions: Tensor
    ends: Ends
    start: Tensor | None = None
    end: Tensor | None = None
    slopes: bool = False
    reduction: Reduction = "none"

    @property
    def lengths(self) -> Tensor:
        """The lengths of sentences, as int64 on the CPU."""
        return self.ends.lengths

    @property
    def given(self) -> Given:
        """The scores alone."""
        return Given(self.emissions, self.transitions, self.start, self.end)

    def on_cpu(self) -> Scores:
        """Return the scores on the CPU, in float64, with start and end scores added to the emissions."""
        return self.given.scores(self.ends, CPU)


Slopes = tuple[Tensor, ...]
"""Derivatives with respect to emissions and transitions, and start and end scores if supported."""

Pull = Callable[..., Slopes]
"""A vector-Jacobian product with respect to the scores; takes one gain per value, or one for all.

Backends that check their inputs also take gains of any dtype.
"""

Compute = Callable[[Backend, Scores], tuple[Tensor, Pull]]
"""Computes values with a backend."""


class Given(NamedTuple):
    """The scores given by the user, of any floating-point dtype and on any device; parts may be missing."""

    emissions: Tensor
    transitions: Tensor
    start: Tensor | None = None  # (C,): added to the first emissions
    end: Tensor | None = None  # (C,): added to the last ones

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of results: that of the scores."""
        return dtype_of(self)

    @property
    def needs_slopes(self) -> bool:
        """Whether derivatives may be needed."""
        if torch.is_grad_enabled():
            for one in self:
                if one is not None and one.requires_grad:
                    return True
        return False

    def scores(
        self, ends: Ends, backend: Backend, slopes: bool = False, reduction: Reduction = "none"
    ) -> Scores:
        """Return the scores in the form for a backend."""
        dtype, device = backend.number(self.dtype), backend.device
        emissions, transitions, start, end = [_moved(one, device, dtype) for one in self]
        assert emissions is not None and transitions is not None
        if backend.looks:
            return Scores(emissions, transitions, ends, start, end, slopes, reduction)
        emissions, transitions = emissions.detach(), transitions.detach()
        if start is not None or end is not None:
            emissions = emissions.clone() if emissions.data_ptr() == self.emissions.data_ptr() else emissions
            if start is not None:
                emissions.select(1, 0).add_(start.detach())
            if end is not None:
                emissions.flatten(0, 1).index_add_(0, _last(ends), end.detach().expand(len(emissions), -1))
        return Scores(emissions, transitions, ends, slopes=slopes)


def dtype_of(tensors: Sequence[Tensor | None]) -> torch.dtype:
    """Return the dtype that can represent some tensors."""
    found: torch.dtype | None = None
    for one in tensors:
        if one is not None and one.dtype is not found:
            found = one.dtype if found is None else torch.promote_types(found, one.dtype)
    assert found is not None
    return found


def _last(ends: Ends) -> Tensor:
    """Return the indices of the last positions of sentences, with all positions numbered consecutively."""
    batch, longest = ends.shape
    return torch.arange(-1, batch * longest - 1, longest, device="cpu") + ends.lengths


def _moved(tensor: Tensor | None, device: torch.device, dtype: torch.dtype) -> Tensor | None:
    if tensor is None or (tensor.dtype is dtype and tensor.is_contiguous() and tensor.device == device):
        return tensor  # the usual case, without a call to PyTorch
    return tensor.detach().to(device, dtype).contiguous()


def ends_of(lengths: Lengths | None, mask: Any, emissions: Tensor, *, first: bool = False) -> Ends:
    """Return where sentences end, checked at once unless a GPU does it later."""
    batch, longest, *_ = emissions.shape
    ends = Ends(lengths, mask, batch, longest, first=first)
    if not looks(emissions.device):
        _ = ends.lengths
    return ends


def right_of(tags: Tensor, scores: Scores, backend: Backend) -> Tensor:
    """Return the true tags in the form for a backend, unchecked if it checks them itself."""
    if backend.looks:
        return tags.contiguous()
    return scores.ends.tags(tags, scores.emissions.shape[2]).to(backend.device)


Shares = Callable[[Tensor], Sequence[Tensor | None]]
"""A vector-Jacobian product with respect to tensors."""

Evaluate = Callable[[], tuple[Tensor, Shares]]


class _Computed(torch.autograd.Function):
    """Values, with their vector-Jacobian product."""

    @staticmethod
    def forward(ctx: Any, evaluate: Evaluate, dtype: torch.dtype, *tensors: Tensor | None) -> Tensor:
        values, ctx.shares = evaluate()
        ctx.save_for_backward(*tensors)
        first = tensors[0]
        assert first is not None
        same = values.dtype == dtype and values.device == first.device
        return values if same else values.to(first.device, dtype)

    @staticmethod
    def backward(ctx: Any, *gains: Tensor) -> Any:
        tensors, shares = ctx.saved_tensors, ctx.shares  # an error if the graph has been freed
        if not _keeps_graph():
            ctx.shares = None
        if not torch.is_grad_enabled():
            return None, None, *map(_like, shares(gains[0]), tensors)
        with torch.no_grad():
            slopes = [*map(_like, shares(gains[0]), tensors)]
        once: Any = _Once.apply
        return None, None, *once(len(slopes), *slopes, gains[0], *tensors)


def _apply(evaluate: Evaluate, dtype: torch.dtype, *tensors: Tensor | None) -> Tensor:
    """Call the autograd function, without PyTorch's wrapper in Python unless ``torch.func`` needs it."""
    call: Callable[..., Tensor] = _Computed.apply if _transformed() else _called
    return call(evaluate, dtype, *tensors)


_called: Any = super(torch.autograd.Function, _Computed).apply
_transformed: Any = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
# Whether `backward` was called with `retain_graph`; PyTorch frees saved tensors otherwise, but nothing else.
_keeps_graph: Any = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: True)


def _like(slope: Tensor | None, given: Tensor | None) -> Tensor | None:
    if slope is None or given is None:
        return None
    alike = slope.dtype is given.dtype and slope.device == given.device
    return slope if alike else slope.to(given.device, given.dtype)


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


def slopes_of(value: Callable[..., Tensor], tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the derivatives of a function with respect to tensors, in float64 and in any mode of PyTorch."""
    with torch.inference_mode(False), torch.enable_grad():
        leaves = [one.detach().to(torch.float64, copy=True).requires_grad_() for one in tensors]
        return torch.autograd.grad(value(*leaves), leaves)


@eager
def attached(evaluate: Evaluate, *tensors: Tensor | None, exact: bool = False) -> Tensor:
    """Return float64 values as part of the graph of some tensors, on their device.

    `exact`: whether to return them in float64, rather than in the dtype of the tensors.
    """
    return _apply(evaluate, torch.float64 if exact else dtype_of(tensors), *tensors)


@eager
def computed(
    function: str,
    compute: Compute,
    ends: Ends,
    given: Given,
    reduction: Reduction = "none",
    exact: bool = False,
) -> Tensor:
    """Return values that a backend computes from the scores of chains, as part of their graph.

    `function`: the backend function that is needed. `compute`: calls it. `reduction`: of its values.
    `exact`: as for :func:`attached`.
    """
    needed = given.needs_slopes

    def evaluate() -> tuple[Tensor, Shares]:
        backend = backend_of(given.emissions.device, function)
        values, pull = compute(backend, given.scores(ends, backend, needed, reduction))
        if backend.looks:
            return values, lambda gain: (*pull(gain), None, None)[: len(given)]
        total, pulled = reduced(values, pull, reduction, ends)

        def shares(gain: Tensor) -> list[Tensor | None]:
            found = pulled(gain.to(backend.device, torch.float64))
            return [*found, *ends_slopes(found[0], given, ends)]

        return total, shares

    return _apply(evaluate, torch.float64 if exact else given.dtype, *given)


def reduced(values: Tensor, pull: Pull, reduction: Reduction, ends: Ends) -> tuple[Tensor, Pull]:
    """Return the reduction of the values of sentences, and its vector-Jacobian product."""
    if reduction == "none":
        return values, pull
    count = {"sum": 1, "mean": len(values)}.get(reduction) or ends.total
    return values.sum() / count, lambda gain: pull(gain / count)


def ends_slopes(by_emissions: Tensor, given: Given, ends: Ends) -> tuple[Tensor | None, Tensor | None]:
    """Return the derivatives with respect to start and end scores, which were added to emissions."""
    start = end = None
    if given.start is not None:
        start = by_emissions.select(1, 0).sum(0)
    if given.end is not None:
        end = by_emissions.flatten(0, 1).index_select(0, _last(ends)).sum(0)
    return start, end


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
