"""Derivatives of the scores of given labellings on a GPU."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tallytree.torch.gpu.chains import Chains, Sizes, Summed, address
from tallytree.torch.gpu.findings import ENDED, slot
from tallytree.torch.gpu.structures import PADDED, packing

_FEW = 32
"""The maximum number of blocks whose tables are added up by the last one."""
_LABELLED = packing(PADDED, "9PdP")
"""Labels, others, shares, gains, slopes, edges, words, by weights, gain, rate, counter:
``kernels/labellings.cu``."""


class Labellings(NamedTuple):
    """Labellings (B, T) and others that are subtracted, with shares (B,), float64; some by address.

    ``owner``: keeps their memory.
    """

    labels: int
    others: Tensor
    shares: int
    owner: object


def room(sizes: Sizes) -> int:
    """Return the number of words of tables of derivatives that the same launch adds up; 0 for many."""
    few = sizes.shared and sizes.heavy_blocks <= _FEW
    return sizes.heavy_blocks * sizes.tables * sizes.table if few else 0


def labelled(chains: Chains, given: Labellings, gains: Tensor | None = None) -> Summed:
    """Return the derivatives of the scores of labellings, times their shares and gains (B,)."""
    sums = _empty(chains)
    _launch(chains, given, sums, address(gains), 0, 0, 0.0, 0)
    return sums


def labelled_by(chains: Chains, given: Labellings, gain: Tensor, rate: float) -> tuple[Tensor, ...] | None:
    """Return gathered derivatives of the scores of labellings, in one launch; None if that would be slow."""
    if not chains.shared or chains.heavy_blocks > _FEW:
        return None
    sums, weights = _empty(chains), torch.empty_like(chains.weights)
    if chains.words:
        _launch(chains, given, sums, 0, weights.data_ptr(), gain.data_ptr(), rate, chains.words + 4 * ENDED)
    else:
        own = slot(chains.device)
        _launch(chains, given, sums, 0, weights.data_ptr(), gain.data_ptr(), rate, own.words + 4 * ENDED)
        own.free()
    return sums.nodes, weights


def _empty(chains: Chains) -> Summed:
    blocks = chains.heavy_blocks
    return chains.empty_slopes(blocks, blocks * chains.sizes.tables)


def _launch(chains: Chains, given: Labellings, sums: Summed, *direct: int | float) -> None:
    gains, *rest = direct
    places = given.labels, given.others.data_ptr(), given.shares, gains
    inputs = _LABELLED(*chains.inputs, *places, sums.nodes.data_ptr(), sums.edges, chains.words, *rest)
    memory = chains.sizes.memory(0, False, True)
    chains.launch("labellings.cu", "labelled", inputs, blocks=sums.blocks, memory=memory)
