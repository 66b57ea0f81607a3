"""Loss-augmented inference: how many tallies each loss takes, and how long a sentence takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import Row, interleaved, show

import tallytree as tt

SENTENCES = {"tagging": (40, 45, None), "chunking": (40, 23, 0)}


def sentence(size: int, states: int) -> tuple[tt.Model, list[int]]:
    """Return a chain with normal scores, and a truth of which two fifths are the label 0."""
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.standard_normal((size, states)), rng.standard_normal((states, states)))
    outside = rng.permutation(size) < size * 2 // 5
    return model, np.where(outside, 0, rng.integers(1, states, size)).tolist()


def losses(states: int, background: int | None) -> dict[str, tuple[Any, str]]:
    """Return the recipes, and the number of tallies that the literature counts for each."""
    few = np.random.default_rng(1).integers(0, 5, (states, states)) * (1 - np.eye(states, dtype=int)) / 4
    nodes: dict[str, Any] = {"background": background}
    return {
        "ZeroOne": (tt.losses.ZeroOne(), "2 M"),
        "HammingLoss": (tt.losses.HammingLoss(), "M"),
        "WeightedHamming": (tt.losses.WeightedHamming(weight=few), "M^(N^2)"),
        "FalsePositives": (tt.losses.FalsePositives(**nodes), "M"),
        "Recall": (tt.losses.Recall(**nodes), "M"),
        "Precision": (tt.losses.Precision(**nodes), "M^2"),
        "FBeta": (tt.losses.FBeta(**nodes), "M^2"),
        "IntersectionOverUnion": (tt.losses.IntersectionOverUnion(**nodes), "M^2"),
        "LabelCount": (tt.losses.LabelCount(), "M"),
    }


def row(name: str, recipe: Any, counted: str, model: tt.Model, truth: list[int], budget: float) -> Row:
    loss = recipe.against(truth)
    profile = tt.losses.LossProfile(model, loss)
    times = interleaved(
        {scaling: lambda s=scaling: tt.loss_augmented(model, loss, s) for scaling in ("margin", "slack")},
        budget=budget,
    )
    return {
        "loss": name,
        "R, literature": counted,
        "tallies": len(profile),
        "folds": "yes" if loss.on(model).linear() is not None else "",
        "margin ms": times["margin"] * 1e3,
        "slack ms": times["slack"] * 1e3,
    }


def second_best(model: tt.Model, truth: list[int]) -> None:
    """The zero-one loss by two tallies, beside the best and the second best labelling."""

    def two_best() -> float:
        best = tt.k_best(model, 2)
        wrong = next(s for s in best if s.assignment.tolist() != truth)
        return max(0.0, 1.0 + wrong.score - model.score(truth))

    loss = tt.losses.ZeroOne(truth)
    assert abs(tt.loss_augmented(model, loss).value - two_best()) < 1e-9
    times = interleaved({"two tallies": lambda: tt.loss_augmented(model, loss), "second best": two_best})
    show("Zero-one loss", [{"way": name, "ms": 1e3 * seconds} for name, seconds in times.items()])


def main(*, quick: bool = False) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for task, (size, states, background) in SENTENCES.items():
        model, truth = sentence(size, states)
        rows = [
            row(name, recipe, counted, model, truth, 0.3 if quick else 2.0)
            for name, (recipe, counted) in losses(states, background).items()
        ]
        show(f"Losses: {task}, M = {size}, N = {states}, one sentence", rows)
        data[task] = rows
    second_best(*sentence(40, 23))
    return data
