"""The road from a query to its last table, for every kind of subject.

An engine knows how to ask about one kind of subject, to plan the query, and to run the plan: cliques of a
model, or spans of a sentence. :func:`engine_of` finds the engine of a subject; the verbs (:func:`solve`,
:func:`profile`, :func:`distribution`, :func:`k_best`, …) are written once, on top of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, ModelError
from tallytree.kernels import native
from tallytree.planning.budget import Budget
from tallytree.planning.options import PlanOptions, RunOptions
from tallytree.planning.query import Query

Root = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Cells of the last table, with their tallies and values."""


class Engine(ABC):
    """One way to pass messages."""

    @abstractmethod
    def query(
        self, subject: Any, statistics: Iterable[Any], where: Any = None, **restriction: Any
    ) -> Query[Any]:
        """Ask about a subject: check and bind what the user wrote, once."""

    @abstractmethod
    def plan(self, query: Query[Any], options: PlanOptions) -> Any:
        """Decide what will be run; no score is looked at."""

    @abstractmethod
    def profile(self, query: Query[Any], plan: Any, options: RunOptions) -> Any:
        """Run a plan over max-plus: the best score for every tally."""

    @abstractmethod
    def distribution(self, query: Query[Any], plan: Any, options: RunOptions) -> Any:
        """Run a plan over log-sum-exp: the sum over everything with a tally."""


@singledispatch
def engine_of(subject: Any) -> Engine:
    """Return the engine of a subject.

    Examples
    --------
    >>> import tallytree as tt
    >>> type(engine_of(tt.Model([2, 2]))).__name__
    'GraphEngine'
    """
    raise ModelError(
        f"the first argument must be a Model, got {type(subject).__name__}; a reduction of one, or a "
        "tallytree.parsing.Forest, will do as well"
    )


class InOrder:
    """Labellings, or derivations, in order of score.

    A search keeps what it has met, and so grows with every answer. What it holds is counted in a budget that
    it may share with others.

    `things`: what is searched for, in an error.
    """

    def __init__(self, search: native.KBest | native.ChartKBest, budget: Budget, things: str) -> None:
        self._search, self._budget, self._things = search, budget, things
        self._held = self._given = 0

    def next(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.int64], Any]:
        """Return the next ones: scores, positions of their root cells, labellings or derivations.

        At most ``count``, and at least one unless there are no more.

        Raises BudgetError: to find the next one takes more than the budget has.
        """
        try:
            found = self._search.next(count, self._budget.room + self._held)
        except native.BudgetExceededError as error:
            raise self._exceeded(error.bytes) from None
        self._budget.held += self._search.bytes - self._held
        self._held = self._search.bytes
        self._given += len(found[0])
        return found

    def _exceeded(self, size: float) -> BudgetError:
        what = f"the search for {self._things} in order, of which {self._given:,} have been found"
        return self._budget.exceeded(what, size - self._held)
