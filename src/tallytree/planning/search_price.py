"""The cost of one question by bounds, compared with the table that answers all of them.

A search by bounds makes plain passes, whose cost is known from the program, and fills a band of tallies,
whose size depends on the scores. Random chains, trees and grids of 100 to 100,000 variables took
``4 + 2·log10(variables)`` passes, plus or minus half, and a band of two cells per variable. Memory is
estimated for larger bands: of 48 random chains of 14 to 1,000 variables, one with one statistic took more,
and half of those with two or three, up to about 50 cells per variable. With strongly coupled variables,
bands are as large as tables. So these are estimates, not limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log10
from typing import NamedTuple

import numpy as np

from tallytree.kernels import native
from tallytree.kernels.limits import SEARCH_SHARE
from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.planning.budget import readable_bytes, readable_count
from tallytree.planning.carried import Window, tally_limits
from tallytree.planning.orders import Check, Order, Programs, drafted
from tallytree.planning.price import Price
from tallytree.statistics.statistic import Statistic
from tallytree.values import counted

Program = native.Skeleton

MOST_STATISTICS = 3
LARGEST_WEIGHT = 2**30
"""A search has 32 bits for a weight: from here on, there is none."""
SLOWER = 10
"""The number of table operations that take as long as one unit of work."""

WORTH_TRYING = 8e5
"""A search is tried if the full table takes as long as this much work, at least: about a millisecond."""

CACHED_BYTES = 1 << 19
"""Plans up to this many bytes are cached; others are laid out again for each question."""

_FEWEST = 2 / 3  # of the usual number of passes: few searches take less

_PASS_WIDE = 2.5  # table operations that take as long as one of a pass over a wide graph, to choose an order
_CELL = 10  # units of work per cell of a band
_CELL_BYTES = 80
# Cells of a band, for each variable: usually, and at most, with one statistic and with several.
_CELLS, _MOST_CELLS, _MOST_OF_SEVERAL = 2.0, 10.0, 50.0
_CALL, _ASKED = 1e5, 1.5e5  # units of work for a table and for a search besides what is compiled;
_ASKED_EACH = 120.0  # the latter for each variable;
_BEGUN, _ENTRY = 4e4, 5.0  # to begin a search, and for an entry of the scores
# For each step of the program: of a chain, a forest, one with statistics of neighbours, and a wide graph.
_STEP_CHAIN, _STEP, _STEP_LINKED, _STEP_WIDE = 30.0, 110.0, 600.0, 200.0
_PASS_CHAIN = 0.6  # of a pass over a chain, compared with one over the steps of its program
_VARIABLE = 300.0  # for each variable of the answer of a table: decoding, and certification
# Of a table of which only the operations are known: each variable besides, an operation, and what rows of
# tallies take beside the operations, which is divided by the number of states.
_DRAFTED, _OPERATION, _ROWS = 400.0, 0.03, 0.1


class SearchPrice(NamedTuple):
    """The expected cost of a search by bounds.

    Times are in units of work, about a nanosecond each: passes and cells, and the operations, rows and cells
    of tables are counted, and nothing is timed, so that the same question is always answered in the same way.

    Attributes
    ----------
    passes : int
        The number of plain passes.
    pass_operations : float
        The number of add-max operations of one pass.
    cells : float
        The number of table cells examined.
    peak_bytes : float
        The memory that it is expected to need at most.
    table_operations : float
        The number of add-max operations of the full table, from the ranges of its tallies.
    pass_work, setup_work, table_work : float
        The time of one pass, of setting up a search, and of the full table.
    asked_work : float
        The time of asking for a search, besides the compiled part.
    """

    passes: int
    pass_operations: float
    cells: float
    peak_bytes: float
    table_operations: float
    pass_work: float
    setup_work: float
    table_work: float
    asked_work: float

    @property
    def work(self) -> float:
        """The expected time of the search."""
        return self.setup_work + self.passes * self.pass_work + _CELL * self.cells

    @property
    def operations(self) -> float:
        """The number of table operations that take as long."""
        return SLOWER * self.work

    @property
    def tried(self) -> bool:
        """Whether ``strategy="auto"`` tries bounds first."""
        return self.allowance() > 0

    def allowance(self, beside: float = 0.0) -> float:
        """Return how much work ``strategy="auto"`` allows a search before it computes the table; 0 for none.

        `beside`: the work of preparing the question.
        """
        left = SEARCH_SHARE * self.table_work - self.asked_work - beside
        enough = left >= self.setup_work + _FEWEST * (self.work - self.setup_work)
        return left if enough and self.table_work >= WORTH_TRYING else 0.0

    @property
    def offer(self) -> str:
        """Describe the cost, for the error if the table does not fit in memory."""
        return f"A single answer by bounds, as in solve, is expected to take {self.words}"

    @property
    def words(self) -> str:
        """The cost in words."""
        return (
            f"about {self.passes} plain passes of {readable_count(self.pass_operations)} operations and "
            f"{counted(self.cells, 'cell', readable_count(self.cells))}, "
            f"up to {readable_bytes(self.peak_bytes)}"
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
    return _program_of(Programs(model, statistics, check), order, draft)


def _program_of(programs: Programs, order: Order | None, draft: bool) -> native.Skeleton:
    model = programs.model
    if order is None and _narrow(model):
        # Drafts, since several whole programs of a large model would not fit in the cache.
        if _consecutive((*model.blocks, *(block for s in programs.statistics for block in s.blocks))):
            natural = programs.get("natural", draft=True)
            if natural.width <= 1 and natural.step_count <= len(model) + 1:
                return programs.get("natural", draft=draft)
        if programs.is_forest:
            return programs.get(draft=draft)
    passes = 0.0 if order is not None and draft else _PASS_WIDE * _passes(model)
    return programs.get(order, draft=draft, passes=passes)


def _passes(model: Model) -> int:
    """Return about how many plain passes a search makes."""
    return round(4 + 2 * log10(len(model)))


def pass_price(program: Program) -> Price:
    """Return the cost of a plain pass, including what all passes share."""
    operations, _, size = native.pass_price(program)
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

    `order`, `check`: as for a plan. Also None if the table takes less than `least` work.
    """
    if not 0 < len(statistics) <= MOST_STATISTICS or not len(model):
        return None
    if any(s.scale >= LARGEST_WEIGHT for s in statistics):
        return None
    table, programs = _Tables(statistics, window, inf), Programs(model, statistics, check)
    small = not drafted(model, statistics)
    if small and (order is not None or not _narrow(model)):  # its table needs this program, or has tried it
        table = table.with_program(programs.get(order or "sweep", draft=True))
        if table.work < least:
            return None
    program = _program_of(programs, order, draft=True)
    if not program.feasible:
        return None
    table = table.with_program(program) if small else table.with_draft(program, model.cardinalities.mean())
    if table.work < least:
        return None
    operations, size = program.pass_operations, 8 * program.pass_operations
    work = operations
    if small:
        operations, work, size = native.pass_price(program)
    cells = _CELLS * len(model)
    step = _step_work(model, program, statistics)
    if step == _STEP_CHAIN:
        work *= _PASS_CHAIN
    setup = _BEGUN + step * program.step_count
    setup += _ENTRY * sum(block.tables.size for block in model.blocks)
    most = _MOST_CELLS if len(statistics) == 1 else _MOST_OF_SEVERAL
    size += _CELL_BYTES * most * len(model)
    times = work, setup, table.work, _ASKED + _ASKED_EACH * len(model)
    return SearchPrice(_passes(model), operations, cells, size, table.operations, *times)


