"""What a user would write by hand with NumPy for one problem: a loop over the variables, arrays for the rest.

The tables are those of the textbook: the best score for each state and each count, kept for every variable,
so that the labelling can be read off backwards. Counts range up to their maximum so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Objective = Callable[..., Array]
"""Values of scores and counts, elementwise; -inf where a constraint is violated."""


def objective(task: tuple[Any, ...]) -> Objective:
    """Return what a task of ``instances.py`` maximises."""
    kind, *rest = task
    if kind == "f1":
        positives = rest[2]
        return lambda score, tp, fp: score + 1.0 - 2.0 * tp / (positives + tp + fp)
    if kind == "slack":
        truth_score = rest[1]
        return lambda score, wrong: slack(score - truth_score, wrong)
    rows = rest[0] if kind == "lin" else []

    def constrained(score: Array, *counts: Array) -> Array:
        for (_, relation, bound), count in zip(rows, counts, strict=True):
            score = np.where(count == bound if relation == "==" else count >= bound, score, -np.inf)
        return score

    return constrained


def slack(difference: Array, loss: Array) -> Array:
    """Return ``loss·(1 + difference)``, and -inf where no labelling is."""
    return np.where(difference > -np.inf, loss * (1 + np.maximum(difference, -1e300)), -np.inf)


def statistics(task: tuple[Any, ...]) -> list[Array]:
    """Return the integer tables (variable, state) of a task."""
    kind, *rest = task
    if kind == "lin":
        return [g for g, _, _ in rest[0]]
    return rest[: {"f1": 2, "slack": 1, "map": 0}[kind]]


def solve(problem: Any) -> Array:
    """Solve a problem of ``instances.py``."""
    return {"chain": chain, "tree": tree, "grid": grid}[problem.meta["kind"]](problem)


def _best(value: Objective, table: Array) -> tuple[int, ...]:
    """Return state and counts where the objective is largest."""
    counts = np.indices(table.shape[1:])
    return tuple(map(int, np.unravel_index(np.argmax(value(table, *counts)), table.shape)))


def _moved(table: Array, shifts: Array, shape: tuple[int, ...]) -> Array:
    """Add to the counts of each state: states with equal shifts are moved together."""
    result = np.full((len(table), *shape), -np.inf)
    for shift in {tuple(row) for row in shifts.tolist()}:
        states = np.flatnonzero((shifts == shift).all(axis=1))
        place = tuple(slice(s, s + size) for s, size in zip(shift, table.shape[1:], strict=True))
        result[(states, *place)] = table[states]
    return result


# ---------------------------------------------------------------- chains


def chain(problem: Any) -> Array:
    pairs = [table for _, _, table in problem.edges]
    return best_chain(problem.unary, pairs, statistics(problem.task), objective(problem.task))


def best_chain(unary: Array, pairs: Sequence[Array], counted: Sequence[Array], value: Objective) -> Array:
    """Return the best labelling of a chain for a function of its score and of counts."""
    size, states = unary.shape
    shifts = np.stack(counted, axis=2) if counted else np.zeros((size, states, 0), np.int64)
    shapes = [tuple(row) for row in (shifts.max(axis=1).cumsum(axis=0) + 1).tolist()]
    start = np.zeros((states, *(1,) * shifts.shape[2]))
    tables = [_moved(start + _spread(unary[0], start), shifts[0], shapes[0])]
    for k in range(1, size):
        before = tables[-1]
        links = pairs[k - 1].reshape(states, states, *(1,) * (before.ndim - 1))
        best = (before[:, None] + links).max(axis=0) + _spread(unary[k], before)
        tables.append(_moved(best, shifts[k], shapes[k]))
    state, *counts = _best(value, tables[-1])
    y = np.empty(size, np.int64)
    for k in range(size - 1, -1, -1):
        y[k] = state
        counts = [int(c - s) for c, s in zip(counts, shifts[k, state], strict=True)]
        if k:
            state = int((tables[k - 1][(slice(None), *counts)] + pairs[k - 1][:, state]).argmax())
    return y


def _spread(column: Array, table: Array) -> Array:
    return column.reshape(-1, *(1,) * (table.ndim - 1))


# ---------------------------------------------------------------- trees, two counts


def tree(problem: Any) -> Array:
    """Two counts with bounds: no table needs counts beyond them."""
    parents, unary = problem.meta["parent"], problem.unary
    (first, _, most_first), (second, _, most_second) = problem.task[1]
    limits = (most_first + 1, most_second + 1)
    links = {child: table for _, child, table in problem.edges}
    children: list[list[int]] = [[] for _ in parents]
    for child in range(1, len(parents)):
        children[parents[child]].append(child)
    partial: dict[int, list[Array]] = {}  # each node's table, then with one child after the other
    messages: dict[int, Array] = {}
    for v in range(len(parents) - 1, -1, -1):  # children have larger numbers
        shifts = np.stack([first[v], second[v]], axis=1)
        shape = tuple(min(limit, int(top) + 1) for limit, top in zip(limits, shifts.max(axis=0), strict=True))
        partial[v] = [_moved(unary[v][:, None, None], shifts, shape)]
        for child in children[v]:
            partial[v].append(_joined(partial[v][-1], messages[child], limits))
        if v:
            whole = partial[v][-1]
            messages[v] = (whole[None] + links[v][:, :, None, None]).max(axis=1)
    y, counts = np.zeros(len(parents), np.int64), {0: (most_first, most_second)}
    y[0] = partial[0][-1][:, most_first, most_second].argmax()
    for v in range(len(parents)):
        rest = counts[v]
        for child, before in zip(reversed(children[v]), reversed(partial[v][:-1]), strict=True):
            rest, counts[child] = _parted(before[y[v]], messages[child][y[v]], rest)
            whole = partial[child][-1]
            y[child] = (whole[:, *counts[child]] + links[child][y[v]]).argmax()
    return y


def _joined(a: Array, b: Array, limits: tuple[int, int]) -> Array:
    """Convolve over both counts: a loop over the cells of the smaller table."""
    if a[0].size < b[0].size:
        a, b = b, a
    rows, columns = (
        min(limit, m + n - 1) for limit, m, n in zip(limits, a.shape[1:], b.shape[1:], strict=True)
    )
    result = np.full((len(a), rows, columns), -np.inf)
    for i, j in np.ndindex(b.shape[1:]):
        into = result[:, i : i + a.shape[1], j : j + a.shape[2]]
        np.maximum(into, a[:, : into.shape[1], : into.shape[2]] + b[:, i, j, None, None], out=into)
    return result


def _parted(a: Array, b: Array, counts: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return how the counts are shared between two tables."""
    p, q = counts
    low = max(0, p - a.shape[0] + 1), max(0, q - a.shape[1] + 1)
    part = b[low[0] : p + 1, low[1] : q + 1]
    rest = a[: p - low[0] + 1, : q - low[1] + 1][::-1, ::-1][: part.shape[0], : part.shape[1]]
    i, j = np.unravel_index(np.argmax(part + rest), part.shape)
    own = int(low[0] + i), int(low[1] + j)
    return (p - own[0], q - own[1]), own


