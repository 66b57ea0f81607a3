"""Which variable goes first: the order of elimination, and the skeleton that follows from it.

Every order gives a correct program; they differ in cost. Several candidates are drawn up natively and the
cheapest by the cost model is kept. The model counts tallies as well as states: a table that covers n scopes
of a statistic has n times its scale of them, joining two tables costs the product of their tallies, and so
the best order for the score alone is often not the best one here (a sweep beats a bushy tree).

A skeleton depends on scopes, cardinalities, caps and scales alone, so it is cached by them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """Something that knows an elimination order of its own, as a clique tree does."""

    def order(self) -> Sequence[int]:
        """Return the variables in the order in which they are to be eliminated."""


Order = str | ArrayLike | Ordered
"""A heuristic by name, the variables in order, or a clique tree."""

METHODS = {method.name.lower().replace("_", "-"): method for method in native.OrderMethod}
"""The heuristics that ``order=`` takes by name."""

_Tries = tuple[tuple[str, int], ...]

_FIRST: _Tries = (("min-tally", 0), ("natural", 0), ("sweep", 0), ("min-degree", 0))
_QUICK: _Tries = (("min-weight", 0), ("min-tally", 1))
_OTHERS: _Tries = (("min-weight", 1), ("min-tally", 2))

# Drawing up one more program costs about as much as this many operations per variable and factor: one that is
# cheaper than that is run sooner than improved. Min-fill costs more, and where other orders are worse it is
# drawn up again and again with ties broken at random: each time it must cost less than a run does by now.
_QUICK_TRY, _OTHER_TRY = 2_000.0, 20_000.0
_FIRST_FILL, _NEXT_FILL, _MOST_FILLS = 5_000.0, 2_000.0, 24

_RECENT = Recent[native.Skeleton](most=512, most_bytes=64e6)

_MANY = 50_000  # variables and factors, from which on programs are compared by drafts, and one is kept


def skeleton(
    model: Model,
    statistics: Sequence[Statistic],
    order: Order | None = None,
    check: Callable[[int], None] | None = None,
) -> native.Skeleton:
    """Return the cheapest program found for a model and statistics, from the cache if the shape is known.

    `model` and `statistics`: what is to be solved; only scopes, cardinalities and caps are looked at.
    `order`: a heuristic by name, the variables in the order in which they are to be eliminated, or a clique
    tree.
    `check` is told how many steps the program of a large model will have, before it is drawn up.
    """
    chosen = _checked_order(order, len(model))
    shapes = [(s.cap, s.scale, *[block.key for block in s.blocks]) for s in statistics]
    key = (model.key, *shapes, chosen)
    found = _RECENT.get(key)
    if found is None:
        found = _Search(model, statistics, check).run(chosen)
        _RECENT.keep(key, found, found.bytes)
    return found


def _checked_order(order: Order | None, variables: int) -> str | tuple[int, ...] | None:
    if order is None:
        return None
    if isinstance(order, str):
        if order not in METHODS:
            raise ModelError(
                f"unknown elimination heuristic {order!r}; use one of {', '.join(METHODS)}, or give the "
                "variables in the order in which they are to be eliminated"
            )
        return order
    array = np.asarray(order.order() if isinstance(order, Ordered) else order)
    if array.shape != (variables,) or sorted(array.tolist()) != list(range(variables)):
        raise ModelError(
            f"an elimination order names each of the {variables} variables once, got {order!r}; "
            "a clique tree does too, and can be given itself"
        )
    return tuple(array.tolist())


class _Search:
    """The scopes of one problem, as the native planner takes them."""

    def __init__(
        self, model: Model, statistics: Sequence[Statistic], check: Callable[[int], None] | None = None
    ) -> None:
        self.check = check
        self.cardinalities = model.cardinalities
        self.scores = [block.scopes for block in model.blocks]
        self.shifts = [block.scopes for s in statistics for block in s.blocks]
        self.statistic_of = np.array([i for i, s in enumerate(statistics) for _ in s.blocks], dtype=np.int32)
        self.caps = np.array(
            [native.UNCAPPED if s.cap is None else max(s.cap, 0) for s in statistics], dtype=np.int64
        )
        self.scales = np.array([s.scale for s in statistics], dtype=np.int64)
        self.seen: set[bytes] = set()
        self.size = len(self.cardinalities) + sum(map(len, self.scores)) + sum(map(len, self.shifts))

    def run(self, order: str | tuple[int, ...] | None) -> native.Skeleton:
        if isinstance(order, tuple):
            return self.program(np.array(order, dtype=np.int32))
        if order is not None:
            return self.program(self.order(order))
        best = self.search()
        if self.size < _MANY:
            return best
        if self.check is not None:
            self.check(best.step_count)
        order_found = best.order
        del best
        native.give_memory_back()
        return self.program(order_found)

    def search(self) -> native.Skeleton:
        """Return the cheapest program, or draft, of several."""
        best = self.cheapest(_FIRST, 0.0)
        if best.width <= 1:  # a forest: from the leaves inwards, or along it, and that is all
            return best
        best = self.cheapest(_QUICK, _QUICK_TRY * self.size, best)
        best = self.least_fill(self.size, best)
        return self.cheapest(_OTHERS, _OTHER_TRY * self.size, best)

    def least_fill(self, size: int, best: native.Skeleton) -> native.Skeleton:
        """Return the cheapest of several orders by min-fill, if the first is better than what there is."""
        for seed in range(_MOST_FILLS):
            if best.cost <= (_FIRST_FILL + seed * _NEXT_FILL) * size:
                break
            found = self.cheapest((("min-fill", seed),), 0.0, best)
            if seed == 0 and found is best:  # as on grids, where no such order comes near to a sweep
                break
            best = found
        return best

    def cheapest(self, tries: _Tries, enough: float, best: native.Skeleton | None = None) -> native.Skeleton:
        """Return the cheapest program; no further one is drawn up once one is cheap enough."""
        for method, seed in tries:
            if best is not None and best.cost <= enough:
                break
            order = self.order(method, seed)
            if order.tobytes() in self.seen:  # a chain as numbered is also swept, and eaten from its end
                continue
            self.seen.add(order.tobytes())
            candidate = self.program(order, draft=self.size >= _MANY)
            if best is None or candidate.cost < best.cost:
                best = candidate
        assert best is not None
        return best

    def order(self, method: str, seed: int = 0) -> NDArray[np.int32]:
        scopes = [*self.scores, *self.shifts]
        return native.elimination_order(self.cardinalities, scopes, METHODS[method], seed)

    def program(self, order: NDArray[np.int32], draft: bool = False) -> native.Skeleton:
        numbers = self.statistic_of, self.caps, self.scales
        return native.Skeleton(self.cardinalities, self.scores, self.shifts, *numbers, order, draft)
