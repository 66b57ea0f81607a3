"""Colours of lines and text that are legible on the background they are drawn on.

The background is that of the axes, and text has the colour of the style (``rcParams["text.color"]``), so
plots follow ``plt.style``. Other colours are used as they are if their contrast with the background
suffices, and lightened or darkened otherwise. Contrast is that of the Web Content Accessibility Guidelines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tallytree.plot.canvas import ACCENT, INK, LINES, RIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FOR_TEXT, _FOR_LABELS, _FOR_LINES = 7.0, 4.5, 3.0  # the contrast that the guidelines recommend
_STEPS = 20


class Inks(NamedTuple):
    """Colours for one background, as hexadecimal strings."""

    paper: str
    text: str
    line: str  # what is emphasised
    pale: str  # what is not
    faint: str
    accent: str
    right: str
    curves: tuple[str, ...]  # of several lines, the first that of ``line``


def inks(ax: Axes) -> Inks:
    """Return the colours for a plot on these axes."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    text = to_hex(mpl.rcParams["text.color"])
    paper = _paper(ax, text)
    text, line = (legible(colour, paper, _FOR_TEXT) for colour in (text, INK))
    curves = (line, *(legible(colour, paper) for colour in LINES[1:]))
    pale, faint = (mixed(paper, text, share) for share in (0.28, 0.13))
    marks = legible(ACCENT, paper), legible(RIGHT, paper, _FOR_LABELS)
    return Inks(paper, text, line, pale, faint, *marks, curves=curves)


def _paper(ax: Any, text: str) -> str:
    """Return the colour behind a plot; if nothing is drawn there, the opposite of the text."""
    from matplotlib.colors import to_hex, to_rgba

    behind = [ax.get_facecolor()] if ax.axison else []
    for colour in (*behind, ax.figure.get_facecolor()):
        if to_rgba(colour)[3] > 0:
            return to_hex(colour)
    return _opposite(text)


def legible(colour: str, paper: str, contrast: float = _FOR_LINES) -> str:
    """Return a colour, lightened or darkened as far as needed for this contrast with the background.

    Examples
    --------
    >>> legible("#22395b", "#ffffff", 7.0), legible("#22395b", "#000000", 7.0)
    ('#22395b', '#909cad')
    """
    shades = (mixed(colour, _opposite(paper), step / _STEPS) for step in range(_STEPS))
    return next((shade for shade in shades if contrast_of(shade, paper) >= contrast), _opposite(paper))


def mixed(first: str, second: str, share: float) -> str:
    """Return a mixture of two colours with this share of the second."""
    from matplotlib.colors import to_hex, to_rgb

    pairs = zip(to_rgb(first), to_rgb(second), strict=True)
    red, green, blue = ((1 - share) * a + share * b for a, b in pairs)
    return to_hex((red, green, blue))


def contrast_of(first: str, second: str) -> float:
    """Return the contrast of two colours, from 1 (the same luminance) to 21 (black and white).

    Examples
    --------
    >>> contrast_of("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    from matplotlib.colors import to_rgb

    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return float(sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))


def _opposite(colour: str) -> str:
    return max("#ffffff", "#000000", key=lambda end: contrast_of(end, colour))
