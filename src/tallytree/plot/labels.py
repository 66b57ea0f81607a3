"""Labels of points on curves: in a margin above a single curve, close to their points if there are several.

Close labels overlap no other label if possible, and hide the fewest points of curves. Places are in
typographic points from the lower left corner of the axes, before the layout is final.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.plot.canvas import room

STAR, LETTERS = 14.0, 9.0  # points
_LABEL = "tallytree-label"
_DISTANCES = (0.6 * STAR, 1.2 * STAR, 2.0 * STAR)
_SIDES = tuple((x, y) for y in (1, -1, 0) for x in (0, 1, -1) if x or y)
_DENSE = 200  # points of each curve that labels should not hide


def write_label(ax: Any, place: tuple[float, float], text: str, colour: str, curves: Sequence[Any]) -> None:
    """Label a point of the last curve."""
    _leave_room(ax, place[0], curves)
    _in_margin(ax, place, text, colour)
    if len(curves) > 1:
        _move_close(ax, [one for one in ax.texts if one.get_gid() == _LABEL], curves)


def _leave_room(ax: Any, x: float, curves: Sequence[Any]) -> None:
    """Extend the axes by a line of text above all curves."""
    share = min((STAR / 2 + 1.6 * LETTERS) / room(ax)[1], 0.6)
    heights = np.concatenate([line.get_ydata() for line in curves])
    bottom, top = heights.min(), heights.max()
    ax.update_datalim([(x, top + (top - bottom or 1.0) * share / (1 - share))])
    ax.autoscale_view()


def _in_margin(ax: Any, place: tuple[float, float], text: str, colour: str) -> None:
    """Write a label above all points, so that none is hidden, with a line to its point."""
    left, right = ax.get_xlim()
    across, half = (place[0] - left) / (right - left), 0.35 * LETTERS * len(text) / room(ax)[0]
    side = 0.0 if across < half else 1.0 if across > 1 - half else 0.5
    line = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "alpha": 0.6, "relpos": (side, 0.0)}
    style: dict[str, Any] = {"ha": {0.0: "left", 0.5: "center", 1.0: "right"}[side], "va": "top"}
    style |= {"color": colour, "fontsize": LETTERS, "arrowprops": line | {"shrinkA": 0, "shrinkB": 0}}
    above = {"xytext": (place[0], 1.0), "textcoords": ax.get_xaxis_transform()}
    ax.annotate(text, place, zorder=2.5, gid=_LABEL, **above, **style)


class _Box(NamedTuple):
    """A place for a label: its offset from the point, its middle and half its size."""

    offset: tuple[float, float]
    middle: NDArray[np.float64]
    half: NDArray[np.float64]
    away: float

    def hides(self, points: NDArray[np.float64]) -> int:
        """Return how many points are in the box."""
        return int((np.abs(points - self.middle) < self.half).all(axis=1).sum())

    def overlaps(self, other: _Box) -> bool:
        """Return whether two boxes have a point in common."""
        return bool((np.abs(self.middle - other.middle) < self.half + other.half).all())

    def inside(self, size: tuple[float, float]) -> bool:
        """Return whether the box is in axes of this size."""
        return bool((self.middle >= self.half).all() and (self.middle + self.half <= size).all())


def _move_close(ax: Any, labels: Sequence[Any], curves: Sequence[Any]) -> None:
    points, size = np.vstack([_along(ax, line) for line in curves]), room(ax)
    taken: list[_Box] = []

    def cost(box: _Box) -> tuple[bool, bool, int, float]:
        return not box.inside(size), any(map(box.overlaps, taken)), box.hides(points), box.away

    for one in labels:
        taken.append(min(_boxes(_points(ax, [one.xy])[0], len(one.get_text())), key=cost))
        one.set(ha="center", va="center")
        one.xyann, one.anncoords = taken[-1].offset, "offset points"
        one.arrow_patch.set_visible(False)


def _boxes(star: NDArray[np.float64], letters: int) -> list[_Box]:
    """Return the places for a label around its star."""
    half = np.array([0.32 * letters + 0.2, 0.7]) * LETTERS
    found = []
    for away in _DISTANCES:
        for side in _SIDES:
            offset = np.array(side) * (half + away)
            found.append(_Box((float(offset[0]), float(offset[1])), star + offset, half, away))
    return found


def _along(ax: Any, line: Any) -> NDArray[np.float64]:
    """Return many points of a curve, also between its tallies."""
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    across = np.linspace(x[0], x[-1], _DENSE)
    return _points(ax, np.column_stack([across, np.interp(across, x, y)]))


def _points(ax: Any, places: Any) -> NDArray[np.float64]:
    inches = (ax.transData.transform(places) - ax.bbox.min) / ax.figure.dpi
    return np.asarray(72 * inches, dtype=float)
