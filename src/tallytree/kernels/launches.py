"""Launches of kernels on a GPU by the compiled code, which collects their arguments."""

from tallytree.kernels.native import launch_kernel

__all__ = ["launch_kernel"]
