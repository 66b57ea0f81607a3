"""Constants shared with the compiled code."""

from tallytree.kernels.native import NO_LIMIT, SEARCH_SHARE, UNCAPPED

__all__ = ["NO_LIMIT", "SEARCH_SHARE", "UNCAPPED"]
