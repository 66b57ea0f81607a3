"""Kernels: the verbs on message tables. Arrays in, arrays out; nothing here knows of models or plans."""
