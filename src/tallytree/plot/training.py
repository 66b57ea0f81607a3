"""Training curves: the objective and its lower bound, the gap between them, and the loss, by pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from tallytree.errors import ModelError
from tallytree.plot.canvas import integer_ticks, panels, single
from tallytree.plot.inks import inks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Pass(Protocol):
    """The fields of a pass that are plotted, as in :class:`tallytree.learning.Progress`."""

    number: int
    primal: float
    dual: float
    certified: bool
    loss: float
    seconds: float

    gradient: float | None

    @property
    def relative_gap(self) -> float:
        """The gap relative to the primal."""


History = Sequence[Pass]


class Fitted(Protocol):
    """An estimator with a history."""

    @property
    def history_(self) -> History:
        """Its passes."""


Run = History | Fitted


def training_curves(
    history: Run | Mapping[str, Run],
    *,
    by: Literal["pass", "seconds"] = "pass",
    ax: Sequence[Axes] | None = None,
) -> list[Axes]:
    """Plot the progress of a fit: objective and bound, relative gap, mean loss.

    The loss is that of the objective, such as the hinge loss of an SVM or the log-loss of a CRF.
    Objectives without a lower bound, such as the expected loss, have a gradient norm instead of a gap.

    Parameters
    ----------
    history : estimator, sequence of Progress, or mapping of name to such
        A fitted estimator, or its ``history_``; with names, several runs are compared.
    by : {"pass", "seconds"}
        The horizontal axis.
    ax : sequence of three matplotlib axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    list of matplotlib axes
        Three axes. Filled markers are certified, hollow ones are estimates from planes found so far.

    Examples
    --------
    >>> from tallytree.learning import SequenceSVM
    >>> from tallytree.plot import training_curves
    >>> svm = SequenceSVM(C=10.0).fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
    >>> [ax.get_ylabel() for ax in training_curves(svm.history_)]
    ['objective', 'relative gap', 'mean loss']
    """
    given = history if isinstance(history, Mapping) else {"": history}
    runs = {name: _history(run) for name, run in given.items()}
    if by not in ("pass", "seconds"):
        raise ModelError(f"by must be 'pass' or 'seconds', got {by!r}")
    if not runs or not all(runs.values()):
        raise ModelError("there is nothing to plot: a history has no passes; was the estimator fitted?")
    objective, gap, loss = panels(3, 10.5, 3.1) if ax is None else _three(ax)
    colours = inks(objective).curves
    size = 18.0 if max(map(len, runs.values())) <= 60 else 6.0
    for number, (name, run) in enumerate(runs.items()):
        colour = colours[number % len(colours)]
        across = np.array([one.number if by == "pass" else one.seconds for one in run], dtype=float)
        certified = np.array([one.certified for one in run], dtype=bool)
        primal = _certified(objective, across, [one.primal for one in run], certified, colour, name, size)
        if not _unbounded(run):
            _bound(objective, across, [one.dual for one in run], primal, colour, alone=len(runs) == 1)
        measures = [one.relative_gap if one.gradient is None else one.gradient for one in run]
        _certified(gap, across, measures, certified, colour, name, size)
        loss.plot(across, [one.loss for one in run], color=colour, linewidth=1.5, label=name)
    _finish((objective, gap, loss), by, len(runs) > 1)
    if any(map(_unbounded, runs.values())):
        every = all(map(_unbounded, runs.values()))
        gap.set_ylabel("relative gradient norm" if every else "relative gap or gradient norm")
    if len({one.certified for run in runs.values() for one in run}) == 2:
        _explain_markers(gap)
    return [objective, gap, loss]


def _three(ax: Any) -> list[Any]:
    """Return the given axes; raise an error if there are not three."""
    if np.size(ax) != 3:
        raise ModelError(f"ax must be three axes, such as those of plt.subplots(1, 3)[1], got {np.size(ax)}")
    return [single(one) for one in np.ravel(ax)]


def _history(run: Run) -> History:
    history: History = run if isinstance(run, Sequence) else getattr(run, "history_", ())
    if not all(hasattr(one, "relative_gap") for one in history):
        raise ModelError("a history is a list of passes; to compare estimators, use {'name': estimator, …}")
    return history


def _unbounded(run: History) -> bool:
    """Return whether the objective of a run has no lower bound."""
    return run[-1].gradient is not None


def _certified(
    ax: Any, across: Any, values: Sequence[float], certified: Any, colour: str, name: str, size: float
) -> np.ndarray:
    """Draw values as a line with markers, filled if they are certified."""
    heights = np.array(values, dtype=float)
    heights[~np.isfinite(heights)] = np.nan
    ax.plot(across, heights, color=colour, linewidth=1.2, label=name or "objective", zorder=2)
    ax.scatter(
        across[~certified], heights[~certified], s=size, facecolor=inks(ax).paper, edgecolor=colour, zorder=3
    )
    ax.scatter(across[certified], heights[certified], s=1.5 * size, color=colour, zorder=4)
    return heights


def _bound(ax: Any, across: Any, duals: Sequence[float], primal: Any, colour: str, *, alone: bool) -> None:
    """Draw the lower bound, and shade the gap."""
    bound = np.array(duals, dtype=float)
    bound[~np.isfinite(bound)] = np.nan
    ax.plot(
        across, bound, color=colour, linewidth=1.2, linestyle="--", label="lower bound" if alone else None
    )
    ax.fill_between(across, bound, primal, color=inks(ax).pale if alone else colour, alpha=0.25, linewidth=0)


def _finish(axes: Sequence[Any], by: str, several: bool) -> None:
    objective, gap, loss = axes
    gap.set_yscale("log")
    gap.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
    gap.yaxis.set_minor_formatter(lambda value, _: "")
    names = ("objective", "relative gap", "mean loss")
    for ax, name in zip(axes, names, strict=True):
        ax.set_xlabel("pass" if by == "pass" else "seconds")
        ax.set_ylabel(name)
        ax.spines[["top", "right"]].set_visible(False)
        if by == "pass":
            integer_ticks(ax.xaxis)
    objective.legend(frameon=False, fontsize=8)
    if several:
        loss.legend(frameon=False, fontsize=8)
    loss.set_ylim(bottom=0)


def _explain_markers(ax: Any) -> None:
    """Add a legend of filled and hollow markers."""
    ink = inks(ax)
    marks = {"certified": ink.line, "estimate": ink.paper}
    shown = [ax.scatter([], [], s=18, color=c, edgecolor=ink.line, label=name) for name, c in marks.items()]
    ax.legend(handles=shown, frameon=False, fontsize=8)
