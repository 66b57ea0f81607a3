"""Bounds on the loss of unseen examples, evaluated exactly.

With probability at least ``1 - δ`` over the draw of n examples, for all weight vectors w at once, the
expected loss of a prediction is at most

    ‖w‖²/n + √( (‖w‖²·ln(2dn/‖w‖²) + ln(n/δ)) / (2(n - 1)) ) + 1/n · Σ_i M_i,

    M_i = max_y 1[F(y*) - F(y) <= Hamming(y*, y)] · loss(y*, y),

for a loss from 0 to 1 and d features. The maximum is over all labellings; those count that score close to the
truth, or above it, for how far they are from it. The indicator does not decrease in the score F(y), so this
is an objective like any other, on the statistics of the loss and the number of mismatches. Where the loss's
own statistics determine that number, no further one is counted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.core.counting import mismatches
from tallytree.core.model import Model, checked_model
from tallytree.core.reduction import Reduction
from tallytree.core.rounding import rounding
from tallytree.core.solution import Solution
from tallytree.core.solve import solve
from tallytree.core.statistics import Statistic
from tallytree.errors import ModelError, TallytreeError
from tallytree.losses.base import Loss, Values
from tallytree.losses.nodes import NodeLoss

__all__ = ["Maximum", "PacBayesBound", "pac_bayes", "worst_within_margin"]


@dataclass(frozen=True, slots=True)
class Maximum:
    """The largest loss of a labelling that the margin does not keep away from the truth.

    Attributes
    ----------
    loss : float
        ``M_i``; 0.0 where every labelling that is wrong scores far enough below the truth.
    difference : float
        ``F(y*) - F(y)`` of the labelling that attains it.
    mismatches : int
        Its Hamming distance from the truth.
    solution : Solution
        The labelling itself, on the model that was asked about. Where the maximum is 0, any would do.
    """

    loss: float
    difference: float
    mismatches: int
    solution: Solution


@dataclass(frozen=True, slots=True)
class PacBayesBound:
    """A bound on the expected loss, term by term; print it.

    Attributes
    ----------
    value : float
        The sum of the three terms. 1 or more says nothing: no loss is larger than 1.
    norm : float
        ``‖w‖²/n``.
    complexity : float
        The root.
    empirical : float
        The mean of the maxima.
    maxima : tuple of Maximum
        One for each example.
    squared_norm, dimension, delta
        As they were given.
    """

    norm: float
    complexity: float
    empirical: float
    maxima: tuple[Maximum, ...]
    squared_norm: float
    dimension: int
    delta: float

    @property
    def value(self) -> float:
        """The bound: the sum of its terms."""
        return self.norm + self.complexity + self.empirical

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing, because every loss is at most 1."""
        return self.value >= 1.0

    def __str__(self) -> str:
        count = len(self.maxima)
        active = sum(one.loss > 0 for one in self.maxima)
        root = f"the root, with d = {self.dimension:,} and δ = {self.delta:.6g}"
        lines = [
            f"the expected loss is at most {self.value:.6g}, with probability at least {1 - self.delta:.6g}",
            f"  {self.norm:<12.6g} norm: ‖w‖²/n, with ‖w‖² = {self.squared_norm:.6g} and n = {count:,}",
            f"  {self.complexity:<12.6g} complexity: {root}",
            f"  {self.empirical:<12.6g} mean of the maxima: {active:,} of {count:,} are not zero",
        ]
        if self.vacuous:
            lines.append("  a bound of 1 or more says nothing: no loss is larger than 1")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"PacBayesBound(value={self.value:.6g}, norm={self.norm:.6g}, complexity={self.complexity:.6g}, "
            f"empirical={self.empirical:.6g})"
        )


