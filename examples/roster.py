"""Plan a roster that respects wishes, with limits on the number of shifts of each nurse.

Every date, two of four nurses work, one by day and one by night. Every nurse has wishes, and nobody works by
day after a night. These rules alone give a popular but unfair roster. Counts over the whole roster make it
fair: a minimum and a maximum number of shifts for each nurse, and no more nights than days for Ben.
"""

from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import tallytree as tt
from tallytree.colours import STATES
from tallytree.plot.canvas import INK

NURSES = ("Ada", "Ben", "Cleo", "Dan")
PAIRS = list(permutations(range(4), 2))  # who works by day and by night: the states of a date


def wished(days, seed=3):
    """Return each nurse's preferences for day and night shifts on each date."""
    liking = np.array([[2, 1], [0, 3], [0, 0], [1, -1]])  # Ada likes to work, Ben likes nights
    return liking + np.random.default_rng(seed).integers(-2, 3, size=(days, 4, 2))


def fair(model, least, most):
    """Return a constraint: `least` to `most` shifts for each nurse, and no more nights than days for Ben."""
    nights_less_days = [[(night == 1) - (day == 1) for day, night in PAIRS]] * len(model)
    constraint = tt.node_statistic(nights_less_days, name="Ben's nights - days") <= 0
    for nurse, name in enumerate(NURSES):
        shifts = tt.count(model, state=[s for s, pair in enumerate(PAIRS) if nurse in pair], name=name)
        constraint = constraint & (shifts >= least) & (shifts <= most)
    return constraint


def rosters(wishes, least, most):
    """Return the best roster and the best fair one, as pairs of nurses for each date, with scores."""
    scores = [[date[day, 0] + date[night, 1] for day, night in PAIRS] for date in wishes]
    rested = [[-np.inf if before == day else 0.0 for day, _ in PAIRS] for _, before in PAIRS]
    model = tt.Model.chain(scores, rested)
    found = [tt.solve(model), tt.solve(model, where=fair(model, least, most))]
    return [([PAIRS[state] for state in one.assignment], one.score) for one in found]


def table(plan):
    """Return an array of nurses by dates: 0 is off, 1 is day, 2 is night."""
    shifts = np.zeros((4, len(plan)), dtype=int)
    for date, (day, night) in enumerate(plan):
        shifts[day, date], shifts[night, date] = 1, 2
    return shifts


def draw(ax, plan, title):
    """Draw a roster, with the number of shifts of each nurse on the right."""
    shifts = table(plan)
    ax.imshow(shifts, cmap=ListedColormap(STATES[:3]), vmin=0, vmax=2, aspect="auto")
    for (nurse, date), shift in np.ndenumerate(shifts):
        ax.text(date, nurse, ("", "day", "night")[shift], ha="center", va="center", color=INK, fontsize=8)
    for nurse, row in enumerate(shifts):
        text = f"{(row > 0).sum()} shifts, {(row == 2).sum()} nights"
        ax.text(len(plan) - 0.3, nurse, text, va="center", color=INK, fontsize=9)
    ax.set(xticks=range(len(plan)), xticklabels=range(1, len(plan) + 1), yticks=range(4), yticklabels=NURSES)
    ax.hlines(np.arange(3) + 0.5, -0.5, len(plan) - 0.5, color="white")
    ax.vlines(np.arange(len(plan) - 1) + 0.5, -0.5, 3.5, color="white")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(title, fontsize=10, color=INK)


def main(quick=False):
    """Plan two weeks, by wishes alone and with counts."""
    days, least, most = (6, 2, 4) if quick else (14, 6, 8)
    free, even = rosters(wished(days), least, most)
    print(f"wishes alone {free[1]:g}; with {least} to {most} shifts for each {even[1]:g}")
    figure = plt.figure(figsize=(9, 4.2), dpi=110, layout="constrained")
    upper, lower = figure.subplots(2, 1)
    draw(upper, free[0], f"wishes alone: {free[1]:g} points")
    draw(
        lower, even[0], f"{least} to {most} shifts each, Ben has no more nights than days: {even[1]:g} points"
    )
    lower.set_xlabel("date", color=INK)
    return figure


if __name__ == "__main__":
    from saving import save

    save(main, __file__)
