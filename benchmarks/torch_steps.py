"""Training steps of the example tagger on a GPU: how much longer a loss takes than none.

The step without a loss has the mean of the emissions instead. Sentences are made up, of up to 50 words, and
the network is that of ``examples/tagger.py``.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import Row
from torch_layers import LABELS

import tallytree as tt

SENTENCES, WORDS, NUMBERS, LETTERS = 64, 50, 1000, 16
ROUNDS, AT_ONCE = 15, 4


def losses() -> dict[str, Callable[..., Any]]:
    """Return what is compared: functions of emissions, transitions, tags and mask."""
    import tallytree.torch as ttt

    chunks = tt.losses.ChunkFBeta()

    return {
        "no loss": lambda emissions, transitions, *_: emissions.mean() + transitions.mean(),
        "likelihood": ttt.NegativeLogLikelihood(),
        "F1 hinge": ttt.StructuredHinge(tt.losses.FBeta(background=0), scaling="slack"),
        "chunk-F1 hinge": ttt.StructuredHinge(chunks, scaling="slack", labels=LABELS),
        "expected chunk F1": ttt.ExpectedLoss(chunks, labels=LABELS),
    }


def step(torch: Any, width: int, letters: bool, loss: Callable[..., Any]) -> Callable[[], None]:
    """Return a training step, which waits for the device at its end."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
    from tagger import Tagger

    torch.manual_seed(0)
    model = Tagger([NUMBERS] * 3, LABELS, NUMBERS if letters else 0, width).cuda()
    optimiser = torch.optim.Adam(model.parameters())
    count = 3 + LETTERS * letters
    features = torch.randint(NUMBERS, (SENTENCES, WORDS, count), device="cuda")
    tags = torch.randint(len(LABELS), (SENTENCES, WORDS), device="cuda")
    lengths = torch.randint(5, WORDS + 1, (SENTENCES, 1), device="cuda")
    mask = torch.arange(WORDS, device="cuda") < lengths

    def run() -> None:
        optimiser.zero_grad()
        loss(model(features), model.transitions, tags, mask).backward()
        optimiser.step()
        torch.cuda.synchronize()

    return run


def seconds(run: Callable[[], None]) -> float:
    """Return the time of a step, the mean of a few."""
    start = time.perf_counter()
    for _ in range(AT_ONCE):
        run()
    return (time.perf_counter() - start) / AT_ONCE


def steps(torch: Any) -> list[Row]:
    """Return the times of steps, medians of rounds in turns, and the share of each loss."""
    rows = []
    for width in (32, 128, 256):
        for letters in (False, True):
            runs = {name: step(torch, width, letters, loss) for name, loss in losses().items()}
            for run in runs.values():
                seconds(run)
            rounds = [{name: seconds(run) for name, run in runs.items()} for _ in range(ROUNDS)]
            times = {name: statistics.median(each[name] for each in rounds) for name in runs}
            row: Row = {"units": width, "letters": letters, "no loss, ms": 1000 * times.pop("no loss")}
            for name, its in times.items():
                share = statistics.median(1 - each["no loss"] / each[name] for each in rounds)
                row |= {f"{name}, ms": 1000 * its, f"{name}, share": share}
            rows.append(row)
    return rows
