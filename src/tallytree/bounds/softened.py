"""The bound's empirical term with a soft, differentiable margin: ``max_y σ((Hamming - lead)/γ) · loss(y)``.

The indicator of :mod:`tallytree.bounds.margin` tests whether the truth ``y*`` leads a labelling by more than
their distance, ``F(y*) - F(y) > Hamming(y*, y)``. As a function of the weights it is a step. With the
logistic function ``σ(t) = 1/(1 + exp(-t))`` instead, a labelling counts fully well within the margin,
half at its border, and hardly at all beyond it; the difference vanishes as the softness γ goes to 0. ``σ``
grows with the score F(y): this is an objective like any other, and its maximum over all labellings is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certification import certify_value
from tallytree.answers.solution import Solution
from tallytree.bounds.margin import MarginExample
from tallytree.bulk.batch import solve_batch
from tallytree.errors import ModelError
from tallytree.losses.base import Loss, Values, is_number
from tallytree.model.model import Model, checked_model


@dataclass(frozen=True, slots=True)
class SoftMaximum:
    """The labelling with the largest softened loss.

    Attributes
    ----------
    value : float
        ``σ(t)·loss``, with ``t = (Hamming - lead)/γ``.
    slope : float
        The derivative with respect to the labelling's score: ``σ'(t)·loss/γ``.
    assignment : integer array
        The labelling.
    """

    value: float
    slope: float
    assignment: NDArray[np.int64]


def softened_maxima(
    models: Sequence[Model],
    losses: Sequence[Loss],
    truths: Sequence[Any],
    softness: float,
    *,
    memory_limit: float | None = None,
    threads: int | None = None,
) -> list[SoftMaximum]:
    """Find the labellings with the largest softened loss, for many models on several threads.

    Parameters
    ----------
    models, losses, truths : sequences
        One of each for every example; losses between 0 and 1.
    softness : float
        γ, positive.
    memory_limit, threads
        As for :func:`solve_batch`.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model.chain([[0, 3.0], [0, -3.0], [0, 0.4]], [[0.5, 0.0], [0.0, 0.5]])
    >>> for softness in (1.0, 0.1, 0.01):
    ...     worst = softened_maxima([model], [tt.losses.HammingLoss([1, 0, 1])], [[1, 0, 1]], softness)[0]
    ...     print(round(worst.value, 3), round(worst.slope, 3), worst.assignment)
    0.268 0.16 [0 0 0]
    0.333 0.0 [1 0 0]
    0.333 0.0 [1 0 0]
    """
    if not is_number(softness) or not 0 < softness < np.inf:
        raise ModelError(f"the softness of a margin must be a positive number, got {softness!r}")
    examples = [
        _SoftExample(checked_model(model), loss, truth, softness)
        for model, loss, truth in zip(models, losses, truths, strict=True)
    ]
    found = solve_batch(
        [one.reduction.model for one in examples],
        [list(one.statistics) for one in examples],
        [one.soft_objective for one in examples],
        memory_limit=memory_limit,
        threads=threads,
    )
    return [one.soft_maximum(solution) for one, solution in zip(examples, found, strict=True)]


class _SoftExample(MarginExample):
    """One example with a soft margin."""

    def __init__(self, model: Model, loss: Loss, truth: Any, softness: float) -> None:
        super().__init__(model, loss, truth)
        self.softness = softness

    def _weight(self, score: Any, distance: Any) -> Values:
        """Compute the weight of a labelling."""
        beyond = (self.truth_score - score - distance) / self.softness
        return np.asarray(1.0 / (1.0 + np.exp(np.minimum(beyond, 700.0))))  # no overflow; 1e-304 is about 0

    def soft_objective(self, score: NDArray[np.float64], *tallies: NDArray[np.int64]) -> Values:
        """Compute the softened loss."""
        losses = self.loss.value(*tallies[: len(self.reduction.statistics)])
        return np.asarray(self._weight(score, self.distance(*tallies)) * losses)

    def soft_maximum(self, found: Solution) -> SoftMaximum:
        """Translate the labelling to the original model, and check it against the definitions."""
        assignment = self.reduction.lift(found.assignment)
        score, loss = self.model.score(assignment), self.loss(assignment)
        weight = float(self._weight(score, int((assignment != self.truth).sum())))
        rounding = 1e-9 + self.allowance / self.softness
        fine = abs(weight * loss - found.value) <= rounding
        certify_value(fine, found.value, repr(weight * loss))
        slope = weight * (1.0 - weight) * loss / self.softness
        return SoftMaximum(weight * loss, slope, assignment)
