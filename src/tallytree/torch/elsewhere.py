"""Results for tensors on another device, computed on the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from tallytree.errors import PerformanceWarning
from tallytree.torch.functions import Pull, Scores, ends_slopes

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
    back = tuple(_returned(one, scores) for one in answers)
    return cast(R, back if several else back[0])


def _sent(argument: Any, scores: Scores, count: int) -> Any:
    if not isinstance(argument, Tensor):
        return argument
    return (scores.ends.tags(argument, count) if argument.ndim == 2 else argument).cpu()


def _returned(answer: Any, scores: Scores) -> Any:
    device = scores.emissions.device
    if isinstance(answer, Tensor):
        return answer.to(device)
    return partial(_pulled, answer, scores) if callable(answer) else answer


def _pulled(pull: Pull, scores: Scores, gain: Tensor) -> tuple[Tensor | None, ...]:
    """Return derivatives, also with respect to start and end scores, which the CPU adds to emissions."""
    slopes = pull(gain.to("cpu", torch.float64))
    every = *slopes, *ends_slopes(slopes[0], scores.given, scores.ends)
    return tuple(None if slope is None else slope.to(scores.emissions.device) for slope in every)
