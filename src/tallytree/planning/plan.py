"""Plans: what a run will do and its cost, before it runs.

A plan is a skeleton (elimination order, joins; from scopes alone) and a layout (which tallies each table
holds, and where; from the integer tables of the statistics). Neither depends on scores, so a plan can be used
for every weight vector. Plans that exceed ``memory_limit`` raise an error before their tables are allocated,
and if possible before the program itself is generated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, ModelError
from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.planning.budget import advice, readable_bytes, readable_count, threads_for, too_dense
from tallytree.planning.carried import Window, check_window, tally_limits
from tallytree.planning.options import PlanOptions
from tallytree.planning.precision import Precision
from tallytree.planning.price import Price, Shape
from tallytree.planning.printed import printed, shown
from tallytree.planning.program import Step, steps
from tallytree.planning.search_price import SearchPrice, search_price
from tallytree.planning.table_programs import table_programs
from tallytree.statistics.statistic import Statistic
from tallytree.values import counted

_DEFAULTS = PlanOptions()
# Limits for listing tallies that only a printed plan mentions.
_TIMES, _FEW_BYTES, _MANY_BYTES = 4, 64e6, 256e6
MODES = {
    "auto": native.TallyMode.AUTO,
    "rows": native.TallyMode.ROWS,
    "cells": native.TallyMode.CELLS,
}


class Plan:
    """A program with its layout; print it to see its cost.

    Returned by :func:`plan`; pass it as ``plan=`` to reuse it for the same statistics on a model of the same
    shape with different scores.

    Attributes
    ----------
    width : int
        τ: the number of variables in the largest step, minus one.
    degree : int
        ν: the largest number of messages at one variable, including the one it sends.
    tallies : int
        R: the largest number of tallies in one table.
    operations : float
        The add-max operations of the upward pass.
    peak_bytes : int
        The peak memory, without that of the model: the program and its lists, tables, scratch
        memory, and the copy of the last table.
    every_table : bool
        Whether all tables fit, so that there can be max-marginals and labellings in order.
    every_table_bytes : int
        The peak memory once all tables are needed.
    segments : int
        1 if decoding keeps all tables; otherwise the number of segments that are recomputed from
        checkpoints while decoding, as far as a labelling needs them. Tables that do not fit are cut into
        segments, and large tables that are faster to compute in the cache.
    precision : {"double", "single"}
        The precision of the tables.
    search : SearchPrice or None
        The expected cost of a single answer by bounds, without these tables; None if there are no
        statistics or more than three.
    """

    __slots__ = (
        "__dict__",
        "_price",
        "_shape",
        "layout",
        "limit",
        "options",
        "precision",
        "skeleton",
        "statistics",
        "window",
    )

    def __init__(
        self,
        model: Model,
        statistics: Sequence[Statistic],
        options: PlanOptions = _DEFAULTS,
        window: Window | None = None,
    ) -> None:
        self.options, self.window, self.limit = options, window or {}, options.limit
        self.precision: Precision = options.precision
        self._price: Price | None = None
        self.statistics = tuple(statistics)
        self._shape = Shape(model)
        room = self.limit - options.beside
        programs = table_programs(model, statistics, self.window, options.order, options.check_size, room)
        self.layout = self._first_fit(programs, MODES[options.layout])

    def _first_fit(self, programs: list[native.Skeleton], mode: native.TallyMode) -> native.Layout:
        """Lay out the first of several programs that fits in memory."""
        for program in programs[:-1]:
            self.skeleton = program
            with suppress(BudgetError):
                return self._laid_out(mode, self.window)
        self.skeleton = programs[-1]
        return self._laid_out(mode, self.window)

    def _laid_out(self, mode: native.TallyMode, window: Window, limit: float | None = None) -> native.Layout:
        tables = [block.tables for s in self.statistics for block in s.blocks]
        limits = tally_limits(self.statistics, window)
        try:
            room = (self.limit if limit is None else limit) - self.options.beside
            single = self.precision == "single"
            segments = 1 if self.options.every_table else 0  # 0: as many as make it fast
            most = inf if self.options.operation_limit is None else self.options.operation_limit
            return native.Layout(self.skeleton, tables, *limits, mode, room, single, segments, most)
        except native.BudgetExceededError as error:
            if error.bytes == 0:
                raise BudgetError(
                    f"the plan takes more operations than operation_limit, which is {most:.3g}; raise "
                    "operation_limit, cap a statistic, or use fewer statistics or smaller weights"
                ) from None
            if not self.skeleton.feasible:
                raise too_dense(self.skeleton.width + 1, ordered=self.options.order is not None) from None
            need = native.estimate_memory(self.skeleton, tables, *limits, mode, room, single)
            raise self._too_large(error.bytes, *need) from None

    def _too_large(
        self, least: float, estimate: float, step: int, states: float, tallies: float
    ) -> BudgetError:
        """Return the error, from what a plan needs at least and at most about, and its largest table."""
        beside, limit = self.options.beside, readable_bytes(self.limit)
        over = f"but the limit is {limit}"
        if not estimate:  # the program alone nearly fills it
            text = f"the plan needs at least {readable_bytes(least + beside)}, {over}"
        elif max(least, estimate) + beside <= self.limit:
            text = f"the plan joins too many pairs of tallies for any limit; this one is {limit}"
        else:
            text = f"the plan needs up to about {readable_bytes(max(least, estimate) + beside)}, {over}"
        if estimate:
            size = counted(states, "state", readable_count(states))
            most = counted(tallies, "tally", readable_count(tallies))
            tallied = f" x up to {most}" if self.statistics else ""
            scope = counted(len(self.skeleton.step(step)[1]), "variable")
            text += f"; its largest table is over {scope}: {size}{tallied}"
        return BudgetError(f"{text}. {advice(len(self.statistics))}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the statistics."""
        return tuple(s.name for s in self.statistics)

    # --- the paper's quantities and ours ----------------------------------------------------------------

    @property
    def width(self) -> int:
        """τ: the number of variables in the largest step, minus one."""
        return self.skeleton.width

    @property
    def degree(self) -> int:
        """ν: the largest number of messages at one variable, including the one sent."""
        return self.skeleton.degree

    @property
    def order(self) -> NDArray[np.int32]:
        """The variables in elimination order."""
        return self.skeleton.order

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The program, step by step."""
        return steps(self.skeleton)

    @cached_property
    def tables(self) -> NDArray[np.int64]:
        """One row per table: states, stretches, tallies, bytes, address, whether it is a checkpoint."""
        return self.layout.tables

    @property
    def tallies(self) -> int:
        """R: the largest number of tallies in one table."""
        return self.layout.most_tallies

    @property
    def operations(self) -> float:
        """The number of add-max operations of the upward pass."""
        return self.layout.operations

    @property
    def peak_bytes(self) -> int:
        """The peak memory: program and lists, tables, scratch memory, and the copy of the last table."""
        return self._least_bytes + (self.threads() - 1) * self.layout.scratch_bytes

    @property
    def every_table(self) -> bool:
        """Whether all tables fit, which max-marginals and labellings in order need."""
        return self.segments == 1 or self.layout.unrolled_bytes > 0

    @property
    def every_table_bytes(self) -> int:
        """The peak memory once all tables are needed, in addition to those of the first pass."""
        return self.peak_bytes + self._unrolled_bytes

    @property
    def table_bytes(self) -> int:
        """The memory of all tables, or of those that are kept if not all of them fit."""
        return self.layout.unrolled_bytes or self.layout.arena_bytes

    def without_room(self, what: str, copies: int = 1) -> BudgetError:
        """Return the error for something that needs copies of all tables, if this plan does not keep them."""
        needed = self.peak_bytes - self.layout.arena_bytes + copies * int(self.tables[:, 3].sum())
        return BudgetError(
            f"{what} need every table{' twice' if copies == 2 else ''}, {readable_bytes(needed)} in all, but "
            f"the limit is {readable_bytes(self.limit)}, so this plan keeps {self.kept}; raise memory_limit="
        )

    @property
    def _unrolled_bytes(self) -> int:
        """The memory of all tables if the first pass does not keep them, including separate lists."""
        return self.layout.unrolled_bytes and self.layout.unrolled_bytes + self.layout.plan_bytes

    @property
    def kept_bytes(self) -> int:
        """The memory of the plan itself: the program and its lists, and the tables of the statistics."""
        tables = sum([block.tables.nbytes for s in self.statistics for block in s.blocks])
        return self.skeleton.bytes + self.layout.plan_bytes + tables

    @property
    def _least_bytes(self) -> int:
        """The memory needed with one thread."""
        return self.layout.bytes + int(self.options.beside)

    def threads(self, wanted: int | None = None) -> int:
        """Return the number of threads of a run: each of them has its own scratch memory, which must fit."""
        threads = threads_for(self.operations, wanted)
        if threads == 1:
            return 1
        each, least = max(self.layout.scratch_bytes, 1), self._least_bytes + self._unrolled_bytes
        return max(1, min(threads, 1 + int(max(self.limit - least, 0) // each)))

    @property
    def price(self) -> Price:
        """Its cost, without the data needed for running."""
        if self._price is None:  # the lock of a cached_property would take half as long again
            s, layout = self.skeleton, self.layout
            size, peak = layout.most_tallies, self.peak_bytes
            self._price = Price(s.variables, s.width, s.degree, size, layout.operations, peak, self.precision)
        return self._price

    @cached_property
    def search(self) -> SearchPrice | None:
        """The expected cost of a single answer by bounds instead; None if that is not supported."""
        return search_price(self._shape.model(), self.statistics, self.window, self.options.order)

    @property
    def segments(self) -> int:
        """1: all tables are kept; more: segments recomputed from checkpoints while decoding."""
        return self.layout.segments

    @property
    def kept(self) -> str:
        """What decoding keeps."""
        return "all tables" if self.segments == 1 else f"checkpoints of {self.segments} segments"

    @property
    def mode(self) -> str:
        """``rows`` (tallies contiguous) or ``cells`` (states contiguous)."""
        return "rows" if self.layout.rows else "cells"

    @cached_property
    def pruned(self) -> int | None:
        """The number of tallies that a constraint rules out, over all tables; None if it is not known.

        Cells are listed one by one: this is given up if there are many times as many as the plan has.
        """
        if not self.window:
            return 0
        most = self.most_listed_bytes if self.mode == "cells" else self.limit
        try:
            whole = self._laid_out(MODES[self.mode], {}, most)
        except BudgetError:
            return None
        return int(whole.tables[:, 2].sum() - self.tables[:, 2].sum())

    @property
    def most_listed_bytes(self) -> float:
        """The memory that listing all tallies may take, to tell how many of them a constraint rules out."""
        return min(self.limit, _MANY_BYTES, max(_FEW_BYTES, _TIMES * self.peak_bytes))

    def check(self, model: Model, statistics: Sequence[Statistic], window: Window | None = None) -> None:
        """Raise an error for a model, statistics or a window that this plan was not made for."""
        check_window(self.window, window or {})
        if (self._shape.key, self.statistics) != (model.key, tuple(statistics)):
            raise ModelError(
                "this plan was made for a model of another shape or for other statistics "
                f"({', '.join(self.names) or 'none'}); make one with tallytree.plan(model, statistics)"
            )

    def need_double(self, what: str) -> None:
        """Raise an error for something that single precision does not support."""
        if self.precision == "single":
            raise ModelError(
                f"{what} need double precision, but this plan has precision='single', which only gives the "
                "best labelling (solve; best, top, at and row of a profile) with its gap; remove precision="
            )

    def again(self) -> Callable[[], Plan]:
        """Return a function that makes the same plan, without keeping its lists."""
        make, arguments = self.__reduce__()
        return partial(make, *arguments)

    def __reduce__(self) -> tuple[Callable[..., Plan], tuple[Any, ...]]:
        options = self.options._replace(memory_limit=self.limit)
        return _restored, (self._shape, self.statistics, options, self.window)

    def __str__(self) -> str:
        return printed(self)

    def _repr_html_(self) -> str:
        """Show the cost in a notebook."""
        return shown(self)

    def __repr__(self) -> str:
        return (
            f"Plan(width={self.width}, degree={self.degree}, tallies={self.tallies}, "
            f"operations={self.operations:.4g}, peak_bytes={self.peak_bytes})"
        )


def _restored(shape: Shape, statistics: Sequence[Statistic], options: PlanOptions, window: Window) -> Plan:
    return Plan(shape.model(), statistics, options, window)
