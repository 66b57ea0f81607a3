"""Random constraints and objectives, for the library and for enumeration."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from oracle import Case

Rng = np.random.Generator
RELATIONS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


class Where(NamedTuple):
    """A constraint, and which labellings satisfy it."""

    given: Any
    holds: np.ndarray


def bound_near(rng: Rng, totals: np.ndarray) -> int:
    """Draw a number among some totals, at their ends, or beyond them."""
    low, high = int(totals.min()), int(totals.max())
    return int(
        rng.choice([int(rng.choice(totals)), int(rng.choice(totals)), low, high, low - 1, high + 1, 0])
    )


def comparison(
    rng: Rng, terms: list[Any], columns: np.ndarray, relations: tuple[str, ...] = tuple(RELATIONS)
) -> Where:
    """Compare one statistic, or a combination of two, with a number."""
    chosen = rng.choice(len(terms), size=min(len(terms), int(rng.choice([1, 1, 2]))), replace=False).tolist()
    factors = [int(rng.choice([1, 1, 1, -1, 2, -3])) if len(chosen) > 1 else 1 for _ in chosen]
    totals = sum(f * columns[:, k] for f, k in zip(factors, chosen, strict=True))
    expression = None
    for factor, k in zip(factors, chosen, strict=True):
        part = terms[k] if factor == 1 else factor * terms[k]
        expression = part if expression is None else expression + part
    relation, bound = RELATIONS[str(rng.choice(relations))], bound_near(rng, totals)
    return Where(relation(expression, bound), relation(totals, bound))


def where(rng: Rng, terms: list[Any], columns: np.ndarray, parts: int = 3) -> Where | None:
    """Draw a constraint; None without statistics, and sometimes with them."""
    if not terms or rng.random() < 0.15:
        return None
    found = comparison(rng, terms, columns)
    for _ in range(int(rng.integers(0, parts))):
        other = comparison(rng, terms, columns)
        if rng.random() < 0.5:
            found = Where(found.given & other.given, found.holds & other.holds)
        else:
            found = Where(found.given | other.given, found.holds | other.holds)
        if rng.random() < 0.2:
            found = Where(~found.given, ~found.holds)
    return found


def objective(rng: Rng, drawn: Case) -> Callable[..., Any] | None:
    """Draw an objective that does not decrease in the score; it reads all statistics."""
    columns = drawn.tallies
    pick = int(rng.integers(0, 6))
    if not columns.shape[1] or pick == 0:
        return None
    middle, spread = int(np.median(columns[:, 0])), 1.0 + float(np.ptp(columns[:, 0]))
    possible = drawn.scores[drawn.scores > -np.inf]
    top = float(np.median(possible)) if len(possible) else 0.0
    unit = 1.0 + float(np.ptp(possible)) if len(possible) else 1.0
    return {
        1: lambda score, k, *_: score - unit * np.abs(k - middle) / spread,
        2: lambda score, k, *_: score * (np.abs(k - middle) / spread),
        3: lambda score, k, *_: np.where(k == middle, -np.inf, score),
        4: lambda score, k, *_: np.minimum(score, top) + unit * (k > middle),
        5: lambda score, k, *others: score + unit * sum(np.cos(t % 7) for t in (k, *others)),
    }[pick]


def values(function: Callable[..., Any] | None, drawn: Case, holds: np.ndarray) -> np.ndarray:
    """Return the value of each labelling, ``-inf`` for those that are not allowed."""
    possible = holds & (drawn.scores > -np.inf)
    result = np.full(len(drawn.scores), -np.inf)
    if possible.any():
        scores, tallies = drawn.scores[possible], drawn.tallies[possible]
        result[possible] = scores if function is None else function(scores, *tallies.T)
    return result