def pac_bayes(
    models: Iterable[Model],
    truths: Iterable[Any],
    loss: Loss | Iterable[Loss],
    *,
    squared_norm: float,
    dimension: int,
    delta: float = 0.05,
    memory_limit: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> PacBayesBound:
    """Bound the expected loss of a linear predictor from its scores on n examples.

    Parameters
    ----------
    models : iterable of Model
        For each example the model whose score is ``F(y) = w·Ψ(x, y)``.
    truths : iterable of labelling
        For each example what is right.
    loss : Loss, or one for each example
        A recipe, such as ``tallytree.losses.FBeta(background="O")``, that is bound to each truth; or losses
        that are bound already. From 0 to 1.
    squared_norm : float
        ``‖w‖²``, positive.
    dimension : int
        d: the number of weights.
    delta : float
        How likely the bound may be wrong, between 0 and 1.
    memory_limit : float, optional
        As for :func:`plan`, for each example.
    progress : callable, optional
        Called with the number of examples done and of all, after each.

    Returns
    -------
    PacBayesBound
        Its terms, and for each example the labelling that attains the maximum. In the comparison with the
        Hamming distance rounding goes in favour of the larger value, so that the bound stays one.

    Raises
    ------
    ModelError
        There are fewer than two examples; ``squared_norm`` is not positive, or so large that the root is one
        of a negative number; the loss can leave the range from 0 to 1; a truth is forbidden by its model.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> stay = [[0.5, 0.0], [0.0, 0.5]]
    >>> models = [tt.Model.chain([[0, 3.0], [0, -3.0], [0, s]], stay) for s in (2.5, 0.4)]
    >>> bound = tt.bounds.pac_bayes(
    ...     models, [[1, 0, 1], [1, 0, 1]], tt.losses.FBeta(background=0), squared_norm=0.1, dimension=6
    ... )
    >>> [round(one.loss, 3) for one in bound.maxima]
    [0.0, 0.333]
    >>> bound.maxima[1].solution.assignment
    array([1, 0, 0])
    """
    everything, right = list(models), list(truths)
    bound = _bound(loss, right, len(everything))
    norm, complexity = _terms(len(everything), squared_norm, dimension, delta)
    maxima = []
    for number, (model, truth, one) in enumerate(zip(everything, right, bound, strict=True)):
        try:
            maxima.append(worst_within_margin(model, one, truth, memory_limit=memory_limit))
        except TallytreeError as error:
            raise type(error)(f"example {number}: {error}") from error
        if progress is not None:
            progress(number + 1, len(everything))
    empirical = sum(one.loss for one in maxima) / len(maxima)
    return PacBayesBound(norm, complexity, empirical, tuple(maxima), squared_norm, dimension, delta)


def worst_within_margin(
    model: Model, loss: Loss, truth: Any, *, memory_limit: float | None = None
) -> Maximum:
    """Find the labelling of largest loss among those with ``F(y*) - F(y) <= Hamming(y*, y)``.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model.chain([[0, 3.0], [0, -3.0], [0, 0.4]], [[0.5, 0.0], [0.0, 0.5]])
    >>> worst = worst_within_margin(model, tt.losses.HammingLoss([1, 0, 1]), [1, 0, 1])
    >>> worst.loss, worst.mismatches, worst.difference
    (0.3333333333333333, 1, -0.1)
    """
    asked = _Example(checked_model(model), loss, truth)
    return asked.maximum(
        solve(asked.reduction.model, asked.statistics, asked.objective, memory_limit=memory_limit)
    )


class _Example:
    """One example: the statistics of its loss, and the number of mismatches in terms of them."""

    def __init__(self, model: Model, loss: Loss, truth: Any) -> None:
        self.model = model
        self.loss = _in_range(loss.on(model))
        self.truth = model.encode(truth).reshape(-1)
        self.truth_score = model.score(self.truth)
        if self.truth_score == -np.inf:
            raise ModelError(
                "the truth scores -inf: the model forbids it, so nothing can be compared with it"
            )
        self.allowance = 2 * rounding(model.blocks)  # of the truth's score, and of the labelling's
        self.reduction: Reduction = self.loss.reduce(model)
        self.statistics, self.distance = _with_distance(self)

    def objective(self, score: NDArray[np.float64], *tallies: NDArray[np.int64]) -> Values:
        """Compute the loss of what is within the margin; 0 elsewhere."""
        within = self.truth_score - score <= self.distance(*tallies) + self.allowance
        return np.where(within, self.loss.value(*tallies[: len(self.reduction.statistics)]), 0.0)

    def maximum(self, found: Solution) -> Maximum:
        """Bring the labelling back, and check what is said of it by the definitions."""
        assignment = self.reduction.lift(found.assignment)
        score, loss = self.model.score(assignment), self.loss(assignment)
        wrong, difference = int((assignment != self.truth).sum()), self.truth_score - score
        beyond = (
            difference - wrong - self.allowance
        )  # how far it is from counting, up to the messages' rounding
        counts = abs(loss - found.value) <= 1e-9 and beyond <= self.allowance
        if not counts and not (found.value == 0 and beyond >= -self.allowance):
            raise TallytreeError(
                f"the certificate failed: the messages promise the value {found.value!r}, the labelling has "
                f"the loss {loss!r} and is {beyond:.3g} beyond the margin. This is a bug in tallytree, or in "
                "the loss: check that with tallytree.testing.check_loss"
            )
        solution = found.retold(self.model, assignment, found.value, score, found.tally)
        return Maximum(found.value, difference, wrong, solution)


def _with_distance(example: _Example) -> tuple[tuple[Statistic, ...], Callable[..., Any]]:
    """Return the statistics to count, and the Hamming distance as a function of their tallies."""
    reduction, loss = example.reduction, example.loss
    if isinstance(loss, NodeLoss) and reduction.trivial and _binary(example.model, loss):
        return reduction.statistics, lambda tp, fp: loss.size - tp + fp
    wrong = reduction.pull(mismatches(example.model, example.truth, name="wrong"))
    for number, statistic in enumerate(reduction.statistics):
        if statistic == wrong:  # such as false positives where every variable is a node
            return reduction.statistics, lambda *tallies, at=number: tallies[at]
    return (*reduction.statistics, wrong), lambda *tallies: tallies[-1]


def _binary(model: Model, loss: NodeLoss) -> bool:
    """Whether each variable is a node or not, and nothing else: then all that is missed is ``|y*| - TP``."""
    if loss.counted != ("tp", "fp") or (model.cardinalities > 2).any():
        return False
    background = model.state_codes(loss.background)
    return bool(((background >= 0) & (background < model.cardinalities)).all())


# --- what comes in ------------------------------------------------------------------------------------------


def _bound(loss: Loss | Iterable[Loss], truths: Sequence[Any], count: int) -> list[Loss]:
    """Bind a recipe to each truth, or take one loss for each."""
    if len(truths) != count:
        raise ModelError(f"each example has a model and a truth; got {count} models and {len(truths)} truths")
    if isinstance(loss, Loss):
        return [loss.against(truth) for truth in truths]
    listed = list(loss)
    if len(listed) != count or not all(isinstance(one, Loss) for one in listed):
        raise ModelError(
            f"give one loss such as tallytree.losses.FBeta(background=0), or one for each of the {count} "
            f"examples; got {listed!r}"
        )
    return listed


def _terms(count: int, squared_norm: float, dimension: int, delta: float) -> tuple[float, float]:
    """Compute the terms that do not look at the examples."""
    if count < 2:
        raise ModelError(f"the bound divides by n - 1 and needs at least 2 examples, got {count}")
    if not (isfinite(squared_norm) and squared_norm > 0):
        raise ModelError(
            f"squared_norm is ‖w‖², finite and larger than 0; got {squared_norm!r}. The bound is not defined "
            "for the zero vector: it takes the logarithm of 2dn/‖w‖²"
        )
    if _whole(dimension) < 1:
        raise ModelError(f"dimension is the number of weights, at least 1; got {dimension}")
    if not 0 < delta < 1:
        raise ModelError(f"delta is a probability between 0 and 1, without the ends; got {delta!r}")
    inside = squared_norm * log(2 * dimension * count / squared_norm) + log(count / delta)
    if inside < 0:
        raise ModelError(
            f"the bound does not exist: ‖w‖²·ln(2dn/‖w‖²) + ln(n/δ) = {inside:.6g}, and its root is taken. "
            f"‖w‖² = {squared_norm:.6g} is beyond 2dn = {2 * dimension * count:,}; a smaller weight vector "
            "or more examples are needed"
        )
    return squared_norm / count, sqrt(inside / (2 * (count - 1)))


def _whole(dimension: Any) -> int:
    try:
        return operator.index(dimension)
    except TypeError:
        raise ModelError(f"dimension must be an integer, got {dimension!r}") from None


def _in_range(loss: Loss) -> Loss:
    low, high = loss.bounds
    if low < 0 or high > 1:
        raise ModelError(
            f"the bound is for losses from 0 to 1, and this {type(loss).__name__} goes from {low:.6g} to "
            f"{high:.6g}; use one that is a share, such as HammingLoss instead of HammingDistance"
        )
    return loss
