"""A closed range of scores, and a labelling in it with an upper bound on all others."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallytree.answers.solution import Solution
from tallytree.answers.tallies import tally_type
from tallytree.errors import InfeasibleError, ModelError


class BoundedSolution(Solution):
    """A labelling, and an upper bound on the score of every labelling in the range.

    Attributes
    ----------
    upper_bound : float
        No labelling in the range scores more; the score itself if the labelling is proven to be optimal.
    gap : float
        ``upper_bound - score``; 0.0 if the labelling is optimal.
    """

    upper_bound: float

    def __init__(self, solution: Solution, upper_bound: float) -> None:
        score = solution.score
        super().__init__(score, score, tally_type(())(), solution.assignment, solution.model, solution.proof)
        vars(self).update(upper_bound=max(upper_bound, score))

    @property
    def gap(self) -> float:
        """The most by which the best labelling can be better."""
        return self.upper_bound - self.score

    def __reduce__(self) -> tuple[Any, ...]:
        plain = Solution(
            self.score, self.score, self.tally, np.array(self.assignment), self.model, self.certificate
        )
        return BoundedSolution, (plain, self.upper_bound)

    def __repr__(self) -> str:
        return f"BoundedSolution(score={self.score:.6g}, upper_bound={self.upper_bound:.6g})"


class Window:
    """A closed range of scores, up to rounding."""

    def __init__(self, low: float, high: float, allowance: float) -> None:
        if not low <= high:  # also false for nan
            raise ModelError(f"a range of scores needs low <= high; got {low} and {high}")
        self.low, self.high = float(low), float(high)
        self.least, self.most = self.low - allowance, self.high + allowance
        self.beyond = self.most + 2 * allowance  # not even rounding reaches the window from here

    def __str__(self) -> str:
        return f"with a score from {self.low:.10g} to {self.high:.10g}"

    def infeasible(self, reason: str) -> InfeasibleError:
        """Return the error that nothing is in the window, with the reason."""
        return InfeasibleError(f"no labelling has a score from {self.low:.10g} to {self.high:.10g}: {reason}")
