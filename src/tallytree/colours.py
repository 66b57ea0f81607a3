"""The colours of states, the same in notebooks, plots and the explorer; dark text is legible on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from colorsys import hls_to_rgb

STATES = ("#dfe5ec", "#f2b134", "#6cc0e5", "#8fd694", "#f28ea0", "#c3a6e6", "#e0c9a6", "#9fd8cb")
"""Fill colours of the first states, the background first."""

INK = "#10151b"
"""The colour of text on them."""

_MOST_EXPLAINED = 12  # states in a legend


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


def legend(states: Iterable[int], names: Sequence[str] | None) -> dict[str, str]:
    """Return the colours of states by name, in order; nothing if there are too many for a legend.

    Examples
    --------
    >>> legend([1, 0, 1], ["dry", "wet"]), legend([1], None)
    ({'dry': '#dfe5ec', 'wet': '#f2b134'}, {'state 1': '#f2b134'})
    """
    found = sorted(set(states))
    if len(found) > _MOST_EXPLAINED:
        return {}
    return {(f"state {s}" if names is None else names[s]): state_colour(s) for s in found}
