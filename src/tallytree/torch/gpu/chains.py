"""Batches of chains on a GPU: each operation is one launch.

Tensors are on one CUDA device; scores are float32 or float64 and contiguous, lengths int32 and positive,
transitions either one (C, C) table for all steps or (B, T - 1, C, C).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from tallytree.torch.gpu import compiling

NAMES = {torch.float32: "float", torch.float64: "double"}
_WARPS = 4
"""Warps per block for kernels with one warp per sentence."""
_BUSY, _HEAVY = 16, 3
"""Blocks per multiprocessor, for kernels that need few registers and for those that need many."""
_SMALL = 32
"""Up to this number of tags, a block adds up its own tables of derivatives."""


class Padded(ctypes.Structure):
    """The input of a kernel; see ``Padded`` in ``kernels/sentences.cuh``."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("nodes", "weights", "start", "end", "lengths")),
        *((name, ctypes.c_int) for name in ("sentences", "positions", "shared")),
    ]


def address(tensor: Tensor | None) -> int | None:
    """Return the address of a tensor."""
    return None if tensor is None else tensor.data_ptr()


@dataclass(frozen=True)
class Chains:
    """A padded batch; ``start`` and ``end`` (C,) are added to the scores of the first and last states."""

    nodes: Tensor
    weights: Tensor
    lengths: Tensor
    start: Tensor | None = None
    end: Tensor | None = None

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Sentences, positions, states."""
        sentences, positions, states = self.nodes.shape
        return sentences, positions, states

    @cached_property
    def shared(self) -> int:
        """1 if all steps share one table of weights."""
        return int(self.weights.dim() == 2)

    @cached_property
    def padded(self) -> Padded:
        """The batch in the form for kernels."""
        tensors = self.nodes, self.weights, self.start, self.end, self.lengths
        return Padded(*map(address, tensors), *self.shape[:2], self.shared)

    def kernel(self, source: str, name: str, **settings: object) -> compiling.Kernel:
        """Return a kernel for this number of states and this dtype of scores."""
        return compiling.kernel(
            source, name, self.nodes.device, STATES=self.shape[2], SCORE=NAMES[self.nodes.dtype], **settings
        )

    def memory(self, rows: int, factors: bool, tables: bool) -> int:
        """Return the shared memory of a block: rows per warp, exponentials of shared weights, and tables."""
        states = self.shape[2]
        own = rows * states + int(tables and states <= _SMALL) * self.table
        return 8 * (int(factors) * self.shared * states * states + _WARPS * own)

    @property
    def table(self) -> int:
        """The number of entries of a table of derivatives: for weights, and for start and end scores."""
        states = self.shape[2]
        return (states + 2) * states

    @property
    def fits(self) -> bool:
        """Whether the exponentials of shared weights fit in a block: not with too many states."""
        return self.memory(3, True, True) <= compiling.block_memory(self.nodes.device)

    def launch(
        self, source: str, name: str, *arguments: Any, blocks: int, memory: int = 0, **settings: object
    ) -> None:
        """Launch a kernel with one warp per sentence."""
        self.kernel(source, name, **settings)(blocks, _WARPS * 32, memory, self.padded, *arguments)

    def blocks(self, most: int = _BUSY) -> int:
        """Return the number of blocks of a launch with one warp per sentence."""
        return min(-(-self.shape[0] // _WARPS), most * compiling.processors(self.nodes.device))

    def empty(self, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """Return uninitialised memory for results."""
        return torch.empty(shape, dtype=dtype, device=self.nodes.device)

    @property
    def _heavy_blocks(self) -> int:
        """The number of blocks of a launch with tables: as many as are useful, and fit in memory."""
        device, wanted = self.nodes.device, self.blocks(_HEAVY)
        if wanted * self._block_bytes <= compiling.plenty(device):
            return wanted
        return max(1, min(wanted, int(0.9 * compiling.room(device)) // self._block_bytes))

    @property
    def _block_bytes(self) -> int:
        """The bytes per block of a launch with tables: its tables, and the messages of its sentences."""
        _, positions, states = self.shape
        return 8 * (self._tables_of_block * self.table + _WARPS * positions * states)

    @property
    def _tables_of_block(self) -> int:
        return 1 if self.shape[2] <= _SMALL else _WARPS

    @property
    def bytes(self) -> int:
        """The maximum device memory for derivatives, besides inputs and outputs."""
        nodes = self.nodes.numel() * self.nodes.element_size()
        own = 0 if self.shared else 8 * self.weights.numel()
        return nodes + own + self._heavy_blocks * self._block_bytes

    def empty_slopes(self) -> Summed:
        """Return memory for derivatives."""
        nodes, blocks = torch.empty_like(self.nodes), self._heavy_blocks
        if not self.shared:
            return Summed(nodes, torch.zeros_like(self.weights, dtype=torch.float64), 0, blocks)
        count = blocks * self._tables_of_block
        return Summed(nodes, self.empty(count, self.table), count, blocks)


@dataclass(frozen=True)
class Summed:
    """Derivatives for nodes, and for weights in ``count`` tables; in their own shape if ``count`` is 0.

    ``blocks`` is the number of blocks of the launch.
    """

    nodes: Tensor
    edges: Tensor
    count: int
    blocks: int


def likelihood(
    chains: Chains, labels: Tensor | None = None, upstream: Tensor | None = None, *, slopes: bool = False
) -> tuple[Tensor, Summed | None]:
    """Return log Z, or the log-probability of labels (B, T), of each sentence, float64.

    `slopes`: whether to return derivatives, times `upstream` (B,) if given, in the dtype of the scores.
    """
    sentences, positions, states = chains.shape
    values, sums, kept, blocks = chains.empty(sentences), None, None, chains.blocks(_HEAVY)
    if slopes:
        sums = chains.empty_slopes()
        blocks = sums.blocks
        kept = chains.empty(blocks * _WARPS * positions * states)
    where = (None, None) if sums is None else (sums.nodes, sums.edges)
    memory = chains.memory(3, True, slopes)
    arguments = labels, upstream, values, where[0], kept, where[1]
    chains.launch("plain.cu", "likelihood", *arguments, blocks=blocks, memory=memory)
    return values, sums


def gathered(
    chains: Chains, sums: Summed, gain: Tensor | None = None, rate: float = 1.0
) -> tuple[Tensor, ...]:
    """Return derivatives in the shape of the scores, times a gain for all or, if not summed, for each.

    They are for nodes, for weights and, if given, for start and end scores. `gain` has the dtype of the
    scores; `rate` is a factor for all.
    """
    sentences, positions, states = chains.shape
    nodes, shape = torch.empty_like(sums.nodes), (states + 2, states)
    weights = torch.empty_like(chains.weights) if not sums.count else nodes.new_empty(shape)
    uniform = int(gain is None or gain.dim() == 0)
    blocks = min(-(-sentences * positions * states // 256), 8 * compiling.processors(nodes.device))
    chains.kernel("plain.cu", "gather")(
        blocks,
        256,
        0,
        *(chains.padded, gain, compiling.real(rate, "double"), uniform),
        *(sums.nodes, sums.edges, sums.count, nodes, weights),
    )
    if not sums.count:
        return nodes, weights
    if chains.start is None:
        return nodes, weights[:states]
    return nodes, weights[:states], *weights[states:].unbind()


def labelled(chains: Chains, shares: Tensor, labels: Tensor, others: Tensor | None = None) -> Summed:
    """Return the derivatives of the scores of labels (B, T), minus others, times shares (B,), float64."""
    sums, memory = chains.empty_slopes(), chains.memory(0, False, True)
    arguments = labels, others, shares, sums.nodes, sums.edges
    chains.launch("labellings.cu", "labelled", *arguments, blocks=sums.blocks, memory=memory)
    return sums


def viterbi(chains: Chains, words: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best scores, float64, and labels; 0 beyond the end of a sentence."""
    sentences, positions, states = chains.shape
    scores, blocks = chains.empty(sentences), chains.blocks()
    choices = chains.empty(blocks * _WARPS * positions * states, dtype=torch.int32)
    labels = chains.empty(sentences, positions, dtype=torch.int64)
    memory = chains.memory(3, False, False)
    chains.launch("decoding.cu", "viterbi", scores, choices, labels, words, blocks=blocks, memory=memory)
    return scores, labels


def draw(chains: Chains, uniforms: Tensor, words: Tensor) -> Tensor:
    """Return labels drawn by uniform numbers (draws, B, T), float64; 0 beyond the end of a sentence."""
    _, positions, states = chains.shape
    blocks = chains.blocks(_HEAVY)
    kept = chains.empty(blocks * _WARPS * positions * states)
    labels = torch.zeros(uniforms.shape, dtype=torch.int64, device=kept.device)
    arguments = uniforms, kept, labels, len(uniforms), words
    chains.launch("draws.cu", "draw", *arguments, blocks=blocks, memory=chains.memory(3, True, False))
    return labels
