"""A profile as a curve (one statistic) or a heat map (two), with an optional constraint."""

from __future__ import annotations

from textwrap import fill as wrapped
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.distribution import Distribution
from tallytree.answers.objective import Objective, as_objective, values_to_show
from tallytree.answers.profile import Profile
from tallytree.answers.tally_table import Where
from tallytree.errors import ModelError
from tallytree.plot.canvas import axes, integer_ticks, room
from tallytree.plot.inks import inks, legible, mixed
from tallytree.plot.labels import STAR, write_label
from tallytree.statistics.formula_constraints import as_condition
from tallytree.values import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PALE = 0.35  # the share of its colour in what a curve does not emphasise
_CURVE = "tallytree-profile"


def profile_curve(
    profile: Profile,
    objective: Objective | str | None = None,
    *,
    where: Where = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the best score, or value, of every tally; tallies that are ruled out are pale.

    Parameters
    ----------
    profile : Profile
        A profile of one statistic is drawn as a curve, one of two as a heat map.
    objective : callable or str, optional
        As for :meth:`Profile.best`: its values are plotted instead of the scores.
    where : Constraint, optional
        The tallies that satisfy it are highlighted, and the best of them is marked.
    label : str, optional
        The name of the curve in a legend, which ``ax.legend()`` adds.
    ax : matplotlib Axes, optional
        The axes to draw on; by default the current axes, or a new figure if they have a picture or a map.

    Returns
    -------
    matplotlib Axes
        A star marks the best tally that is allowed. If there is none, the title says so.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> from tallytree.plot import profile_curve
    >>> model = tt.Model.chain(np.array([[0., 1], [0, -2], [0, 4]]), np.eye(2))
    >>> ones = tt.count(model, state=1, name="ones")
    >>> ax = profile_curve(tt.profile(model, [ones]), where=ones == 1)
    >>> ax.get_xlabel()
    'ones'
    """
    if not isinstance(profile, Profile):
        raise _wrong(profile)
    if len(profile.names) not in (1, 2):
        raise ModelError(
            f"only profiles of one or two statistics can be plotted, but this one has {len(profile.names)}; "
            "make a profile of those to plot"
        )
    satisfied = _allowed(profile, where)
    values = _values(profile, objective, satisfied)
    allowed = satisfied & (values > -np.inf)
    values = np.where(np.isfinite(values), values, profile.scores)  # excluded tallies have a score, too
    if label is not None and len(profile.names) == 2:
        raise ModelError("label= names a curve; the profile has two statistics and is drawn as a heat map")
    canvas = axes(ax, shared=len(profile.names) == 1)
    columns = max(int(room(canvas)[0] / 6), 20)  # a letter is about six points wide
    noun = "best score" if objective is None else "best value"
    if len(profile) and len(profile.names) == 1:
        _curve(canvas, profile, values, allowed, noun, label)
    elif len(profile):
        _map(canvas, profile, values, allowed, noun)
    if title := _title(profile, where, bool(allowed.any())):
        canvas.set_title(wrapped(title, columns), fontsize=10, color=inks(canvas).accent)
    return canvas  # type: ignore[no-any-return]


def _wrong(given: object) -> ModelError:
    """Return the error for something that is not a profile."""
    instead = "pass tallytree.profile(model, statistics)"
    if isinstance(given, Distribution):
        instead = "to plot probabilities, use plt.bar(spread.tallies[:, 0], spread.probabilities)"
    return ModelError(f"profile_curve needs a Profile, got {type(given).__name__}; {instead}")


def _title(profile: Profile, where: Where, any_allowed: bool) -> str:
    """Return the constraint, and what is missing if there is nothing to mark."""
    if not len(profile):
        return "no labelling is allowed, so the profile is empty"
    shown = "" if where is None else f"where {where}"
    if any_allowed:
        return shown
    return f"{shown}: no tally satisfies it" if shown else "the objective is -inf for every tally"


def _values(
    profile: Profile, objective: Objective | str | None, allowed: NDArray[np.bool_]
) -> NDArray[np.float64]:
    function = as_objective(objective, profile.statistics)
    if function is None:
        return profile.scores
    return values_to_show(function, profile.scores, profile.tallies, profile.names, allowed)


def _allowed(profile: Profile, where: Where) -> NDArray[np.bool_]:
    if where is None:
        return np.ones(len(profile), dtype=bool)
    constraint = as_condition(where, profile.statistics).on(profile.model)
    columns = dict(zip(profile.statistics, profile.tallies.T, strict=True))
    missing = [s.name for s in constraint.statistics if s not in columns]
    if missing:
        raise ModelError(
            f"the constraint '{constraint}' uses {', '.join(missing)}, but the plot shows "
            f"{counted(len(profile.names), 'statistic')}: {', '.join(profile.names)}"
        )
    return np.broadcast_to(constraint.holds(columns), len(profile))


def _curve(
    ax: Any,
    profile: Profile,
    values: NDArray[Any],
    allowed: NDArray[np.bool_],
    noun: str,
    label: str | None,
) -> None:
    tallies, ink = profile.tallies[:, 0], inks(ax)
    before = [line for line in ax.lines if line.get_gid() == _CURVE]  # curves that share these axes
    colours = [colour for colour in ink.curves if colour != ink.accent]  # the first star has that one
    colour = colours[len(before) % len(colours)]
    pale = legible(mixed(ink.paper, colour, _PALE), ink.paper)
    curve = ax.plot(tallies, values, color=pale, linewidth=1.5, zorder=1, gid=_CURVE)
    size = _marker_size(ax, tallies)
    for chosen, shade, fill in ((~allowed, pale, ink.paper), (allowed, colour, colour)):
        style = {"color": shade, "markerfacecolor": fill, "markersize": size}
        ax.plot(tallies[chosen], values[chosen], "o", zorder=2, **style)
    if label is not None:
        ax.plot([], [], "o-", color=colour, markersize=size, label=label)
    for first, last in _runs(tallies[allowed]) if not allowed.all() else ():
        ax.axvspan(first - 0.5, last + 0.5, color=ink.accent, alpha=0.12, linewidth=0)
    if allowed.any():
        best = int(np.argmax(np.where(allowed, values, -np.inf)))
        place, shade = (float(tallies[best]), float(values[best])), colour if before else ink.accent
        _star(ax, *place, shade)
        write_label(ax, place, f"{values[best]:.4g} at {tallies[best]}", shade, [*before, *curve])
    ax.set_xlabel(profile.names[0])
    ax.set_ylabel(noun)
    integer_ticks(ax.xaxis)
    ax.spines[["top", "right"]].set_visible(False)


def _marker_size(ax: Any, tallies: NDArray[np.int64]) -> float:
    """Return the size in points at which markers do not merge, but not so small that they disappear."""
    return float(np.clip(0.7 * room(ax)[0] / (np.ptp(tallies) + 1), 1.5, 5.0))


def _runs(tallies: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the first and last of each run of consecutive numbers."""
    parts = np.split(tallies, np.flatnonzero(np.diff(tallies) > 1) + 1)
    return [(int(part[0]), int(part[-1])) for part in parts if len(part)]


def _map(ax: Any, profile: Profile, values: NDArray[Any], allowed: NDArray[np.bool_], noun: str) -> None:
    first, second = profile.tallies.T
    across = np.arange(first.min(), first.max() + 1)
    up = np.arange(second.min(), second.max() + 1)
    table = np.full((len(up), len(across)), np.nan)
    table[second - up[0], first - across[0]] = values
    inside = np.zeros(table.shape, dtype=bool)
    inside[second - up[0], first - across[0]] = allowed
    limits = {"vmin": np.nanmin(table), "vmax": np.nanmax(table), "cmap": "viridis", "shading": "nearest"}
    ax.pcolormesh(across, up, np.where(inside, np.nan, table), alpha=0.25, **limits)
    mesh = ax.pcolormesh(across, up, np.where(inside, table, np.nan), **limits)
    if allowed.any():  # the value of the best is shown next to the scale, where it hides no tally
        best = int(np.argmax(np.where(allowed, values, -np.inf)))
        _star(ax, float(first[best]), float(second[best]), inks(ax).accent)
        noun = rf"{noun} ($\bigstar$ {values[best]:.4g})"
    ax.figure.colorbar(mesh, ax=ax, label=noun)
    ax.set_xlabel(profile.names[0])
    ax.set_ylabel(profile.names[1])
    for axis in (ax.xaxis, ax.yaxis):
        integer_ticks(axis)


def _star(ax: Any, x: float, y: float, colour: str) -> None:
    ax.plot([x], [y], "*", color=colour, markersize=STAR, markeredgecolor=inks(ax).paper, zorder=3)
