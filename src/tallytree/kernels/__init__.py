"""Kernels: operations on message tables. Arrays in, arrays out; independent of models and plans."""
