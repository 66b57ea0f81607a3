"""Reliability curves: how often predictions are correct, by predicted probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.plot.canvas import axes
from tallytree.plot.inks import inks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def reliability_curve(
    probabilities: ArrayLike, right: ArrayLike, *, bins: int = 10, ax: Axes | None = None
) -> Axes:
    """Plot how often predictions are correct against their predicted probability.

    Parameters
    ----------
    probabilities : array of numbers from 0 to 1
        Predicted probabilities of labels, chunks or whole labellings.
    right : array of bool
        Whether each prediction was correct.
    bins : int
        The number of bins.
    ax : matplotlib axes, optional
        The axes to draw on; the current axes by default.

    Returns
    -------
    matplotlib axes
        A calibrated model lies on the diagonal. Each point has its number of predictions; error bars are
        Wilson's 95 % intervals of the fraction correct, which are not empty even if all or none are correct.
        The title has the mean distance from the diagonal, weighted by predictions.

    Examples
    --------
    >>> from tallytree.plot import reliability_curve
    >>> reliability_curve([0.9, 0.9, 0.1, 0.9], [True, True, False, False]).get_title()
    'off by 0.200 on average (4 predictions)'
    """
    try:
        predicted = np.asarray(probabilities, dtype=np.float64).ravel()
        correct = np.asarray(right, dtype=np.bool_).ravel()
    except ValueError as error:  # lists of arrays of different lengths
        raise ModelError(f"expected arrays; concatenate those of several sentences ({error})") from None
    if predicted.shape != correct.shape or not len(predicted):
        raise ModelError(f"each probability needs an outcome; got {len(predicted)} and {len(correct)}")
    if not ((predicted >= 0.0) & (predicted <= 1.0)).all():
        raise ModelError("probabilities must be numbers from 0 to 1")
    if bins < 1:
        raise ModelError(f"bins must be a positive integer, got {bins!r}")
    group = np.minimum((predicted * bins).astype(np.int64), bins - 1)
    counts = np.bincount(group, minlength=bins)
    some = counts > 0
    mean, share = (np.bincount(group, part, bins)[some] / counts[some] for part in (predicted, correct))
    low, high = wilson_interval(share, counts[some])
    drawn: Axes = axes(ax, 4.6, 4.2)
    ink = inks(drawn)
    drawn.plot([0.0, 1.0], [0.0, 1.0], color=ink.pale, linewidth=1.0, zorder=1)
    bars: dict[str, Any] = {
        "yerr": (share - low, high - share),
        "ecolor": ink.accent,
        "elinewidth": 1.2,
        "capsize": 2,
    }
    drawn.errorbar(mean, share, color=ink.line, marker="o", markersize=5, linewidth=1.4, zorder=3, **bars)
    for x, y, count in zip(mean, share, counts[some].tolist(), strict=True):
        beside: dict[str, Any] = {"xytext": (5, -8), "textcoords": "offset points"}
        drawn.annotate(f"{count:,}", (x, y), color=ink.text, fontsize=7, zorder=4, **beside)
    drawn.set(
        xlim=(-0.02, 1.1), ylim=(-0.07, 1.04), xlabel="predicted probability", ylabel="fraction correct"
    )
    off = float(np.abs(mean - share) @ counts[some]) / len(predicted)
    drawn.set_title(f"off by {off:.3f} on average ({len(predicted):,} predictions)", fontsize=10)
    return drawn


def wilson_interval(
    share: NDArray[np.float64], counts: NDArray[np.int64], deviations: float = 1.96
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of Wilson's interval for observed shares of some counts.

    The ends ``p`` solve ``(share - p)² = deviations² · p · (1 - p) / count``.

    Examples
    --------
    >>> [end.round(3).tolist() for end in wilson_interval(np.array([0.0, 0.5, 1.0]), np.array([10, 10, 10]))]
    [[0.0, 0.237, 0.722], [0.278, 0.763, 1.0]]
    """
    square = deviations**2 / counts
    centre = (share + square / 2) / (1 + square)
    half = np.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    return np.clip(centre - half, 0.0, share), np.clip(centre + half, share, 1.0)
