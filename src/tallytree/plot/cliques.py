"""A clique tree, drawn from its root down, with cliques scaled by the cost of their tables.

The table of a clique ``C`` has ``Π_{v in C} N_v`` rows, and for every row as many tallies as the subtree
below can have. Areas are proportional to the square root of their product, so that they fit on a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.paper.cliquetree import CliqueTree, clique_tree
from tallytree.planning.budget import readable_count
from tallytree.planning.orders import Order, skeleton
from tallytree.planning.query import bind
from tallytree.plot.canvas import ACCENT, INK, LABEL_BOX, PALE, axes
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_NAMED = 40  # cliques whose variables are written out
_MOST = 2000


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
        The axes to draw on; the current axes by default.

    Returns
    -------
    matplotlib axes
        The most expensive clique is annotated with its cost: states times tallies.

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
    places, tables = _places(drawn), _tables(drawn, model, bound)
    leaves, depth = 1 + max(x for x, _ in places), 1 - min(y for _, y in places)
    canvas = axes(ax, min(max(1.3 * leaves, 5.6), 14.0), min(max(0.62 * depth, 2.5), 14.0))
    _draw(canvas, drawn, places, [prod(table) for table in tables], model)
    dearest = max(range(len(tables)), key=lambda clique: prod(tables[clique]))
    _tell(canvas, places[dearest], tables[dearest])
    entries = readable_count(float(prod(tables[dearest])))
    canvas.set_title(
        f"{counted(len(drawn.cliques), 'clique')}, width τ = {drawn.width}; "
        f"the largest table has {entries} entries",
        fontsize=10,
    )
    return canvas  # type: ignore[no-any-return]


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


def _draw(
    ax: Any, tree: CliqueTree, places: Sequence[tuple[float, float]], costs: Sequence[int], model: Model
) -> None:
    from matplotlib.collections import LineCollection

    named = len(tree.cliques) <= _MOST_NAMED
    lines = [(places[child], places[parent]) for child, parent in tree.edges]
    ax.add_collection(LineCollection(lines, colors=PALE, linewidths=1.5, zorder=1))
    dearest = max(costs)
    largest = 420.0 if named else max(8000.0 / len(costs), 12.0)
    areas = [largest * max(sqrt(cost / dearest), 0.04) for cost in costs]
    colours = [ACCENT if cost == dearest else INK for cost in costs]
    ax.scatter(*zip(*places, strict=True), s=areas, c=colours, zorder=2, linewidths=0)
    for clique, place, area in zip(tree.cliques, places, areas, strict=True) if named else ():
        text = " ".join(model.variables[v] if model.variables else str(v) for v in clique)
        beside = {"xytext": (3 + sqrt(area) / 2, 0), "textcoords": "offset points"}
        ax.annotate(text, place, va="center", color=INK, fontsize=8, zorder=3, **beside)
    ax.margins(0.16, 0.1)
    ax.set_axis_off()


def _tell(ax: Any, place: tuple[float, float], table: tuple[int, int]) -> None:
    """Annotate the most expensive clique with its cost, on the side without names."""
    states, tallies = (readable_count(float(number)) for number in table)
    text = f"{states} states x {tallies} tallies"
    beside = {"xytext": (-16, 0), "textcoords": "offset points", "ha": "right", "va": "center"}
    ax.annotate(text, place, color=ACCENT, fontsize=8, zorder=4, bbox=LABEL_BOX, **beside)
