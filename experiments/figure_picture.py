"""The curves of the figure as pictures: tasks side by side, questions below each other."""

import io
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from figure_questions import MARGIN, OTHER, SLACK
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from PIL import Image

COLOURS = {0: "#5c6b7f", 1: "#2e6f9e", 2: "#d1763b", 3: "#8d3b72"}
NAMES = {0: "no growing count", 1: "one count", 2: "two counts", 3: "three counts"}
ROWS = {MARGIN: "margin scaling", SLACK: "slack scaling", OTHER: "other uses"}
UNITS = {"seconds": "seconds", "operations": "add-max operations"}
APART = 2.5  # a curve this many times above or below the others of its colour gets its own name


def draw(curves: list[Any], what: str, within: tuple[int, int]) -> Figure:
    """Draw seconds or operations against words, on logarithmic scales."""
    tasks = list(dict.fromkeys(curve.task.name for curve in curves))
    figure = Figure(figsize=(3.7 * len(tasks), 8.6), layout="constrained", dpi=100)
    panels = figure.subplots(3, len(tasks), sharex=True, squeeze=False)
    for column, task in enumerate(tasks):
        for row, kind in enumerate(ROWS):
            mine = [c for c in curves if c.task.name == task and c.question.kind == kind]
            _panel(panels[row][column], mine, what, within)
            panels[row][column].set_title(f"{task}, {ROWS[kind]}", fontsize=10)
    for panel in panels[-1]:
        panel.set_xlabel("words")
    for line in panels:
        line[0].set_ylabel(UNITS[what])
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a picture with few colours, which is a third of the size."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)


def _panel(ax: Any, curves: list[Any], what: str, within: tuple[int, int]) -> None:
    """Draw the curves of a panel, those with as many counts in one colour, and the slope they should have."""
    ax.set(xscale="log", yscale="log", xlim=(3.6, 46))
    ax.set_xticks([5, 10, 20, 40], ["5", "10", "20", "40"])
    ax.minorticks_off()
    groups = defaultdict(list)
    for curve in curves:
        if np.isfinite(curve.fit(what, within)[0]):
            groups[curve.question.counts[0]].append(curve)
    for counts, group in sorted(groups.items()):
        _group(ax, counts, group, what, within)
    legend = ax.legend(frameon=False, fontsize=7.5, loc="upper left", handletextpad=0.2, borderaxespad=0.1)
    for handle in legend.legend_handles:
        handle.set(alpha=1.0, markersize=4)
    low, high = ax.get_ylim()
    ax.set_ylim(low, high * (high / low) ** (0.09 * len(groups)))  # room for the legend
    ax.grid(True, color="#e8ebef", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _group(ax: Any, counts: int, group: list[Any], what: str, within: tuple[int, int]) -> None:
    colour, degree = COLOURS[counts], group[0].task.degree(counts)
    slopes = sorted(curve.fit(what, within)[0] for curve in group)
    spread = f"{slopes[0]:.1f}" + (f" to {slopes[-1]:.1f}" if slopes[-1] - slopes[0] > 0.1 else "")
    words, values = np.concatenate([curve.known(what, (0, within[1])) for curve in group]).T
    label = f"{NAMES[counts]}: degree {spread}, theory {degree}"
    ax.plot(words, values, "o", color=colour, markersize=2.6, alpha=0.4, markeredgewidth=0, label=label)
    ends = [_line(ax, curve, what, within, colour) for curve in group]
    middle = np.median(ends)
    longest = max(words)
    half = np.array([longest / 2, longest])
    ax.plot(half, 1.3 * middle * (half / longest) ** degree, ":", color=colour, linewidth=1.6)
    for curve, end in zip(group, ends, strict=True):
        if not 1 / APART < end / middle < APART:
            place = {"xytext": (0, 5), "textcoords": "offset points", "ha": "right"}
            halo = [withStroke(linewidth=2.5, foreground="white")]  # letters are read over points
            ax.annotate(
                curve.question.name, (longest, end), **place, fontsize=7, color=colour, path_effects=halo
            )


def _line(ax: Any, curve: Any, what: str, within: tuple[int, int], colour: str) -> float:
    """Draw the fitted power law, and return where it ends."""
    slope, constant = curve.fit(what, within)
    words = curve.known(what, within)[:, 0]
    ends = np.array([words.min(), words.max()])
    fitted = np.exp(constant) * ends**slope
    ax.plot(ends, fitted, color=colour, linewidth=0.9, alpha=0.8)
    return float(fitted[1])
