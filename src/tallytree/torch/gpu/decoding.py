"""The best labelling of chains, and samples, on a GPU."""

from __future__ import annotations

import torch
from torch import Tensor

from tallytree.torch.gpu.chains import Chains, address
from tallytree.torch.gpu.structures import FINDINGS, PADDED, Findings, packing

_DECODING = packing(PADDED, "3P", FINDINGS)
"""Scores, choices, labels: ``kernels/decoding.cu``."""
_DRAWING = packing(PADDED, "3P", FINDINGS, "i")
"""Uniform numbers, kept, labels; draws: ``kernels/draws.cu``."""


def viterbi(chains: Chains, found: Findings) -> tuple[Tensor, Tensor]:
    """Return the best scores, float64, and labels; 0 beyond the end of a sentence."""
    sentences, positions, _ = chains.shape
    scores = chains.empty(sentences)
    choices = chains.empty(chains.sizes.blocks * chains.sizes.messages, dtype=torch.int32)
    labels = chains.empty((sentences, positions), dtype=torch.int64)
    inputs = _DECODING(*chains.inputs, *map(address, (scores, choices, labels)), *found)
    chains.launch("decoding.cu", "viterbi", inputs, memory=chains.sizes.memory(3, False, False))
    return scores, labels


def draw(chains: Chains, uniforms: Tensor, found: Findings) -> Tensor:
    """Return labels drawn by uniform numbers (draws, B, T), float64; 0 beyond the end of a sentence."""
    sizes = chains.sizes
    kept = chains.empty(sizes.heavy_blocks * sizes.messages)
    labels = torch.zeros(uniforms.shape, dtype=torch.int64, device=kept.device)
    inputs = _DRAWING(*chains.inputs, *map(address, (uniforms, kept, labels)), *found, len(uniforms))
    memory = sizes.memory(3, True, False)
    chains.launch("draws.cu", "draw", inputs, blocks=sizes.heavy_blocks, memory=memory)
    return labels
