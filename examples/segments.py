"""Segment a noisy signal into exactly k segments of known levels.

A machine idles, works or runs at full load, and a sensor measures its power consumption. A hidden Markov
model finds the most likely levels, but does not control the number of segments. Here, the number of changes
is counted as well: one pass gives the best segmentation for every number of segments.
"""

import matplotlib.pyplot as plt
import numpy as np

import tallytree as tt
from tallytree.colours import STATES
from tallytree.plot import profile_curve
from tallytree.plot.canvas import ACCENT, INK

NAMES = ["idle", "work", "full load"]
LEVELS = np.array([1.0, 2.0, 3.2])  # the power consumption in each state
NOISE = 1.0


def measured(length=120, segments=6, seed=5):
    """Return the states of a machine and noisy measurements of them."""
    rng = np.random.default_rng(seed)
    states = np.repeat([0, 1, 2, 1, 0, 2][:segments], length // segments)
    return states, LEVELS[states] + NOISE * rng.normal(size=len(states))


def segmentations(signal, stay=0.96):
    """Return a profile: the best states, by log-probability, for every number of segments."""
    fit = -0.5 * ((signal[:, None] - LEVELS) / NOISE) ** 2
    moves = np.full((3, 3), (1 - stay) / 2)
    np.fill_diagonal(moves, stay)
    model = tt.Model.chain(fit, np.log(moves), states=NAMES)
    return tt.profile(model, [tt.segments()])


def draw(ax, signal, truth, solution, title):
    """Draw a signal and the states found; dotted lines show where the true state changes."""
    ends = np.flatnonzero(np.diff(solution.assignment)) + 1
    for first, last in zip([0, *ends], [*ends, len(signal)], strict=True):
        state = solution.assignment[first]
        ax.axvspan(first, last, color=STATES[state], alpha=0.35 if state else 1.0, linewidth=0)
        ax.plot([first, last], [LEVELS[state]] * 2, color=INK, linewidth=2)
    for change in np.flatnonzero(np.diff(truth)) + 1:
        ax.axvline(change, color=INK, linestyle=":", linewidth=1.2)
    ax.plot(np.arange(len(signal)) + 0.5, signal, ".", color=ACCENT, markersize=4)
    ax.set(xlim=(0, len(signal)), yticks=LEVELS, yticklabels=NAMES)
    ax.set_title(title, fontsize=10, color=INK)
    ax.spines[["top", "right"]].set_visible(False)


def main(quick=False):
    """Compare the most likely states with the best ones for the true number of segments."""
    known = 3 if quick else 6
    size, signals = (30, 2) if quick else (120, 40)
    wrong = []
    for seed in range(signals):
        truth, signal = measured(size, known, seed)
        profile = segmentations(signal)
        found = profile.best(), profile.at(segments=known)
        wrong.append([(one.assignment != truth).sum() for one in found])
    free, exact = np.mean(wrong, axis=0)
    print(f"{signals} signals of {size} seconds: {free:.1f} wrong, with exactly {known} segments {exact:.1f}")
    truth, signal = measured(size, known)
    profile = segmentations(signal)
    free, exact = profile.best(), profile.at(segments=known)
    figure = plt.figure(figsize=(8.5, 5.8), dpi=110, layout="constrained")
    upper, lower, curve = figure.subplots(3, 1, height_ratios=[1, 1, 0.9])
    draw(upper, signal, truth, free, f"most likely: {free.tally.segments} segments")
    draw(lower, signal, truth, exact, f"exactly {known} segments")
    profile_curve(profile, ax=curve)
    curve.plot([known], [exact.score], "o", color=ACCENT, markersize=8, fillstyle="none")
    shown = profile.scores[:12]
    curve.set(xlim=(0.5, 12.5), ylim=(shown.min() - 5, shown.max() + 25))
    lower.set_xlabel("second")
    return figure


if __name__ == "__main__":
    from saving import save

    save(main, __file__)
