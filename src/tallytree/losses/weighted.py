"""The weighted Hamming loss: a cost for each confusion of states, ``Σ_i weight[y*_i, y_i]``.

Statistics are integers, but weights need not be. Of two representations, the smaller one is used:
if all weights are multiples of one number, their sum is an integer multiple of it (a *lattice*, one
statistic); otherwise the positions with each distinct weight are counted (*counts*, one statistic each).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, gcd, lcm, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.losses.base import Bounds, LabellingLoss, Line, Values, columns, plain
from tallytree.model.blocks import LARGEST_INTEGER
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.statistic import Statistic

_FINEST = 10**6  # the largest denominator tried for a lattice


@dataclass(frozen=True)
class WeightedHamming(LabellingLoss):
    """The sum over all variables of ``weight[truth, predicted]``.

    Parameters
    ----------
    truth : labelling, optional
        The true labelling.
    weight : (N, N) array-like
        ``weight[a, b]`` is the cost of predicting state ``b`` if ``a`` is true; by state number.

    Examples
    --------
    >>> import tallytree as tt
    >>> loss = tt.losses.WeightedHamming([0, 1, 1], weight=[[0, 0.5], [1, 0]])
    >>> loss([1, 1, 0])
    1.5
    >>> loss.way, loss.value([0, 3])
    ('lattice', array([0. , 1.5]))
    """

    weight: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            table = np.asarray(self.weight, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.empty(0)
        if table.ndim != 2 or table.shape[0] != table.shape[1] or not np.isfinite(table).all():
            raise ModelError(
                f"weight[truth, predicted] must be a square array of finite numbers, got {self.weight!r}"
            )
        object.__setattr__(self, "weight", plain(table))

    @cached_property
    def _rows(self) -> NDArray[np.float64]:
        """The cost of each state, variable by variable."""
        table = np.array(self.weight)
        numbers = self.right
        if any(isinstance(state, str) for state in numbers):
            raise ModelError(
                "weights are indexed by state number, but the labelling has names; use loss.on(model), which "
                "knows their numbers"
            )
        if any(not 0 <= state < len(table) for state in numbers):
            raise ModelError(f"weight is for {len(table)} states, but the truth is {numbers}")
        return table[numbers] if numbers else np.zeros((0, len(table)))

    def __call__(self, y: Any) -> float:
        """Add up the costs of the positions."""
        weight, pairs = self.weight, zip(self.right, self.given(y), strict=True)
        self._rows  # noqa: B018  (refuses names)
        return float(sum(weight[right][given] for right, given in pairs))

    # --- two ways to integers -----------------------------------------------------------------------------

    @property
    def way(self) -> Literal["lattice", "counts"]:
        """What is counted: the sum of the weights on a lattice, or each weight separately."""
        lattice = self._lattice
        if lattice is None:
            return "counts"
        return "lattice" if self._most_sums(lattice[0]) <= self._most_counts else "counts"

    @cached_property
    def _lattice(self) -> tuple[NDArray[np.int64], Fraction] | None:
        """The costs as multiples of one number, and that number; None if there is no such number."""
        exact = {w: Fraction(w).limit_denominator(_FINEST) for w in np.unique(self._rows).tolist()}
        if any(float(fraction) != w for w, fraction in exact.items()):
            return None
        common = lcm(*(f.denominator for f in exact.values()))
        whole = {w: int(f * common) for w, f in exact.items()}
        divisor = gcd(*whole.values()) or 1
        if any(abs(n) >= LARGEST_INTEGER for n in whole.values()):
            return None
        units = [[whole[w] // divisor for w in row] for row in self._rows.tolist()]
        return np.array(units, dtype=np.int64).reshape(self._rows.shape), Fraction(divisor, common)

    @staticmethod
    def _most_sums(units: NDArray[np.int64]) -> int:
        return int((units.max(axis=1, initial=0) - units.min(axis=1, initial=0)).sum()) + 1

    @cached_property
    def _distinct(self) -> list[float]:
        """The distinct non-zero weights that a position can have."""
        return [w for w in np.unique(self._rows).tolist() if w]

    @property
    def _most_counts(self) -> int:
        places = [int((self._rows == w).any(axis=1).sum()) for w in self._distinct]
        return min(prod(n + 1 for n in places), comb(len(self._rows) + len(places), len(places)))

    def reduce(self, model: Model) -> Reduction:
        """Count the weights on the model itself, using the smaller of the two representations."""
        self._check_states(model)
        if self.way == "lattice":
            assert self._lattice is not None
            return Reduction.identity(model, [_by_variable(self._lattice[0], *self._names)])
        rows = self._rows
        counts = [_by_variable(rows == w, name) for w, name in zip(self._distinct, self._names, strict=True)]
        return Reduction.identity(model, counts)

    @property
    def _names(self) -> tuple[str, ...]:
        """The names of the statistics."""
        if self.way == "lattice":
            return ("weight_units",)
        return tuple(f"weight_{k}" for k in range(len(self._distinct)))

    def _check_states(self, model: Model) -> None:
        if (model.cardinalities != len(self.weight)).any():
            raise ModelError(
                f"weight is for {len(self.weight)} states, but not all variables of the model have that "
                f"many: {model.cardinalities[:8].tolist()}"
            )

    def value(self, *tallies: ArrayLike) -> Values:
        """Compute the loss from the lattice units, or from the count of each weight."""
        _, coefficients = self.linear()
        counts = columns(self._names, tallies).values()
        costs = (c * count for c, count in zip(coefficients, counts, strict=True))
        return np.asarray(sum(costs, np.float64(0.0)), dtype=np.float64)

    def linear(self) -> Line:
        """Return the linear function."""
        if self.way == "lattice":
            assert self._lattice is not None
            return 0.0, (float(self._lattice[1]),)
        return 0.0, tuple(self._distinct)

    @property
    def bounds(self) -> Bounds:
        """From the cheapest state everywhere to the most expensive."""
        if self.bound and not any(isinstance(state, str) for state in self.right):
            return float(self._rows.min(axis=1).sum()), float(self._rows.max(axis=1).sum())
        smallest, largest = np.min(self.weight), np.max(self.weight)
        return (0.0 if smallest >= 0 else -np.inf), (0.0 if largest <= 0 else np.inf)


def _by_variable(rows: NDArray[Any], name: str) -> Statistic:
    return Statistic([((i,), row) for i, row in enumerate(rows.astype(np.int64))], name=name)
