"""The backend for tensors on a device.

A backend is a module with the functions of :mod:`tallytree.torch.cpu`, or some of them, for tensors on one
kind of device. Missing functions run on the CPU, and the results are moved back.
"""

from __future__ import annotations

import warnings
from functools import cache
from types import ModuleType
from typing import NamedTuple

import torch

from tallytree.errors import PerformanceWarning
from tallytree.torch import cpu


class Backend(NamedTuple):
    """A module of functions, and the device of their tensors.

    ``looks``: whether they take scores as given, in float32 or with start and end scores, and check masks,
    tags and scores themselves.
    """

    functions: ModuleType
    device: torch.device
    looks: bool = False

    def number(self, dtype: torch.dtype) -> torch.dtype:
        """Return the dtype that the backend uses for scores of a dtype."""
        return torch.float32 if self.looks and dtype != torch.float64 else torch.float64


CPU = Backend(cpu, torch.device("cpu"))

_IN_WORDS = {"models": "the answer for each sentence", "charts": "the answer for each chart"}


def backend_of(device: torch.device, function: str) -> Backend:
    """Return the backend for tensors on a device, given the function that is needed."""
    module = _module(device)
    if module is not None and hasattr(module, function):
        return _backend(module, device)
    result = _IN_WORDS.get(function, function)
    warnings.warn(
        f"{result} is computed on the CPU: tensors on {device} are moved there, and results back",
        PerformanceWarning,
        stacklevel=2,
    )
    return CPU


@cache
def _backend(module: ModuleType, device: torch.device) -> Backend:
    return Backend(module, device, looks=module is not cpu)


def looks(device: torch.device) -> bool:
    """Return whether inputs on a device are checked there, when they are first needed."""
    return _module(device) not in (None, cpu)


@cache
def _module(device: torch.device) -> ModuleType | None:
    if device.type == "cpu":
        return cpu
    return _gpu() if device.type == "cuda" and torch.version.cuda is not None else None


@cache
def _gpu() -> ModuleType:
    from tallytree.torch.gpu import backend  # only if there is such a device

    return backend
