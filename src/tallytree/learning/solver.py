"""Shared by all solvers.

They minimise ``P(w) = ½‖w‖² + C Σ_i ξ_i(w)``, where ``ξ_i(w)`` is the value of the highest plane of example
``i``. The dual assigns weights to the planes, ``α ≥ 0`` and ``Σ_k α_ik = C``: with ``w = Σ α a``,

    D(α) = Σ α b − ½‖w‖² ≤ min P ≤ P(w').

So the gap ``P(w') − D(α)`` bounds the distance of any weights ``w'`` from the optimum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.learning.oracle import Oracle
from tallytree.learning.planes import Floats, Plane, dot

Arrays = Mapping[str, NDArray[Any]]


class Report(NamedTuple):
    """The result of a pass."""

    dual: float  # ``D(α)`` at the end of the pass
    # ``P`` of `weights`; an estimate if there are none, from planes found while the weights moved
    primal: float
    hinge: float  # the corresponding mean hinge loss
    # the weights for which the primal was computed, by one oracle call per example
    weights: Floats | None

    @property
    def gap(self) -> float:
        """The difference of the two; a bound on the distance to the optimum if there are weights."""
        return self.primal - self.dual


class Run(ABC):
    """A solver running on a problem: its state between passes.

    A pass is a function of this state and of its number, so that a run can be stored and resumed.
    """

    def __init__(self, oracle: Oracle, C: float) -> None:
        self.oracle, self.C = oracle, C

    @property
    @abstractmethod
    def weights(self) -> Floats:
        """The current weights."""

    @abstractmethod
    def advance(self, number: int, certify: bool) -> Report:
        """Make one pass over the examples; if requested, compute the primal of fixed weights."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Return the state as arrays."""

    @abstractmethod
    def restore(self, arrays: Arrays) -> None:
        """Restore the state of a run of the same solver on the same problem."""

    @abstractmethod
    def rescale(self, C: float) -> None:
        """Continue with another C, starting from the current state: a multiple of ``α`` is feasible again."""


@dataclass(frozen=True)
class Solver(ABC):
    """The settings of a solver; :meth:`start` starts a run."""

    @abstractmethod
    def start(self, oracle: Oracle, C: float) -> Run:
        """Return a run at ``w = 0``."""


def taken(arrays: Arrays, name: str, like: Floats) -> Floats:
    """Return a copy of a stored array, which must be finite and have the size of the one it replaces."""
    array = arrays[name]
    if array.dtype != np.float64 or array.shape != like.shape or not np.isfinite(array).all():
        raise ValueError(f"{name} should be {like.size} finite numbers")
    return array.copy()


def half_square(weights: Floats) -> float:
    """Return ``½‖w‖²``."""
    return 0.5 * dot(weights, weights)


def hinge_sum(found: list[list[Plane]], weights: Floats) -> float:
    """Return ``Σ_i ξ_i(w)`` from the planes that the oracle found at these weights."""
    return float(sum(planes[0].at(weights) for planes in found))


def batches(order: NDArray[Any], size: int) -> Iterator[list[int]]:
    """Split an order of examples into batches."""
    for start in range(0, len(order), size):
        yield order[start : start + size].tolist()


def shuffled(seed: int, number: int, count: int) -> NDArray[np.int64]:
    """Return the order of examples in a pass, which depends only on its number and the seed."""
    return np.random.default_rng([seed, number]).permutation(count)
