"""Queries: a subject, the statistics that an objective reads, and a constraint.

All functions start by making a query. Everything after it (plan, run, answer) only depends on
the query.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.planning.carried import Window, carried_for, is_linear
from tallytree.reductions.reduction import Reduction, as_reduction, meet
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.formula_constraints import as_condition
from tallytree.statistics.linear import Counted
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import Frozen

S = TypeVar("S", bound=Counted)


class Query(Frozen, Generic[S]):
    """A question about a model or a forest."""

    subject: Any  # what the messages are passed over
    read: tuple[S, ...]  # what the objective reads
    where: Constraint | None  # as given by the user
    constraint: Constraint | None  # the same in terms of the subject
    # how labellings of the subject map to the original model; None for a forest
    reduction: Reduction | None
    # what the tally of a solution shows: the statistics that are read, then those of the constraint
    reported: tuple[S, ...]
    carried: tuple[S, ...]  # what the messages carry
    # the reported statistics if the messages carry others, combined or capped; otherwise none
    recounted: tuple[S, ...]
    window: Window  # the relevant range, for positions in ``carried``
    remaining: Constraint | None  # the constraint in terms of ``carried``
    # whether tables cut to the window satisfy the constraint. Only steps are cut, and a model without
    # variables has none.
    windowed: bool

    def __init__(
        self,
        subject: Any,
        read: tuple[S, ...],
        where: Constraint | None = None,
        constraint: Constraint | None = None,
        reduction: Reduction | None = None,
    ) -> None:
        needs = carried_for(read, constraint)
        vars(self).update(
            subject=subject,
            read=read,
            where=where,
            constraint=constraint,
            reduction=reduction,
            reported=needs.reported,
            carried=needs.statistics,
            recounted=() if needs.reported is needs.statistics else needs.reported,
            window=needs.window,
            remaining=needs.remaining,
            windowed=needs.remaining is None or (needs.windowed and len(subject) > 0),
        )

    @property
    def counted(self) -> tuple[Any, ...]:
        """What the messages carry, without caps: prices are for these."""
        return tuple(s if s.cap is None else s.capped(None) for s in self.carried)

    @property
    def linear(self) -> bool:
        """Whether the constraint is a conjunction of ranges of uncapped statistics, so that prices apply."""
        return self.constraint is not None and is_linear(self.constraint)

    def about(self, reduction: Reduction) -> Query[S]:
        """Return the same query about another model with the same variables and states."""
        other: Query[S] = object.__new__(Query)
        vars(other).update(vars(self), subject=reduction.model, reduction=reduction)
        return other


def graph_query(
    reduction: Reduction, statistics: Iterable[Statistic | Recipe] = (), where: Constraint | str | None = None
) -> Query[Statistic]:
    """Make a query about a model: bind statistics and constraint, and translate them to the solved model."""
    if isinstance(where, str):
        statistics = listed_statistics(statistics)
        where = as_condition(where, statistics)
    reduction, constraint = meet(reduction, where)
    return Query(reduction.model, _pulled(reduction, statistics), where, constraint, reduction)


def bind(model: Model | Reduction, statistics: Iterable[Statistic | Recipe]) -> tuple[Statistic, ...]:
    """Bind statistics to a model; those of a reduction's original are translated to the solved model."""
    return _pulled(as_reduction(model), statistics)


def _pulled(reduction: Reduction, statistics: Iterable[Statistic | Recipe]) -> tuple[Statistic, ...]:
    return tuple(map(reduction.pull, listed_statistics(statistics)))


def listed_statistics(statistics: Iterable[Statistic | Recipe] | str) -> tuple[Statistic | Recipe, ...]:
    """Return statistics as a tuple: a single one may be given by itself."""
    if isinstance(statistics, (Statistic, Recipe)):
        return (statistics,)
    if isinstance(statistics, Constraint):
        raise ModelError(f"pass the constraint as where=, not as a statistic; got '{statistics}'")
    listed: tuple[Any, ...] = (statistics,) if isinstance(statistics, str) else tuple(statistics)
    for statistic in listed:
        if not isinstance(statistic, (Statistic, Recipe)):
            raise ModelError(
                f"statistics must be Statistic objects or recipes such as count(state=…), got {statistic!r}"
            )
    return listed
