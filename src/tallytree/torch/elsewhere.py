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


def on_cpu(function: Callable[..., R], scores: Scores, what: str, *arguments: Any) -> R:
    """Call a CPU function with scores from another device, and move its results there.

    Arguments of shape (B, T) are true tags.
    """
    device, count = scores.emissions.device, scores.emissions.shape[2]
    warnings.warn(
        f"there is no kernel for {what} on {device}: scores are moved to the CPU, and results back",
        PerformanceWarning,
        stacklevel=2,
    )
    given = [_sent(one, scores, count) for one in arguments]
    found = function(scores.on_cpu(), *given)
    several = isinstance(found, tuple)
    answers: Any = found if several else (found,)
    back = tuple(_returned(one, device) for one in answers)
    return cast(R, back if several else back[0])


def _sent(argument: Any, scores: Scores, count: int) -> Any:
    if not isinstance(argument, Tensor):
        return argument
    return (scores.ends.tags(argument, count) if argument.ndim == 2 else argument).cpu()


def _returned(answer: Any, device: torch.device) -> Any:
    if isinstance(answer, Tensor):
        return answer.to(device)
    if callable(answer):
        return lambda gain: tuple(slope.to(device) for slope in answer(gain.to("cpu", torch.float64)))
    return answer
