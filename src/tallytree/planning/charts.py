"""The layout of a chart: which tables it has and their cost, from rules and integers alone.

A chart has a table of open items and one of closed items for every span, one state for each symbol. Its
layout says which tallies each table holds, and where; it does not depend on scores. Parsing makes the arrays
used here from grammars and tree statistics.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError
from tallytree.kernels import native
from tallytree.planning.budget import readable_bytes
from tallytree.planning.program import Step, chart_steps
from tallytree.values import counted, read_only


@lru_cache(maxsize=64)
def spans(words: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the starts and the ends of all spans, in the chart's order: by width, then by start.

    Examples
    --------
    >>> [span.tolist() for span in spans(2)]
    [[0, 1, 0], [1, 2, 2]]
    """
    starts, ends = native.spans(words)
    return read_only(starts), read_only(ends)


def span_number(words: int, start: int, width: int) -> int:
    """Return the number of a span of a sentence."""
    return native.span_number(words, start, width)


def span_numbers(words: int, starts: NDArray[np.int64], widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of some spans of a sentence."""
    return native.span_numbers(words, np.ascontiguousarray(starts), np.ascontiguousarray(widths))


@dataclass(frozen=True, eq=False)
class ChartRules:
    """A compiled grammar as arrays."""

    # the numbers of each. A bag is the set of labels that a chain of unary rules adds to its span.
    symbols: int
    bags: int
    root: int  # the symbol over the whole sentence
    binary: NDArray[np.int32]  # (n, 3): parent, left child and right child of each rule
    # (n, 5): target, source, bag, bag over a single word (-1: none), and whether the source is a closed item
    chains: NDArray[np.int32]

    @cached_property
    def native(self) -> native.ChartGrammar:
        """The rules in the order of the executor."""
        return native.ChartGrammar(self.symbols, self.bags, self.root, self.binary, self.chains)


@dataclass(frozen=True, eq=False)
class ChartTallies:
    """What a chart counts, and which totals are relevant."""

    # [bag][span][statistic]: what each bag adds over each span. Rows of tallies run along the last
    # statistic.
    shifts: NDArray[np.int32]
    caps: NDArray[np.int64]  # (P,)
    # (P,): the smallest and the largest relevant total
    low: NDArray[np.int64]
    high: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ChartLayout:
    """The tables of a chart; made by :meth:`plain` or :meth:`ChartOutline.layout`."""

    rules: ChartRules
    words: int
    tallies: ChartTallies | None  # what is counted; None for a plain chart
    live: NDArray[np.uint8] | None  # [layer][span][symbol]: which items the chart has; None for all of them
    native: native.ChartLayout

    @classmethod
    def plain(cls, rules: ChartRules, words: int, memory_limit: float) -> ChartLayout:
        """Lay out a chart without statistics.

        Raises BudgetError if it exceeds the memory limit.
        """
        with _budget(words, memory_limit):
            made = native.ChartLayout.plain(rules.native, words, memory_limit)
        return cls(rules, words, None, None, made)

    @property
    def items(self) -> int:
        """The number of symbols over spans."""
        return self.native.items

    @property
    def most_tallies(self) -> int:
        """The largest number of tallies of a span."""
        return self.native.most_cells

    @property
    def operations(self) -> float:
        """The number of additions and comparisons of the upward pass."""
        return self.native.operations

    @property
    def joined(self) -> float:
        """The number of convolutions, of one row of tallies with another."""
        return self.native.joined

    @property
    def arena_bytes(self) -> int:
        """The size of all tables."""
        return self.native.arena_bytes

    @property
    def bytes(self) -> int:
        """The size of all tables, and of the layout itself."""
        return self.native.arena_bytes + self.native.plan_bytes

    @property
    def pruned(self) -> int:
        """The number of pairs of rows of tallies that the window rules out."""
        return self.native.pruned

    @property
    def cells(self) -> NDArray[np.int64]:
        """The number of tallies of each table: ``[span][layer]``."""
        return self.native.cells

    @property
    def root_tallies(self) -> NDArray[np.int64]:
        """The tallies that trees may have, as far as known without scores: one row each."""
        return self.native.root_tallies

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The program, step by step."""
        return chart_steps(self.native)

    @property
    def costliest(self) -> int:
        """The number of the step with the most operations, -1 if none has any."""
        operations = self.native.step_operations
        number = int(operations.argmax())
        return number if operations[number] > 0 else -1

    def share(self, number: int) -> float:
        """Return the fraction of all operations in a step."""
        return float(self.native.step_operations[number]) / max(self.operations, 1)

    def table(self, number: int) -> tuple[int, int]:
        """Return the numbers of states and of tallies of the table that a step makes."""
        step = self.steps[number]
        starts, ends = spans(self.words)
        (span,) = np.flatnonzero((starts == step.span[0]) & (ends == step.span[1])).tolist()
        layer = int(step.verb == "unary")
        states = self.rules.symbols if self.live is None else int(np.count_nonzero(self.live[layer, span]))
        return states, int(self.cells[span, layer])


class ChartOutline:
    """What is known of a chart with statistics before its tables are laid out.

    `live`: ``[layer][span][symbol]``, which items the chart has.
    """

    def __init__(self, rules: ChartRules, words: int, tallies: ChartTallies, live: NDArray[np.uint8]) -> None:
        self._parts = rules, words, tallies, live
        t = tallies
        self._native = native.ChartOutline(rules.native, words, t.shifts, t.caps, t.low, t.high, live)
        # splits that a full chart visits, and groups of rules over them, each with a convolution at least
        self.least_splits, self.least_groups = self._native.least

    def layout(self, memory_limit: float, beside: int = 0) -> ChartLayout:
        """Lay out the tables, once only; `beside` bytes of the limit are used otherwise.

        Raises BudgetError if they exceed the memory limit.
        """
        rules, words, tallies, live = self._parts
        with _budget(words, memory_limit, beside):
            made = self._native.layout(memory_limit - beside)
        return ChartLayout(rules, words, tallies, live, made)


def chart_too_large(words: int, size: float, limit: float, place: str = "") -> BudgetError:
    """Return the error for a chart that needs this many bytes; if it is not finished at a place, more."""
    more = "more than " if place else ""
    return BudgetError(
        f"the chart of {counted(words, 'word')} needs {more}{readable_bytes(size)}{place}; the limit is "
        f"{readable_bytes(limit)}. Bound or cap statistics (where=), leave some out, use a grammar with "
        'fewer symbols (horizontal=0, vertical=1, tail="single"), or raise memory_limit='
    )


@contextmanager
def _budget(words: int, limit: float, beside: int = 0) -> Iterator[None]:
    """Convert a native error to one that says where the chart grew too large and what to do."""
    try:
        yield
    except native.BudgetExceededError as error:
        span, place = error.step, ""
        if span:
            starts, ends = spans(words)
            place = f" (planning stopped at words {starts[span]} to {ends[span]})"
        raise chart_too_large(words, error.bytes + beside, limit, place) from None
