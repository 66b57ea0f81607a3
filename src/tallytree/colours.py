"""The colours of states, the same in notebooks, plots and the explorer; dark text is legible on them."""

from __future__ import annotations

from colorsys import hls_to_rgb

STATES = ("#dfe5ec", "#f2b134", "#6cc0e5", "#8fd694", "#f28ea0", "#c3a6e6", "#e0c9a6", "#9fd8cb")
"""Fill colours of the first states, the background first."""

INK = "#10151b"
"""The colour of text on them."""


def state_colour(state: int) -> str:
    """Return the fill colour of a state.

    Examples
    --------
    >>> state_colour(1), state_colour(30)
    ('#f2b134', '#e9a5c7')
    """
    if state < len(STATES):
        return STATES[state]
    parts = hls_to_rgb(state * 47 % 360 / 360, 0.78, 0.6)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)
