"""Kernels for NVIDIA devices: chains, with and without counts, in one launch per operation."""