def _step_work(model: Model, program: Program, statistics: Sequence[Statistic]) -> float:
    """Return the work of loading a step: a chain whose neighbours count is read twice."""
    if program.width > 1:
        return _STEP_WIDE
    if any(block.arity > 1 for s in statistics for block in s.blocks):
        return _STEP_LINKED
    return _STEP_CHAIN if _consecutive(model.blocks) else _STEP


class _Tables(NamedTuple):
    """The cheapest full table of some statistics: its operations, and its time in units of work."""

    statistics: Sequence[Statistic]
    window: Window
    work: float
    operations: float = inf

    def with_program(self, program: Program) -> _Tables:
        """Return the table of this program if it is cheaper: no tally is listed, but ranges are known."""
        if not program.feasible:  # it has no steps
            return self
        counts = [block.tables for s in self.statistics for block in s.blocks]
        limits = tally_limits(self.statistics, self.window)
        operations, work, layout, size = native.table_price(program, counts, *limits)
        size += program.bytes + sum(tables.nbytes for tables in counts)
        work += _CALL + _VARIABLE * program.variables + (layout if size > CACHED_BYTES else 0.0)
        return self._replace(work=work, operations=operations) if work < self.work else self

    def with_draft(self, program: Program, states: float) -> _Tables:
        """Return the same for a program without steps, by the cost model, which knows no ranges.

        `states`: of a variable, on average.
        """
        operations = program.cost * _within_window(self.statistics, self.window)
        each = _OPERATION + _ROWS / states
        work = _CALL + (_VARIABLE + _DRAFTED) * program.variables + each * operations
        return self._replace(work=work, operations=operations)


def _narrow(model: Model) -> bool:
    """Whether the model may be a forest: then one program serves passes and tables."""
    links = [block for block in model.blocks if block.arity > 1]
    if any(block.arity > 2 for block in links):
        return False
    return sum(map(len, links)) < len(model) or _consecutive(links)


def _consecutive(blocks: Sequence[Block]) -> bool:
    """Whether only variables that follow each other are connected, as in a chain."""
    links = (block.scopes for block in blocks if block.arity > 1)
    return all(bool(np.all(pairs[:, 1] == pairs[:, 0] + 1)) for pairs in links)


def _within_window(statistics: Sequence[Statistic], window: Window) -> float:
    """Return the approximate fraction of tallies on a path into the window.

    With a count of `t` of the first `t` variables at most, those below and above the paths are two triangles.
    """
    share = 1.0
    for number, (above, below) in window.items():
        low, high = statistics[number].capped(None).extent
        least = 0.0 if above is None else max(above - low, 0) / max(high - low, 1)
        most = 0.0 if below is None else max(high - below, 0) / max(high - low, 1)
        share *= max(1 - least**2 - most**2, 1 / (high - low + 1))
    return share
