"""The score as a sum over its distinct entries: ``F(y) = Σ_t m_t + Σ_v v·G_v(y)``.

``m_t`` is the least entry of table ``t``, and ``G_v`` counts the factors whose entry lies ``v`` above it.
These are the sufficient statistics of the score: labellings of one tally have one score, whatever the numbers
``v`` are. There are few tallies where few numbers come again and again, as the weights of a chain of symbols
do.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.score_ranges.enumeration import labelling_count
from tallytree.score_ranges.lattice import least_moved_out
from tallytree.statistics.statistic import Statistic
from tallytree.values import read_only

_FEW_TALLIES = 2**17  # which are listed in no time
_MOST_VALUES = 62  # more distinct numbers never give few tallies, and sets of them fit an integer


class Values:
    """The distinct entries of a model, and how often a labelling takes each.

    Attributes
    ----------
    few : bool
        Whether there are few enough for statistics.
    statistics : tuple of Statistic
        One for each distinct entry above the least of its table.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._above = [least_moved_out(block)[1] for block in model.blocks]
        entries = [np.unique(table) for table in self._above]
        self._values = np.setdiff1d(np.concatenate([np.zeros(0), *entries]), [0.0])
        self.few = len(self._values) <= _MOST_VALUES

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """The number of factors that take each of the distinct entries."""
        return tuple(
            Statistic.from_blocks(self._taking(v), f"value_{i}", None, self._model.cardinalities)
            for i, v in enumerate(self._values.tolist())
        )

    def _taking(self, value: float) -> list[Block]:
        taken = [
            (block, above == value) for block, above in zip(self._model.blocks, self._above, strict=True)
        ]
        return [block.with_tables(read_only(where.astype(np.int64))) for block, where in taken if where.any()]

    @property
    def most_tallies(self) -> int:
        """A bound on the number of tallies: the paper's urns.

        ``T`` factors that choose from the same ``V`` entries, and the least, do so in at most
        ``C(T + V, V)`` ways.
        """
        alike: Counter[int] = Counter()
        for block, above in zip(self._model.blocks, self._above, strict=True):
            for chosen in map(int, self._choices(above)):
                alike[chosen] += len(block) // len(above)
        urns = prod(comb(count + chosen.bit_count(), count) for chosen, count in alike.items())
        return min(urns, labelling_count(self._model))

    @property
    def tell(self) -> bool:
        """Whether there are fewer tallies than labellings, or few anyhow; else counting gains nothing."""
        return self.most_tallies < max(labelling_count(self._model), _FEW_TALLIES)

    def _choices(self, above: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return for each table the set of entries that it has, as bits."""
        rows = above.reshape(len(above), -1)
        bits = np.where(rows > 0, 1 << np.searchsorted(self._values, rows), 0)
        return np.asarray(np.bitwise_or.reduce(bits, axis=1, initial=0))
