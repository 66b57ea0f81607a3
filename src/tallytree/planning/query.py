"""What is asked, once: a subject, the statistics that an objective reads, and a constraint.

Every verb begins by making a query. The rest of the way (plan, run, answer) looks at nothing else that the
user wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.planning.carried import Carried, Window, carried_for, is_linear
from tallytree.reductions.reduction import Reduction, as_reduction, meet
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.linear import Counted
from tallytree.statistics.statistic import Recipe, Statistic

__all__ = ["Query", "bind", "graph_query"]

S = TypeVar("S", bound=Counted)


@dataclass(frozen=True, eq=False)
class Query(Generic[S]):
    """A question about a model or a forest.

    Attributes
    ----------
    subject : Model or Forest
        What the messages are passed over.
    read : tuple of statistics
        What the objective reads.
    where : Constraint or None
        As the user wrote it.
    constraint : Constraint or None
        The same in terms of the subject.
    reduction : Reduction or None
        How labellings of the subject are read as those of the model that was asked about; None for a forest.
    """

    subject: Any
    read: tuple[S, ...]
    where: Constraint | None = None
    constraint: Constraint | None = None
    reduction: Reduction | None = None

    @cached_property
    def _carried(self) -> Carried[S]:
        return carried_for(self.read, self.constraint)

    @property
    def reported(self) -> tuple[S, ...]:
        """The statistics in the tally of a solution: those read, then those that the constraint reads."""
        return self._carried.reported

    @property
    def carried(self) -> tuple[S, ...]:
        """The statistics that the messages carry."""
        return self._carried.statistics

    @property
    def recounted(self) -> tuple[S, ...]:
        """The reported statistics where the messages carry others, combined or capped; otherwise none."""
        return () if self.reported is self.carried else self.reported

    @property
    def window(self) -> Window:
        """For positions in ``carried``, the range that is of use."""
        return self._carried.window

    @property
    def remaining(self) -> Constraint | None:
        """The constraint in terms of ``carried``."""
        return self._carried.remaining

    @property
    def windowed(self) -> bool:
        """Whether tables cut to the window leave nothing of the constraint.

        Only steps are cut, and a model of no variables has none.
        """
        return self.remaining is None or (self._carried.windowed and bool(len(self.subject)))

    @property
    def linear(self) -> bool:
        """Whether the constraint is a conjunction of ranges of uncapped statistics: what prices can reach."""
        return self.constraint is not None and is_linear(self.constraint)

    def about(self, reduction: Reduction) -> Query[S]:
        """Ask the same about another model of the same variables and states."""
        other = replace(self, subject=reduction.model, reduction=reduction)
        vars(other)["_carried"] = self._carried
        return other


def graph_query(
    reduction: Reduction, statistics: Iterable[Statistic | Recipe] = (), where: Constraint | None = None
) -> Query[Statistic]:
    """Ask about a model: bind statistics and constraint, and carry them over to the model that is solved."""
    reduction, constraint = meet(reduction, where)
    return Query(reduction.model, bind(reduction, statistics), where, constraint, reduction)


def bind(model: Model | Reduction, statistics: Iterable[Statistic | Recipe]) -> tuple[Statistic, ...]:
    """Bind statistics to a model; those of a reduction's original are carried over to what it solves."""
    reduction = as_reduction(model)
    if isinstance(statistics, (Statistic, Recipe)):
        statistics = (statistics,)
    bound = []
    for statistic in statistics:
        if not isinstance(statistic, (Statistic, Recipe)):
            raise ModelError(
                f"statistics must be Statistic objects or recipes such as count(state=…), got {statistic!r}"
            )
        bound.append(reduction.pull(statistic))
    return tuple(bound)
