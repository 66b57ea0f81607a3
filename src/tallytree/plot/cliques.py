"""A clique tree, drawn from its root down or, if it is deep, to the right; cliques are scaled by their cost.

The table of a clique ``C`` has ``Π_{v in C} N_v`` rows, and for every row as many tallies as the subtree
below can have. Areas are proportional to the square root of their product, so that they fit on a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.paper.cliquetree import CliqueTree, clique_tree
from tallytree.planning.budget import readable_count
from tallytree.planning.orders import Order, skeleton
from tallytree.planning.query import bind
from tallytree.plot.canvas import axes, room, shortened
from tallytree.plot.inks import inks
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_NAMED = 40  # cliques whose variables are written out
_MOST = 2000
_LONGEST = 24  # letters of a name


def clique_tree_picture(
    model: Model,
    statistics: Iterable[Statistic | Recipe] = (),
    *,
    order: Order | None = None,
    tree: CliqueTree | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the clique tree that a plan follows; the area of a clique grows with the cost of its table.

    Parameters
    ----------
    model : Model
        The factor graph.
    statistics : iterable of Statistic or Recipe
        The statistics to tally: the tallies of the part below a clique multiply its cost.
    order : str, sequence of int or CliqueTree, optional
        The elimination order, as for :func:`plan`; by default the one that a plan would choose.
    tree : CliqueTree, optional
        Another tree to draw, in place of that of an order.
    ax : matplotlib Axes, optional
        The axes to draw on; by default the current axes if they are empty, or a new figure.

    Returns
    -------
    matplotlib axes
        The most expensive clique is annotated with its cost: states times tallies. If all cost the same,
        none is.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> from tallytree.plot import clique_tree_picture
    >>> model = tt.Model.tree([-1, 0, 0, 1], np.zeros((4, 3)), np.zeros((3, 3)))
    >>> ax = clique_tree_picture(model, [tt.count(state=1)])
    >>> ax.get_title()
    '3 cliques, width τ = 1; the largest table has 45 entries'
    >>> ax.texts[-1].get_text()
    '9 states x 5 tallies'
    """
    bound = bind(model, statistics)
    drawn = _tree_of_plan(model, bound, order) if tree is None else tree
    if len(drawn.cliques) > _MOST:
        raise ModelError(f"a tree of {len(drawn.cliques)} cliques is too large to draw; the limit is {_MOST}")
    tables, names = _tables(drawn, model, bound), _names(drawn, model)
    picture = _arranged(_places(drawn), max(map(len, names)))
    canvas = axes(ax, *picture.size, shared=False)
    costs = [prod(table) for table in tables]
    alike = min(costs) == max(costs)
    _draw(canvas, drawn, picture, costs, names)
    if not alike:
        dearest = costs.index(max(costs))
        _annotate(canvas, picture, dearest, tables[dearest])
    canvas.set_title(
        f"{counted(len(drawn.cliques), 'clique')}, width τ = {drawn.width}; "
        f"{'each' if alike else 'the largest'} table has {_counted(max(costs), 'entry')}",
        fontsize=10,
    )
    return canvas  # type: ignore[no-any-return]


def _counted(number: int, noun: str) -> str:
    return counted(number, noun, readable_count(float(number)))


def _tree_of_plan(model: Model, statistics: Sequence[Statistic], order: Order | None) -> CliqueTree:
    """Return the clique tree of the elimination order that a plan has, which need not fit in memory."""
    return clique_tree(model, statistics, order=skeleton(model, statistics, order).order.tolist())


def _upwards(tree: CliqueTree) -> list[int]:
    """Return the cliques, children before their parents."""
    order, waiting = [], [tree.root]
    children = tree.children
    while waiting:
        clique = waiting.pop()
        order.append(clique)
        waiting += children[clique]
    return order[::-1]


def _places(tree: CliqueTree) -> list[tuple[float, float]]:
    """Place leaves next to each other, parents above the middle of their children, the root at the top."""
    children, order = tree.children, _upwards(tree)
    across, depth = [0.0] * len(order), [0] * len(order)
    for clique in reversed(order):
        if tree.parent[clique] >= 0:
            depth[clique] = depth[tree.parent[clique]] + 1
    leaves = 0
    for clique in order:
        below = children[clique]
        if below:
            across[clique] = sum(across[child] for child in below) / len(below)
        else:
            across[clique], leaves = float(leaves), leaves + 1
    return [(x, -float(y)) for x, y in zip(across, depth, strict=True)]


def _tables(tree: CliqueTree, model: Model, statistics: Sequence[Statistic]) -> list[tuple[int, int]]:
    """States and tallies of each clique; a statistic adds its range in every scope of the subtree."""
    sizes = model.cardinalities.tolist()
    spread = [dict[tuple[int, ...], int]() for _ in statistics]
    for ranges, statistic in zip(spread, statistics, strict=True):
        for block in statistic.blocks:
            widths = block.tables.reshape(len(block.tables), -1)
            reach = (widths.max(axis=1) - widths.min(axis=1)).tolist()
            for k, scope in enumerate(block.scopes.tolist()):
                key = tuple(sorted(scope))
                ranges[key] = ranges.get(key, 0) + reach[k if len(reach) > 1 else 0]
    below = [[1] * len(statistics) for _ in tree.cliques]
    for clique in _upwards(tree):
        for p, ranges in enumerate(spread):
            own = sum(ranges.get(tuple(sorted(scope)), 0) for scope in tree.scopes[clique])
            cap = statistics[p].cap
            total = below[clique][p] + own
            below[clique][p] = total if cap is None else min(total, max(cap, 0) + 1)
            if tree.parent[clique] >= 0:
                below[tree.parent[clique]][p] += below[clique][p] - 1
    states = [prod(sizes[v] for v in clique) for clique in tree.cliques]
    return [(rows, prod(tallies)) for rows, tallies in zip(states, below, strict=True)]


