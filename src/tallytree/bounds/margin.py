"""The worst labelling within the margin: ``max_y 1[F(y*) - F(y) <= Hamming(y*, y)] · loss(y*, y)``.

All labellings that score close to the truth ``y*``, or above it, count, relative to their distance. The
indicator is non-decreasing in the score F(y), so this is an objective like any other, on the statistics of
the loss and the number of mismatches. If the loss's own statistics determine that number, no further
statistic is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certification import certify_value
from tallytree.answers.solution import Solution
from tallytree.bulk.batch import solve_batch
from tallytree.errors import ModelError, TallytreeError
from tallytree.losses.base import Loss, Values
from tallytree.losses.nodes import NodeLoss
from tallytree.model.model import Model, checked_model
from tallytree.model.rounding import rounding
from tallytree.planning.options import Keywords
from tallytree.reductions.reduction import Reduction
from tallytree.solving import solve
from tallytree.statistics.recipes import matches, mismatches
from tallytree.statistics.statistic import Statistic


@dataclass(frozen=True, slots=True)
class Maximum:
    """The largest loss of a labelling within the margin.

    Attributes
    ----------
    loss : float
        ``M_i``; 0.0 if every wrong labelling scores far enough below the truth.
    difference : float
        ``F(y*) - F(y)`` of the labelling that attains it.
    mismatches : int
        Its Hamming distance from the truth.
    solution : Solution
        The labelling, on the original model. If the maximum is 0, any labelling attains it.
    """

    loss: float
    difference: float
    mismatches: int
    solution: Solution


def worst_within_margin(model: Model, loss: Loss, truth: Any, **options: Unpack[Keywords]) -> Maximum:
    """Find the labelling with the largest loss among those with ``F(y*) - F(y) <= Hamming(y*, y)``.

    `options`: as for :func:`tallytree.solve`.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model.chain([[0, 3.0], [0, -3.0], [0, 0.4]], [[0.5, 0.0], [0.0, 0.5]])
    >>> worst = worst_within_margin(model, tt.losses.HammingLoss([1, 0, 1]), [1, 0, 1])
    >>> worst.loss, worst.mismatches, worst.difference
    (0.3333333333333333, 1, -0.1)
    """
    example = MarginExample(checked_model(model), loss, truth)
    return example.maximum(solve(example.reduction.model, example.statistics, example.objective, **options))


def margin_maxima(
    models: Sequence[Model],
    losses: Sequence[Loss],
    truths: Sequence[Any],
    *,
    memory_limit: float | None = None,
    threads: int | None = None,
) -> list[Maximum | TallytreeError]:
    """Do the same for many models, on several threads; failed ones are replaced by their errors."""
    examples = [_made(*each) for each in zip(models, losses, truths, strict=True)]
    good = [one for one in examples if isinstance(one, MarginExample)]
    found = solve_batch(
        [one.reduction.model for one in good],
        [list(one.statistics) for one in good],
        [one.objective for one in good],
        memory_limit=memory_limit,
        threads=threads,
        errors="return",
    )
    solutions = iter(found)
    return [one.answered(next(solutions)) if isinstance(one, MarginExample) else one for one in examples]


def _made(model: Model, loss: Loss, truth: Any) -> MarginExample | TallytreeError:
    try:
        return MarginExample(checked_model(model), loss, truth)
    except TallytreeError as error:
        return error


class MarginExample:
    """An example: the statistics of its loss, and the number of mismatches as a function of them."""

    def __init__(self, model: Model, loss: Loss, truth: Any) -> None:
        self.model = model
        self.loss = _in_range(loss.on(model))
        self.truth = model.encode(truth).reshape(-1)
        self.truth_score = model.score(self.truth)
        if self.truth_score == -np.inf:
            raise ModelError(
                "the truth scores -inf, so the model forbids it and nothing can be compared with it"
            )
        self.allowance = 2 * rounding(model.blocks)  # of the truth's score and of the labelling's
        self.reduction: Reduction = self.loss.reduce(model)
        self.statistics, self.distance = _with_distance(self)

    def objective(self, score: NDArray[np.float64], *tallies: NDArray[np.int64]) -> Values:
        """Compute the loss within the margin; 0 elsewhere."""
        within = self.truth_score - score <= self.distance(*tallies) + self.allowance
        return np.where(within, self.loss.value(*tallies[: len(self.reduction.statistics)]), 0.0)

    def answered(self, found: Solution | TallytreeError) -> Maximum | TallytreeError:
        """Return the maximum, or the error."""
        return found if isinstance(found, TallytreeError) else self.maximum(found)

    def maximum(self, found: Solution) -> Maximum:
        """Translate the labelling to the original model, and check it against the definitions."""
        assignment = self.reduction.lift(found.assignment)
        score, loss = self.model.score(assignment), self.loss(assignment)
        wrong, difference = int((assignment != self.truth).sum()), self.truth_score - score
        beyond = difference - wrong - self.allowance  # distance beyond the margin, up to rounding
        counts = abs(loss - found.value) <= 1e-9 and beyond <= self.allowance
        fine = counts or (found.value == 0 and beyond >= -self.allowance)
        certify_value(fine, found.value, f"the loss {loss!r} and is {beyond:.3g} beyond the margin")
        solution = found.retold(self.model, assignment, found.value, score, found.tally)
        return Maximum(found.value, difference, wrong, solution)


def _with_distance(example: MarginExample) -> tuple[tuple[Statistic, ...], Callable[..., Any]]:
    """Return the statistics to count, and the Hamming distance as a function of their tallies."""
    reduction, loss = example.reduction, example.loss
    if isinstance(loss, NodeLoss) and _binary(example, loss):
        return reduction.statistics, lambda tp, fp: loss.size - tp + fp
    wrong = reduction.pull(mismatches(example.model, example.truth, name="wrong"))
    for number, statistic in enumerate(reduction.statistics):
        if statistic == wrong:  # such as false positives if every variable is a node
            return reduction.statistics, lambda *tallies, at=number: tallies[at]
    return (*reduction.statistics, wrong), lambda *tallies: tallies[-1]


def _binary(example: MarginExample, loss: NodeLoss) -> bool:
    """Whether every variable is simply a node or not: then the number of misses is ``|y*| - TP``."""
    model, truth = example.model, example.truth
    if loss.background is None or (model.cardinalities > 2).any():
        return False
    background = model.state_codes(loss.background)
    if ((background < 0) | (background >= model.cardinalities)).any():
        return False
    positions = [count(model, truth, loss.background) for count in (matches, mismatches)]
    return list(example.reduction.statistics) == positions  # by content: a loss may define nodes differently


def _in_range(loss: Loss) -> Loss:
    low, high = loss.bounds
    if low < 0 or high > 1:
        raise ModelError(
            f"the bound needs a loss between 0 and 1, but this {type(loss).__name__} ranges from {low:.6g} "
            f"to {high:.6g}; use a normalised one, such as HammingLoss instead of HammingDistance"
        )
    return loss
