"""Labellings next to each other: sequences as rows of one plot, grids as one plot each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.solution import Solution
from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.plot.canvas import ACCENT, INK, panels, state_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_NAMED = 40  # variables whose states are written out


def side_by_side(solutions: Sequence[Solution], *, titles: Sequence[str] | None = None) -> list[Axes]:
    """Plot labellings next to each other; frames mark differences from the first.

    Parameters
    ----------
    solutions : sequence of Solution
        Solutions of one model: rows of one plot, or one plot each if the model is a grid.
    titles : sequence of str, optional
        One for each solution; its score by default.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> from tallytree.plot import side_by_side
    >>> model = tt.Model.chain(np.array([[0., 1], [0, -2], [0, 4]]), np.eye(2), states=["dry", "wet"])
    >>> [ax] = side_by_side(tt.diverse_k_best(model, 2, distance=1))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['5', '5']
    """
    if not solutions:
        raise ModelError("there is nothing to plot: the sequence of solutions is empty")
    model = solutions[0].model
    if any(s.assignment.size != len(model) for s in solutions):
        raise ModelError("solutions must be of the same model; these differ in their number of variables")
    names = [f"{s.score:.4g}" for s in solutions] if titles is None else list(titles)
    if len(names) != len(solutions):
        raise ModelError(f"{len(solutions)} solutions need as many titles, got {len(names)}")
    draw = _grids if len(model.shape) == 2 else _rows
    return draw(model, [s.assignment for s in solutions], names)


def _rows(model: Model, labellings: Sequence[NDArray[np.int64]], titles: Sequence[str]) -> list[Any]:
    table = np.array(labellings).reshape(len(labellings), -1)
    width = min(max(0.28 * table.shape[1] + 1.6, 3.0), 11.0)
    [ax] = panels(1, width, 0.42 * len(table) + 0.6)
    _image(ax, model, table)
    for row, column in np.argwhere(table != table[0]):
        _frame(ax, row, column)
    if table.shape[1] <= _MOST_NAMED and model.states is not None:
        for (row, column), state in np.ndenumerate(table):
            names = model.states_of(column) or ()
            ax.text(
                column, row, names[state][:3], ha="center", va="center", fontsize=7, color=_on(int(state))
            )
    ax.set_yticks(range(len(table)), titles)
    ax.set_xlabel("variable")
    return [ax]


def _grids(model: Model, labellings: Sequence[NDArray[np.int64]], titles: Sequence[str]) -> list[Any]:
    rows, columns = model.shape
    width = max(1.4, min(3.0, 0.25 * columns))
    drawn = panels(len(labellings), width * len(labellings), width * rows / columns + 0.5)
    first = labellings[0].reshape(rows, columns)
    for ax, labelling, title in zip(drawn, labellings, titles, strict=True):
        table = labelling.reshape(rows, columns)
        _image(ax, model, table)
        for row, column in np.argwhere(table != first):
            _frame(ax, row, column)
        ax.set_title(title, fontsize=10, color=INK)
        ax.set_xticks([])
        ax.set_yticks([])
    return drawn


def _image(ax: Any, model: Model, table: NDArray[np.int64]) -> None:
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(state_colours(int(model.cardinalities.max())))
    ax.imshow(table, cmap=colours, vmin=-0.5, vmax=colours.N - 0.5, aspect="auto", interpolation="nearest")
    ax.set_xticks(np.arange(table.shape[1] + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(table.shape[0] + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)


def _frame(ax: Any, row: int, column: int) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(
        Rectangle((column - 0.42, row - 0.42), 0.84, 0.84, fill=False, edgecolor=ACCENT, linewidth=1.5)
    )


def _on(state: int) -> str:
    """Return the colour of text on a state's fill."""
    return INK if state == 0 else "white"
