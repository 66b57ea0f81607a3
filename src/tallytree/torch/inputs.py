"""Input checks: shapes, devices, lengths and masks. The rest of the package relies on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from tallytree.errors import ModelError
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import counted

Lengths = Tensor | Sequence[int]


def shape_of(tensor: Tensor) -> str:
    """Return a shape as text."""
    return f"({', '.join(map(str, tensor.shape))}{',' if tensor.ndim == 1 else ''})"


def checked_floats(tensor: Any, name: str, dimensions: str, ranks: tuple[int, ...]) -> Tensor:
    """Return a floating-point tensor with one of some ranks; raise an error otherwise."""
    if not isinstance(tensor, Tensor):
        raise ModelError(f"{name} must be a tensor of shape {dimensions}, got {type(tensor).__name__}")
    if not tensor.dtype.is_floating_point:
        raise ModelError(f"{name} must have a floating-point dtype, got {tensor.dtype}; use {name}.float()")
    if tensor.ndim not in ranks or 0 in tensor.shape:
        raise ModelError(f"{name} must have shape {dimensions} without zeros, got {shape_of(tensor)}")
    return tensor


def check_devices(**tensors: Tensor | None) -> None:
    """Raise an error for tensors on different devices."""
    devices = {name: tensor.device for name, tensor in tensors.items() if tensor is not None}
    if len(set(devices.values())) > 1:
        places = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise ModelError(f"all tensors must be on the same device, got {places}; move them with .to(device)")


def checked_chain(emissions: Any, transitions: Any) -> tuple[Tensor, Tensor]:
    """Return the scores of chains; raise an error if they are invalid."""
    given = checked_floats(emissions, "emissions", "(batch, positions, tags)", (3,))
    batch, positions, tags = given.shape
    if isinstance(transitions, Tensor) and transitions.ndim == 4 and positions == 1:
        links = transitions  # there are none
    else:
        links = checked_floats(transitions, "transitions", _SQUARE, (2, 4))
    wanted = (tags, tags) if links.ndim == 2 else (batch, positions - 1, tags, tags)
    if links.shape != wanted:
        raise ModelError(
            f"transitions must have shape {_SQUARE}: for emissions of shape {shape_of(given)}, that is "
            f"{wanted}, got {shape_of(links)}"
        )
    if given.device != links.device:
        check_devices(emissions=given, transitions=links)
    return given, links


_SQUARE = "(tags, tags) or (batch, positions - 1, tags, tags)"


class HasLengths(Protocol):
    """Has the lengths of sentences, on any device."""

    @property
    def lengths(self) -> Tensor:
        """The lengths."""


class Ends:
    """Where the sentences of a batch end: lengths, a mask, or neither.

    Types and shapes are checked at once; numbers only when they are needed, since reading them from a GPU
    means waiting for it. Backends that check them on the device need not read them.

    Parameters
    ----------
    lengths, mask
        As for :class:`~tallytree.torch.Chain`.
    batch, longest : int
        The number of sentences, and the maximum number of positions.
    first : bool
        Whether a mask that starts with a zero has a separate error message, as in pytorch-crf.
    """

    def __init__(
        self, lengths: Lengths | None, mask: Any, batch: int, longest: int, *, first: bool = False
    ) -> None:
        if mask is not None and lengths is not None:
            raise ModelError("give either lengths or a mask, not both")
        self.shape, self._first = (batch, longest), first
        self.mask = None if mask is None else _checked_mask(mask, batch, longest)
        self.given = None if lengths is None else _checked_numbers(lengths, batch)
        self._found: tuple[int, HasLengths] | None = None
        if self.given is not None and self.given.device.type == "cpu":
            _check_range(self.given, longest, "lengths")

    @cached_property
    def lengths(self) -> Tensor:
        """The lengths of sentences, as int64 on the CPU."""
        batch, longest = self.shape
        if self._found is not None:
            return self._found[1].lengths.to("cpu", torch.int64)
        if self.mask is not None:
            return _lengths_of_mask(self.mask, longest, self._first)
        if self.given is None:
            return torch.full((batch,), longest, dtype=torch.int64, device="cpu")
        found = self.given.cpu()
        _check_range(found, longest, "lengths")
        return found

    @cached_property
    def total(self) -> int:
        """The total number of positions."""
        return int(self.lengths.sum()) if self._found is None else self._found[0]

    def found(self, total: int, chains: HasLengths) -> None:
        """Store the number of positions and the lengths that a backend has found and checked."""
        self._found = total, chains

    def inside(self, device: torch.device) -> Tensor:
        """Return the mask of sentences on a device."""
        return mask_of(self.lengths.to(device), self.shape[1])

    def tags(self, tags: Tensor, count: int) -> Tensor:
        """Return checked tags: below `count` within sentences, and 0 in the padding."""
        return checked_tags(tags, self.inside(tags.device), count)


def _checked_numbers(lengths: Lengths, batch: int) -> Tensor:
    found = lengths if isinstance(lengths, Tensor) else _tensor(lengths)
    if found.dtype.is_floating_point or found.dtype.is_complex or found.dtype == torch.bool:
        hint = "; pass a mask as mask=" if found.dtype == torch.bool else ""
        raise ModelError(f"lengths must be integers, got {found.dtype}{hint}")
    if found.shape != (batch,):
        raise ModelError(f"lengths must have one number for each of {batch} sentences, got {shape_of(found)}")
    return found.to(torch.int64).contiguous()


def _tensor(lengths: object) -> Tensor:
    try:
        return torch.as_tensor(lengths, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        raise ModelError(f"lengths must be a tensor or a list of integers, got {lengths!r}") from None


def _check_range(lengths: Tensor, longest: int, name: str) -> None:
    low, high = torch.aminmax(lengths)
    if int(low) < 1 or int(high) > longest:
        number = int(torch.nonzero((lengths < 1) | (lengths > longest))[0])
        hint = "; drop empty sentences" if lengths[number] == 0 else ""
        raise ModelError(
            f"{name}: sentence {number} has length {int(lengths[number])}, but lengths must be from 1 to "
            f"{longest}{hint}"
        )


def _checked_mask(mask: Any, batch: int, longest: int) -> Tensor:
    if not isinstance(mask, Tensor) or mask.shape != (batch, longest):
        got = shape_of(mask) if isinstance(mask, Tensor) else type(mask).__name__
        raise ModelError(f"mask must be a tensor of shape ({batch}, {longest}), like emissions, got {got}")
    if mask.dtype is not torch.bool and mask.dtype is not torch.uint8:
        raise ModelError(f"mask must have dtype torch.bool, got {mask.dtype}; use mask.bool()")
    return mask


def _lengths_of_mask(mask: Tensor, longest: int, first: bool) -> Tensor:
    here = mask.bool()
    if first and not here[:, 0].all():
        raise ModelError(
            "mask of the first timestep must all be on, since sentences are not empty; drop empty ones"
        )
    holes = here[:, 1:] & ~here[:, :-1]  # computed on the mask's device, and fetched with the lengths
    found = torch.cat([here.sum(1), holes.any().long().unsqueeze(0)]).cpu()
    lengths = found[:-1]
    if found[-1]:
        number = int(torch.nonzero(holes.any(1))[0])
        raise ModelError(
            f"the mask of sentence {number} has a hole: all ones must come before the zeros; "
            "move the positions of the sentence together; if the tensors have shape (positions, sentences), "
            "transpose them, or pass batch_first=False to a loss"
        )
    _check_range(lengths, longest, "mask")
    return lengths


def turned(tensor: Any) -> Any:
    """Return a tensor with its first two dimensions swapped, so that sentences come first."""
    return tensor.transpose(0, 1) if isinstance(tensor, Tensor) and tensor.ndim > 1 else tensor


def mask_of(lengths: Tensor, longest: int) -> Tensor:
    """Return the mask of sentences, as a tensor (batch, positions)."""
    return torch.arange(longest, device=lengths.device) < lengths.unsqueeze(1)


def whole_tags(tags: Any, emissions: Tensor, leading: bool = False) -> Tensor:
    """Return tags as int64; raise an error unless they have the shape and the device of emissions.

    `leading`: whether leading dimensions are allowed. The range of tags is not checked.
    """
    if not isinstance(tags, Tensor):
        got = f"{type(tags).__name__}; use torch.as_tensor(tags)"
        raise ModelError(f"tags must be a tensor of integers, got {got}")
    dtype = tags.dtype
    if dtype.is_floating_point or dtype.is_complex:
        raise ModelError(f"tags must be a tensor of integers, got {dtype}; use tags.long()")
    batch, positions, *_ = emissions.shape
    if (tags.shape[-2:] if leading else tags.shape) != (batch, positions):
        wanted = batch, positions
        raise ModelError(f"tags must have shape {wanted}, like emissions, got {tuple(tags.shape)}")
    if tags.device != emissions.device:
        check_devices(emissions=emissions, tags=tags)
    return tags if dtype is torch.int64 else tags.long()


def checked_tags(tags: Tensor, inside: Tensor, count: int) -> Tensor:
    """Return int64 tags with 0 in the padding; raise an error if any is out of range.

    `inside`: the mask of sentences. `count`: the number of tags.
    """
    known = tags.masked_fill(~inside, 0)
    if known.numel():
        low, high = torch.stack(torch.aminmax(known)).tolist()
        if low < 0 or high >= count:
            wrong = low if low < 0 else high
            raise ModelError(f"tags must be from 0 to {count - 1}, got {wrong}")
    return known


def checked_names(names: Sequence[str], parameter: str, count: int | None = None) -> tuple[str, ...]:
    """Return the names of tags; raise an error if there are not so many, or two are the same."""
    found = tuple(names)
    if count is not None and len(found) != count:
        raise ModelError(f"there are {count} tags, but {parameter} has {counted(len(found), 'name')}")
    twice = [name for name, times in Counter(found).items() if times > 1]
    if twice:
        raise ModelError(f"{parameter} has {twice[0]!r} twice, but the names of tags must differ")
    return found


def checked_statistics(statistics: Sequence[Any]) -> tuple[Statistic | Recipe, ...]:
    """Return the statistics to count; raise an error if they are invalid."""
    for one in statistics:
        if not isinstance(one, (Statistic, Recipe)):
            raise ModelError(f"expected a statistic, such as tt.count(state=1), got {one!r}")
    if not statistics:
        raise ModelError("tally() needs at least one statistic, as in tally(tt.count(state=1))")
    return tuple(statistics)
