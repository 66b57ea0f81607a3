"""Input checks: shapes, devices, lengths and masks. The rest of the package relies on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tallytree.errors import ModelError
from tallytree.statistics.statistic import Recipe, Statistic

Lengths = Tensor | Sequence[int]


def shape_of(tensor: Tensor) -> str:
    """Return a shape as text."""
    return f"({', '.join(map(str, tensor.shape))}{',' if tensor.ndim == 1 else ''})"


def checked_floats(tensor: Any, name: str, dimensions: str, ranks: tuple[int, ...]) -> Tensor:
    """Return a floating-point tensor with one of some ranks; raise an error otherwise."""
    if not isinstance(tensor, Tensor):
        raise ModelError(f"{name} must be a tensor of shape {dimensions}, got {type(tensor).__name__}")
    if not tensor.is_floating_point():
        raise ModelError(f"{name} must have a floating-point dtype, got {tensor.dtype}; use {name}.float()")
    if tensor.ndim not in ranks or 0 in tensor.shape:
        raise ModelError(f"{name} must have shape {dimensions} without zeros, got {shape_of(tensor)}")
    return tensor


def check_devices(**tensors: Tensor | None) -> None:
    """Raise an error for tensors on different devices."""
    devices = {name: tensor.device for name, tensor in tensors.items() if tensor is not None}
    if len(set(devices.values())) > 1:
        said = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise ModelError(f"all tensors must be on the same device, got {said}; move them with .to(device)")


def checked_chain(emissions: Any, transitions: Any) -> tuple[Tensor, Tensor]:
    """Return the scores of chains; raise an error if they are invalid."""
    given = checked_floats(emissions, "emissions", "(batch, positions, tags)", (3,))
    batch, positions, tags = given.shape
    square = "(tags, tags) or (batch, positions - 1, tags, tags)"
    if isinstance(transitions, Tensor) and transitions.ndim == 4 and positions == 1:
        links = transitions  # there are none
    else:
        links = checked_floats(transitions, "transitions", square, (2, 4))
    wanted = (tags, tags) if links.ndim == 2 else (batch, positions - 1, tags, tags)
    if links.shape != wanted:
        raise ModelError(
            f"transitions must have shape {square}: for emissions of shape {shape_of(given)}, that is "
            f"{wanted}, got {shape_of(links)}"
        )
    check_devices(emissions=given, transitions=links)
    return given, links


def checked_lengths(lengths: Lengths | None, mask: Any, batch: int, longest: int) -> Tensor:
    """Return the lengths of sentences, as int64 on the CPU, from lengths, a mask, or neither."""
    if mask is not None:
        if lengths is not None:
            raise ModelError("give either lengths or a mask, not both")
        return _lengths_of_mask(mask, batch, longest)
    if lengths is None:
        return torch.full((batch,), longest, dtype=torch.int64)
    found = lengths.detach().cpu() if isinstance(lengths, Tensor) else _tensor(lengths)
    if found.dtype.is_floating_point or found.dtype.is_complex or found.dtype == torch.bool:
        raise ModelError(f"lengths must be integers, got {found.dtype}")
    if found.shape != (batch,):
        raise ModelError(f"lengths must have one number for each of {batch} sentences, got {shape_of(found)}")
    _check_range(found, longest, "lengths")
    return found.to(torch.int64)


def _tensor(lengths: object) -> Tensor:
    try:
        return torch.as_tensor(lengths)
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


def _lengths_of_mask(mask: Any, batch: int, longest: int) -> Tensor:
    if not isinstance(mask, Tensor) or mask.shape != (batch, longest):
        got = shape_of(mask) if isinstance(mask, Tensor) else type(mask).__name__
        raise ModelError(f"mask must be a tensor of shape ({batch}, {longest}), like emissions, got {got}")
    if mask.dtype not in (torch.bool, torch.uint8):
        raise ModelError(f"mask must have dtype torch.bool, got {mask.dtype}; use mask.bool()")
    here = mask.detach().bool()
    holes = here[:, 1:] & ~here[:, :-1]  # computed on the mask's device, and fetched with the lengths
    found = torch.cat([here.sum(1), holes.any().long().unsqueeze(0)]).cpu()
    lengths = found[:-1]
    if found[-1]:
        number = int(torch.nonzero(holes.any(1))[0])
        raise ModelError(
            f"the mask of sentence {number} has a hole: all ones must come before the zeros; "
            "move the positions of the sentence together"
        )
    _check_range(lengths, longest, "mask")
    return lengths


def mask_of(lengths: Tensor, longest: int) -> Tensor:
    """Return the mask of sentences, as a tensor (batch, positions)."""
    return torch.arange(longest, device=lengths.device) < lengths.unsqueeze(1)


def checked_tags(tags: Any, inside: Tensor, count: int, leading: bool = False) -> Tensor:
    """Return tags as int64, with 0 in the padding; raise an error if they are invalid.

    `inside`: the mask of sentences. `count`: the number of tags. `leading`: whether leading dimensions
    are allowed.
    """
    if not isinstance(tags, Tensor) or tags.is_floating_point() or tags.is_complex():
        got = tags.dtype if isinstance(tags, Tensor) else type(tags).__name__
        raise ModelError(f"tags must be a tensor of integers, got {got}; use tags.long()")
    shape = tuple(tags.shape[-2:] if leading else tags.shape)
    if shape != tuple(inside.shape):
        raise ModelError(
            f"tags must have shape {tuple(inside.shape)}, like emissions, got {tuple(tags.shape)}"
        )
    check_devices(emissions=inside, tags=tags)
    known = tags.long().masked_fill(~inside, 0)
    if known.numel():
        low, high = torch.stack(torch.aminmax(known)).tolist()
        if low < 0 or high >= count:
            wrong = low if low < 0 else high
            raise ModelError(f"tags must be from 0 to {count - 1}, got {wrong}")
    return known


def checked_statistics(statistics: Sequence[Any]) -> tuple[Statistic | Recipe, ...]:
    """Return the statistics to count; raise an error if they are invalid."""
    for one in statistics:
        if not isinstance(one, (Statistic, Recipe)):
            raise ModelError(f"expected a statistic, such as tt.count(state=1), got {one!r}")
    if not statistics:
        raise ModelError("tally() needs at least one statistic, as in tally(tt.count(state=1))")
    return tuple(statistics)
