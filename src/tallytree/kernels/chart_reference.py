"""The operations on charts in plain NumPy, written to be read.

A chart has two messages for every symbol ``A`` over a span: ``open``, from binary rules or the lexicon,
and ``closed``, from chains of unary rules on top of it. With ``⊕`` and ``⊗`` the algebra's
``plus`` and ``times``, and ``+`` the capped sum of tallies:

- `word`: ``open[A, 0] = f``, the score of the tag ``A``, where the span is one word;
- `combine`: ``open[A, l] = ⊕ over splits, rules A → B C and i + j = l of left[B, i] ⊗ right[C, j] ⊗ f``;
- `unary`: ``closed[A, l] = ⊕ over chains A ← B and i + g = l of open[B, i] ⊗ f``.

Statistics are only counted by chains: ``g`` is what the labels of a chain add over the span.

A message is a :class:`~tallytree.kernels.reference.Table` of the empty scope, and the operations are those of
`reference.py`: `combine` is a join that absorbs a score, `unary` absorbs a score and a shift. The functions
below make a message in **one way**, by one rule over one split or by one chain; `either` combines all ways to
make the same item. Every operation has a transpose, which maps the outside of its
output to the outside of its input.
"""

from collections.abc import Sequence

import numpy as np

from tallytree.algebra.scores import Algebra
from tallytree.algebra.tallies import Integers, unique_rows
from tallytree.kernels.reference import Array, Factor, Table, absorb, join, pull_absorb, pull_join


def word(score: float, statistics: int, algebra: Algebra) -> Table:
    """Return the message of a word's tag: its score, at the tally 0 of all `statistics`.

    Examples
    --------
    >>> from tallytree.algebra import MaxPlus
    >>> word(-1.5, 2, MaxPlus())
    Table(scope=(), tallies=array([[0, 0]]), values=array([-1.5]))
    """
    return Table((), np.zeros((1, statistics), dtype=np.int64), algebra.lift([score]))


def combine(left: Table, right: Table, score: float, algebra: Algebra, caps: Integers) -> Table:
    """Apply a binary rule to two neighbours: ``c[l] = ⊕ over i + j = l of left[i] ⊗ right[j] ⊗ f``.

    Examples
    --------
    >>> from tallytree.algebra import MaxPlus
    >>> from tallytree.algebra.tallies import cap_array
    >>> noun = Table((), np.array([[0], [1]]), np.array([0.0, 2.0]))
    >>> combine(noun, noun, -1.0, MaxPlus(), cap_array([1])).values
    array([-1.,  3.])
    """
    joined = join(left, right, algebra, caps)
    return joined.with_values(algebra.times(joined.values, algebra.lift(score)))


def unary(source: Table, score: float, shift: Integers, algebra: Algebra, caps: Integers) -> Table:
    """Apply a chain of unary rules: ``c[l] = ⊕ over i + g = l of source[i] ⊗ f``.

    Examples
    --------
    >>> from tallytree.algebra import MaxPlus
    >>> from tallytree.algebra.tallies import cap_array
    >>> noun = word(-1.5, 1, MaxPlus())
    >>> unary(noun, -0.5, np.array([1]), MaxPlus(), cap_array([None]))
    Table(scope=(), tallies=array([[1]]), values=array([-2.]))
    """
    return absorb(source, [((), score)], _constants(shift), algebra, caps)


def either(messages: Sequence[Table], algebra: Algebra) -> Table:
    """Combine all ways to make an item: ``c[l] = ⊕ of what they hold at l``.

    Examples
    --------
    >>> from tallytree.algebra import Counting
    >>> one = Table((), np.array([[0], [1]]), np.array([3, 4], dtype=object))
    >>> other = Table((), np.array([[1], [5]]), np.array([10, 1], dtype=object))
    >>> both = either([one, other], Counting())
    >>> both.tallies.ravel().tolist(), both.values.tolist()
    ([0, 1, 5], [3, 14, 1])
    """
    tallies, index = unique_rows(np.concatenate([message.tallies for message in messages]))
    values = algebra.full((len(tallies),), algebra.zero)
    algebra.accumulate_at(values, index, np.concatenate([message.values for message in messages]))
    return Table((), tallies, values)


# ---------------------------------------------------------------- the operations, transposed


def pull_combine(
    left: Table, right: Table, score: float, outside: Table, algebra: Algebra, caps: Integers
) -> tuple[Table, Table]:
    """Transpose of ``combine(…)``: ``left'[i] = ⊕ over j of c'[i + j] ⊗ f ⊗ right[j]``."""
    weighted = outside.with_values(algebra.times(outside.values, algebra.lift(score)))
    return pull_join(left, right, weighted, algebra, caps)


def pull_unary(
    source: Table, score: float, shift: Integers, outside: Table, algebra: Algebra, caps: Integers
) -> tuple[Table]:
    """Transpose of ``unary(source, …)``: ``source'[i] = c'[i + g] ⊗ f``."""
    return (pull_absorb(source, [((), score)], _constants(shift), outside, algebra, caps),)


def pull_either(message: Table, outside: Table) -> Table:
    """Transpose of ``either([message, …])``: the same weight for each tally of `message`."""
    _, index = unique_rows(np.concatenate([outside.tallies, message.tallies]))
    place = np.empty(len(outside.tallies), dtype=np.int64)
    place[index[: len(outside.tallies)]] = np.arange(len(outside.tallies))
    values: Array = outside.values[place[index[len(outside.tallies) :]]]
    return message.with_values(values)


def _constants(shift: Integers) -> list[list[Factor]]:
    """Return a shift as constant factors of the statistics."""
    return [[((), entry)] for entry in shift]
