"""Elimination orders, and the skeletons that follow from them.

Every order gives a correct program; they differ in cost. Several candidates are generated natively and the
cheapest by the cost model is kept. The model counts tallies as well as states: a table that covers n scopes
of a statistic has n times its scale of them, and joining two tables costs the product of their tallies, so
the best order for the score alone is often not the best one here (a sweep beats a bushy tree).

A single question that is answered by bounds takes a few plain passes, not a table. Its program is the one
whose passes are cheapest, and the search for it ends after a fraction of the time that they take.

A skeleton only depends on scopes, cardinalities, caps and scales, so it is cached by them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.planning.recent import Recent
from tallytree.statistics.statistic import Statistic


@runtime_checkable
class Ordered(Protocol):
    """An object with its own elimination order, such as a clique tree."""

    def order(self) -> Sequence[int]:
        """Return the variables in elimination order."""


Order = str | ArrayLike | Ordered
"""A heuristic by name, the variables in order, or a clique tree."""

METHODS = {method.name.lower().replace("_", "-"): method for method in native.OrderMethod}
"""The names of heuristics for ``order=``."""

_Tries = tuple[tuple[str, int], ...]

_FIRST: _Tries = (("natural", 0), ("min-degree", 0), ("sweep", 0), ("min-tally", 0))
_QUICK: _Tries = (("min-weight", 0), ("min-tally", 1))
_OTHERS: _Tries = (("min-weight", 1), ("min-tally", 2))

# Generating one more program costs about as much as this many operations per variable and factor, so a
# program that is cheaper than that is run as it is. Min-fill costs more; if other orders are worse, it
# is repeated with random tie-breaking, as long as it costs less than a run.
_QUICK_TRY, _OTHER_TRY = 2_000.0, 20_000.0
_FIRST_FILL, _NEXT_FILL, _MOST_FILLS = 5_000.0, 2_000.0, 24

# From this many operations per variable and factor on, nobody computes the table of a forest: its program is
# for plain passes, which are alike in all orders.
_HOPELESS = 1e10

# The orders for plain passes. The passes of one question take about ten times as long as one more order if
# that is tried: on two segmentations, five orders saved a third of a pass, and twenty more a twentieth.
_PASSES: _Tries = (("sweep", 0), ("natural", 0), ("min-degree", 0))
_NEXT_FILL_FOR_PASSES = 20_000.0

_RECENT = Recent[native.Skeleton](most=512, most_bytes=64e6)

_MOST_IN_TABLE = 63  # the most variables of at least two states in one table
_SOME = 256  # variables and factors from which on programs are compared by drafts, and one is kept
_MANY = 50_000  # likewise for those from which on prices are those of drafts


Check = Callable[[int, int, int], None]
"""Raises an error for programs with too many variables, factors or steps, before they are generated."""


def skeleton(
    model: Model,
    statistics: Sequence[Statistic],
    order: Order | None = None,
    check: Check | None = None,
    *,
    draft: bool = False,
    passes: float = 0.0,
) -> native.Skeleton:
    """Return the cheapest program found for a model and statistics, from the cache if the shape is known.

    `model` and `statistics`: the problem; only scopes, cardinalities and caps are used.
    `order`: a heuristic by name, the variables in elimination order, or a clique
    tree.
    `check` is called before one is generated, and again when its number of steps is known.
    `draft`: only the cost of the program is needed, so that one of a large model may have no steps.
    `passes`: the number of plain passes that will be made, times the number of operations of a table that
    take as long as one of a pass; 0 if it is for a table.
    """
    return Programs(model, statistics, check).get(order, draft=draft, passes=passes)


def drafted(model: Model, statistics: Sequence[Statistic]) -> bool:
    """Return whether a draft of a program has no steps; those of small models always have them."""
    return _size(model, statistics) >= _MANY


class Programs:
    """The programs of a model and statistics, for several orders and purposes; arguments are as above."""

    def __init__(self, model: Model, statistics: Sequence[Statistic], check: Check | None = None) -> None:
        self.model, self.statistics, self.check = model, statistics, check
        counted = [(s.cap, s.scale, *[block.key for block in s.blocks]) for s in statistics]
        self.key: tuple[Hashable, ...] = (model.key, *counted)
        self.scores = [block.scopes for block in model.blocks]
        self.shifts = [block.scopes for s in statistics for block in s.blocks]

    def get(self, order: Order | None = None, *, draft: bool = False, passes: float = 0.0) -> native.Skeleton:
        """Return the cheapest program found, from the cache if the shape is known."""
        chosen = _checked_order(order, len(self.model))
        key = (*self.key, passes > 0, False, chosen)
        found = _RECENT.get(key)  # a full program also serves as a draft
        if found is None and (draft := draft and drafted(self.model, self.statistics)):
            key = (*self.key, passes > 0, True, chosen)
            found = _RECENT.get(key)
        if found is None:
            found = _Search(self, (*self.key, False, draft), passes).run(chosen, draft)
            _RECENT.keep(key, found, found.bytes)
        return found

    def worth_another(self, program: native.Skeleton) -> bool:
        """Whether a program takes long enough for another one to pay, if it is cheaper."""
        return program.cost > _QUICK_TRY * self.size

    @cached_property
    def shape(self) -> native.Shape:
        """The scopes, caps and scales in the form for the native planner."""
        statistic_of = [i for i, s in enumerate(self.statistics) for _ in s.blocks]
        caps = [native.UNCAPPED if s.cap is None else max(s.cap, 0) for s in self.statistics]
        return native.Shape(
            self.model.cardinalities,
            self.scores,
            self.shifts,
            np.array(statistic_of, dtype=np.int32),
            np.array(caps, dtype=np.int64),
            np.array([s.scale for s in self.statistics], dtype=np.int64),
        )

    @cached_property
    def size(self) -> int:
        """The number of variables and factors."""
        return _size(self.model, self.statistics)

    @property
    def is_forest(self) -> bool:
        """Whether the scopes connect variables without cycles."""
        known = _RECENT.get((*self.key, False, False, None))
        return (known is not None and known.width <= 1) or self.shape.is_forest


def _size(model: Model, statistics: Sequence[Statistic]) -> int:
    counted = [block for s in statistics for block in s.blocks]
    return len(model) + sum(map(len, model.blocks)) + sum(map(len, counted))


def _checked_order(order: Order | None, variables: int) -> str | tuple[int, ...] | None:
    if order is None:
        return None
    if isinstance(order, str):
        if order not in METHODS:
            raise ModelError(
                f"unknown elimination heuristic {order!r}; use one of {', '.join(METHODS)}, or give the "
                "variables in elimination order"
            )
        return order
    array = np.asarray(order.order() if isinstance(order, Ordered) else order)
    if array.shape != (variables,) or sorted(array.tolist()) != list(range(variables)):
        raise ModelError(
            f"an elimination order must list each of the {variables} variables once, got {order!r}; "
            "a clique tree can also be passed"
        )
    return tuple(array.tolist())


class _Search:
    """The search for a cheap program of one problem; `key`: of its programs for tables."""

    def __init__(self, programs: Programs, key: tuple[Hashable, ...], passes: float = 0.0) -> None:
        self.programs, self.key, self.passes = programs, key, passes
        self.cardinalities = programs.model.cardinalities
        self.scopes = [*programs.scores, *programs.shifts]
        self.seen: set[bytes] = set()
        self.size = programs.size
        self.outlines = not passes and self.size < _MANY  # drafts can be laid out

    def check_steps(self, steps: int) -> None:
        if self.programs.check is not None:
            factors = sum(len(scopes) for scopes in self.scopes if scopes.shape[1])
            self.programs.check(len(self.cardinalities), factors, steps)

    def least_steps(self) -> int:
        """Return a lower bound on the number of steps of a feasible program, for any order.

        Of the variables that are connected to one other variable by a single factor, few fit in a table with
        it. Each of the rest is eliminated earlier, which takes a unit, and sends a message that is joined.
        """
        variables = len(self.cardinalities)
        joined = [scopes for scopes in self.scopes if scopes.shape[1] > 1]
        uses = np.zeros(variables, dtype=np.int64)
        for scopes in joined:
            for column in scopes.T:
                uses += np.bincount(column, minlength=variables)
        hang = (uses == 1) & (self.cardinalities > 1)
        held = np.zeros(variables, dtype=np.int64)
        for scopes in joined:
            for one, other in ((0, 1), (1, 0)) if scopes.shape[1] == 2 else ():
                held += np.bincount(scopes[hang[scopes[:, one]], other], minlength=variables)
        before = held[held > _MOST_IN_TABLE] - _MOST_IN_TABLE
        return variables + 2 * int(before.sum()) - len(before)

    def run(self, order: str | tuple[int, ...] | None, draft: bool) -> native.Skeleton:
        self.check_steps(len(self.cardinalities))
        if self.size >= _MANY:
            self.check_steps(self.least_steps())
        if order is None:
            found = self.search() if draft else self.cheapest_program()
        else:
            given = self.order(order) if isinstance(order, str) else np.array(order, dtype=np.int32)
            found = self.program(given, draft)
        if self.size >= _MANY:
            native.give_memory_back()
        return found

    def cheapest_program(self) -> native.Skeleton:
        best = self.search()
        if not best.drafted and not self.passes:
            return best
        if self.outlines and best.feasible:
            return best.laid_out()
        if self.size >= _MANY:
            self.check_steps(best.step_count)
        order, steps = best.order, best.step_count
        del best
        if self.size >= _MANY:
            native.give_memory_back()
        known = _RECENT.get((*self.key, "natural"))  # a search by bounds may have generated it
        if not self.passes and known is not None and np.array_equal(known.order, order):
            return known
        return self.program(order, steps=steps)

    def price(self, program: native.Skeleton) -> float:
        """Return the operations of a table that take as long as what the program is for."""
        if not self.passes:
            return program.cost
        return min(program.cost, self.passes * program.pass_operations)

    def search(self) -> native.Skeleton:
        """Return the cheapest program, or draft, of several."""
        if self.passes:
            best = self.cheapest(_PASSES, _QUICK_TRY * self.size)
            return self.least_fill(_NEXT_FILL_FOR_PASSES, best)
        best = self.cheapest(_FIRST, 0.0)
        if best.width <= 1:  # a forest: only from the leaves inwards, or along it
            return best
        best = self.cheapest(_QUICK, _QUICK_TRY * self.size, best)
        best = self.least_fill(_NEXT_FILL, best)
        return self.cheapest(_OTHERS, _OTHER_TRY * self.size, best)

    def least_fill(self, another: float, best: native.Skeleton) -> native.Skeleton:
        """Return the cheapest of several min-fill orders, if the first is better than the best so far.

        `another`: the operations per variable and factor that each one after the first has to be worth.
        """
        for seed in range(_MOST_FILLS):
            if self.price(best) <= (_FIRST_FILL + seed * another) * self.size:
                break
            before = self.price(best)
            best = self.cheapest((("min-fill", seed),), 0.0, best)
            if (
                seed == 0 and self.price(best) == before
            ):  # as on grids, where no such order is close to a sweep
                break
        return best

    def cheapest(self, tries: _Tries, enough: float, best: native.Skeleton | None = None) -> native.Skeleton:
        """Return the cheapest program; stop once one is cheap enough."""
        for method, seed in tries:
            if best is not None and (self.price(best) <= enough or self.hopeless(best)):
                break
            # what a search by bounds takes may be among them
            known = _RECENT.get((*self.key, method)) if seed == 0 else None
            order = self.order(method, seed) if known is None else known.order
            if order.tobytes() in self.seen:  # several heuristics may give the same order
                continue
            self.seen.add(order.tobytes())
            candidate = known or self.program(order, draft=self.size >= _SOME)
            if best is None or self.rank(candidate) < self.rank(best):
                best = candidate
        assert best is not None
        return best

    def rank(self, program: native.Skeleton) -> tuple[float, int]:
        """Return what programs are compared by; those that fit in no memory by their width."""
        return self.price(program), program.width

    def hopeless(self, program: native.Skeleton) -> bool:
        return program.width <= 1 and program.cost > _HOPELESS * self.size

    def order(self, method: str, seed: int = 0) -> NDArray[np.int32]:
        return self.programs.shape.order(METHODS[method], seed)

    def program(self, order: NDArray[np.int32], draft: bool = False, steps: int = 0) -> native.Skeleton:
        made = native.Purpose.PASSES if self.passes else native.Purpose.TABLES
        drafted = native.Purpose.OUTLINE if self.outlines else native.Purpose.DRAFT
        return self.programs.shape.program(order, drafted if draft else made, steps)
