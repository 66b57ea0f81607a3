"""Axes and colours for plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from tallytree.errors import ModelError, TallytreeError
from tallytree.values import abbreviated, counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


INK, ACCENT = "#22395b", "#d1495b"
RIGHT = "#2f7d4f"
ROW = 12.0
"""The width in inches of pictures next to each other."""
LINES = (INK, ACCENT, "#edae49", "#66a182", "#8d5a97", "#5c5c5c", "#9ad1d4")
"""Colours of lines, such as those of several runs; ``inks`` adapts them all to the background."""


_COMPLETE: WeakSet[Any] = WeakSet()  # figures of several axes, which later plots leave alone


def figure(width: float, height: float, *, complete: bool = True) -> Any:
    """Return a new pyplot figure, which becomes the current one and is shown in notebooks."""
    drawn = _pyplot().figure(figsize=(width, height), layout="constrained", dpi=110)
    if complete:
        _COMPLETE.add(drawn)
    return drawn


def axes(ax: Axes | None, width: float = 6.0, height: float = 3.2, *, shared: bool = True) -> Any:
    """Return the given axes, or else the current ones if there is room, or else those of a new figure.

    There is room if nothing is drawn on them or, for plots that can share axes with others, only curves.
    """
    if ax is not None:
        return single(ax)
    if _pyplot().get_fignums() and _pyplot().gcf() not in _COMPLETE:
        current = _pyplot().gca()
        if not current.has_data() or (shared and _has_only_curves(current)):
            return current
    return figure(width, height, complete=False).add_subplot()


def single(ax: Any) -> Any:
    """Return the given axes; raise an error if they are not exactly one."""
    from matplotlib.axes import Axes

    if isinstance(ax, Axes):
        return ax
    if isinstance(ax, (np.ndarray, list, tuple)) and np.size(ax):
        raise ModelError(
            f"ax must be a single matplotlib Axes, got {counted(np.size(ax), 'element')} in one "
            f"{type(ax).__name__}; pass one of them, such as ax[{', '.join('0' * np.ndim(ax))}]"
        )
    raise ModelError(f"ax must be a matplotlib Axes, such as that of plt.subplots(), got {type(ax).__name__}")


def _has_only_curves(ax: Axes) -> bool:
    from matplotlib.collections import QuadMesh

    return ax.axison and not ax.images and not any(isinstance(one, QuadMesh) for one in ax.collections)


def room(ax: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in points, before the layout is final."""
    points = 72 / ax.figure.dpi
    return points * ax.bbox.width, points * ax.bbox.height


def distinct(values: Sequence[float], digits: int = 4, most: int = 10) -> list[str]:
    """Write numbers with as many digits as it takes to tell them apart, `most` at most.

    Examples
    --------
    >>> distinct([12.29, 12.2912, 3.0])
    ['12.29', '12.291', '3']
    """
    told = len({f"{value:.{most}g}" for value in values})
    enough = (n for n in range(digits, most) if len({f"{value:.{n}g}" for value in values}) == told)
    precision = next(enough, most)
    return [f"{value:.{precision}g}" for value in values]


def shortened(names: Sequence[str], least: int) -> list[str]:
    """Shorten names to `least` letters, or to as many as it takes to tell them apart.

    Examples
    --------
    >>> shortened(["temperature_1", "temperature_2"], 8)
    ['temp…e_1', 'temp…e_2']
    >>> shortened(["station_1_east", "station_2_east"], 8)
    ['statio…1_east', 'statio…2_east']
    """
    longest = max(map(len, names), default=0)
    shorter = ([abbreviated(name, letters) for name in names] for letters in range(least, longest))
    return next((some for some in shorter if len(set(some)) == len(set(names))), list(names))


def integer_ticks(axis: Any) -> None:
    """Put ticks at whole numbers, unless ticks were chosen already."""
    from matplotlib.ticker import MaxNLocator

    locator = axis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(integer=True)


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise TallytreeError(
            "plots need matplotlib, which is not installed; install it with pip install 'tallytree[plot]'"
        ) from None
    return plt


def panels(count: int, width: float, height: float) -> list[Any]:
    """Return adjacent axes in a new figure."""
    drawn = figure(width, height)
    return [drawn.add_subplot(1, count, number + 1) for number in range(count)]


def tiles(count: int, width: float, height: float, legend: float = 0.0) -> list[Any]:
    """Return axes of the given size in a new figure, in as many rows as a page needs, above a legend."""
    columns = min(max(int(ROW / width), 1), count)
    rows = -(-count // columns)
    drawn = figure(columns * width, rows * height + legend)
    return [drawn.add_subplot(rows, columns, number + 1) for number in range(count)]
