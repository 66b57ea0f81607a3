"""Batches of chains on a GPU: each operation is one launch.

Tensors are on one CUDA device; scores are float32 or float64 and contiguous, lengths int32 and positive,
transitions either one (C, C) table for all steps or (B, T - 1, C, C).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tallytree.torch.gpu import compiling
from tallytree.torch.gpu.structures import (
    ENDS,
    FINDINGS,
    NO_FINDINGS,
    NO_TOTAL,
    PADDED,
    TOTAL,
    Findings,
    Total,
    packing,
)

LITTLE = 1 << 17
"""The maximum number of words that may be kept for a call until its graph is gone, to save an allocation."""
NAMES = {torch.float32: "float", torch.float64: "double"}
_WARPS = 4
"""Warps per block for kernels with one warp per sentence."""
_BUSY, _HEAVY = 16, 3
"""Blocks per multiprocessor, for kernels that need few registers and for those that need many."""
SMALL = 32
"""Up to this number of tags, a block adds up its own tables of derivatives."""


_LIKELIHOOD = packing(PADDED, ENDS, "6P", FINDINGS, TOTAL, "di")
"""Labels, upstream, values, slopes, kept, edges; sign, apart: ``Likelihood`` in ``kernels/plain.cu``."""
_GATHERING = packing(PADDED, "Pd6P2iP")
"""Gains, rate, slopes, edges, by nodes, weights, start, end; uniform, tables; words: there, too."""


def address(place: Tensor | int | None) -> int:
    """Return the address of a tensor, or one that is known; 0 for None."""
    return 0 if place is None else place if isinstance(place, int) else place.data_ptr()


class Sizes:
    """What the launches for batches of one shape depend on.

    Attributes
    ----------
    shape, shared
        Sentences, positions and states; whether weights are shared by all steps.
    kernels : dict
        The kernels that were used so far.
    blocks, heavy_blocks : int
        The blocks of a launch with one warp per sentence, if threads need few registers or many.
    table : int
        The number of entries of a table of derivatives: for weights, and for start and end scores.
    tables, messages : int
        The tables of a block, and the numbers of the messages of its sentences.
    room : int
        The number of words of the tables and messages of a launch if they are few; otherwise 0.
    fits : bool
        Whether the exponentials of shared weights fit in a block: not with too many states.
    """

    def __init__(
        self, shape: tuple[int, int, int], shared: int, warps: int, processors: int, block_memory: int
    ) -> None:
        sentences, positions, self._states = self.shape = tuple(shape)
        self.shared, self._warps = shared, warps
        self.kernels: dict[Any, compiling.Kernel] = {}
        each = -(-sentences // warps)
        self.blocks, self.heavy_blocks = (min(each, most * processors) for most in (_BUSY, _HEAVY))
        self.table = (self._states + 2) * self._states
        self.tables = 1 if self._states <= SMALL else warps
        self.messages = warps * positions * self._states
        self.block_bytes = 8 * (self.tables * self.table + 2 * self.messages)
        self.fits = self.memory(3, True, True) <= block_memory
        derivatives = self.heavy_blocks * self.block_bytes // 8
        self.room = derivatives if shared and derivatives <= LITTLE else 0

    def memory(self, rows: int, factors: bool, tables: bool) -> int:
        """Return the shared memory of a block: rows per warp, exponentials of shared weights, and tables."""
        own = rows * self._states + (self.table if tables and self._states <= SMALL else 0)
        return 8 * (int(factors) * self.shared * self._states**2 + self._warps * own)


@lru_cache(maxsize=1024)
def _sizes(_device: torch.device, _dtype: torch.dtype, *given: Any) -> Sizes:
    return Sizes(*given)  # one for each device and dtype, which have their own kernels


def sizes_of(nodes: Tensor, weights: Tensor) -> Sizes:
    """Return the sizes for scores (B, T, C) and weights."""
    device, shared = nodes.device, int(weights.dim() == 2)
    numbers = shared, _WARPS, compiling.processors(device), compiling.block_memory(device)
    return _sizes(device, nodes.dtype, nodes.shape, *numbers)


class Memory(NamedTuple):
    """A part of an int32 tensor, from an index on, at a multiple of 8 bytes."""

    whole: Tensor
    first: int

    @property
    def place(self) -> int:
        """Its address."""
        return self.whole.data_ptr() + 4 * self.first


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
    room : int
        The number of words of 8 bytes that will be taken by :meth:`take`, to be allocated at once.
    sizes : Sizes, optional
        Those of the scores, if they are known.

    Attributes
    ----------
    inputs, ends : tuple
        The numbers of the structures ``Padded`` and ``Ends``.
    words : int
        In a CUDA graph: the address of findings that make derivatives 0.
    right : int
        The address of memory for the scores of true tags; 0 if lengths are given.
    kept : object
        Other memory that must live as long as the batch, because it is known by address.
    """

    words = right = _heavy_blocks = 0
    kept: object = None

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
        room: int = 0,
        sizes: Sizes | None = None,
    ) -> None:
        self.sizes = sizes or sizes_of(nodes, weights)
        self.shape, self.shared, self.device = self.sizes.shape, self.sizes.shared, nodes.device
        self.nodes, self.weights, self.start, self.end = nodes, weights, start, end
        sentences, positions, _ = self.shape
        if lengths is None:  # behind two float64 values for each sentence, and before other memory
            self._taken = 5 * sentences + sentences % 2
            self._end = self._taken + 2 * room
            self._own = torch.empty(self._end, dtype=torch.int32, device=self.device)
            self.right = self._own.data_ptr() + 8 * sentences
            place = self.right + 8 * sentences
        else:
            self._own, place, self._taken, self._end = lengths, lengths.data_ptr(), 0, 0
        scores = nodes.data_ptr(), weights.data_ptr(), address(start), address(end)
        self.inputs = *scores, place, sentences, positions, self.shared
        self._given = mask, given  # keeps their memory
        self.ends = address(mask), address(given)

    @property
    def lengths(self) -> Tensor:
        """The number of positions of each sentence, int32."""
        return self._own[4 * self.shape[0] :][: self.shape[0]] if self.right else self._own

    def values(self, again: bool) -> Tensor:
        """Return memory for a float64 value of each sentence; new memory of that shape if `again`."""
        return self.empty(self.shape[0]) if again or not self.right else self._own

    def take(self, words: int) -> Memory:
        """Return memory for words of 8 bytes: of the first allocation if there is room, or new memory."""
        first = self._taken
        if first + 2 * words > self._end:
            return Memory(self.empty(2 * words, torch.int32), 0)
        self._taken += 2 * words
        return Memory(self._own, first)

    def kernel(self, source: str, name: str, **settings: object) -> compiling.Kernel:
        """Return a kernel for this number of states and this dtype of scores."""
        known, key = self.sizes.kernels, (name, *settings.values())
        if key not in known:
            score = NAMES[self.nodes.dtype]
            known[key] = compiling.kernel(
                source, name, self.device, STATES=self.shape[2], SCORE=score, **settings
            )
        return known[key]

    def launch(
        self, source: str, name: str, inputs: bytes, *, blocks: int = 0, memory: int = 0, **settings: object
    ) -> None:
        """Launch a kernel with one warp per sentence."""
        self.kernel(source, name, **settings)(blocks or self.sizes.blocks, _WARPS * 32, memory, inputs)

    def blocks(self) -> int:
        """Return the number of blocks of a launch with one warp per sentence."""
        return self.sizes.blocks

    def empty(self, size: int | tuple[int, ...], dtype: torch.dtype = torch.float64) -> Tensor:
        """Return uninitialised memory for results."""
        return torch.empty(size, dtype=dtype, device=self.device)

    @property
    def heavy_blocks(self) -> int:
        """The number of blocks of a launch with tables: as many as are useful, and fit in memory."""
        if not self._heavy_blocks:  # computed once, because free memory changes
            wanted, each = self.sizes.heavy_blocks, self.sizes.block_bytes
            if wanted * each > compiling.plenty(self.device):
                wanted = max(1, min(wanted, int(0.9 * compiling.room(self.device)) // each))
            self._heavy_blocks = wanted
        return self._heavy_blocks

    @property
    def bytes(self) -> int:
        """The maximum device memory for derivatives, besides inputs and outputs."""
        nodes = self.nodes.numel() * self.nodes.element_size()
        own = 0 if self.shared else 8 * self.weights.numel()
        return nodes + own + self.heavy_blocks * self.sizes.block_bytes

    @property
    def apart(self) -> bool:
        """Whether a launch with tables has a warp for each sentence, so that each can have its own table."""
        return bool(self.shared) and self.heavy_blocks * _WARPS >= self.shape[0]

    def empty_slopes(self, blocks: int, tables: int, messages: int = 0) -> Summed:
        """Return memory for derivatives, in tables if weights are shared, and for messages of blocks."""
        nodes, size = torch.empty_like(self.nodes), blocks * messages
        if not self.shared:
            steps, memory = self.weights.new_zeros(self.weights.shape, dtype=torch.float64), self.take(size)
            return Summed(nodes, steps.data_ptr(), memory.place, 0, blocks, (steps, memory.whole))
        own = tables * self.sizes.table
        memory = self.take(own + size)
        place = memory.place
        return Summed(nodes, place, place + 8 * own, tables, blocks, memory.whole)


class Summed(NamedTuple):
    """Derivatives for nodes, and for weights in ``tables`` tables; in their own shape if that is 0.

    ``edges`` and ``messages`` are addresses in memory that ``owner`` keeps; ``blocks`` is the number of
    blocks of the launch.
    """

    nodes: Tensor
    edges: int
    messages: int
    tables: int
    blocks: int
    owner: object


def likelihood(
    chains: Chains,
    labels: Tensor | None = None,
    upstream: Tensor | None = None,
    *,
    sign: float = 1.0,
    slopes: bool = False,
    apart: bool = False,
    found: Findings = NO_FINDINGS,
    total: Total = NO_TOTAL,
) -> tuple[Tensor, Summed | None]:
    """Return log Z, or the log-probability of labels (B, T) times a sign, of each sentence, float64.

    `slopes`: whether to return derivatives, times `upstream` (B,) if given, in the dtype of the scores; with
    the tables of sentences `apart`. `found`: for checks of the inputs, which also find the lengths.
    """
    values, sums, sizes = chains.values(again=not total[0]), None, chains.sizes
    nodes = edges = messages = 0
    blocks = sizes.heavy_blocks
    if slopes:
        blocks = chains.heavy_blocks
        tables = blocks * (_WARPS if apart else sizes.tables)
        sums = chains.empty_slopes(blocks, tables, 2 * sizes.messages)
        nodes, edges, messages = sums.nodes.data_ptr(), sums.edges, sums.messages
    places = address(labels), address(upstream), values.data_ptr(), nodes, messages, edges
    inputs = _LIKELIHOOD(*chains.inputs, *chains.ends, *places, *found, *total, sign, apart)
    memory = sizes.memory(3, True, slopes)
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
    found: tuple[Tensor, ...] = nodes, torch.empty_like(chains.weights)
    if sums.tables and chains.start is not None and chains.end is not None:
        found = *found, torch.empty_like(chains.start), torch.empty_like(chains.end)
    places = [one.data_ptr() for one in found] + [0] * (4 - len(found))
    inputs = _GATHERING(
        *(*chains.inputs, address(gain), rate, sums.nodes.data_ptr(), sums.edges, *places),
        *(gain is None or is_uniform(gain), sums.tables, chains.words),
    )
    blocks = min(-(-nodes.numel() // 256), 8 * compiling.processors(chains.device))
    chains.kernel("plain.cu", "gather")(blocks, 256, 0, inputs)
    return found


def is_uniform(gain: Tensor) -> bool:
    """Return whether a tensor is known to have one value: it has no dimension, or one that is expanded."""
    return not gain.dim() or not gain.stride(0)
