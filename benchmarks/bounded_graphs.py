"""Batches of trees and graphs by bounds and by full tables: where bounds help, and where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np

import tallytree as tt

LOSS = tt.losses.FBeta(background=0)

Case = dict[str, Any]
CASES: dict[str, Case] = {
    "F1 slack, tree of 25, N=10": {},
    "F1 margin, tree of 25, N=10": {"scaling": "margin"},
    "F1 slack, tree of 40, N=23": {"size": 40, "states": 23},
    "F1 slack, tree of 100, N=5": {"size": 100, "states": 5},
    "F1 slack, cycle of 30, N=5": {"shape": "cycle", "size": 30, "states": 5},
    "F1 slack, grid of 5 by 20, N=2": {"shape": "grid", "size": (5, 20), "states": 2},
    "F1 slack, grid of 6 by 10, N=3": {"shape": "grid", "size": (6, 10), "states": 3, "count": 6},
    "F1 slack, tree of 12, N=4": {"size": 12, "states": 4},
    "F1 slack, tree of 25, N=10, coupling 10": {"coupling": 10.0},
    "F1 slack, tree of 25, N=10, scores are integers": {"rounded": True},
    "F1 slack, tree of 40, N=23, all scores 0": {"size": 40, "states": 23, "factor": 0.0},
    "F1 margin, tree of 40, N=23, all scores 0": {
        "size": 40,
        "states": 23,
        "factor": 0.0,
        "scaling": "margin",
    },
    "F1 slack, cycle of 30, N=5, all scores 0": {"shape": "cycle", "size": 30, "states": 5, "factor": 0.0},
    "F1 slack, grid of 5 by 20, N=2, all scores 0": {
        "shape": "grid",
        "size": (5, 20),
        "states": 2,
        "factor": 0.0,
    },
}


class Graphs:
    """Random models of one shape, with truths of which about half is background."""

    def __init__(
        self,
        count: int = 40,
        shape: str = "tree",
        size: Any = 25,
        states: int = 10,
        coupling: float = 1.0,
        factor: float = 1.0,
        rounded: bool = False,
        scaling: str = "slack",
    ) -> None:
        self._rng, self._states, self.scaling = np.random.default_rng(0), states, scaling
        self._scale, self._coupling, self._rounded = factor, coupling, rounded
        self.models = [getattr(self, f"_{shape}")(size) for _ in range(count)]
        self.truths = [
            np.where(self._rng.random(model.shape) < 0.45, 0, self._rng.integers(0, states, model.shape))
            for model in self.models
        ]

    def __len__(self) -> int:
        return len(self.models)

    def run(self, strategy: str) -> list[list[int]]:
        """Return the labellings."""
        found = tt.loss_augmented_batch(
            self.models, LOSS, self.scaling, truths=self.truths, threads=1, strategy=strategy
        )
        return [one.assignment.tolist() for one in found]

    def _scores(self, *shape: int, factor: float = 1.0) -> Any:
        scores = self._scale * factor * self._rng.standard_normal(shape)
        return np.round(scores) if self._rounded else scores

    def _pairs(self, *count: int) -> Any:
        return self._scores(*count, self._states, self._states, factor=self._coupling)

    def _tree(self, size: int) -> tt.Model:
        parents = [-1, *(int(self._rng.integers(max(0, i - 4), i)) for i in range(1, size))]
        return tt.Model.tree(parents, self._scores(size, self._states), self._pairs(size))

    def _cycle(self, size: int) -> tt.Model:
        unary, pairs = self._scores(size, self._states), self._pairs(size)
        links = [((v, (v + 1) % size), pairs[v]) for v in range(size)]
        return tt.Model([self._states] * size, [*(((v,), unary[v]) for v in range(size)), *links])

    def _grid(self, size: tuple[int, int]) -> tt.Model:
        return tt.Model.grid(self._scores(*size, self._states), self._pairs(), self._pairs())
