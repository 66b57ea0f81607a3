"""Correct answers by enumeration, independent of how the library computes them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

Factors = list[tuple[tuple[int, ...], np.ndarray]]


class DifferenceError(AssertionError):
    """The library and the enumeration disagree."""


def expect(holds: Any, what: str, *details: Any) -> None:
    """Raise an error unless a condition holds."""
    if not holds:
        raise DifferenceError(" ".join([what, *map(repr, details)]))


def summed(factors: Factors, labellings: np.ndarray, dtype: type) -> np.ndarray:
    """Add up the entries of some tables at each labelling."""
    total = np.zeros(len(labellings), dtype=dtype)
    for scope, table in factors:
        total += table[tuple(labellings[:, v] for v in scope)]
    return total


@dataclass
class Count:
    """An integer statistic: its tables, and perhaps a cap."""

    name: str
    factors: Factors
    cap: int | None = None

    def tallies(self, labellings: np.ndarray) -> np.ndarray:
        """Return the tally of each labelling."""
        total = summed(self.factors, labellings, np.int64)
        return total if self.cap is None else np.minimum(total, self.cap)


@dataclass
class Case:
    """A small problem: numbers of states, tables of scores, statistics."""

    cardinalities: list[int]
    factors: Factors
    counts: list[Count]

    @cached_property
    def labellings(self) -> np.ndarray:
        """All of them, a row for each."""
        rows = list(product(*map(range, self.cardinalities)))
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.cardinalities))

    @cached_property
    def scores(self) -> np.ndarray:
        """Their scores."""
        return summed(self.factors, self.labellings, np.float64)

    @cached_property
    def tallies(self) -> np.ndarray:
        """Their tallies, a column for each statistic."""
        columns = [count.tallies(self.labellings) for count in self.counts]
        return np.array(columns, dtype=np.int64).reshape(len(columns), len(self.labellings)).T

    @cached_property
    def slack(self) -> float:
        """How far two sums of the same scores may differ by rounding."""
        largest = [float(np.abs(t[np.isfinite(t)]).max(initial=0)) for _, t in self.factors]
        return 100 * 2.2e-16 * (sum(largest) + 1e-290)

    def number(self, labelling: Any) -> int:
        """Return the row of a labelling."""
        return (
            int(np.ravel_multi_index(tuple(map(int, labelling)), self.cardinalities)) if len(labelling) else 0
        )

    def groups(self) -> dict[tuple[int, ...], list[int]]:
        """Return the rows of all labellings that are possible, by tally."""
        found: dict[tuple[int, ...], list[int]] = {}
        for row in np.flatnonzero(self.scores > -np.inf).tolist():
            found.setdefault(tuple(self.tallies[row].tolist()), []).append(row)
        return found

    def restricted(self, allowed: dict[int, list[int]]) -> np.ndarray:
        """Return which labellings use only allowed states."""
        holds = np.ones(len(self.labellings), dtype=bool)
        for variable, states in allowed.items():
            holds &= np.isin(self.labellings[:, variable], states)
        return holds

    def expect_solution(self, found: Any, values: np.ndarray, what: str) -> None:
        """Compare a solution with the values of all labellings, ``-inf`` for those that are not allowed."""
        row, best = self.number(found.assignment), float(values.max())
        scale = self.slack + 1e-12 * abs(best)
        expect(values[row] > -np.inf, f"{what}: the labelling is not allowed", found.assignment)
        expect(near(found.value, best, scale), f"{what}: value", found.value, best)
        expect(near(values[row], best, scale), f"{what}: value of the labelling", values[row], best)
        expect(
            near(found.score, self.scores[row], self.slack), f"{what}: score", found.score, self.scores[row]
        )


def near(x: float, y: float, slack: float) -> bool:
    """Return whether two numbers are equal up to rounding."""
    return bool(x == y or abs(x - y) <= slack)


def log_sum(scores: np.ndarray) -> float:
    """Return the logarithm of a sum of exponentials."""
    top = float(scores.max())
    return top + math.log(math.fsum(np.exp(scores - top).tolist()))
