"""Which code answers for tensors on a device.

A backend is a module with functions of :mod:`tallytree.torch.cpu`, all or some of them, on float64 tensors of
one kind of device. What it does not have is answered for on the CPU, and the results are moved back.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import NamedTuple

import torch

from tallytree.errors import PerformanceWarning
from tallytree.torch import cpu

MODULES: dict[str, ModuleType] = {"cpu": cpu}
"""The backends, by the types of devices."""


class Backend(NamedTuple):
    """The functions that answer, and the device that they take tensors on."""

    functions: ModuleType
    device: torch.device


CPU = Backend(cpu, torch.device("cpu"))


def backend_of(device: torch.device, function: str) -> Backend:
    """Return what answers for tensors on a device, given the function that is needed."""
    module = MODULES.get(device.type)
    if module is not None and hasattr(module, function):
        return Backend(module, device)
    warnings.warn(
        f"tensors on {device} are moved to the CPU, where {function} is computed, and results back",
        PerformanceWarning,
        stacklevel=2,
    )
    return CPU
