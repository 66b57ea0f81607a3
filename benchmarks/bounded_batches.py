"""Batches by bounds and by full tables, alternating: where bounds help, and where they do not.

Microseconds of processor time each on one thread, Python included. Answers must be the same, labelling by
labelling. *pruned* is hand-written C++ for F1 (``pruned.py``), which gets prepared arrays and makes no check.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pruned
from bounded_graphs import CASES, Graphs
from common import Row

import tallytree as tt
from tallytree.bulk.chains import Chains, best_of_chains
from tallytree.bulk.truth_tables import Search

LOSS = tt.losses.FBeta(background=0)
TAGS = ("O", *(f"{place}-{kind}" for kind in "ABCDEFGHIJK" for place in "BI"))

Case = dict[str, Any]
HELPED: dict[str, Case] = {
    "F1 slack, 5 to 40 words, N=23": {},
    "F1 margin, 5 to 40 words, N=23": {"scaling": "margin"},
    "F1 slack, 25 words, N=10": {"lengths": (25, 25), "states": 10},
    "F1 slack, after training": {"trained": 3.5},
    "F1 margin, after training": {"trained": 3.5, "scaling": "margin"},
    "F1 slack, 100 words, N=5": {"lengths": (100, 100), "states": 5, "count": 60},
    "chunk F1 slack, 5 to 40 words, N=23": {"chunks": True},
    "chunk F1 margin, 5 to 40 words, N=23": {"chunks": True, "scaling": "margin"},
}
DEGENERATE: dict[str, Case] = {
    "F1 slack, coupling 10": {"coupling": 10.0},
    "F1 margin, loss as heavy as the score": {"margin": 40.0, "trained": 3.5, "scaling": "margin"},
    "F1 slack, loss as heavy as the score": {"margin": 40.0, "trained": 3.5},
    "F1 margin, heavy loss, N=10": {
        "margin": 40.0,
        "trained": 3.5,
        "scaling": "margin",
        "states": 10,
        "lengths": (25, 25),
    },
    "F1 slack, N=2, coupling 10": {"lengths": (40, 40), "states": 2, "coupling": 10.0},
    "F1 slack, 2 to 8 words, N=3": {"lengths": (2, 8), "states": 3},
    "F1 slack, 2 to 6 words, N=23": {"lengths": (2, 6)},
    "F1 slack, scores are integers: many equals": {"rounded": True},
    "F1 slack, all scores 0: all equals": {"factor": 0.0},
    "F1 margin, all scores 0: all equals": {"factor": 0.0, "scaling": "margin"},
    "chunk F1 slack, all scores 0": {"factor": 0.0, "chunks": True},
}


class Sentences:
    """Random chains over one set of labels, with truths of which about half is background."""

    def __init__(
        self,
        count: int = 300,
        lengths: tuple[int, int] = (5, 40),
        states: int = 23,
        coupling: float = 1.0,
        factor: float = 1.0,
        trained: float = 0.0,
        rounded: bool = False,
        scaling: str = "slack",
        margin: float = 1.0,
        chunks: bool = False,
    ) -> None:
        rng = np.random.default_rng(0)
        sizes = rng.integers(lengths[0], lengths[1] + 1, count).tolist()
        pairs = factor * coupling * rng.standard_normal((states, states))
        self.truths = [np.where(rng.random(n) < 0.45, 0, rng.integers(1, states, n)) for n in sizes]
        right = np.arange(states) == np.concatenate(self.truths)[:, None]
        unary = factor * rng.standard_normal(right.shape) + trained * right
        if rounded:
            unary, pairs = np.round(unary), np.round(pairs)
        self.scaling, self.margin = scaling, margin
        self.chains = Chains(unary, pairs, sizes, TAGS[:states]) if chunks else None
        pieces = np.split(unary, np.cumsum(sizes)[:-1])
        self.models = [] if chunks else [tt.Model.chain(one, pairs) for one in pieces]
        self.pruned = None if chunks else pruned.f_measures(unary, pairs, self.truths, scaling, margin)

    def __len__(self) -> int:
        return len(self.truths)

    def run(self, strategy: str) -> list[list[int]]:
        """Return the labellings."""
        if self.chains is not None:
            loss, search = tt.losses.ChunkFBeta(), Search(strategy)
            found = best_of_chains(self.chains, loss, self.truths, self.scaling, 1, 1, search)
            return [labels.tolist() for ((labels, _),) in found]
        found = tt.loss_augmented_batch(
            self.models,
            LOSS,
            self.scaling,
            truths=self.truths,
            margin=self.margin,
            threads=1,
            strategy=strategy,
        )
        return [one.assignment.tolist() for one in found]


def measured(name: str, problems: Sentences | Graphs, quick: bool) -> Row:
    """Return the figures of one case."""
    best: dict[str, float] = {}
    found: dict[str, Any] = {}
    for _ in range(2 if quick else 7):
        for way in ("full", "auto", "bounds"):
            began = time.process_time()
            found[way] = problems.run(way)
            best[way] = min(best.get(way, np.inf), time.process_time() - began)
        if isinstance(problems, Sentences) and problems.pruned is not None:
            began = time.process_time()
            problems.pruned()
            best["pruned"] = min(best.get("pruned", np.inf), time.process_time() - began)
    assert found["auto"] == found["full"], name
    row: Row = {"case": name, **{f"{way} us": best[way] / len(problems) * 1e6 for way in best}}
    return {**row, "auto / full": best["auto"] / best["full"]}


def tables(quick: bool) -> dict[str, list[Row]]:
    """Return all tables."""

    def made(kind: type[Sentences | Graphs], case: Case, few: int) -> Sentences | Graphs:
        return kind(**{**case, "count": few} if quick else case)

    kinds = (
        ("batches", Sentences, HELPED, 40),
        ("degenerate batches", Sentences, DEGENERATE, 40),
        ("batches of graphs", Graphs, CASES, 3),
    )
    return {
        title: [measured(name, made(kind, case, few), quick) for name, case in cases.items()]
        for title, kind, cases, few in kinds
    }
