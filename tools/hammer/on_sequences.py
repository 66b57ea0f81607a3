"""Patterns and machines on chains."""

from __future__ import annotations

import re
from collections.abc import Hashable

import numpy as np
from draws import USUAL, Rng, case, model_of, statistics_of
from oracle import expect, near
from questions import values, where

import tallytree as tt


def pattern(rng: Rng, states: int, depth: int = 3) -> tuple[str, str]:
    """Draw a pattern over state numbers, in the notation of the library and of Python."""
    kind = int(rng.integers(0, 8)) if depth else 0
    if kind < 2:
        label = str(int(rng.integers(0, states)))
        return label, label
    if kind == 2:
        return ".", "."
    left, right = pattern(rng, states, depth - 1), pattern(rng, states, depth - 1)
    if kind in (3, 4):
        return f"{left[0]} {right[0]}", left[1] + right[1]
    if kind == 5:
        return f"({left[0]} | {right[0]})", f"(?:{left[1]}|{right[1]})"
    sign = str(rng.choice(["*", "+", "?", "{1,2}", "{2}"]))
    return f"({left[0]}){sign}", f"(?:{left[1]}){sign}"


def regular(rng: Rng) -> None:
    """The best labelling that matches a pattern, or does not, under other constraints."""
    drawn = case(rng, kind="chain", styles=USUAL)
    model, statistics = model_of(drawn), statistics_of(drawn)
    ours, theirs = pattern(rng, drawn.cardinalities[0])
    language, compiled = tt.regular(ours), re.compile(theirs)
    holds = np.array([bool(compiled.fullmatch("".join(map(str, y)))) for y in drawn.labellings.tolist()])
    if rng.random() < 0.3:
        language, holds = ~language, ~holds
    constraint = where(rng, statistics, drawn.tallies, parts=1)
    given = language if constraint is None else language & constraint.given
    right = values(None, drawn, holds if constraint is None else holds & constraint.holds)
    try:
        found = tt.solve(model, where=given)
    except tt.InfeasibleError:
        expect(right.max() == -np.inf, "regular: infeasible, but there is", ours, right.max())
    else:
        drawn.expect_solution(found, right, f"regular {ours}")


class Table(tt.Machine):
    """A machine given by tables of moves, outputs and last outputs."""

    start = 0
    outputs = ("out",)

    def __init__(self, moves: list[list[int]], out: list[list[int]], last: list[int | None]) -> None:
        self.moves, self.out, self.last = moves, out, last

    def step(self, state: Hashable, label: Hashable, at: Hashable) -> tuple[int, tuple[int]] | None:
        to = self.moves[state][label]
        return None if to < 0 else (to, (self.out[state][label],))

    def stop(self, state: Hashable) -> tuple[int] | None:
        last = self.last[state]
        return None if last is None else (last,)


def given_out(machine: Table, labels: list[int]) -> int | None:
    """Run a machine by hand: return the sum of its outputs, or None if it does not accept."""
    state, total = 0, 0
    for label in labels:
        total += machine.out[state][label]
        state = machine.moves[state][label]
        if state < 0:
            return None
    last = machine.last[state]
    return None if last is None else total + last


def machines(rng: Rng) -> None:
    """The best score for each output of a machine."""
    drawn = case(rng, kind="chain", styles=USUAL, counts=0)
    states, size = drawn.cardinalities[0], int(rng.integers(1, 4))
    machine = Table(
        rng.integers(-1 if rng.random() < 0.5 else 0, size, (size, states)).tolist(),
        rng.integers(-1, 3, (size, states)).tolist(),
        [None if rng.random() < 0.2 else int(rng.integers(0, 2)) for _ in range(size)],
    )
    best: dict[int, float] = {}
    for y, score in zip(drawn.labellings.tolist(), drawn.scores.tolist(), strict=True):
        total = given_out(machine, y)
        if total is not None and score > -np.inf:
            best[total] = max(score, best.get(total, -np.inf))
    try:
        reduction = tt.transduce(model_of(drawn), machine)
        found = tt.profile(reduction, reduction.statistics)
    except tt.InfeasibleError:
        expect(not best, "machine: infeasible, but there is", best)
        return
    expect(found.tallies[:, 0].tolist() == sorted(best), "machine: outputs", found.tallies.tolist(), best)
    same = [near(s, best[k], drawn.slack) for k, s in zip(sorted(best), found.scores.tolist(), strict=True)]
    expect(all(same), "machine: scores", found.scores, best)
