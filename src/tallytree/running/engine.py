"""From a query to its last table, for every kind of subject.

An engine knows how to make queries about one kind of subject, plan them, and run the plans: cliques of a
model, or spans of a sentence. :func:`engine_of` finds the engine of a subject; the public functions
(:func:`solve`, :func:`profile`, :func:`distribution`, :func:`k_best`, …) are written once, on top of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, ModelError
from tallytree.kernels import native
from tallytree.planning.budget import Budget
from tallytree.planning.options import PlanOptions, RunOptions
from tallytree.planning.query import Query
from tallytree.running.bounds import Searcher

Root = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Cells of the last table, with their tallies and values."""


class Outline(Protocol):
    """What is known of a full table before it is planned."""

    @property
    def searcher(self) -> Searcher:
        """A search by bounds instead."""

    @property
    def early(self) -> bool:
        """Whether a search may begin before the table is planned, because the plan may take long."""

    def plan(self) -> Any:
        """Plan the table."""

    def work(self, plan: Any = None, spent: float = 0.0, searches: int = 1, share: float = ...) -> float:
        """Return how much work searches may take: a share of what the table takes, as far as it is known.

        Less what has been `spent` before; 0 if that is too little for so many searches.
        """


@dataclass(frozen=True)
class Engine:
    """An implementation of message passing for one kind of subject."""

    query: Callable[..., Query[Any]]  # makes a query: checks and binds user input, once
    plan: Callable[[Query[Any], PlanOptions], Any]  # decides what to run, independent of scores
    profile: Callable[[Query[Any], Any, RunOptions], Any]  # runs a plan: the best for every tally
    distribution: Callable[[Query[Any], Any, RunOptions], Any]  # runs a plan: the sum for every tally
    search: Callable[[Query[Any], PlanOptions], Searcher]  # prepares a search by bounds
    # what is known of a full table before it is planned; None: the cost model of programs says what it takes
    outline: Callable[[Query[Any], PlanOptions], Outline] | None = None
    bounded: Any = None  # the table of what a search leaves; None for that of models


_ENGINES: dict[type, Engine] = {}


def register_engine(engine: Engine, *kinds: type) -> None:
    """Register an engine for some kinds of subjects."""
    _ENGINES.update(dict.fromkeys(kinds, engine))


def engine_of(subject: Any) -> Engine:
    """Return the engine of a subject.

    Examples
    --------
    >>> import tallytree as tt
    >>> engine_of(tt.Model([2, 2])).profile.__name__
    'Profile'
    """
    for kind in type(subject).__mro__:
        if (engine := _ENGINES.get(kind)) is not None:
            return engine
    raise ModelError(
        f"the first argument must be a Model, got {type(subject).__name__}; a Reduction or a "
        "tallytree.parsing.Forest is also accepted"
    )


class InOrder:
    """Labellings, or derivations, in order of score.

    A search stores what it visits, and so grows with every answer. Its memory is counted in a budget that
    it may share with others.

    `things`: what is searched for, in error messages.
    """

    def __init__(self, search: native.KBest | native.ChartKBest, budget: Budget, things: str) -> None:
        self._search, self._budget, self._things = search, budget, things
        self._held = self._given = 0

    def next(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.int64], Any]:
        """Return the next ones: scores, positions of their root cells, labellings or derivations.

        At most ``count``, and at least one unless there are no more.

        Raises BudgetError if finding the next one exceeds the budget.
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
