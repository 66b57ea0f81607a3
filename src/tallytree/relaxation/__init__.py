"""Lagrangian relaxation: an upper bound, and often the optimum, from plain MAP inference alone.

The constraints are ranges of integer combinations of statistics, ``b_j <= A_j(y) <= c_j``. With a multiplier
``λ_j`` for each, every labelling ``y`` that satisfies them has

    F(y) <= F(y) + Σ_j λ_j·A_j(y) - Σ_j min(λ_j·b_j, λ_j·c_j)

and the maximum of the right-hand side over *all* labellings, the dual ``D(λ)``, is plain MAP on a model with
additional factors ``λ_j·a_j``: no tallies are carried, however many constraints there are. ``D`` is convex
and piecewise linear, and its minimum is the bound. This is the search by bounds of :func:`solve`, stopped
early: the labellings met on the way may satisfy the constraints, and the tallies of all labellings that are
nearly as good at the best ``λ`` close the gap, because a labelling whose dual value is below a score that has
been attained cannot be better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Unpack

from tallytree.errors import ModelError
from tallytree.model.inputs import whole_number
from tallytree.model.model import Model, checked_model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.options import Keywords, read_options
from tallytree.planning.query import bind
from tallytree.relaxation.ranges import ranges_of
from tallytree.relaxation.result import Relaxation
from tallytree.relaxation.search import Limits, Search
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.formula_constraints import as_condition
from tallytree.statistics.statistic import Recipe, Statistic, read_by

__all__ = ["Relaxation", "relax"]


def __dir__() -> list[str]:
    return sorted(__all__)


def relax(
    model: Model,
    statistics: Iterable[Statistic | Recipe] = (),
    *,
    where: Constraint | str,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    iterations: int = 200,
    tolerance: float = 0.0,
    candidates: int = 200,
    progress: Callable[[Relaxation], object] | None = None,
    **options: Unpack[Keywords],
) -> Relaxation:
    """Bound the best score under linear constraints, without carrying tallies.

    Parameters
    ----------
    model : Model
        The factor graph.
    statistics : iterable of Statistic or Recipe
        Shown in the solution's tally, before the statistics of the constraint.
    where : Constraint or str
        Comparisons by ``==``, ``<=``, ``>=`` of uncapped statistics or their combinations, joined by ``&``;
        or a string with the names of ``statistics``.
    fixed, allowed : mapping, optional
        As for :func:`solve`: the state that a variable must take, or the states it may take.
    iterations : int
        The maximum number of MAP problems to solve. Examining tallies takes at most as long again.
    tolerance : float
        Stop when the gap is at most this.
    candidates : int
        The number of labellings to examine in order at the best multipliers, if a gap remains once the
        tallies near the best one have been examined. 0 stops at the bound of the multipliers.
    progress : callable, optional
        Called with the current result after each iteration.
    **options
        ``order`` and ``memory_limit``, as for :func:`plan`; the plan is made once.

    Raises
    ------
    InfeasibleError
        It is proven that no labelling satisfies the constraint.
    ModelError
        The constraint is not a conjunction of linear comparisons of uncapped statistics.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> found = tt.relax(model, where=tt.count(state=1) <= 2)
    >>> found.solution.assignment, found.gap
    (array([0, 1, 1]), 0.0)
    """
    model = checked_model(model).restricted(fixed, allowed)
    constraint = as_condition(where, statistics).on(model)
    if constraint.reducing:
        raise ModelError(
            f"relax only supports comparisons of statistics, not '{constraint.reducing[0]}'; use solve"
        )
    shown = bind(model, statistics)
    hidden = tuple(s for s in read_by(constraint) if s not in shown)
    ranges = ranges_of(constraint)
    chosen = read_options(options, relax, single=False)
    limits = Limits(
        whole_number(iterations, "iterations", least=1),
        tolerance,
        whole_number(candidates, "candidates", least=0),
    )
    search = Search(model, (*shown, *hidden), ranges, chosen.plan, limits, progress)
    search.run()
    return search.answer()
