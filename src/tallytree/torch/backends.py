"""Which code answers for tensors on a device.

A backend is a module with the functions that :mod:`tallytree.torch.cpu` has, on float64 tensors of one
device. Devices without one are answered for on the CPU, and the results are moved back.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import NamedTuple

import torch

from tallytree.errors import PerformanceWarning
from tallytree.torch import cpu


class Backend(NamedTuple):
    """The functions that answer, and the device that they take tensors on."""

    functions: ModuleType
    device: torch.device


CPU = Backend(cpu, torch.device("cpu"))


def backend_of(device: torch.device) -> Backend:
    """Return what answers for tensors on a device."""
    if device.type != "cpu":
        warnings.warn(
            f"tensors on {device} are moved to the CPU, where answers are computed, and results back",
            PerformanceWarning,
            stacklevel=2,
        )
    return CPU