# ---------------------------------------------------------------- grids, one count or none


def grid(problem: Any) -> Array:
    """Go through the grid column by column; a table has an axis for each row, and one for the count."""
    rows, states = problem.meta["rows"], problem.shape[1]
    above, left = {}, {}
    for i, j, table in problem.edges:
        (left if j - i == rows else above)[j] = table
    counted = statistics(problem.task)
    shifts = counted[0] if counted else np.zeros(problem.shape, np.int64)
    lengths = (shifts.max(axis=1).cumsum() + 1).tolist()
    tables = [np.zeros((1,) * rows + (1,))]
    for v, unary in enumerate(problem.unary):
        at = v % rows
        before = np.moveaxis(tables[-1], at, 0)  # (old state or 1, other rows …, count)
        links = left.get(v, np.zeros((len(before), states)))
        best = (before[:, None] + links.reshape(*links.shape, *(1,) * rows)).max(axis=0)
        best = best + unary.reshape(-1, *(1,) * rows)
        if at and v in above:
            index = [1] * best.ndim
            index[0], index[at] = states, states  # the row above is one axis after the own one
            best = best + above[v].T.reshape(index)
        moved = np.full((*best.shape[:-1], lengths[v]), -np.inf)
        for state, shift in enumerate(shifts[v].tolist()):
            moved[state, ..., shift : shift + best.shape[-1]] = best[state]
        tables.append(np.moveaxis(moved, 0, at))
    value, last = objective(problem.task), tables[-1]
    counts = (np.arange(last.shape[-1]),) if counted else ()
    place = list(map(int, np.unravel_index(np.argmax(value(last, *counts)), last.shape)))
    y = np.empty(len(problem.unary), np.int64)
    for v in range(len(y) - 1, -1, -1):
        at = v % rows
        y[v] = place[at]
        place[-1] -= int(shifts[v, y[v]])
        links = left.get(v)
        if links is None:
            place[at] = 0  # nothing to the left: the axis has one entry
        else:
            column = tables[v][tuple(slice(None) if i == at else place[i] for i in range(rows + 1))]
            place[at] = int((column + links[:, y[v]]).argmax())
    return y
