"""An experiment: training by minimising the generalisation bound itself.

A structural SVM minimises a convex surrogate of the loss. The bound of :mod:`tallytree.bounds` is closer to
what matters, but not convex, and its empirical term, the mean of ``max_y 1[lead(y) <= Hamming(y)]·loss(y)``,
is a step function of the weights. Here the indicator is softened, so that the maximum has a gradient: with
``t = (Hamming(y) - ⟨w, δ⟩)/γ`` and ``δ = Ψ(x, y*) - Ψ(x, y)``, at the labelling ``y`` that attains it,

    ∇ max_y σ(t)·loss(y) = - σ'(t)/γ · loss(y) · δ.

Batches of examples give stochastic subgradients of the whole bound, and every maximum over labellings is
exact. Steps are scaled per coordinate by the past gradients (AdaGrad). The result is at least as
good as the starting point in the softened bound; there is no guarantee on its distance from a
minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tallytree.bounds.softened import SoftMaximum, softened_maxima
from tallytree.bounds.theorem import norm_terms
from tallytree.errors import ModelError
from tallytree.learning.accepted import COUNT, NATURAL, POSITIVE
from tallytree.learning.planes import Floats, dot
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.solver import batches, shuffled

_SMALL = 1e-8
"""Keeps the first step of a coordinate finite."""


_AT_ONCE = 256
"""Examples whose models are in memory at a time."""


class SoftBound(NamedTuple):
    """The bound with a soft margin, at some weights."""

    norms: float  # the terms that only depend on the weights
    empirical: float  # the mean of the softened maxima

    @property
    def value(self) -> float:
        """The sum."""
        return self.norms + self.empirical


@dataclass
class Descent:
    """The result of the descent.

    Attributes
    ----------
    weights : array
        The weights with the smallest softened bound at the end of a pass, or at the start.
    best : SoftBound
        Its terms.
    history : list of SoftBound
        At the start, and after each pass.
    """

    weights: Floats
    best: SoftBound
    history: list[SoftBound] = field(default_factory=list)

    def note(self, weights: Floats, found: SoftBound) -> None:
        """Record the result of a pass."""
        self.history.append(found)
        if found.value < self.best.value:
            self.weights, self.best = weights.copy(), found


def minimise_bound(
    problem: TrainingProblem,
    weights: Floats,
    *,
    softness: float = 1.0,
    delta: float = 0.05,
    passes: int = 10,
    step: float = 0.02,
    batch: int = 32,
    seed: int = 0,
    callback: Callable[[int, SoftBound], object] | None = None,
) -> Descent:
    """Minimise the softened generalisation bound from given weights, by stochastic subgradient descent.

    This is an experiment: the bound is not convex, and the initial weights matter.

    Parameters
    ----------
    problem : TrainingProblem
        At least two examples, with a loss between 0 and 1.
    weights : array
        The initial weights, such as those of an SVM. Not all zero.
    softness : float
        The width of the transition at the border of the margin.
    delta : float
        The probability that the bound fails.
    passes, step, batch, seed
        The number of passes, the step size, the batch size, and the seed for the order of the examples.
    callback : callable, optional
        Called with the number of a pass and the softened bound after it.

    Examples
    --------
    >>> import tallytree as tt
    >>> from scipy import sparse
    >>> from tallytree.learning import SequenceProblem
    >>> rng = np.random.default_rng(0)
    >>> truths = [rng.integers(0, 2, 4) for _ in range(50)]
    >>> rows = [sparse.csr_matrix(np.eye(2)[truth] + rng.normal(size=(4, 2)) / 2) for truth in truths]
    >>> problem = SequenceProblem(rows, truths, labels=2, loss=tt.losses.HammingLoss())
    >>> found = minimise_bound(problem, np.array([0.3, -0.3, -0.3, 0.3, 0.0, 0.0, 0.0, 0.0]), step=0.1)
    >>> found.history[0].value > found.best.value
    True
    """
    COUNT.check("batch", batch)
    NATURAL.check("passes", passes)
    NATURAL.check("seed", seed)
    POSITIVE.check("step", step)
    objective = _Objective(problem, softness, delta)
    current = np.array(weights, dtype=np.float64)
    if current.shape != (problem.dimension,) or not np.isfinite(current).all() or not current.any():
        raise ModelError(
            f"the initial weights must be {problem.dimension} finite numbers, not all zero, such as "
            f"those of an SVM; got an array of shape {current.shape}"
        )
    bound = objective.at(current)
    result = Descent(current.copy(), bound, [bound])
    squares = np.full(problem.dimension, _SMALL)
    for number in range(1, passes + 1):
        for chunk in batches(shuffled(seed, number, len(problem)), batch):
            slope = objective.slope(chunk, current)
            squares += slope * slope
            current -= step * slope / np.sqrt(squares)
        bound = objective.at(current)
        result.note(current, bound)
        if callback is not None:
            callback(number, bound)
    return result


class _Objective:
    """The softened bound of a problem, and its subgradients."""

    def __init__(self, problem: TrainingProblem, softness: float, delta: float) -> None:
        self.problem, self.softness, self.delta = problem, softness, delta

    def at(self, weights: Floats) -> SoftBound:
        """Compute the softened bound, from one exact maximum for each example."""
        norms, _ = self._norms(weights)
        values = [one.value for chunk in self._chunks() for one in self._maxima(chunk, weights)]
        return SoftBound(norms, sum(values) / len(values))

    def slope(self, examples: Sequence[int], weights: Floats) -> Floats:
        """Compute a subgradient from some examples, which is unbiased for the whole."""
        _, by_square = self._norms(weights)
        total: Floats = 2.0 * by_square * weights
        for example, found in zip(examples, self._maxima(examples, weights), strict=True):
            indices, values = self.problem.difference(example, found.assignment.reshape(-1))
            np.subtract.at(total, indices, values * (found.slope / len(examples)))
        return total

    def _norms(self, weights: Floats) -> tuple[float, float]:
        return norm_terms(len(self.problem), dot(weights, weights), self.problem.dimension, self.delta)

    def _maxima(self, examples: Sequence[int], weights: Floats) -> list[SoftMaximum]:
        return softened_maxima(
            self.problem.models(examples, weights),
            [self.problem.loss_of(example) for example in examples],
            [self.problem.truth(example) for example in examples],
            self.softness,
        )

    def _chunks(self) -> Iterator[list[int]]:
        return batches(np.arange(len(self.problem)), _AT_ONCE)
