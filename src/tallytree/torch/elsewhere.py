"""Results for tensors on another device, computed on the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor

from tallytree.errors import PerformanceWarning

if TYPE_CHECKING:
    from tallytree.torch.functions import Scores

R = TypeVar("R")


def moved(scores: Scores) -> Scores:
    """Return scores on the CPU, in float64."""
    emissions, transitions = (one.to("cpu", torch.float64) for one in scores[:2])
    return scores._replace(emissions=emissions, transitions=transitions, lengths=scores.lengths.cpu())


def on_cpu(function: Callable[..., R], scores: Scores, what: str, *arguments: Any) -> R:
    """Call a CPU function with scores from another device, and move its results there."""
    device = scores.emissions.device
    warnings.warn(
        f"there is no kernel for {what} on {device}: scores are moved to the CPU, and results back",
        PerformanceWarning,
        stacklevel=2,
    )
    found = function(moved(scores), *(one.cpu() if isinstance(one, Tensor) else one for one in arguments))
    several = isinstance(found, tuple)
    answers: Any = found if several else (found,)
    back = tuple(_returned(one, device) for one in answers)
    return cast(R, back if several else back[0])


def _returned(answer: Any, device: torch.device) -> Any:
    if isinstance(answer, Tensor):
        return answer.to(device)
    if callable(answer):
        return lambda gain: tuple(slope.to(device) for slope in answer(gain.cpu()))
    return answer
