"""What to say where no labelling satisfies a constraint: the attainable tallies that miss it by least.

The distance is :meth:`Constraint.violation`. It takes a pass of its own, over the statistics that the
constraint reads, with nothing capped and nothing pruned. An error should come soon, so where that pass would
be a large one, the range of each statistic is named instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from tallytree.answers.profile import Profile, nearest_tallies
from tallytree.errors import BudgetError
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit
from tallytree.planning.orders import Order
from tallytree.planning.plan import Plan
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Statistic, read_by

__all__ = ["nearest"]

_MOST_OPERATIONS = 1e9  # about a second
_MOST_BYTES = 2.0**28


def nearest(
    model: Model, constraint: Constraint, *, order: Order | None = None, memory_limit: float | None = None
) -> str:
    """Return what comes nearest to a constraint that no labelling satisfies, for the end of an error."""
    limit = min(_MOST_BYTES, default_memory_limit() if memory_limit is None else memory_limit)
    statistics = read_by(constraint)
    if not statistics:
        return "it reads no statistic, so no labelling can change that"
    found = _affordable(model, statistics, order, limit)
    if found is None:
        alone = [_affordable(model, [s], order, limit) for s in statistics]
        return _ranges(statistics, alone)
    if not len(found):
        return "every labelling is forbidden by a -inf factor anyway"
    missed = constraint.violation({s: found.tallies[:, i] for i, s in enumerate(statistics)})
    return nearest_tallies(found.names, found.tallies, missed)


def _affordable(
    model: Model, statistics: Sequence[Statistic], order: Order | None, limit: float
) -> Profile | None:
    try:
        plan = Plan(model, statistics, order=order, memory_limit=limit)
    except BudgetError:
        return None
    return Profile(model, statistics, plan) if plan.operations <= _MOST_OPERATIONS else None


def _ranges(statistics: Sequence[Statistic], alone: Sequence[Profile | None]) -> str:
    known = [
        f"{s.name} is attainable from {found.tallies.min()} to {found.tallies.max()}"
        for s, found in zip(statistics, alone, strict=True)
        if found is not None and len(found)
    ]
    return (
        f"each for itself, {', '.join(known)}" if known else "there are too many tallies to list the nearest"
    )
