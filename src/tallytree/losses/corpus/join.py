"""Join profiles within a slack budget: all choices that are close enough to the concave bound.

Under given multipliers every row of a part has a slack, its distance from the best of the part. A choice of
one row per part has the score ``total - λ·L - Σ slack``, so a choice that reaches a given score at L may
use only so much slack. Few rows are within that budget, and the join is restricted to them: part by part,
the smallest slack for every tally, stored sparsely.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.losses.corpus.pool import Choice, Pool, Support


class TooManyError(Exception):
    """The budget admits more tallies than allowed."""


class _Step(NamedTuple):
    """One joined part: for each state, its predecessor, and its row of the part."""

    parent: NDArray[np.int64]
    row: NDArray[np.int64]


class Joined:
    """All tallies within a box and a slack budget, with the choice of smallest slack for each.

    Attributes
    ----------
    tallies : (S, P) int64 array
    slack : (S,) float64 array
    most : int
        The largest number of partial tallies during the join.
    """

    def __init__(
        self,
        tallies: NDArray[np.int64],
        slack: NDArray[np.float64],
        states: NDArray[np.int64],
        steps: list[tuple[int, _Step]],
        support: Support,
    ) -> None:
        self.tallies, self.slack = tallies, slack
        self._states, self._steps, self._support = states, steps, support
        self.most = max((len(step.row) for _, step in steps), default=1)

    def choice(self, number: int) -> Choice:
        """Return one row per part for the tally of this number."""
        rows, state = self._support.choice.copy(), int(self._states[number])
        for part, step in reversed(self._steps):
            rows[part] = step.row[state]
            state = int(step.parent[state])
        return rows


def join(
    pool: Pool,
    support: Support,
    slack: NDArray[np.float64],
    budget: float,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    most: int,
    room: float = inf,
) -> Joined:
    """Join the rows within the budget; return the tallies inside the box.

    Raises TooManyError if there are more than ``most`` tallies at a time, or more than ``room`` bytes.
    """
    rows = np.flatnonzero(slack <= budget)
    parts, first, counts = np.unique(pool.part[rows], return_index=True, return_counts=True)
    several = [(int(p), rows[f : f + c]) for p, f, c in zip(parts, first, counts, strict=True) if c > 1]
    offsets = [pool.tallies[some] - pool.tallies[support.choice[part]] for part, some in several]
    least, largest = _reach(offsets, len(low))
    states = np.zeros((1, len(low)), dtype=np.int64)
    spent = np.zeros(1)
    steps: list[tuple[int, _Step]] = []
    kept = 0  # bytes of the steps
    for k, (part, some) in enumerate(several):
        if kept + len(states) * len(some) * (16 + 16 * len(low)) > room:
            raise TooManyError
        states, spent, step = _joined(states, spent, offsets[k], slack[some], some, budget)
        inside = _within(states + support.tally, low - largest[k + 1], high - least[k + 1])
        states, spent, step = states[inside], spent[inside], _Step(step.parent[inside], step.row[inside])
        steps.append((part, step))
        kept += 16 * len(states)
        if len(states) > most:
            raise TooManyError
    ends = np.flatnonzero(_within(states + support.tally, low, high))
    return Joined(states[ends] + support.tally, spent[ends], ends, steps, support)


def _within(tallies: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(((tallies >= low) & (tallies <= high)).all(axis=1))


def _reach(offsets: list[NDArray[np.int64]], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how far the parts from the k-th on can move the tally, down and up, for every k."""
    nothing = np.zeros((1, size), dtype=np.int64)
    down = np.concatenate([*(o.min(axis=0, keepdims=True) for o in offsets), nothing])
    up = np.concatenate([*(o.max(axis=0, keepdims=True) for o in offsets), nothing])
    return np.cumsum(down[::-1], axis=0)[::-1], np.cumsum(up[::-1], axis=0)[::-1]


def _joined(
    states: NDArray[np.int64],
    spent: NDArray[np.float64],
    offsets: NDArray[np.int64],
    slack: NDArray[np.float64],
    rows: NDArray[np.int64],
    budget: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64], _Step]:
    """Join one part: every state with every row within the budget, with the smallest slack for each tally."""
    total = (spent[:, None] + slack).reshape(-1)
    kept = np.flatnonzero(total <= budget)
    parent, which = np.divmod(kept, len(rows))
    moved, total = states[parent] + offsets[which], total[kept]
    order = np.lexsort((total, *moved.T[::-1]))
    moved, total = moved[order], total[order]
    new = np.ones(len(moved), dtype=bool)
    new[1:] = (moved[1:] != moved[:-1]).any(axis=1)
    return moved[new], total[new], _Step(parent[order][new], rows[which[order][new]])
