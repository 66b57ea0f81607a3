"""Losses that read sequences: how many tallies each takes, and how long a sentence takes.

One function for each loss; each gives a model, a loss, and the number of tallies that the literature counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from common import Row, interleaved, show

import tallytree as tt

Case = tuple[tt.Model, Any, str, float]
TYPES = ("NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP")
LABELS = ["O", *(f"{tag}-{kind}" for kind in TYPES for tag in "BI")]
END = "</s>"


def chunks(size: int = 40) -> Case:
    """Whole chunks: two tallies, as for single labels."""
    rng = np.random.default_rng(0)
    truth: list[str] = []
    while len(truth) < size:
        kind, length = TYPES[rng.integers(4)], int(rng.integers(0, 4))
        truth += [f"B-{kind}", *[f"I-{kind}"] * (length - 1)] if length else ["O"]
    scores = rng.standard_normal((size, len(LABELS))), rng.standard_normal((len(LABELS), len(LABELS)))
    return tt.Model.chain(*scores, states=LABELS), tt.losses.ChunkFBeta(truth[:size]), "M^2", float(size**2)


def speaker(size: int, states: int, length: int) -> tuple[tt.Model, list[str]]:
    """Return a chain over a vocabulary with an end label, and a reference of different words."""
    rng = np.random.default_rng(0)
    words = [*(f"w{i}" for i in range(states - 1)), END]
    scores = rng.standard_normal((size, states)), rng.standard_normal((states, states))
    return tt.Model.chain(*scores, states=words), words[:length]


def bleu(size: int, states: int, length: int, order: int, clip: bool) -> Case:
    model, reference = speaker(size, states, length)
    loss = tt.losses.Bleu(reference, order, clip=clip, end=END)
    return model, loss, f"M^{2 * order}", float(size) ** (2 * order)


def rouge_n(size: int, states: int, length: int, n: int, clip: bool) -> Case:
    model, reference = speaker(size, states, length)
    distinct = length - n + 1
    return model, tt.losses.RougeN(reference, n, clip=clip, end=END), f"M^{distinct}", float(size) ** distinct


def rouge_l(size: int, states: int, length: int) -> Case:
    model, reference = speaker(size, states, length)
    return model, tt.losses.RougeL(reference, end=END), "M^2", float(size**2)


CASES: dict[str, Callable[[], Case]] = {
    "ChunkFBeta": chunks,
    "Bleu(4, clip=False), 10 words": lambda: bleu(12, 23, 10, 4, False),
    "Bleu(4), 6 words": lambda: bleu(8, 23, 6, 4, True),
    "Bleu(2, clip=False), 30 words": lambda: bleu(40, 40, 30, 2, False),
    "Bleu(2), 6 words": lambda: bleu(8, 23, 6, 2, True),
    "RougeN(1), 10 words": lambda: rouge_n(12, 23, 10, 1, True),
    "RougeN(2), 10 words": lambda: rouge_n(12, 23, 10, 2, True),
    "RougeN(2, clip=False), 30 words": lambda: rouge_n(40, 40, 30, 2, False),
    "RougeL, 8 words": lambda: rouge_l(10, 23, 8),
}


def row(name: str, make: Callable[[], Case], budget: float) -> Row:
    model, loss, counted, number = make()
    reduction = loss.on(model).reduce(model)
    profile = tt.losses.LossProfile(model, loss)
    times = interleaved(
        {
            "reduce": lambda: loss.on(model).reduce(model),
            "margin": lambda: tt.loss_augmented(model, loss, "margin", strategy="full"),
            "slack": lambda: tt.loss_augmented(model, loss, "slack", strategy="full"),
            "bounds": lambda: tt.loss_augmented(model, loss, "slack", strategy="bounds"),
        },
        rounds=5,
        budget=budget,
    )
    return {
        "loss": name,
        "M": len(model),
        "N": int(model.cardinalities[0]),
        "R, literature": f"{counted} = {number:.2g}",
        "tallies": len(profile),
        "largest table": profile.plan.tallies,
        "states": int(reduction.model.cardinalities.max()),
        "reduce ms": times["reduce"] * 1e3,
        "margin ms": times["margin"] * 1e3,
        "slack ms": times["slack"] * 1e3,
        "slack by bounds ms": times["bounds"] * 1e3,
    }


def main(*, quick: bool = False) -> dict[str, list[Row]]:
    rows = [row(name, make, 0.3 if quick else 2.0) for name, make in CASES.items()]
    show("Losses that read sequences, one sentence", rows)
    return {"sequences": rows}