def _names(tree: CliqueTree, model: Model) -> list[str]:
    """Return the variables of each clique, abbreviated if they are long or many."""
    shown = shortened(model.variables or [str(v) for v in range(len(model))], 10)
    return shortened([" ".join(shown[v] for v in clique) for clique in tree.cliques], _LONGEST)


class _Picture(NamedTuple):
    """Where each clique is, whether the root is on the left, the size in inches, and the room for a name."""

    places: list[tuple[float, float]]
    sideways: bool
    size: tuple[float, float]
    margins: tuple[float, float]  # inches
    letters: float  # inches


def _arranged(places: Sequence[tuple[float, float]], longest: int) -> _Picture:
    """Choose the direction and size of a picture: deep trees grow to the right, others down."""
    leaves, depth = 1 + max(x for x, _ in places), 1 - min(y for _, y in places)
    letters = 0.07 * longest if len(places) <= _MOST_NAMED else 0.0  # at eight points
    if depth > max(6.0, 1.5 * leaves):
        margins = (0.75, 0.4 + 0.7 * letters)
        high = 0.7 * (leaves - 1) + 2 * margins[1] + 0.3
        size = (_within(0.4 * depth + 1.5, 5.2, 11.0), _within(high, 1.6, 8.0))
        return _Picture([(-y, -x) for x, y in places], True, size, margins, letters)
    margins = (1.3, 0.3)
    size = (_within((0.45 + letters) * leaves + 2.2, 5.2, 12.0), _within(0.55 * depth + 0.7, 1.6, 8.0))
    return _Picture(list(places), False, size, margins, letters)


def _within(wanted: float, least: float, most: float) -> float:
    return min(max(wanted, least), most)


def _step(ax: Any, picture: _Picture) -> tuple[float, float]:
    """Return the inches between neighbouring cliques, across and down, on the axes as they are."""
    spans = (max(place[i] for place in picture.places) - min(p[i] for p in picture.places) for i in (0, 1))
    wide, high = (
        max(points / 72 - 2 * margin, 0.1) / (span or 1e-6)
        for points, margin, span in zip(room(ax), picture.margins, spans, strict=True)
    )
    return wide, high


def _draw(ax: Any, tree: CliqueTree, picture: _Picture, costs: Sequence[int], names: Sequence[str]) -> None:
    from matplotlib.collections import LineCollection

    ax.set_axis_off()
    places, (across, down), ink = picture.places, _step(ax, picture), inks(ax)
    named = len(names) <= _MOST_NAMED and across >= (0.2 if picture.sideways else 0.2 + picture.letters)
    lines = [(places[child], places[parent]) for child, parent in tree.edges]
    ax.add_collection(LineCollection(lines, colors=ink.pale, linewidths=1.5, zorder=1))
    dearest = max(costs)
    largest = _within((60 * min(across, down)) ** 2, 9.0, 420.0)  # neighbours do not touch
    areas = [max(largest * sqrt(cost / dearest), 0.04 * largest, 2.0) for cost in costs]
    colours = [ink.accent if min(costs) < cost == dearest else ink.line for cost in costs]
    ax.scatter(*zip(*places, strict=True), s=areas, c=colours, zorder=2, linewidths=0)
    for text, place, area in zip(names, places, areas, strict=True) if named else ():
        away = 3 + sqrt(area) / 2
        beside = {"xytext": (away, 0), "va": "center"}
        below = {"xytext": (0, -away), "va": "top", "ha": "right", "rotation": 45, "rotation_mode": "anchor"}
        style = {"textcoords": "offset points", "color": ink.text, "fontsize": 8, "zorder": 3}
        ax.annotate(text, place, **style, **(below if picture.sideways else beside))
    ax.margins(*_margins(ax, picture))


def _margins(ax: Any, picture: _Picture) -> list[float]:
    """Return the margins as shares of what they surround."""
    return [
        margin / max(points / 72 - 2 * margin, 0.5 * margin)
        for points, margin in zip(room(ax), picture.margins, strict=True)
    ]


def _annotate(ax: Any, picture: _Picture, clique: int, table: tuple[int, int]) -> None:
    """Annotate the most expensive clique with its cost, where that hides the fewest other cliques."""
    states, tallies = table
    text = f"{_counted(states, 'state')} x {_counted(tallies, 'tally')}"
    above, right, left = ((0, 18), "center"), ((14, 0), "left"), ((-16, 0), "right")
    sides = (above, right) if picture.sideways else (left,)
    offset, align = min(sides, key=lambda side: _hidden(ax, picture, clique, side[0], 4.5 * len(text)))
    ink = inks(ax)
    behind = {"boxstyle": "round,pad=0.2", "facecolor": ink.paper, "edgecolor": "none", "alpha": 0.8}
    style = {"textcoords": "offset points", "color": ink.accent, "fontsize": 8, "zorder": 4, "va": "center"}
    ax.annotate(text, picture.places[clique], xytext=offset, ha=align, bbox=behind, **style)


def _hidden(ax: Any, picture: _Picture, clique: int, offset: tuple[int, int], wide: float) -> int:
    """Return the number of other cliques behind a label of this width in points."""
    across, down = (72 * step for step in _step(ax, picture))
    middle = offset[0] + wide / 2 if offset[0] else 0.0
    x, y = picture.places[clique]
    return sum(
        (u, v) != (x, y)
        and abs(across * (u - x) - middle) < wide / 2 + 6
        and abs(down * (v - y) - offset[1]) < 14
        for u, v in picture.places
    )
