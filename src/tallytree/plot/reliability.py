"""Reliability curves: how often predictions are correct, by predicted probability."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tallytree.errors import ModelError
from tallytree.plot.canvas import ACCENT, INK, PALE, axes

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
        A calibrated model lies on the diagonal. Error bars are two standard errors of the fraction correct;
        the title has the mean distance from the diagonal, weighted by predictions.

    Examples
    --------
    >>> from tallytree.plot import reliability_curve
    >>> reliability_curve([0.9, 0.9, 0.1, 0.9], [True, True, False, False]).get_title()
    'off by 0.200 on average (4 predictions)'
    """
    said = np.asarray(probabilities, dtype=np.float64).ravel()
    was = np.asarray(right, dtype=np.bool_).ravel()
    if said.shape != was.shape or not len(said):
        raise ModelError(f"each probability needs an outcome; got {len(said)} and {len(was)}")
    if not ((said >= 0.0) & (said <= 1.0)).all():
        raise ModelError("probabilities must be numbers from 0 to 1")
    if bins < 1:
        raise ModelError(f"bins must be a positive integer, got {bins!r}")
    group = np.minimum((said * bins).astype(np.int64), bins - 1)
    counts = np.bincount(group, minlength=bins)
    some = counts > 0
    mean, share = (np.bincount(group, part, bins)[some] / counts[some] for part in (said, was))
    error = 2.0 * np.sqrt(share * (1.0 - share) / counts[some])
    drawn: Axes = axes(ax, 4.2, 4.0)
    drawn.plot([0.0, 1.0], [0.0, 1.0], color=PALE, linewidth=1.0, zorder=1)
    drawn.errorbar(mean, share, yerr=error, color=INK, ecolor=ACCENT, marker="o", linewidth=1.4, zorder=3)
    drawn.set(
        xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted probability", ylabel="fraction correct"
    )
    off = float(np.abs(mean - share) @ counts[some]) / len(said)
    drawn.set_title(f"off by {off:.3f} on average ({len(said):,} predictions)")
    return drawn
