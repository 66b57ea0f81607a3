"""Treewidth: lower bounds, exact values where there is time, and the best of many random orders.

Whether a width of k is possible is decided from below (H. Tamaki, *Positive-instance driven dynamic
programming for treewidth*, 2017). A connected set C with at most k neighbours N(C) is *feasible* if C and
N(C) together have a tree decomposition of width k with N(C) in one bag. The bag above some feasible sets with
union A is N(A), N(A) with the neighbours of one of its vertices, or a vertex with its neighbours; what it
closes is feasible again. If all vertices are never reached, the width is proven to be more than k. Sets are
the bits of an integer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

Graph = Mapping[int, set[int]]


def bounds(graph: Graph, upper: int, seconds: float) -> tuple[int, int]:
    """Return a proven lower bound on the treewidth, and an upper one; equal where there was time enough."""
    kernel, floor = reduced(graph)
    if not kernel:
        return floor, floor
    end = time.perf_counter() + seconds
    lower = max(floor, contraction(kernel))
    while lower < upper:
        possible = _Decision(kernel, lower).run(end)
        if possible is None:
            return lower, upper
        if possible:
            return lower, lower
        lower += 1
    return upper, upper


def contraction(graph: Graph) -> int:
    """Contract vertices of smallest degree, each into the neighbour it shares the fewest others with."""
    left, bound = {v: set(neighbours) for v, neighbours in graph.items()}, 0
    while len(left) > 1:
        v = min(left, key=lambda u: (len(left[u]), u))
        neighbours = left.pop(v)
        bound = max(bound, len(neighbours))
        for u in neighbours:
            left[u].discard(v)
        if neighbours:
            into = min(neighbours, key=lambda u: (len(left[u] & neighbours), u))
            for u in neighbours - {into}:
                left[u].add(into)
                left[into].add(u)
    return bound


def reduced(graph: Graph) -> tuple[dict[int, set[int]], int]:
    """Eliminate vertices that an optimal order may begin with; return what is left, and a lower bound.

    A vertex whose neighbours are all joined may go first, and one for which they are but for one of them, if
    its degree does not exceed a lower bound.
    """
    left = {v: set(neighbours) for v, neighbours in graph.items()}
    floor, changed = min(1, max(map(len, left.values()), default=0)), True
    while changed:
        changed = False
        for v in sorted(left, key=lambda u: len(left[u])):
            degree = len(left[v])
            if _joined(left, left[v]):
                floor = max(floor, degree)
            elif degree > floor or not any(_joined(left, left[v] - {u}) for u in left[v]):
                continue
            _eliminate(left, v)
            changed = True
    return left, floor


def _joined(graph: Graph, vertices: set[int]) -> bool:
    return all(len(graph[u] & vertices) == len(vertices) - 1 for u in vertices)


def _eliminate(graph: dict[int, set[int]], v: int) -> None:
    neighbours = graph.pop(v)
    for u in neighbours:
        graph[u] |= neighbours
        graph[u] -= {u, v}


# ---------------------------------------------------------------- is a width possible?


class _Decision:
    """Feasible sets for one width, grown until they are everything or nothing is new."""

    def __init__(self, graph: Graph, width: int) -> None:
        names = sorted(
            graph, key=lambda v: len(graph[v])
        )  # the last one, of largest degree, is in the root bag
        number = {v: i for i, v in enumerate(names)}
        self.near = [sum(1 << number[u] for u in graph[v]) for v in names]
        self.everything, self.root = (1 << len(names)) - 1, 1 << (len(names) - 1)
        self.width = width
        self.feasible: set[int] = set()
        self.unions: dict[
            int, int
        ] = {}  # unions of feasible sets apart from each other, and their neighbours
        self.new: list[int] = []

    def run(self, end: float) -> bool | None:
        """Return whether the width is possible; None if time is over."""
        for v, near in enumerate(self.near):
            if self._close(0, near | 1 << v):
                return True
        while self.new:
            if time.perf_counter() > end:
                return None
            block = self.new.pop()
            for union, around in self._joined_with(block, self._neighbours(block)):
                if any(self._close(union, bag) for bag in self._bags(union, around)):
                    return True
        return False

    def _joined_with(self, block: int, around: int) -> list[tuple[int, int]]:
        """Return the new unions that a block makes, alone and with those before it."""
        closed, most, found = block | around, self.width + 1, [(block, around)]
        for union, other in self.unions.items():
            if not union & closed and not block & other and (around | other).bit_count() <= most:
                found.append((union | block, around | other))
        found = [pair for pair in found if pair[0] not in self.unions]
        self.unions.update(found)
        return found

    def _bags(self, union: int, around: int) -> Iterator[int]:
        yield around
        for v in _bits(around):
            bag = around | (self.near[v] & ~union)
            if bag.bit_count() <= self.width + 1:
                yield bag

    def _close(self, union: int, bag: int) -> bool:
        """Add what a bag closes to the feasible sets; return whether that is everything."""
        if bag.bit_count() > self.width + 1:
            return False
        inside = union | bag
        closed = sum(1 << v for v in _bits(bag) if not self.near[v] & ~inside)
        whole = union | closed
        if whole == self.everything:
            return True
        if closed and not whole & self.root and whole not in self.feasible and self._connected(whole):
            self.feasible.add(whole)
            self.new.append(whole)
        return False

    def _neighbours(self, block: int) -> int:
        around = 0
        for v in _bits(block):
            around |= self.near[v]
        return around & ~block

    def _connected(self, block: int) -> bool:
        reached, front = 0, block & -block
        while front:
            reached |= front
            front = self._neighbours(reached) & block
        return reached == block


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def width_of(graph: Graph, order: Sequence[int]) -> int:
    """Return the width of an elimination order."""
    left, widest = {v: set(neighbours) for v, neighbours in graph.items()}, 0
    for v in order:
        widest = max(widest, len(left[v]))
        _eliminate(left, v)
    return widest
