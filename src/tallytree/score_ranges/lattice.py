"""The score as a statistic: ``F(y) = Σ_t m_t + r·K(y) + E(y)``.

With a resolution ``r``, every entry of a factor is ``m_t + r·k + e``: the smallest entry of its table, an
integer multiple of ``r``, and a remainder. The integers are the tables of a statistic ``K``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cached_property
from math import ceil, comb, floor, inf, prod

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError
from tallytree.model.blocks import LARGEST_INTEGER, Block
from tallytree.model.model import Model
from tallytree.score_ranges.enumeration import labelling_count
from tallytree.score_ranges.window import Window
from tallytree.statistics.statistic import Statistic
from tallytree.values import read_only

_DECIMALS = 6  # the maximum number of decimals of a lattice


class Lattice:
    """``F(y) = base + resolution·K(y) + E(y)`` with ``least_error <= E(y) <= largest_error``.

    Raises BudgetError if the integers are too large.
    """

    def __init__(self, model: Model, resolution: float) -> None:
        self.resolution = resolution
        self.base = self.least_error = self.largest_error = 0.0
        blocks = [self._rounded(block) for block in model.blocks]
        self.statistic = Statistic.from_blocks(blocks, "score", None, model.cardinalities)

    def _rounded(self, block: Block) -> Block:
        least, above = least_moved_out(block)
        times = len(block) if len(above) == 1 else 1
        steps = np.rint(above / self.resolution)
        if steps.max(initial=0) >= LARGEST_INTEGER:
            raise BudgetError(
                f"a score is {steps.max():.3g} times the resolution {self.resolution:.3g}; use a coarser one"
            )
        errors = (above - steps * self.resolution).reshape(len(above), -1)
        self.base += times * float(least.sum())
        self.least_error += times * float(errors.min(axis=1).sum())
        self.largest_error += times * float(errors.max(axis=1).sum())
        return block.with_tables(read_only(steps.astype(np.int64)))

    def least_scores(self, tallies: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return a lower bound on the score of labellings with each tally."""
        return self.resolution * tallies.astype(np.float64) + (self.base + self.least_error)

    def tallies(self, window: Window) -> tuple[int | None, int | None]:
        """Return the tallies that scores in a window can have, and possibly one more on each side."""
        low = (window.least - self.base - self.largest_error) / self.resolution
        high = (window.most - self.base - self.least_error) / self.resolution
        return _end(floor, low), _end(ceil, high)


def _end(whole: Callable[[float], int], number: float) -> int | None:
    """Return the next integer outwards; None if there is no limit that matters."""
    return whole(number) if abs(number) < 2.0**62 else None


def least_moved_out(block: Block) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split each table into its smallest score and the rest; forbidden entries count as the smallest."""
    forbidden = np.isneginf(block.tables)
    rows = np.where(forbidden, inf, block.tables).reshape(len(block.tables), -1)
    least = rows.min(axis=1)
    least[np.isinf(least)] = 0.0
    lowest = least.reshape(-1, *(1,) * block.arity)
    return least, np.where(forbidden, 0.0, block.tables - lowest)


def decimal(model: Model) -> Lattice | None:
    """Return the coarsest decimal lattice at which only the last bits are rounded; None if there is none."""
    split = [least_moved_out(block)[1] for block in model.blocks]
    above = np.concatenate([np.zeros(1), *(table.reshape(-1) for table in split)])
    bits = 4 * float(np.finfo(np.float64).eps) * max(float(_largest(model.blocks)), 1.0)
    for digits in range(_DECIMALS + 1):
        scaled = above * 10.0**digits
        steps = np.rint(scaled)
        if steps.max() < LARGEST_INTEGER and (np.abs(scaled - steps) <= 1e-9 + bits * 10.0**digits).all():
            shared = max(int(np.gcd.reduce(steps.astype(np.int64))), 1)
            return Lattice(model, shared / 10.0**digits)
    return None


def _largest(blocks: Iterable[Block]) -> float:
    sizes = (np.abs(np.where(np.isneginf(b.tables), 0.0, b.tables)) for b in blocks)
    return max((float(size.max(initial=0.0)) for size in sizes), default=0.0)


# --- the score as a sum over its distinct entries -----------------------------------------------------------
# ``F(y) = Σ_t m_t + Σ_v v·G_v(y)``. ``m_t`` is the smallest entry of table ``t``, and ``G_v`` counts the
# factors whose entry is ``v`` above it. These are the sufficient statistics of the score: labellings with the
# same tally have the same score, whatever the numbers ``v`` are. There are few tallies if there are few
# distinct numbers, such as the weights of a chain of symbols.

_FEW_TALLIES = 2**17  # can be listed quickly
_MOST_VALUES = 62  # more distinct numbers never give few tallies, and sets of them fit in an integer


class Values:
    """The distinct entries of a model, and how often a labelling uses each.

    Attributes
    ----------
    few : bool
        Whether there are few enough for statistics.
    statistics : tuple of Statistic
        One for each distinct entry above the smallest of its table.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._above = [least_moved_out(block)[1] for block in model.blocks]
        entries = [np.unique(table) for table in self._above]
        self._values = np.setdiff1d(np.concatenate([np.zeros(0), *entries]), [0.0])
        self.few = len(self._values) <= _MOST_VALUES

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """The number of factors that use each of the distinct entries."""
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
        """A bound on the number of tallies (the paper's urns).

        ``T`` factors that choose from the same ``V`` entries, and the smallest, do so in at most
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
        """Whether there are fewer tallies than labellings, or few anyway; otherwise counting is useless."""
        return self.most_tallies < max(labelling_count(self._model), _FEW_TALLIES)

    def _choices(self, above: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the set of entries of each table, as bits."""
        rows = above.reshape(len(above), -1)
        bits = np.where(rows > 0, 1 << np.searchsorted(self._values, rows), 0)
        return np.asarray(np.bitwise_or.reduce(bits, axis=1, initial=0))
