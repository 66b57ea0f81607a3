"""Kernels for NVIDIA devices: chains, with counts and without, each question in one launch."""
