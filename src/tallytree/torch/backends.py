"""The backend for tensors on a device.

A backend is a module with the functions of :mod:`tallytree.torch.cpu`, or some of them, for tensors on one
kind of device. Missing functions run on the CPU, and the results are moved back.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import NamedTuple

import torch

from tallytree.errors import PerformanceWarning
from tallytree.torch import cpu


class Backend(NamedTuple):
    """A module of functions, the device of their tensors, and whether they support float32."""

    functions: ModuleType
    device: torch.device
    single: bool = False

    def number(self, dtype: torch.dtype) -> torch.dtype:
        """Return the dtype that the backend uses for scores of a dtype."""
        return torch.float32 if self.single and dtype != torch.float64 else torch.float64


CPU = Backend(cpu, torch.device("cpu"))


def backend_of(device: torch.device, function: str) -> Backend:
    """Return the backend for tensors on a device, given the function that is needed."""
    module = _module(device)
    if module is not None and hasattr(module, function):
        return Backend(module, device, single=module is not cpu)
    warnings.warn(
        f"{function} is computed on the CPU: tensors on {device} are moved there, and results back",
        PerformanceWarning,
        stacklevel=2,
    )
    return CPU


def _module(device: torch.device) -> ModuleType | None:
    if device.type == "cpu":
        return cpu
    if device.type == "cuda" and torch.version.cuda is not None:
        from tallytree.torch.gpu import backend  # only if there is such a device

        return backend
    return None
