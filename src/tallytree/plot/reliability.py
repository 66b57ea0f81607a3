"""Reliability: how often what was said to be likely is right."""

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
    """Draw how often predictions are right over how likely they were said to be.

    Parameters
    ----------
    probabilities : array of numbers from 0 to 1
        What the model said: of labels, chunks or whole labellings.
    right : array of bool
        Whether it was so.
    bins : int
        How many groups of probabilities.
    ax : matplotlib axes, optional
        By default the current ones.

    Returns
    -------
    matplotlib axes
        A calibrated model lies on the diagonal. Bars are two standard errors of the share that is right; the
        title has the mean distance from the diagonal, each prediction counted once.

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
        raise ModelError("probabilities are numbers from 0 to 1")
    if bins < 1:
        raise ModelError(f"bins is a positive number, got {bins!r}")
    group = np.minimum((said * bins).astype(np.int64), bins - 1)
    counts = np.bincount(group, minlength=bins)
    some = counts > 0
    mean, share = (np.bincount(group, part, bins)[some] / counts[some] for part in (said, was))
    error = 2.0 * np.sqrt(share * (1.0 - share) / counts[some])
    drawn: Axes = axes(ax, 4.2, 4.0)
    drawn.plot([0.0, 1.0], [0.0, 1.0], color=PALE, linewidth=1.0, zorder=1)
    drawn.errorbar(mean, share, yerr=error, color=INK, ecolor=ACCENT, marker="o", linewidth=1.4, zorder=3)
    drawn.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel="probability", ylabel="share that is right")
    off = float(np.abs(mean - share) @ counts[some]) / len(said)
    drawn.set_title(f"off by {off:.3f} on average ({len(said):,} predictions)")
    return drawn
