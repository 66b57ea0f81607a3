"""Interrupts at any time: an interrupted call can be repeated, with the same result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from draws import USUAL, Rng, case, model_of, options, statistics_of
from on_trees import as_tuple, sentence
from oracle import expect

import tallytree as tt
from tallytree import _native, parsing

MANY = 10**12


def looks_of(ask: Callable[[], Any]) -> int:
    """Count the checks for signals during some work."""
    _native.interrupt_at(MANY, 0.0)
    ask()
    return MANY - _native.interrupt_at(0)


def interrupted(ask: Callable[[], Any], look: int) -> Any:
    """Do some work with an interrupt at a given check; return None if it occurred."""
    _native.interrupt_at(look, 0.0)
    try:
        return ask()
    except KeyboardInterrupt:
        return None
    finally:
        _native.interrupt_at(0)


def check(rng: Rng, ask: Callable[[], Any], what: str) -> None:
    """Interrupt a question about the same objects four times; each time, the answer is the same as before."""
    expected, looks = ask(), looks_of(ask)
    for _ in range(4):
        interrupted(ask, int(rng.integers(1, max(looks, 1) + 1)))
        expect(ask() == expected, f"an interrupt changed the answer: {what}")


def models(rng: Rng) -> None:
    """Profiles and samples of models."""
    drawn = case(rng, styles=USUAL)
    model, statistics = model_of(drawn), statistics_of(drawn)
    if drawn.scores.max() == -np.inf:
        return
    try:
        given = options(rng, model, statistics)
        table = tt.profile(model, statistics, **given)
        sums = tt.distribution(model, statistics, **given)
    except tt.BudgetError:
        return
    rows, seed = rng.permutation(len(table))[:3].tolist(), int(rng.integers(1 << 30))

    def ask() -> bytes:
        found = [table.row(row).assignment for row in rows]
        return np.concatenate([*found, *sums.sample(3, rng=seed)]).tobytes()

    check(rng, ask, f"{given}")


def in_order(rng: Rng) -> None:
    """Labellings and trees in order: those before an interrupt are correct, and a new search finds all."""
    drawn, tree = case(rng, styles=USUAL, most=300), sentence(rng)
    of_trees = tree is not None and rng.random() < 0.5
    table: Any = (
        parsing.profile(tree.forest, ())
        if tree is not None and of_trees
        else tt.profile(model_of(drawn), statistics_of(drawn))
    )
    k = int(rng.choice([1, 5, 60]))
    if not len(table):
        return

    def listed(found: list[Any]) -> list[Any]:
        ranking = islice(table.ranked(), k)
        found.extend((p.score, as_tuple(p.tree) if of_trees else p.assignment.tobytes()) for p in ranking)
        return found

    expected, looks = listed([]), looks_of(lambda: listed([]))
    for _ in range(4):
        found: list[Any] = []
        interrupted(partial(listed, found), int(rng.integers(1, max(looks, 1) + 1)))
        expect(found == expected[: len(found)], "the order before an interrupt", found, expected)
        expect(listed([]) == expected, "an interrupt changed the order", expected)


def trees(rng: Rng) -> None:
    """Profiles, distributions and samples of trees."""
    drawn = sentence(rng)
    if drawn is None:
        return
    statistics = [parsing.count(None, min_length=int(rng.integers(1, 3)), name="c")]
    table, sums = parsing.profile(drawn.forest, statistics), parsing.distribution(drawn.forest, statistics)
    row, seed = int(rng.integers(len(table))), int(rng.integers(1 << 30))

    def ask() -> Any:
        samples = [as_tuple(tree) for tree in sums.sample(3, rng=seed)]
        return as_tuple(table.row(row).tree), samples, sums.log_partitions.tobytes()

    check(rng, ask, "trees")
