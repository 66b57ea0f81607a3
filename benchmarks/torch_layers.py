"""The layers for PyTorch on the CPU, compared with pytorch-crf: losses with their gradients, and decoding.

Sentences have 5 to 25 positions and 23 tags (chunks of eleven types); emissions and transitions are random,
as those of a network before it has learned anything, or have been trained for likelihood on random truths
until most of them are right. pytorch-crf is skipped where it is not installed (extra ``bench``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common import Row, interleaved, show

import tallytree as tt

POSITIONS, TYPES = 25, "ABCDEFGHIJK"
LABELS = ["O", *(f"{mark}-{kind}" for kind in TYPES for mark in "BI")]


def truths(batch: int, torch: Any) -> Any:
    """Return random taggings, chunks of one to three words."""
    generator = torch.Generator().manual_seed(1)

    def drawn(most: int) -> int:
        return int(torch.randint(most, (), generator=generator))

    rows = []
    for _ in range(batch):
        row: list[int] = []
        while len(row) < POSITIONS:
            kind = drawn(len(TYPES) + 2)
            row += [0] if kind >= len(TYPES) else [1 + 2 * kind] + drawn(3) * [2 + 2 * kind]
        rows.append(row[:POSITIONS])
    return torch.tensor(rows)


def sentences(batch: int, sharp: float, device: str) -> Any:
    """Return emissions, which are raised by `sharp` where tags are right, tags and masks."""
    import torch

    torch.manual_seed(0)
    tags, lengths = truths(batch, torch), torch.randint(5, POSITIONS + 1, (batch,))
    lengths[0] = POSITIONS
    mask = torch.arange(POSITIONS) < lengths[:, None]
    emissions = torch.randn(batch, POSITIONS, len(LABELS))
    emissions.scatter_add_(2, tags[..., None], torch.full((*tags.shape, 1), sharp))
    emissions, tags, mask = (tensor.to(device) for tensor in (emissions, tags, mask))
    return emissions.requires_grad_(), tags, mask


def contenders(batch: int, sharp: float, theirs: Any, device: str = "cpu") -> dict[str, Callable[[], object]]:
    """Return what is compared for one batch of sentences."""
    import torch

    import tallytree.torch as ttt

    emissions, tags, mask = sentences(batch, sharp, device)
    ours = ttt.CRF(len(LABELS), batch_first=True).to(device)
    losses = {
        "chunk-F1 hinge": ttt.StructuredHinge(tt.losses.ChunkFBeta(LABELS), scaling="slack"),
        "token-F1 hinge": ttt.StructuredHinge(tt.losses.FBeta(background=0), scaling="slack"),
        "Hamming hinge": ttt.StructuredHinge(tt.losses.HammingDistance()),
        "expected F1": ttt.ExpectedLoss(tt.losses.FBeta(background=0)),
        "expected chunk F1": ttt.ExpectedLoss(tt.losses.ChunkFBeta(LABELS)),
    }

    def likelihood(crf: Any) -> Callable[[], object]:
        scores = [emissions, *crf.parameters()]
        return lambda: torch.autograd.grad(-crf(emissions, tags, mask), scores)

    def trained(loss: Any) -> Callable[[], object]:
        scores = emissions, ours.transitions
        return lambda: torch.autograd.grad(loss(*scores, tags, mask), scores)

    def counted() -> object:
        chain = ttt.Chain(emissions, ours.transitions, mask=mask)
        return torch.autograd.grad(chain.tally(tt.count(state=0)).log_prob(3).sum(), emissions)

    found: dict[str, Callable[[], object]] = {"likelihood": likelihood(ours)}
    found |= {name: trained(loss) for name, loss in losses.items()}
    found |= {"a count": counted, "decoding": lambda: ours.decode(emissions, mask)}
    if theirs is not None:
        other = theirs.CRF(len(LABELS), batch_first=True).to(device)
        other.load_state_dict(ours.state_dict())
        found |= {
            "pytorch-crf": likelihood(other),
            "pytorch-crf decoding": lambda: other.decode(emissions, mask),
        }
    return found


def rows(sizes: list[int], theirs: Any, budget: float) -> list[Row]:
    """Return one row for each batch and each thing that is done with it."""
    found = []
    for sharp, scores in ((0.0, "random"), (4.0, "trained")):
        for batch in sizes:
            times = interleaved(contenders(batch, sharp, theirs), budget=budget)
            for name, seconds in times.items():
                other = times.get("pytorch-crf decoding" if "decoding" in name else "pytorch-crf")
                row: Row = {"scores": scores, "batch": batch, "what": name, "ms": 1000 * seconds}
                found.append(row | {"pytorch-crf / it": None if other is None else other / seconds})
    return found


def main(quick: bool = False) -> dict[str, list[Row]]:
    """Measure batches of 16 to 256 sentences."""
    try:
        import torch
    except ImportError:
        print("the layers for PyTorch: skipped, torch is not installed\n")
        return {}
    try:
        import torchcrf as theirs
    except ImportError:
        theirs = None
    table = rows([64] if quick else [16, 64, 256], theirs, 3.0 if quick else 8.0)
    note = f"{POSITIONS} positions, {len(LABELS)} tags, {torch.get_num_threads()} threads; with gradients"
    show("Layers for PyTorch", table, note)
    return {"torch_layers": table}


if __name__ == "__main__":
    main()
