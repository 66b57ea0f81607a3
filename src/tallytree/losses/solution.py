"""A solution together with its loss."""

from __future__ import annotations

from typing import Any

from tallytree.answers.solution import Solution
from tallytree.values import set_once


class AugmentedSolution(Solution):
    """The labelling that maximises a combination of loss and score.

    Attributes
    ----------
    value : float
        ``loss + score - truth_score`` under margin scaling, ``loss·(1 + score - truth_score)`` under slack
        scaling.
    loss : float
        The loss of the labelling.
    truth_score : float
        The score of the truth.
    score, tally, assignment, labels
        As for :class:`Solution`, on the original model.
    """

    loss: float
    truth_score: float

    def __init__(self, found: Solution, loss: float, truth_score: float) -> None:
        vars(self).update(vars(found), loss=loss, truth_score=truth_score)

    @classmethod
    def complete(cls, **content: Any) -> AugmentedSolution:
        """Make a solution from all its fields; the labelling is already read-only."""
        solution: AugmentedSolution = object.__new__(cls)
        set_once(solution, "__dict__", content)  # not copied: batches create thousands of solutions
        return solution

    def __reduce__(self) -> tuple[Any, ...]:
        found = Solution(self.value, self.score, self.tally, self.assignment, self.model, self.certificate)
        return AugmentedSolution, (found, self.loss, self.truth_score)

    def __repr__(self) -> str:
        return f"AugmentedSolution(loss={self.loss:.6g}, {super().__repr__().removeprefix('Solution(')}"
