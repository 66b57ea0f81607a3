"""The search by bounds over the chart of a sentence, by the native search.

A labelling of a sentence is a derivation: five numbers for each step (:mod:`tallytree.running.charts`), with
rows of -1 behind the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels import native
from tallytree.planning.charts import ChartLayout
from tallytree.running.bounds import Found, Search
from tallytree.running.charts import Scores

_STEP_NUMBERS = 5


class ChartSearcher:
    """A sentence whose trees are searched by bounds.

    `layout`: of a plain chart. `shifts`: ``[bag][span][statistic]``, for one to three uncapped statistics.
    `cell`: the operations of a plain pass that take as long as a cell of a band.
    """

    def __init__(self, layout: ChartLayout, scores: Scores, shifts: NDArray[np.int32], cell: float) -> None:
        arrays = (scores.words, scores.rules, scores.chains)
        self._search = native.ChartSearch(layout.native, *arrays, np.ascontiguousarray(shifts), cell)
        self._cell = cell

    @property
    def ends(self) -> Sequence[tuple[int, int]]:
        """The range of each statistic, for all ways to split spans."""
        return [(low, high) for low, high in self._search.ends.tolist()]

    @property
    def magnitude(self) -> float:
        """The largest size of a score."""
        return self._search.magnitude

    @property
    def lowest(self) -> float:
        """No score is lower, except ``-inf``."""
        return -self.magnitude

    @property
    def evaluation_work(self) -> float:
        """The work that takes as long as evaluating a function at one tally: about that of a cell."""
        return self._cell

    def __call__(self, asked: Search) -> Found | None:
        """Search for the best tree; None if this is not supported, or does not fit in memory."""
        return self._search.run(*asked.native())


def labelling_of(steps: NDArray[np.int32], words: int) -> NDArray[np.int64]:
    """Return the steps of a derivation as a labelling."""
    labelling = np.full((3 * (2 * words - 1), _STEP_NUMBERS), -1, dtype=np.int64)
    labelling[: len(steps)] = steps
    return labelling.reshape(-1)


def steps_of(labelling: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the steps of a labelling.

    Examples
    --------
    >>> steps_of(labelling_of(np.array([[1, 7, 0, 1, 0], [0, 3, 0, 1, 0]], dtype=np.int32), 1)).tolist()
    [[1, 7, 0, 1, 0], [0, 3, 0, 1, 0]]
    """
    rows = labelling.reshape(-1, _STEP_NUMBERS)
    return rows[rows[:, 0] >= 0].astype(np.int32)
