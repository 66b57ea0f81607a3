"""Which code answers for tensors on a device.

A backend is a module with the functions that :mod:`tallytree.torch.cpu` has, on tensors of one device.
Devices without one are answered for on the CPU, and the results are moved back.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import NamedTuple

import torch

from tallytree.errors import PerformanceWarning
from tallytree.torch import cpu


class Backend(NamedTuple):
    """The functions that answer, the device that they take tensors on, and whether they take float32."""

    functions: ModuleType
    device: torch.device
    single: bool = False

    def number(self, dtype: torch.dtype) -> torch.dtype:
        """Return the dtype of scores for those of a dtype."""
        return torch.float32 if self.single and dtype != torch.float64 else torch.float64


CPU = Backend(cpu, torch.device("cpu"))


def backend_of(device: torch.device) -> Backend:
    """Return what answers for tensors on a device."""
    if device.type == "cuda" and torch.version.cuda is not None:
        from tallytree.torch.gpu import backend  # compiles kernels: only where there is such a device

        return Backend(backend, device, single=True)
    if device.type != "cpu":
        warnings.warn(
            f"tensors on {device} are moved to the CPU, where answers are computed, and results back",
            PerformanceWarning,
            stacklevel=2,
        )
    return CPU
