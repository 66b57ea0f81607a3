"""Labellings next to each other: sequences as rows of one plot, grids as one plot each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.answers.solution import Solution
from tallytree.colours import INK, legend, state_colour
from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.plot.canvas import ROW, distinct, integer_ticks, panels, room, shortened, single, tiles
from tallytree.plot.inks import inks
from tallytree.values import abbreviated

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_NAMED = 40  # variables whose states are written out
_MOST_LINED = 120  # variables with lines between them
_FEWEST = 6  # letters of an abbreviated name; the legend has the whole names


def side_by_side(
    solutions: Solution | Iterable[Solution | ArrayLike],
    *,
    model: Model | None = None,
    titles: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> list[Axes]:
    """Plot labellings next to each other; frames mark differences from the first.

    Parameters
    ----------
    solutions : Solution, or iterable of Solution or labelling
        Solutions of one model: rows of one plot, or one plot each if the model is a grid. With ``model``,
        also labellings as arrays of names or numbers, such as samples.
    model : Model, optional
        The model of the labellings; by default that of the first solution.
    titles : sequence of str, optional
        One for each labelling; its score by default.
    ax : matplotlib Axes, optional
        The axes to draw on, for sequences or a single grid; by default a new figure.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> from tallytree.plot import side_by_side
    >>> model = tt.Model.chain(np.array([[0., 1], [0, -2], [0, 4]]), np.eye(2), states=["dry", "wet"])
    >>> [ax] = side_by_side(tt.diverse_k_best(model, 2, distance=1))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['score 5', 'score 5']
    >>> [ax] = side_by_side([["dry", "wet", "wet"], tt.solve(model)], model=model, titles=["mine", "best"])
    """
    given = _listed(solutions, model)
    if not given:
        raise ModelError("there is nothing to plot: the sequence of solutions is empty")
    whole = _model_of(given, model)
    labellings = [_assignment(one, whole) for one in given]
    names = _scores(whole, labellings) if titles is None else list(titles)
    if len(names) != len(given):
        raise ModelError(f"{len(given)} solutions need as many titles, got {len(names)}")
    drawn = (_grids if len(whole.shape) == 2 else _rows)(whole, labellings, names, ax)
    _legend(drawn[0], whole, np.array(labellings), shared=ax is not None)
    return drawn


def _listed(solutions: Any, model: Model | None) -> list[Any]:
    """Return labellings as a list; a single one may be given by itself."""
    if isinstance(solutions, Solution):
        return [solutions]
    if isinstance(solutions, np.ndarray) and model is not None and solutions.ndim == len(model.shape):
        return [solutions]
    try:
        return list(solutions)
    except TypeError:
        raise ModelError(
            f"side_by_side needs solutions, such as those of k_best or profile.top(3), got "
            f"{type(solutions).__name__}"
        ) from None


def _model_of(given: Sequence[Any], model: Model | None) -> Model:
    models = [one.model for one in given if isinstance(one, Solution)]
    if model is None and len(models) < len(given):
        kind = next(type(one).__name__ for one in given if not isinstance(one, Solution))
        raise ModelError(
            f"side_by_side needs solutions, such as those of k_best, but got {kind}; to plot arrays of "
            "labels, pass their model, as in side_by_side(labellings, model=model)"
        )
    whole = models[0] if model is None else model
    if any(one.shape != whole.shape or (one.cardinalities != whole.cardinalities).any() for one in models):
        raise ModelError(
            "solutions must be of the same model; these differ in their number of variables or states, or in "
            "the shape of their grid"
        )
    return whole


def _assignment(one: Any, model: Model) -> NDArray[np.int64]:
    return one.assignment.reshape(-1) if isinstance(one, Solution) else model.encode(one)


def _scores(model: Model, labellings: Sequence[NDArray[np.int64]]) -> list[str]:
    return [f"score {score}" for score in distinct([model.score(y) for y in labellings])]


def _rows(
    model: Model, labellings: Sequence[NDArray[np.int64]], titles: Sequence[str], given: Axes | None
) -> list[Any]:
    table = np.array(labellings)
    named = table.shape[1] <= _MOST_NAMED and model.states is not None
    texts = [[_name(model, v, state) for v, state in enumerate(row)] for row in table] if named else []
    longest = max((len(text) for row in texts for text in row), default=0)
    count = max(table.shape[1], 1)
    cell = min(max(0.28, 0.075 * longest + 0.1), 9.1 / count)  # inches
    if given is None:
        [ax] = panels(1, min(max(cell * count + 1.9, 3.6), 11.0), 0.42 * len(table) + 1.0)
    else:
        ax = single(given)
        cell = room(ax)[0] / 72 / count
    _image(ax, model, table)
    for row, differs in enumerate(table != table[0]):
        for first, last in _runs(differs):
            _frame(ax, row, first, last)
    letters = int((cell - 0.04) / 0.064)
    for (row, column), text in np.ndenumerate(texts) if letters >= min(longest, _FEWEST) else ():
        ax.text(column, row, abbreviated(text, letters), ha="center", va="center", fontsize=7, color=INK)
    ax.set_yticks(range(len(table)), titles)
    _name_variables(ax, model)
    return [ax]


def _name_variables(ax: Any, model: Model) -> None:
    """Name as many variables at the axis as there is room for, if they have names."""
    integer_ticks(ax.xaxis)
    ax.set_xlabel("variable")
    if model.variables:
        names = shortened(model.variables, 10)
        wide = 7.0 * (max(map(len, names)) + 1)  # points
        step = ceil(wide * len(names) / room(ax)[0])
        ax.set_xticks(range(0, len(names), step), names[::step])


def _name(model: Model, variable: int, state: int) -> str:
    names = model.states_of(variable)
    return str(state) if names is None else names[state]


def _grids(
    model: Model, labellings: Sequence[NDArray[np.int64]], titles: Sequence[str], given: Axes | None
) -> list[Any]:
    if given is not None and len(labellings) > 1:
        raise ModelError(f"{len(labellings)} grids need as many axes; leave ax= out, or plot one at a time")
    rows, columns = model.shape
    cell = min(0.25, max(3.0 / columns, 0.1), ROW / columns, 5.0 / rows)  # inches
    size = max(cell * columns, 1.4), cell * rows + 0.4
    drawn = tiles(len(labellings), *size, legend=0.4) if given is None else [single(given)]
    first = labellings[0].reshape(rows, columns)
    for ax, labelling, title in zip(drawn, labellings, titles, strict=True):
        table = labelling.reshape(rows, columns)
        _image(ax, model, table, "equal")
        for row, column in np.argwhere(table != first).tolist():
            _frame(ax, row, column, column)
        ax.set_title(title, fontsize=10)
        ax.set_xticks([])
        ax.set_yticks([])
    return drawn


def _image(ax: Any, model: Model, table: NDArray[np.int64], aspect: str = "auto") -> None:
    from matplotlib.colors import ListedColormap

    colours = ListedColormap([state_colour(state) for state in range(int(model.cardinalities.max()))])
    style = {"cmap": colours, "vmin": -0.5, "vmax": colours.N - 0.5, "interpolation": "nearest"}
    ax.imshow(table, aspect=aspect, **style)
    if max(table.shape) <= _MOST_LINED:
        ax.set_xticks(np.arange(table.shape[1] + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(table.shape[0] + 1) - 0.5, minor=True)
        ax.grid(which="minor", color=inks(ax).paper, linewidth=1)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)


def _runs(differs: NDArray[np.bool_]) -> list[list[int]]:
    """Return the first and last of each run of variables that differ.

    Examples
    --------
    >>> _runs(np.array([True, True, False, True]))
    [[0, 1], [3, 3]]
    """
    bounds = np.flatnonzero(np.diff(differs, prepend=False, append=False))  # starts and ends in turn
    return [[first, end - 1] for first, end in bounds.reshape(-1, 2).tolist()]


def _frame(ax: Any, row: int, first: int, last: int) -> None:
    from matplotlib.patches import Rectangle

    corner, width = (first - 0.42, row - 0.42), last - first + 0.84
    ax.add_patch(Rectangle(corner, width, 0.84, fill=False, edgecolor=inks(ax).accent, linewidth=1.5))


def _legend(ax: Any, model: Model, table: NDArray[np.int64], *, shared: bool) -> None:
    """Explain the colours of states that occur, and the frames."""
    from matplotlib.patches import Patch

    names = model.states_of(0) if model.alike is not None else None
    colours = legend(np.unique(table).tolist(), names)
    shown = {name: Patch(color=colour) for name, colour in colours.items()}
    if (table != table[0]).any():
        shown["differs from the first"] = Patch(facecolor="none", edgecolor=inks(ax).accent, linewidth=1.5)
    style = {"ncols": 4, "frameon": False, "fontsize": 8}
    if shown and shared:  # the figure may have other plots
        ax.legend(list(shown.values()), list(shown), loc="lower center", bbox_to_anchor=(0.5, 1.0), **style)
    elif shown:
        ax.figure.legend(list(shown.values()), list(shown), loc="outside lower center", **style)
