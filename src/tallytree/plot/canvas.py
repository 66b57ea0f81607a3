"""Where pictures are drawn, and in which colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallytree.errors import TallytreeError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


INK, ACCENT, PALE = "#22395b", "#d1495b", "#b9c2cf"
RIGHT = "#2f7d4f"
STATES = ("#dfe5ec", "#2e6f9e", "#edae49", "#66a182", "#8d5a97", "#d1495b", "#5c5c5c", "#9ad1d4")
"""Fills of states, the background first."""


def figure(width: float, height: float) -> Any:
    """Return a new figure, which belongs to no window."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise TallytreeError(
            "pictures need matplotlib, which is not installed; install it with pip install 'tallytree[plot]'"
        ) from None
    return Figure(figsize=(width, height), layout="constrained", dpi=110)


def axes(ax: Axes | None, width: float = 6.0, height: float = 3.2) -> Any:
    """Return the given axes, or those of a new figure."""
    return figure(width, height).add_subplot() if ax is None else ax


def panels(count: int, width: float, height: float) -> list[Any]:
    """Return axes side by side in a new figure."""
    drawn = figure(width, height)
    return [drawn.add_subplot(1, count, number + 1) for number in range(count)]


def state_colours(count: int) -> list[Any]:
    """Return a colour for each of so many states."""
    if count <= len(STATES):
        return list(STATES[:count])
    from matplotlib import colormaps

    return [STATES[0], *(colormaps["turbo"](number / (count - 2)) for number in range(count - 1))]
