"""A labelling with its certificate.

Every decoded labelling is checked against the model it came from: its tally, recomputed from the integer
tables, equals the one that was asked for, and its score equals the profile's to rounding. The certificate
shows that the value is attained; that nothing better exists rests on the messages.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.core.blocks import Frozen, read_only, set_once
from tallytree.core.model import Model
from tallytree.core.reduction import Reduction
from tallytree.core.statistics import Statistic
from tallytree.errors import TallytreeError
from tallytree.kernels import native

__all__ = ["Solution", "certified", "lifted", "tally_type", "unique_names"]

_EPSILON = float(np.finfo(np.float64).eps)


class Solution(Frozen):
    """An optimal labelling.

    Attributes
    ----------
    value : float
        The objective at the optimum; the score where there was no objective.
    score : float
        The model's score of the labelling.
    tally : named tuple of int
        Its statistics, by name and in order.
    assignment : int64 array
        One state number per variable.
    labels : array
        State names where the model has them, in two dimensions on grids.
    """

    __slots__ = ("assignment", "model", "score", "tally", "value")

    value: float
    score: float
    tally: Any
    assignment: NDArray[np.int64]
    model: Model

    def __init__(
        self, value: float, score: float, tally: Any, assignment: NDArray[np.int64], model: Model
    ) -> None:
        set_once(self, "value", value)
        set_once(self, "score", score)
        set_once(self, "tally", tally)
        set_once(self, "assignment", read_only(assignment))
        set_once(self, "model", model)

    @property
    def labels(self) -> NDArray[Any]:
        """The labelling as the user sees it."""
        return self.model.labels(self.assignment)

    def __reduce__(self) -> tuple[Any, ...]:
        names = getattr(self.tally, "_fields", ())
        return _restored, (self.value, self.score, names, tuple(self.tally), self.assignment, self.model)

    def __repr__(self) -> str:
        tally = ", ".join(
            f"{name}={value}" for name, value in zip(self.tally._fields, self.tally, strict=True)
        )
        return f"Solution(value={self.value:.6g}, score={self.score:.6g}, tally=({tally}))"


def _restored(
    value: float, score: float, names: Sequence[str], tally: Sequence[int], assignment: Any, model: Model
) -> Solution:
    return Solution(value, score, tally_type(tuple(names))(*tally), np.array(assignment), model)


@lru_cache(maxsize=512)
def tally_type(names: tuple[str, ...]) -> Any:
    """Return the named tuple for statistics of these names (a name that is no identifier gets a number)."""
    return namedtuple("Tally", names, rename=True)


@lru_cache(maxsize=512)
def unique_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names with a number on those that come more than once."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique_names(tuple(result)) if len(set(result)) < len(result) else tuple(result)


def certified(
    model: Model,
    statistics: Sequence[Statistic],
    assignment: NDArray[np.int64],
    score: float,
    tally: Sequence[int],
    shown: Sequence[Statistic] = (),
) -> tuple[float, tuple[int, ...]]:
    """Check a decoded labelling against the model; return its score, and its tally of the statistics shown.

    The score of the messages is the sum of the same local scores in another order, so the two differ by at
    most the rounding of that many additions.
    """
    every = (*statistics, *shown)
    blocks = [block for statistic in every for block in statistic.blocks]
    got, magnitude, terms, sums = native.evaluate(
        model.cardinalities,
        [block.scopes for block in model.blocks],
        [block.tables for block in model.blocks],
        [block.scopes for block in blocks],
        [block.tables for block in blocks],
        assignment,
    )
    totals, at = [], 0
    for statistic in every:
        total = sum(sums[at : at + len(statistic.blocks)])
        totals.append(total if statistic.cap is None else min(total, statistic.cap))
        at += len(statistic.blocks)
    found = totals[: len(statistics)]
    if found != list(tally) or not abs(got - score) <= _EPSILON * (4 + terms) * magnitude:
        raise TallytreeError(
            f"the certificate failed: messages promise score {score!r} and tally {list(tally)}, the decoded "
            f"labelling has {got!r} and {found}. This is a bug in tallytree; please report it with the model"
        )
    return got, tuple(totals[len(statistics) :])


def lifted(solution: Solution, reduction: Reduction, statistics: Sequence[Statistic]) -> Solution:
    """Bring a solution back to the original model, and check it there as well."""
    if reduction.trivial:
        return solution
    assignment = reduction.lift(solution.assignment)
    known = [(reduction.origin(s), value) for s, value in zip(statistics, solution.tally, strict=True)]
    originals = [(origin, value) for origin, value in known if origin is not None]
    score, _ = certified(
        reduction.original,
        [origin for origin, _ in originals],
        assignment,
        solution.score,
        [value for _, value in originals],
    )
    return Solution(solution.value, score, solution.tally, assignment, reduction.original)
