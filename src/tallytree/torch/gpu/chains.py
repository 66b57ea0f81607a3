"""Batches of chains on a GPU: each operation is one launch.

Tensors are on one CUDA device; scores are float32 or float64 and contiguous, lengths int32 and positive,
transitions either one (C, C) table for all steps or (B, T - 1, C, C).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tallytree.torch.gpu import compiling

NAMES = {torch.float32: "float", torch.float64: "double"}
_WARPS = 4
"""Warps per block for kernels with one warp per sentence."""


@dataclass(frozen=True)
class Chains:
    """A padded batch."""

    nodes: Tensor
    weights: Tensor
    lengths: Tensor

    @property
    def shape(self) -> tuple[int, int, int]:
        """Sentences, positions, states."""
        sentences, positions, states = self.nodes.shape
        return sentences, positions, states

    @property
    def shared(self) -> int:
        """1 if all steps share one table of weights."""
        return int(self.weights.dim() == 2)

    def kernel(self, source: str, name: str, **settings: object) -> compiling.Kernel:
        """Return a kernel for this number of states and this dtype of scores."""
        score = NAMES[self.nodes.dtype]
        return compiling.kernel(
            source, name, self.nodes.device, STATES=self.shape[2], SCORE=score, **settings
        )

    def memory(self, factors: bool) -> int:
        """Return the shared memory of a block, with or without exponentials of shared weights."""
        states = self.shape[2]
        return 8 * (int(factors) * self.shared * states * states + _WARPS * 3 * states)

    @property
    def fits(self) -> bool:
        """Whether the exponentials of shared weights fit in a block: not with too many states."""
        return self.memory(True) <= compiling.block_memory(self.nodes.device)

    def launch(self, source: str, name: str, *arguments: Tensor | int, factors: bool = True) -> None:
        """Launch a kernel with one warp per sentence."""
        sentences, positions, _ = self.shape
        self.kernel(source, name)(
            self.blocks,
            _WARPS * 32,
            self.memory(factors),
            *(self.nodes, self.weights, self.lengths, *arguments),
            *(sentences, positions, self.shared),
        )

    @property
    def blocks(self) -> int:
        """The number of blocks of a launch with one warp per sentence."""
        return min(-(-self.shape[0] // _WARPS), 16 * compiling.processors(self.nodes.device))


def log_partition(chains: Chains) -> Tensor:
    """Return log Z of each sentence, float64."""
    answers = torch.empty(chains.shape[0], dtype=torch.float64, device=chains.nodes.device)
    chains.launch("plain.cu", "log_partition", answers)
    return answers


def expectations(chains: Chains, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of ``sum(upstream * log_partition)`` with respect to nodes and weights."""
    nodes, edges = empty_slopes(chains)
    chains.launch("plain.cu", "expectations", upstream.to(torch.float64).contiguous(), nodes, edges)
    return nodes, gathered(chains, edges)


def empty_slopes(chains: Chains) -> tuple[Tensor, Tensor]:
    """Return zeros for derivatives of nodes, and of weights: in their shape, or one table per warp."""
    nodes = torch.zeros(chains.shape, dtype=torch.float64, device=chains.nodes.device)
    tables = (chains.blocks * _WARPS,) if chains.shared else ()
    return nodes, nodes.new_zeros(*tables, *chains.weights.shape)


def gathered(chains: Chains, edges: Tensor) -> Tensor:
    """Return derivatives of weights in the shape of the weights."""
    return edges.sum(0) if chains.shared else edges


def labelling_scores(chains: Chains, labels: Tensor) -> Tensor:
    """Return the scores of given labels (B, T), float64."""
    scores = torch.empty(chains.shape[0], dtype=torch.float64, device=chains.nodes.device)
    chains.launch("labellings.cu", "labelling_scores", labels, scores, factors=False)
    return scores


def add_labellings(chains: Chains, labels: Tensor, shares: Tensor, slopes: tuple[Tensor, Tensor]) -> None:
    """Add shares (B,), float64, at the entries of labels; slopes are from :func:`empty_slopes`."""
    chains.launch("labellings.cu", "add_labellings", labels, shares.contiguous(), *slopes, factors=False)


def viterbi(chains: Chains) -> tuple[Tensor, Tensor]:
    """Return the best scores, float64, and labels; 0 beyond the end of a sentence."""
    scores = torch.empty(chains.shape[0], dtype=torch.float64, device=chains.nodes.device)
    choices = torch.empty(chains.shape, dtype=torch.int32, device=scores.device)
    labels = torch.zeros(chains.shape[:2], dtype=torch.int64, device=scores.device)
    chains.launch("plain.cu", "viterbi", scores, choices, labels, factors=False)
    return scores, labels


def draw(chains: Chains, uniforms: Tensor) -> Tensor:
    """Return labels drawn by uniform numbers (draws, B, T), float64; 0 beyond the end of a sentence."""
    kept = torch.empty(chains.shape, dtype=torch.float64, device=chains.nodes.device)
    labels = torch.zeros(uniforms.shape, dtype=torch.int64, device=kept.device)
    chains.launch("draws.cu", "draw", uniforms, kept, labels, len(uniforms))
    return labels
