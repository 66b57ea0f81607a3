"""The result of a relaxation."""

from __future__ import annotations

from dataclasses import dataclass

from tallytree.answers.solution import Solution
from tallytree.values import counted

WITHOUT_SOLUTION = "use more iterations=, another order=, or tallytree.solve"
"""What to do if no labelling that satisfies the constraint was found."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """The result of a relaxation: an upper bound, and the best labelling found.

    Attributes
    ----------
    upper_bound : float
        No labelling that satisfies the constraint has a higher score. It includes an allowance for rounding,
        ``c·eps·Σ max|f|`` over all factors, including those of the multipliers.
    solution : Solution or None
        The best labelling found that satisfies the constraint.
    gap : float
        ``upper_bound - solution.score``; 0.0 if they differ only by the rounding of scores, which proves the
        solution optimal; inf if there is no solution.
    multipliers : tuple of float
        The price per unit of each combination of statistics in the constraint, in order of first use:
        positive if the lower end of its range is active, negative if the upper end is.
    iterations : int
        The number of MAP problems solved.
    """

    upper_bound: float
    solution: Solution | None
    gap: float
    multipliers: tuple[float, ...]
    iterations: int

    @property
    def optimal(self) -> bool:
        """Whether the solution is proven to be optimal."""
        return self.gap == 0.0

    def explain(self) -> str:
        """Explain in a few lines what is proven, and how."""
        prices = ", ".join(f"{price:.6g}" for price in self.multipliers)
        problems = counted(self.iterations, "MAP problem")
        bound = (
            f"no labelling that satisfies the constraint scores above {self.upper_bound:.10g}: proven by the "
            f"prices ({prices}), from {problems}, and the labellings that these do not rule out"
        )
        if self.solution is None:
            return f"bounded: {bound}\n  no labelling that satisfies it was found; {WITHOUT_SOLUTION}"
        if self.optimal:
            return f"optimal: {bound}\n  {self.solution!r} attains it"
        return f"bounded: {bound}\n  {self.solution!r} is at most {self.gap:.6g} below the best"
