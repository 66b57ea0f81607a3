"""Constants shared with the compiled code."""

from tallytree.kernels.native import NO_LIMIT, UNCAPPED

__all__ = ["NO_LIMIT", "UNCAPPED"]
