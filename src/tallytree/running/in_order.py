"""A search through what root cells stand for, best first, that stays within a budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError
from tallytree.kernels import native
from tallytree.planning.budget import Budget


class InOrder:
    """Labellings, or derivations, in order of score.

    A search keeps what it has met, and so grows with every answer. What it holds is counted in a budget that
    it may share with others.

    Parameters
    ----------
    search : native.KBest or native.ChartKBest
    budget : Budget
    things : str
        What is searched for, in an error.
    """

    def __init__(self, search: native.KBest | native.ChartKBest, budget: Budget, things: str) -> None:
        self._search, self._budget, self._things = search, budget, things
        self._held = self._given = 0

    def next(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.int64], Any]:
        """Return the next ones: scores, positions of their root cells, labellings or derivations.

        At most ``count``, and at least one unless there are no more.

        Raises
        ------
        BudgetError
            To find the next one takes more than the budget has.
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
