"""Problems whose memory grows with their size, each with the call that is measured.

A case makes its inputs first (they are the caller's, and not counted), then gives a function of the limit.
``small`` makes a tiny problem of the same kind: it loads everything that is loaded only once.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

import tallytree as tt
from tallytree import parsing

__all__ = ["CASES", "REFUSED", "Call"]

Call = Callable[[float | None], int | None]
"""What is measured, under a memory limit; gives the forecast of its plan, or None where it is counted."""


def chain(length: int, states: int, seed: int = 0) -> tt.Model:
    rng = np.random.default_rng(seed)
    return tt.Model.chain(rng.normal(size=(length, states)), rng.normal(size=(states, states)))


def solved(model: tt.Model, **question: Any) -> Call:
    def run(limit: float | None) -> Any:
        return tt.solve(model, memory_limit=limit, **question).certificate.peak_bytes

    return run


def counted(call: Callable[[float | None], object]) -> Call:
    """Return a call whose memory no plan predicts: it is counted as it grows."""

    def run(limit: float | None) -> None:
        call(limit)

    return run


def long_chain(small: bool) -> Call:
    return solved(chain(10 if small else 10**6, 3))


def wide_chain(small: bool) -> Call:
    return solved(chain(10 if small else 10**5, 10))


def star(small: bool) -> Call:
    rng, leaves = np.random.default_rng(0), 10 if small else 10**5
    parents = np.zeros(leaves + 1, dtype=int)
    parents[0] = -1
    return solved(tt.Model.tree(parents, rng.normal(size=(leaves + 1, 3)), rng.normal(size=(3, 3))))


def many_states(small: bool) -> Call:
    return solved(chain(10 if small else 100, 10 if small else 1000))


def folded_rows(small: bool) -> Call:
    size = 10 if small else 10**7
    model = tt.Model([2, 2], [((0,), [0.0, 1.0]), ((1,), [0.5, 0.0])])
    statistic = tt.Statistic([((0,), [-size, 0]), ((1,), [0, size])], name="s")

    def run(limit: float | None) -> Any:
        return tt.solve(model, where=statistic >= 1, layout="rows", memory_limit=limit).certificate.peak_bytes

    return run


def k_best_some(small: bool) -> Call:
    model, k = chain(100, 3), 10 if small else 30_000
    return counted(lambda limit: tt.k_best(model, k, memory_limit=limit))


def k_best_all(small: bool) -> Call:
    model, k = chain(20, 2), 10 if small else 10**6
    return counted(lambda limit: tt.k_best(model, k, memory_limit=limit))


def in_order(small: bool) -> Call:
    model, k = chain(10 if small else 5000, 3), 10 if small else 20_000
    return counted(lambda limit: sum(1 for _ in islice(tt.iter_best(model, memory_limit=limit), k)))


def apart(small: bool) -> Call:
    model, k = chain(100, 3), 2 if small else 40
    return counted(lambda limit: tt.diverse_k_best(model, k, 5, memory_limit=limit))


def corpus(small: bool) -> Call:
    rng, count = np.random.default_rng(0), 2 if small else 300
    pair = rng.normal(size=(3, 3))
    models = [tt.Model.chain(rng.normal(size=(18, 3)), pair) for _ in range(count)]
    truths = [rng.integers(0, 3, 18) for _ in models]
    loss = tt.losses.FBeta(background=0)
    return counted(lambda limit: tt.loss_augmented_corpus(models, truths, loss, memory_limit=limit))


def trees(small: bool) -> Call:
    rng = np.random.default_rng(0)
    rules = {(a, b, c): rng.normal() for a in "NVP" for b in "NVP" for c in "NVP"}
    words = {name: {"a": rng.normal()} for name in "NVP"}
    forest = parsing.Forest(parsing.Grammar(rules, {}, words, root="N"), "a " * (4 if small else 15))
    return counted(lambda limit: parsing.k_best(forest, 5 if small else 5000, memory_limit=limit))


def relaxed(small: bool) -> Call:
    model = chain(10 if small else 10**5, 3)
    ones = tt.count(model, state=1)
    most = 3 if small else 30_000

    def run(limit: float | None) -> Any:
        found = tt.relax(model, where=ones <= most, candidates=0, memory_limit=limit)
        return found.solution.certificate.peak_bytes

    return run


def batch(small: bool) -> Call:
    rng, count = np.random.default_rng(0), 2 if small else 500
    models = [chain(100, 3, seed) for seed in range(count)]
    truths = [rng.integers(0, 3, 100) for _ in models]
    losses = [tt.losses.FBeta(background=0).against(truth) for truth in truths]
    return counted(lambda limit: tt.loss_augmented_batch(models, losses, memory_limit=limit))


def profiles(small: bool) -> Call:
    models = [chain(60, 3, seed) for seed in range(2 if small else 400)]
    both = [tt.count(state=1), tt.count(state=2)]
    return counted(lambda limit: tt.profile_batch(models, both, memory_limit=limit))


def excluded(small: bool) -> Call:
    model = chain(300, 3)
    outputs = [found.assignment for found in tt.k_best(model, 2 if small else 2000)]
    return counted(lambda limit: tt.exclude(model, outputs, memory_limit=limit))


CASES: dict[str, Callable[[bool], Call]] = {
    "chain of 1,000,000 x 3": long_chain,
    "chain of 100,000 x 10": wide_chain,
    "star of 100,000 x 3": star,
    "chain of 100 x 1,000": many_states,
    "rows of 10,000,000, folded": folded_rows,
    "k_best 30,000, chain of 100 x 3": k_best_some,
    "k_best 1,000,000, chain of 20 x 2": k_best_all,
    "iter_best 20,000, chain of 5,000 x 3": in_order,
    "diverse_k_best 40, chain of 100 x 3": apart,
    "loss_augmented_corpus of 300": corpus,
    "k_best 5,000 trees of 15 words": trees,
    "relax, chain of 100,000 x 3": relaxed,
    "loss_augmented_batch of 500": batch,
    "profile_batch of 400, chains of 60 x 3": profiles,
    "exclude 2,000, chain of 300 x 3": excluded,
}

REFUSED = {"diverse_k_best 40, chain of 100 x 3": 200e6}
"""Calls that take more than there is, and the limit that they are made under."""
