"""The cost of one question by bounds, compared with the table that answers all of them.

A search by bounds makes plain passes, whose cost is known from the program, and fills a band of tallies,
whose size depends on the scores. Random chains, trees and grids of 100 to 100,000 variables took
``4 + 2·log10(variables)`` passes, plus or minus half, and a band of at most two cells per variable; with
strongly coupled variables, bands are as large as tables. So these are estimates, not limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log10
from typing import NamedTuple

from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.planning.budget import readable_bytes, readable_count
from tallytree.planning.carried import Window
from tallytree.planning.orders import Check, Order, drafted, skeleton
from tallytree.planning.price import Price
from tallytree.statistics.statistic import Statistic
from tallytree.values import counted

Program = native.Skeleton

MOST_STATISTICS = 3
LARGEST_WEIGHT = 2**30
"""A search has 32 bits for a weight: from here on, there is none."""
SLOWER = 10
"""The number of table operations that take as long as one search operation."""

# With a width above 1, plain passes go over long rows, too, unless a step has few operations; a window leaves
# more of the table than its share of the tallies, since small parts keep all of theirs; and every row of
# tallies costs as much as some more tallies, which matters if the window is narrow.
_SLOWER_WIDE, _STEP_WIDE = 2.5, 500
_KEPT_WIDE, _MOST_KEPT = 2.0, 0.75
_ROW_WIDE = 16

WORTH_TRYING = 1e7
"""A search is tried if the full table takes this many operations by the cost model: a millisecond or two."""

_WORTH_TRYING_WIDE = 3e7  # the same for a width above 1, where estimates are less exact

SHARE = 1 / 4
"""The fraction of the cost of a table that a search may take before the table is computed."""

_SHARE_WIDE = 0.4  # the same for a width above 1, where bands are small or very large
_HOPE = 2 / 3  # there, passes are most of a search; often it takes no more than this of what is expected

_CELL = 64  # search operations per cell of a band, including the choices examined for it
_CELL_BYTES = 80
_JOINED = 4  # the cost model overestimates the tables of small parts that are joined


class SearchPrice(NamedTuple):
    """The expected cost of a search by bounds.

    Attributes
    ----------
    passes : int
        The number of plain passes.
    pass_operations : float
        The number of add-max operations of one pass.
    cells : float
        The number of table cells examined.
    peak_bytes : float
    table_operations : float
        The cost of the full table by the cost model, which needs no layout; used by
        ``strategy="auto"``.
    slower : float
        The number of table operations that take as long as one operation of a pass.
    narrow : bool
        Whether the model has a width of 1.
    """

    passes: int
    pass_operations: float
    cells: float
    peak_bytes: float
    table_operations: float
    slower: float = SLOWER
    narrow: bool = True

    @property
    def operations(self) -> float:
        """The number of table operations that take as long."""
        return self.slower * (self.passes * self.pass_operations + _CELL * self.cells)

    @property
    def tried(self) -> bool:
        """Whether ``strategy="auto"`` tries bounds first."""
        if self.narrow:
            return self.table_operations >= WORTH_TRYING and self.operations < self.table_operations
        enough = _SHARE_WIDE / _HOPE * self.table_operations
        return self.table_operations >= _WORTH_TRYING_WIDE and self.operations < enough

    @property
    def allowance(self) -> float:
        """How much work ``strategy="auto"`` allows a search before it computes the table; 0 for none."""
        return self.work(SHARE if self.narrow else _SHARE_WIDE) if self.tried else 0.0

    def work(self, times: float) -> float:
        """Return how many search operations take this many times as long as the table."""
        return times * self.table_operations / self.slower

    @property
    def offer(self) -> str:
        """Describe the cost, for the error if the table does not fit in memory."""
        return f"A single answer by bounds, as in solve, is expected to take {self.words}"

    @property
    def words(self) -> str:
        """The cost in words."""
        return (
            f"about {self.passes} plain passes of {readable_count(self.pass_operations)} operations and "
            f"{counted(self.cells, 'cell', readable_count(self.cells))}, {readable_bytes(self.peak_bytes)}"
        )

    def __str__(self) -> str:
        first = "tries this first" if self.tried else "computes the table"
        return f"{self.words}; strategy='auto' {first}"


def program_for(
    model: Model,
    statistics: Sequence[Statistic],
    order: Order | None,
    check: Check | None = None,
    *,
    draft: bool = False,
) -> native.Skeleton:
    """Return a program for plain passes; a chain in its natural order needs no search for one.

    A forest has one program for passes and tables; a wide graph has one for each.
    """
    if order is None:  # drafts, since several whole programs of a large model would not fit in the cache
        natural = skeleton(model, statistics, "natural", check, draft=True)
        if natural.width <= 1 and natural.step_count <= len(model) + 1:
            return skeleton(model, statistics, "natural", check, draft=draft)
        if skeleton(model, statistics, "min-degree", check, draft=True).width <= 1:
            return skeleton(model, statistics, None, check, draft=draft)
    passes = 0.0 if order is not None and draft else _SLOWER_WIDE * _passes(model)
    return skeleton(model, statistics, order, check, draft=draft, passes=passes)


def _passes(model: Model) -> int:
    """Return about how many plain passes a search makes."""
    return round(4 + 2 * log10(len(model)))


def pass_price(program: Program) -> Price:
    """Return the cost of a plain pass, including what all passes share."""
    operations, size = native.pass_price(program)
    return Price(program.variables, program.width, program.degree, 1, operations, int(size), "double")


def search_price(
    model: Model,
    statistics: Sequence[Statistic],
    window: Window,
    order: Order | None = None,
    check: Check | None = None,
    least: float = 0.0,
) -> SearchPrice | None:
    """Return the cost of one question about these statistics by bounds; None if that is not supported.

    `order`, `check`: as for a plan. Also None if the table takes fewer than `least` operations.
    """
    if not 0 < len(statistics) <= MOST_STATISTICS or not len(model):
        return None
    if any(s.scale >= LARGEST_WEIGHT for s in statistics):
        return None
    small = order is None and _chain_operations(model, statistics) < least
    if small and skeleton(model, statistics, _first_try(model), check, draft=True).cost < least:
        return None  # and its table needs this program, unlike one in the natural order
    program = program_for(model, statistics, order, check, draft=True)
    if not program.feasible:
        return None
    wide = program.width > 1
    if drafted(model, statistics):
        operations = program.pass_operations
        size = 8 * operations
    else:
        operations, size = native.pass_price(program)
    table = _table_operations(model, statistics, window, program, order, check)
    if wide:
        table += _ROW_WIDE * operations
    if table < least:
        return None
    cells = 2.0 * len(model)
    slower = min(SLOWER, _SLOWER_WIDE * (1 + _STEP_WIDE * len(model) / operations)) if wide else SLOWER
    size += _CELL_BYTES * cells
    return SearchPrice(_passes(model), operations, cells, size, table, slower, not wide)


def _table_operations(
    model: Model,
    statistics: Sequence[Statistic],
    window: Window,
    program: Program,
    order: Order | None,
    check: Check | None,
) -> float:
    """Return the operations of the table by the cost model; `program`: that of plain passes."""
    wide = program.width > 1
    table = program.cost / (_JOINED if program.step_count > len(model) + 1 and not wide else 1)
    if table < WORTH_TRYING:
        return table
    if wide and order is None:  # on a long grid, the best order for passes is far from that for tables
        table = min(table, skeleton(model, statistics, "sweep", check, draft=True).cost)
    share = _within_window(statistics, window)
    return table * (min(_MOST_KEPT, _KEPT_WIDE * share) if wide and window else share)


def _first_try(model: Model) -> Order | None:
    """Return the order whose program is generated first: of a forest the best one, of other graphs any."""
    links = sum(len(block) for block in model.blocks if block.arity > 1)
    return None if links < len(model) else "min-degree"


def _chain_operations(model: Model, statistics: Sequence[Statistic]) -> float:
    """Return about how many operations the table of a chain takes at most, if it counts variables."""
    size = float(len(model))
    states = model.alike or int(model.cardinalities.max())
    return states * states * size ** (1 + len(statistics))


def _within_window(statistics: Sequence[Statistic], window: Window) -> float:
    """Return the approximate fraction of tallies on a path into the window."""
    share = 1.0
    for number, (above, below) in window.items():
        low, high = statistics[number].capped(None).extent
        reach = min(high - low, inf if below is None else below - low, inf if above is None else high - above)
        share *= (max(reach, 0) + 1) / (high - low + 1)
    return share
