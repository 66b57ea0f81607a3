"""The PAC-Bayes bound for structured prediction, term by term.

With probability at least ``1 - δ`` over the draw of n examples, for all weight vectors w at once, the
expected loss of a prediction is at most

    ‖w‖²/n + √( (‖w‖²·ln(2dn/‖w‖²) + ln(n/δ)) / (2(n - 1)) ) + 1/n · Σ_i M_i,

    M_i = max_y 1[F(y*) - F(y) <= Hamming(y*, y)] · loss(y*, y),

for a loss between 0 and 1 and d features. The maxima come from ``margin.py``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Any

from tallytree.bounds.margin import Maximum, margin_maxima
from tallytree.errors import ModelError, TallytreeError
from tallytree.losses.base import Loss, is_number
from tallytree.model.model import Model

_AT_ONCE = 64
"""Examples solved together."""


@dataclass(frozen=True, slots=True)
class PacBayesBound:
    """A bound on the expected loss, term by term; print it to read it.

    Attributes
    ----------
    value : float
        The sum of the three terms. 1 or more is vacuous, since no loss is larger than 1.
    norm : float
        ``‖w‖²/n``.
    complexity : float
        The root.
    empirical : float
        The mean of the maxima.
    maxima : tuple of Maximum
        One for each example.
    squared_norm, dimension, delta
        As passed.
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
        """Whether it is vacuous: every loss is at most 1."""
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
            lines.append("  a bound of 1 or more is vacuous: no loss is larger than 1")
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
        The model of each example, whose score is ``F(y) = w·Ψ(x, y)``.
    truths : iterable of labelling
        The true labelling of each example.
    loss : Loss, or one for each example
        A recipe, such as ``tallytree.losses.FBeta(background="O")``, which is bound to each truth; or losses
        that are already bound. Must be between 0 and 1.
    squared_norm : float
        ``‖w‖²``, positive.
    dimension : int
        d: the number of weights.
    delta : float
        The probability that the bound fails, between 0 and 1.
    memory_limit : float, optional
        As for :func:`plan`, for each example.
    progress : callable, optional
        Called after each example with the number of examples done and the total.

    Returns
    -------
    PacBayesBound
        Its terms, and for each example the labelling that attains the maximum. In the comparison with the
        Hamming distance, rounding favours the larger value, so that the bound remains valid.

    Raises
    ------
    ModelError
        There are fewer than two examples; ``squared_norm`` is not positive, or so large that the root is of
        a negative number; the loss can be outside 0 to 1; or a truth is forbidden by its model.

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
    maxima: list[Maximum] = []
    for first in range(0, len(everything), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        found = margin_maxima(everything[some], bound[some], right[some], memory_limit=memory_limit)
        for number, one in enumerate(found, first):
            if isinstance(one, TallytreeError):
                raise type(one)(f"example {number}: {one}") from one
            maxima.append(one)
            if progress is not None:
                progress(number + 1, len(everything))
    empirical = sum(one.loss for one in maxima) / len(maxima)
    return PacBayesBound(norm, complexity, empirical, tuple(maxima), squared_norm, dimension, delta)


# --- what comes in ------------------------------------------------------------------------------------------


def _bound(loss: Loss | Iterable[Loss], truths: Sequence[Any], count: int) -> list[Loss]:
    """Bind a recipe to each truth, or use one loss per example."""
    if len(truths) != count:
        raise ModelError(f"got {count} models and {len(truths)} truths; each example needs one of each")
    if isinstance(loss, Loss):
        return [loss.against(truth) for truth in truths]
    listed = list(loss)
    if len(listed) != count or not all(isinstance(one, Loss) for one in listed):
        raise ModelError(
            f"give one loss such as tallytree.losses.FBeta(background=0), or one for each of the {count} "
            f"examples; got {listed!r}"
        )
    return listed


def norm_terms(count: int, squared_norm: float, dimension: int, delta: float) -> tuple[float, float]:
    """Return the sum of the terms that do not depend on the examples, and its derivative by ``‖w‖²``.

    Examples
    --------
    >>> value, slope = norm_terms(100, 2.0, 10, 0.05)
    >>> further, _ = norm_terms(100, 2.001, 10, 0.05)
    >>> round(slope, 4), round((further - value) / 0.001, 4)
    (0.0554, 0.0554)
    """
    norm, root = _terms(count, squared_norm, dimension, delta)
    steepness = log(2 * dimension * count / squared_norm) - 1
    return norm + root, 1 / count + steepness / (4 * (count - 1) * root)


def _terms(count: int, squared_norm: float, dimension: int, delta: float) -> tuple[float, float]:
    """Compute the terms that do not depend on the examples."""
    if count < 2:
        raise ModelError(f"the bound divides by n - 1 and needs at least 2 examples, got {count}")
    if not is_number(squared_norm) or not 0 < squared_norm < inf:
        raise ModelError(
            f"squared_norm is ‖w‖² and must be finite and positive; got {squared_norm!r}. The bound is not "
            "defined for the zero vector: it takes the logarithm of 2dn/‖w‖²"
        )
    if _whole(dimension) < 1:
        raise ModelError(f"dimension is the number of weights and must be at least 1; got {dimension}")
    if not is_number(delta) or not 0 < delta < 1:
        raise ModelError(f"delta must be a probability strictly between 0 and 1; got {delta!r}")
    inside = squared_norm * log(2 * dimension * count / squared_norm) + log(count / delta)
    if inside < 0:
        raise ModelError(
            f"the bound is undefined: it takes the root of ‖w‖²·ln(2dn/‖w‖²) + ln(n/δ) = {inside:.6g}. "
            f"‖w‖² = {squared_norm:.6g} is above 2dn = {2 * dimension * count:,}; a smaller weight vector "
            "or more examples are needed"
        )
    return squared_norm / count, sqrt(inside / (2 * (count - 1)))


def _whole(dimension: Any) -> int:
    try:
        return operator.index(dimension)
    except TypeError:
        raise ModelError(f"dimension must be an integer, got {dimension!r}") from None
