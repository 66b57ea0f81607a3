"""Batches of chains on a GPU: each operation is one launch.

Tensors are on one CUDA device; scores are float32 or float64 and contiguous, lengths int32 and positive,
transitions either one (C, C) table for all steps or (B, T - 1, C, C).
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.findings import ENDED, Findings, slot
from tallytree.torch.gpu.structures import (
    NO_FINDINGS,
    NO_TOTAL,
    Decoding,
    Drawing,
    Ends,
    Gathering,
    Labelled,
    Likelihood,
    Padded,
    Total,
)

NAMES = {torch.float32: "float", torch.float64: "double"}
_WARPS = 4
"""Warps per block for kernels with one warp per sentence."""
_BUSY, _HEAVY = 16, 3
"""Blocks per multiprocessor, for kernels that need few registers and for those that need many."""
_FEW = 32
"""The maximum number of blocks whose tables are added up by the last one."""
SMALL = 32
"""Up to this number of tags, a block adds up its own tables of derivatives."""


def address(tensor: Tensor | None) -> int | None:
    """Return the address of a tensor."""
    return None if tensor is None else tensor.data_ptr()


@lru_cache(maxsize=1024)
def _kernels(device: torch.device, dtype: torch.dtype, states: int) -> dict[Any, compiling.Kernel]:
    """Return the kernels for scores of a dtype that were used so far."""
    return {}


class Chains:
    """A padded batch.

    Parameters
    ----------
    nodes, weights : tensor
        Scores, on one device.
    lengths : int32 tensor of shape (B,), optional
        If None, a kernel finds them from the mask or the numbers given.
    start, end : tensor of shape (C,), optional
        Added to the scores of the first and last states.
    mask, given : tensor, optional
        Where sentences end: a mask (B, T) of bytes, or lengths as int64; T by default.

    Attributes
    ----------
    words : int, optional
        In a CUDA graph: the address of findings that make derivatives 0.
    right : int
        The address of memory for the scores of true tags; 0 if lengths are given.
    """

    def __init__(
        self,
        nodes: Tensor,
        weights: Tensor,
        lengths: Tensor | None,
        start: Tensor | None = None,
        end: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        given: Tensor | None = None,
    ) -> None:
        self.shape: tuple[int, int, int] = tuple(nodes.shape)  # type: ignore[assignment]
        self.device, self.shared = nodes.device, int(weights.dim() == 2)
        self.nodes, self.weights, self.start, self.end = nodes, weights, start, end
        sentences, positions, _ = self.shape
        self.right = 0
        if lengths is None:  # behind two values for each sentence
            size = 2 * sentences + (sentences + 1) // 2
            self._own = torch.empty(size, dtype=torch.float64, device=self.device)
            self.right = self._own.data_ptr() + 8 * sentences
            place = self.right + 8 * sentences
        else:
            self._own, place = lengths, lengths.data_ptr()
        scores = nodes.data_ptr(), weights.data_ptr(), address(start), address(end)
        self.padded = Padded(*scores, place, sentences, positions, self.shared)
        self._given = mask, given  # keeps their memory
        self.ends = Ends(address(mask), address(given))
        self.words: int | None = None

    @property
    def lengths(self) -> Tensor:
        """The number of positions of each sentence, int32."""
        if self._own.dtype == torch.int32:
            return self._own
        return self._own[2 * self.shape[0] :].view(torch.int32)[: self.shape[0]]

    @property
    def scores_of_tags(self) -> Tensor:
        """The scores of the true tags (B,), float64, which a kernel puts at the address ``right``."""
        return self._own[self.shape[0] : 2 * self.shape[0]]

    def values(self, again: bool) -> Tensor:
        """Return memory that begins with a float64 value for each sentence; new memory if `again`."""
        return self.empty(self.shape[0]) if again or self._own.dtype == torch.int32 else self._own

    def kernel(self, source: str, name: str, **settings: object) -> compiling.Kernel:
        """Return a kernel for this number of states and this dtype of scores."""
        known, key = _kernels(self.device, self.nodes.dtype, self.shape[2]), (name, *settings.values())
        if key not in known:
            score = NAMES[self.nodes.dtype]
            known[key] = compiling.kernel(
                source, name, self.device, STATES=self.shape[2], SCORE=score, **settings
            )
        return known[key]

    def memory(self, rows: int, factors: bool, tables: bool) -> int:
        """Return the shared memory of a block: rows per warp, exponentials of shared weights, and tables."""
        states = self.shape[2]
        own = rows * states + int(tables and states <= SMALL) * self.table
        return 8 * (int(factors) * self.shared * states * states + _WARPS * own)

    @property
    def table(self) -> int:
        """The number of entries of a table of derivatives: for weights, and for start and end scores."""
        states = self.shape[2]
        return (states + 2) * states

    @property
    def fits(self) -> bool:
        """Whether the exponentials of shared weights fit in a block: not with too many states."""
        return self.memory(3, True, True) <= compiling.block_memory(self.device)

    def launch(
        self, source: str, name: str, inputs: Any, *, blocks: int, memory: int = 0, **settings: object
    ) -> None:
        """Launch a kernel with one warp per sentence."""
        self.kernel(source, name, **settings)(blocks, _WARPS * 32, memory, inputs)

    def blocks(self, most: int = _BUSY) -> int:
        """Return the number of blocks of a launch with one warp per sentence."""
        return min(-(-self.shape[0] // _WARPS), most * compiling.processors(self.device))

    def empty(self, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
        """Return uninitialised memory for results."""
        return torch.empty(shape, dtype=dtype, device=self.device)

    @cached_property
    def _heavy_blocks(self) -> int:
        """The number of blocks of a launch with tables: as many as are useful, and fit in memory."""
        wanted, each = self.blocks(_HEAVY), self._block_bytes
        if wanted * each <= compiling.plenty(self.device):
            return wanted
        return max(1, min(wanted, int(0.9 * compiling.room(self.device)) // each))

    @property
    def _block_bytes(self) -> int:
        """The bytes per block of a launch with tables: its tables, and the messages of its sentences."""
        return 8 * (self._tables_of_block * self.table + self._kept)

    @property
    def _kept(self) -> int:
        """The number of messages of the sentences of a block."""
        return _WARPS * self.shape[1] * self.shape[2]

    @property
    def _tables_of_block(self) -> int:
        return 1 if self.shape[2] <= SMALL else _WARPS

    @property
    def bytes(self) -> int:
        """The maximum device memory for derivatives, besides inputs and outputs."""
        nodes = self.nodes.numel() * self.nodes.element_size()
        own = 0 if self.shared else 8 * self.weights.numel()
        return nodes + own + self._heavy_blocks * self._block_bytes

    @property
    def apart(self) -> bool:
        """Whether a launch with tables has a warp for each sentence, so that each can have its own table."""
        return bool(self.shared) and self._heavy_blocks * _WARPS >= self.shape[0]

    def empty_slopes(self, *, blocks: int = 0, tables: int = 0, kept: bool = False) -> Summed:
        """Return memory for derivatives, of one table for each block or of some number, and for messages."""
        nodes, blocks = torch.empty_like(self.nodes), blocks or self._heavy_blocks
        messages = blocks * self._kept if kept else 0
        if not self.shared:
            steps = torch.zeros(self.weights.shape, dtype=torch.float64, device=self.device)
            memory = self.empty(messages) if kept else None
            return Summed(nodes, steps, memory, address(memory), 0, blocks)
        count = tables or blocks * self._tables_of_block
        edges = self.empty(count * self.table + messages)
        return Summed(nodes, edges, None, edges.data_ptr() + 8 * count * self.table, count, blocks)


class Summed(NamedTuple):
    """Derivatives for nodes, and for weights in ``tables`` tables; in their own shape if that is 0.

    ``kept`` is the address of memory for messages, which may be that of ``messages``; ``blocks`` is the
    number of blocks of the launch.
    """

    nodes: Tensor
    edges: Tensor
    messages: Tensor | None
    kept: int | None
    tables: int
    blocks: int


def likelihood(
    chains: Chains,
    labels: Tensor | None = None,
    upstream: Tensor | None = None,
    *,
    slopes: bool = False,
    apart: bool = False,
    found: Findings = NO_FINDINGS,
    total: Total = NO_TOTAL,
) -> tuple[Tensor, Summed | None]:
    """Return log Z, or the log-probability of labels (B, T), of each sentence, float64.

    `slopes`: whether to return derivatives, times `upstream` (B,) if given, in the dtype of the scores; with
    the tables of sentences `apart`. `found`: for checks of the inputs, which also find the lengths.
    """
    values, sums = chains.values(again=not total.total), None
    nodes = edges = kept = None
    if slopes:
        sums = chains.empty_slopes(tables=chains._heavy_blocks * _WARPS if apart else 0, kept=True)
        nodes, edges, kept = sums.nodes.data_ptr(), sums.edges.data_ptr(), sums.kept
    inputs = Likelihood(
        chains.padded,
        chains.ends,
        *(address(labels), address(upstream), values.data_ptr(), nodes, kept, edges),
        found,
        total,
        int(apart),
    )
    blocks, memory = chains.blocks(_HEAVY) if sums is None else sums.blocks, chains.memory(3, True, slopes)
    chains.launch("plain.cu", "likelihood", inputs, blocks=blocks, memory=memory)
    return values, sums if sums is None or not apart else sums._replace(tables=chains.shape[0])


def gathered(
    chains: Chains, sums: Summed, gain: Tensor | None = None, rate: float = 1.0, *, in_place: bool = False
) -> tuple[Tensor, ...]:
    """Return derivatives in the shape of the scores, times a gain for all or, unless summed, for each.

    They are for nodes, for weights and, if given, for start and end scores. `gain` has the dtype of the
    scores; `rate` is a factor for all; 0 is one over the number of
    positions. `in_place`: whether those for nodes may be overwritten.
    """
    nodes = sums.nodes if in_place else torch.empty_like(sums.nodes)
    weights = torch.empty_like(chains.weights)
    start = end = None
    if sums.tables and chains.start is not None and chains.end is not None:
        start, end = torch.empty_like(chains.start), torch.empty_like(chains.end)
    inputs = Gathering(
        chains.padded,
        *(address(gain), rate, sums.nodes.data_ptr(), sums.edges.data_ptr()),
        *(nodes.data_ptr(), weights.data_ptr(), address(start), address(end)),
        *(int(gain is None or is_uniform(gain)), sums.tables, chains.words),
    )
    blocks = min(-(-nodes.numel() // 256), 8 * compiling.processors(chains.device))
    chains.kernel("plain.cu", "gather")(blocks, 256, 0, inputs)
    return (nodes, weights) if start is None or end is None else (nodes, weights, start, end)


def is_uniform(gain: Tensor) -> bool:
    """Return whether a tensor is known to have one value: it has no dimension, or one that is expanded."""
    return not gain.dim() or not gain.stride(0)


class Labellings(NamedTuple):
    """Labellings (B, T) and others that are subtracted, with shares (B,), float64; some by address.

    ``owner``: keeps their memory.
    """

    labels: int
    others: Tensor
    shares: int
    owner: object


def labelled(chains: Chains, given: Labellings, gains: Tensor | None = None) -> Summed:
    """Return the derivatives of the scores of labellings, times their shares and gains (B,)."""
    sums = chains.empty_slopes()
    _launch_labelled(chains, given, sums, gains)
    return sums


def labelled_by(chains: Chains, given: Labellings, gain: Tensor, rate: float) -> tuple[Tensor, ...] | None:
    """Return gathered derivatives of the scores of labellings, in one launch; None if that would be slow."""
    if not chains.shared or chains._heavy_blocks > _FEW:
        return None
    sums, weights = chains.empty_slopes(), torch.empty_like(chains.weights)
    words, own = chains.words, None
    if words is None:
        own = slot(chains.device)
        words = own.words
    direct = weights.data_ptr(), gain.data_ptr(), rate, words + 4 * ENDED
    _launch_labelled(chains, given, sums, None, *direct)
    if own is not None:
        own.free()
    return sums.nodes, weights


def _launch_labelled(
    chains: Chains, given: Labellings, sums: Summed, gains: Tensor | None, *direct: int | float
) -> None:
    places = given.labels, given.others.data_ptr(), given.shares, address(gains)
    results = sums.nodes.data_ptr(), sums.edges.data_ptr(), chains.words
    inputs, memory = Labelled(chains.padded, *places, *results, *direct), chains.memory(0, False, True)
    chains.launch("labellings.cu", "labelled", inputs, blocks=sums.blocks, memory=memory)


def viterbi(chains: Chains, found: Findings) -> tuple[Tensor, Tensor]:
    """Return the best scores, float64, and labels; 0 beyond the end of a sentence."""
    sentences, positions, _ = chains.shape
    scores, blocks = chains.empty(sentences), chains.blocks()
    choices = chains.empty(blocks * chains._kept, dtype=torch.int32)
    labels = chains.empty(sentences, positions, dtype=torch.int64)
    inputs = Decoding(chains.padded, *map(address, (scores, choices, labels)), found)
    memory = chains.memory(3, False, False)
    chains.launch("decoding.cu", "viterbi", inputs, blocks=blocks, memory=memory)
    return scores, labels


def draw(chains: Chains, uniforms: Tensor, found: Findings) -> Tensor:
    """Return labels drawn by uniform numbers (draws, B, T), float64; 0 beyond the end of a sentence."""
    blocks = chains.blocks(_HEAVY)
    kept = chains.empty(blocks * chains._kept)
    labels = torch.zeros(uniforms.shape, dtype=torch.int64, device=kept.device)
    inputs = Drawing(chains.padded, *map(address, (uniforms, kept, labels)), found, len(uniforms))
    chains.launch("draws.cu", "draw", inputs, blocks=blocks, memory=chains.memory(3, True, False))
    return labels
