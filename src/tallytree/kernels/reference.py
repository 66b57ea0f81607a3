"""The operations of message passing in plain NumPy, written to be read.

A :class:`Table` over a scope of variables holds, for every state ``s`` of the scope and every tally ``l`` of
the part of the problem below it, one element of a score algebra (with max-plus: the best score of that part).
The operations, with ``⊕`` and ``⊗`` the algebra's ``plus`` and ``times``, ``+`` the capped sum of tallies:

- `unit`: the table over one variable that holds ``one``, at tally 0;
- `join`: ``c[s, l] = ⊕ over i + j = l of a[s, i] ⊗ b[s, j]``;
- `absorb`: ``c[s, l] = ⊕ over i + g(s) = l of a[s, i] ⊗ f(s)``;
- `project`: ``c[s, l] = ⊕ over v of a[(s, v), l]``;
- `eliminate`: absorb, then project.

Every operation is linear in each table it reads, so its transpose maps weights of its output to
weights of its input: `pull_join`, `pull_absorb`, `pull_project`. The weights of a table form a table of the
same form, the **outside** of the part below; ``inside ⊗ outside``, summed over all cells in which a variable
has a given state, is that variable's marginal.

No layout is assumed: the tallies of a table are explicit, sorted rows. Entries of capped statistics must be
non-negative (:func:`tallytree.algebra.tallies.move_minima_out`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from tallytree.algebra.scores import Algebra
from tallytree.algebra.tallies import Integers, capped_sum, unique_rows, unique_sums

Array = npt.NDArray[Any]
Scope = tuple[int, ...]
Factor = tuple[Sequence[int], npt.ArrayLike]
"""A scope, in any order, and a table with one axis per variable of it."""


@dataclass(frozen=True)
class Table:
    """A message: elements of an algebra for every state of a scope and every tally."""

    scope: Scope  # the variables, in increasing order
    tallies: Integers  # ``(S, P)`` int64, sorted lexicographically, without repetitions
    values: Array  # one axis per variable of the scope, and a last one of length ``S``

    @property
    def cardinalities(self) -> dict[int, int]:
        """The number of states of each variable of the scope."""
        return dict(zip(self.scope, self.values.shape, strict=False))

    def over(self, scope: Scope) -> Array:
        """Return the values with one axis per variable of `scope` (length 1 if new), tallies last."""
        return _spread(self.values, self.scope, scope)

    def with_values(self, values: Array) -> "Table":
        """Return a table with the same scope and tallies and other values."""
        return Table(self.scope, self.tallies, values)


# ---------------------------------------------------------------- broadcasting tables to a larger scope


def _union(*scopes: Sequence[int]) -> Scope:
    return tuple(sorted(set().union(*scopes)))


def _spread(array: Array, scope: Sequence[int], onto: Scope) -> Array:
    """Give `array` one axis per variable of `onto`, of length 1 outside `scope`; further axes stay last."""
    order = sorted(range(len(scope)), key=lambda axis: scope[axis])
    array = array.transpose([*order, *range(len(scope), array.ndim)])
    lengths = iter(array.shape)
    axes = [next(lengths) if variable in scope else 1 for variable in onto]
    return array.reshape([*axes, *lengths])


def _sum_factors(factors: Sequence[Factor], scope: Scope, dtype: npt.DTypeLike) -> Array:
    """Add up the factors, broadcast to `scope`."""
    spread = [_spread(np.asarray(table, dtype=dtype), variables, scope) for variables, table in factors]
    return reduce(np.add, spread, np.zeros((1,) * len(scope), dtype=dtype))


# ---------------------------------------------------------------- the operations, upward


def unit(variable: int, cardinality: int, statistics: int, algebra: Algebra) -> Table:
    """Return the table over `variable` that holds ``one``, at the tally 0 of all `statistics`.

    Examples
    --------
    >>> from tallytree.algebra import MaxPlus
    >>> unit(4, 3, 1, MaxPlus()).values.ravel()
    array([0., 0., 0.])
    """
    tallies = np.zeros((1, statistics), dtype=np.int64)
    return Table((variable,), tallies, algebra.full((cardinality, 1), algebra.one))


def join(a: Table, b: Table, algebra: Algebra, caps: Integers) -> Table:
    """Combine two disjoint parts of the problem: ``c[s, l] = ⊕ over i + j = l of a[s, i] ⊗ b[s, j]``.

    Examples
    --------
    >>> from tallytree.algebra import MaxPlus
    >>> from tallytree.algebra.tallies import cap_array
    >>> coin = Table((), np.array([[0], [1]]), np.array([0.0, 2.0]))
    >>> both = join(coin, coin, MaxPlus(), cap_array([None]))
    >>> both.tallies.ravel(), both.values
    (array([0, 1, 2]), array([0., 2., 4.]))
    """
    scope = _union(a.scope, b.scope)
    tallies, index = unique_sums(a.tallies, b.tallies, caps)
    pairs = algebra.times(a.over(scope)[..., :, None], b.over(scope)[..., None, :])
    values = algebra.full((*pairs.shape[:-2], len(tallies)), algebra.zero)
    algebra.accumulate_at(values, (..., index), pairs)
    return Table(scope, tallies, values)


def absorb(
    table: Table,
    factors: Sequence[Factor],
    shifts: Sequence[Sequence[Factor]],
    algebra: Algebra,
    caps: Integers,
) -> Table:
    """Add scores and shift tallies: ``c[s, l] = ⊕ over i + g(s) = l of a[s, i] ⊗ f(s)``.

    `table`: the table so far. `factors`: (scope, float table) pairs whose sum is ``f``. `shifts`: for
    each of the P statistics, the (scope, integer table) pairs whose sum is its ``g``. `algebra` and `caps`:
    the score algebra, and the caps of the P statistics.

    Examples
    --------
    >>> from tallytree.algebra import MaxPlus
    >>> from tallytree.algebra.tallies import cap_array
    >>> algebra, caps = MaxPlus(), cap_array([None])
    >>> coin = absorb(unit(0, 2, 1, algebra), [((0,), [0.0, 2.0])], [[((0,), [0, 1])]], algebra, caps)
    >>> coin.values
    array([[  0., -inf],
           [-inf,   2.]])
    """
    scope, scores, tallies, index = _absorption(table, factors, shifts, caps)
    terms = algebra.times(table.over(scope), algebra.lift(scores)[..., None])
    values = algebra.full((*index.shape[:-1], len(tallies)), algebra.zero)
    algebra.accumulate_at(values, _cells(index), np.broadcast_to(terms, index.shape))
    return Table(scope, tallies, values)


def project(table: Table, variable: int, algebra: Algebra) -> Table:
    """Sum out `variable`: ``c[s, l] = ⊕ over v of a[(s, v), l]``."""
    axis = table.scope.index(variable)
    scope = table.scope[:axis] + table.scope[axis + 1 :]
    return Table(scope, table.tallies, algebra.reduce(table.values, axis))


def eliminate(
    table: Table,
    variable: int,
    factors: Sequence[Factor],
    shifts: Sequence[Sequence[Factor]],
    algebra: Algebra,
    caps: Integers,
) -> Table:
    """Absorb, then project: ``c[s, l] = ⊕ over v and i + g(s, v) = l of a[(s, v), i] ⊗ f(s, v)``.

    Examples
    --------
    >>> from tallytree.algebra import MaxPlus
    >>> from tallytree.algebra.tallies import cap_array
    >>> algebra, caps = MaxPlus(), cap_array([None])
    >>> coin = eliminate(unit(0, 2, 1, algebra), 0, [((0,), [0.0, 2.0])], [[((0,), [0, 1])]], algebra, caps)
    >>> coin.scope, coin.tallies.ravel(), coin.values
    ((), array([0, 1]), array([0., 2.]))
    """
    return project(absorb(table, factors, shifts, algebra, caps), variable, algebra)


def _absorption(
    table: Table, factors: Sequence[Factor], shifts: Sequence[Sequence[Factor]], caps: Integers
) -> tuple[Scope, Array, Integers, Integers]:
    """Return the scope, ``f``, the tallies, and for each (state, old tally) the position of its new tally."""
    cardinalities = table.cardinalities
    for variables, entries in [*factors, *chain(*shifts)]:
        cardinalities.update(zip(variables, np.shape(entries), strict=True))
    scope = tuple(sorted(cardinalities))
    shift = np.zeros([cardinalities[v] for v in scope] + [1, len(shifts)], dtype=np.int64)
    for p, statistic in enumerate(shifts):
        shift[..., 0, p] = _sum_factors(statistic, scope, np.int64)
    moved = capped_sum(table.tallies, shift, caps)
    tallies, index = unique_rows(moved.reshape(math.prod(moved.shape[:-1]), len(shifts)))
    return scope, _sum_factors(factors, scope, np.float64), tallies, index.reshape(moved.shape[:-1])


def _cells(index: Integers) -> tuple[Array, ...]:
    """Return the index of the cells (state, ``index[state, i]``)."""
    states = np.indices(index.shape, sparse=True)[:-1]
    return (*states, index)


# ---------------------------------------------------------------- the operations, transposed


def pull_join(a: Table, b: Table, outside: Table, algebra: Algebra, caps: Integers) -> tuple[Table, Table]:
    """Transpose of ``join(a, b)``: ``a'[s, i] = ⊕ over j of c'[s, i + j] ⊗ b[s, j]``."""
    _, index = unique_sums(a.tallies, b.tallies, caps)
    weights = outside.values[..., index]
    for_a = algebra.reduce(algebra.times(weights, b.over(outside.scope)[..., None, :]), -1)
    for_b = algebra.reduce(algebra.times(weights, a.over(outside.scope)[..., :, None]), -2)
    return _restrict(for_a, outside.scope, a, algebra), _restrict(for_b, outside.scope, b, algebra)


def pull_absorb(
    table: Table,
    factors: Sequence[Factor],
    shifts: Sequence[Sequence[Factor]],
    outside: Table,
    algebra: Algebra,
    caps: Integers,
) -> Table:
    """Transpose of ``absorb(table, ...)``: ``a'[s, i] = c'[s, i + g(s)] ⊗ f(s)``."""
    scope, scores, _, index = _absorption(table, factors, shifts, caps)
    weights = algebra.times(outside.values[_cells(index)], algebra.lift(scores)[..., None])
    return _restrict(weights, scope, table, algebra)


def pull_project(table: Table, variable: int, outside: Table) -> Table:
    """Transpose of ``project(table, variable)``: ``a'[(s, v), l] = c'[s, l]``."""
    values = np.expand_dims(outside.values, table.scope.index(variable))
    return table.with_values(np.broadcast_to(values, table.values.shape))


def pull_eliminate(
    table: Table,
    variable: int,
    factors: Sequence[Factor],
    shifts: Sequence[Sequence[Factor]],
    outside: Table,
    algebra: Algebra,
    caps: Integers,
) -> Table:
    """Transpose of ``eliminate(table, ...)``."""
    absorbed = absorb(table, factors, shifts, algebra, caps)
    return pull_absorb(table, factors, shifts, pull_project(absorbed, variable, outside), algebra, caps)


def marginal(inside: Table, outside: Table, variable: int, algebra: Algebra) -> Array:
    """Return ``⊕ of inside ⊗ outside`` over the cells in which `variable` has a state, for each state."""
    cells = algebra.times(inside.values, outside.values)
    axis = inside.scope.index(variable)
    return algebra.reduce(cells, tuple(other for other in range(cells.ndim) if other != axis))


def _restrict(values: Array, scope: Scope, onto: Table, algebra: Algebra) -> Table:
    """Sum out the variables of `scope` that are not in the scope of `onto`."""
    axes = tuple(axis for axis, variable in enumerate(scope) if variable not in onto.scope)
    return onto.with_values(algebra.reduce(values, axes))
