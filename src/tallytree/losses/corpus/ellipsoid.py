"""Minimise a convex function of a few variables: the ellipsoid method, and bisection in one dimension.

Every step evaluates the function at the centre of an ellipsoid that holds the minimum, and keeps the half on
which the subgradient says that it lies. Slow for many variables, simple and safe for one or two.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def minimise(
    function: Callable[[Vector], tuple[float, Vector]],
    centre: Vector,
    radius: float,
    tolerance: float,
    most: int = 400,
) -> None:
    """Evaluate a convex function at points that close in on its minimum within a ball.

    Parameters
    ----------
    function : callable
        Gives the value at a point, and a subgradient.
    centre, radius
        The ball to look in.
    tolerance : float
        Stop when no point can be lower than the last one by more than this.
    most : int
        Stop after as many evaluations.

    Examples
    --------
    >>> seen = []
    >>> def distance(x):
    ...     seen.append(float(abs(x - 2.0).sum()))
    ...     return seen[-1], np.sign(x - 2.0)
    >>> minimise(distance, np.zeros(1), 8.0, 1e-6)
    >>> min(seen) < 1e-5
    True
    """
    point, shape = np.array(centre, dtype=np.float64), np.eye(len(centre)) * radius**2
    for _ in range(most):
        _, gradient = function(point)
        reach = sqrt(max(float(gradient @ shape @ gradient), 0.0))
        if reach <= tolerance:
            return
        step = shape @ gradient / reach
        point, shape = _halved(point, shape, step)


def _halved(point: Vector, shape: NDArray[np.float64], step: Vector) -> tuple[Vector, NDArray[np.float64]]:
    """Return the smallest ellipsoid around the half that lies against the step."""
    n = len(point)
    if n == 1:
        return point - step / 2, shape / 4
    smaller = n * n / (n * n - 1) * (shape - 2 / (n + 1) * np.outer(step, step))
    return point - step / (n + 1), (smaller + smaller.T) / 2
