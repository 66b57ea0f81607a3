"""A whole chart with the operations of `chart_reference.py`: up, down, and walks from the root to the words.

A :class:`ChartProblem` lists the ways to make an item. `sweep_up` combines them, item by item;
`sweep_down` propagates weights of the root's tallies back to every item and every way;
`walk` follows one way at each item, the best or a random one, and so finds a derivation.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tallytree.algebra.scores import Algebra
from tallytree.algebra.tallies import Integers, capped_sum
from tallytree.kernels.chart_problem import SPLIT, UNARY, WORD, ChartProblem, Item, Way
from tallytree.kernels.chart_reference import (
    combine,
    either,
    pull_combine,
    pull_either,
    pull_unary,
    unary,
    word,
)
from tallytree.kernels.reference import Array, Table

Inside = dict[Item, Table]


def sweep_up(problem: ChartProblem, algebra: Algebra) -> Inside:
    """Return the messages of all items that can be made; that of ``problem.top`` is the profile.

    Examples
    --------
    Two words, both an ``N``, and the rule ``N → N N``; a chain over the whole span counts 1:

    >>> from tallytree.algebra import MaxPlus
    >>> from tallytree.algebra.tallies import cap_array
    >>> rules, chains = np.array([[0, 0, 0]]), np.array([[0, 0, 0, -1, 0]])
    >>> scores = np.zeros((2, 1)), np.array([[-1.0]]), np.zeros((1, 1))
    >>> shifts, live = np.ones((1, 3, 1), dtype=int), np.ones((2, 3, 1), dtype=bool)
    >>> noun = ChartProblem(0, rules, chains, *scores, shifts, cap_array([None]), live)
    >>> sweep_up(noun, MaxPlus())[noun.top]
    Table(scope=(), tallies=array([[1]]), values=array([-1.]))
    """
    inside: Inside = {}
    for item in problem.items():
        messages = [_message(problem, way, inside, algebra) for way in _possible(problem, item, inside)]
        if messages:
            inside[item] = either(messages, algebra)
    return inside


def sweep_down(
    problem: ChartProblem, inside: Inside, weights: Array, algebra: Algebra
) -> Iterator[tuple[Item, Way | None, Array]]:
    """Iterate over the marginals of all items and ways, given `weights` of the root's tallies.

    A marginal is ``⊕ of inside ⊗ outside`` over all tallies: with max-plus the best derivation that has the
    item, with log-sum-exp the sum over all that have it. The second value is the way, None for the whole
    item. Only parts of derivations are included.
    """
    outside = {problem.top: inside[problem.top].with_values(weights)} if problem.top in inside else {}
    for item in reversed(list(inside)):
        if item not in outside:
            continue
        around = outside[item]
        yield item, None, _total(inside[item], around, algebra)
        for way in _possible(problem, item, inside):
            message = _message(problem, way, inside, algebra)
            weighting = pull_either(message, around)
            yield item, way, _total(message, weighting, algebra)
            pulled = _pulled(problem, way, inside, weighting, algebra)
            for part, table in zip(way.parts, pulled, strict=True):
                if part in outside:
                    table = table.with_values(algebra.plus(outside[part].values, table.values))
                outside[part] = table


class Cell(NamedTuple):
    """A tally of an item."""

    item: Item
    tally: Integers


class Choice(NamedTuple):
    """One way to make a cell: the cells it is made of, and its value."""

    way: Way
    cells: tuple[Cell, ...]
    value: float


def walk(
    problem: ChartProblem,
    inside: Inside,
    tally: Integers,
    choose: Callable[[Array], int],
    algebra: Algebra,
) -> npt.NDArray[np.int32]:
    """Return the steps of a derivation, top down and left to right, one way chosen at each cell.

    A step has a kind (0: word, 1: chain, 2: rule), a number (of the symbol, the chain or the rule), the start
    and the width of its span, and for a rule the width of the left part.

    `problem`, `inside` and `algebra`: the chart, and what `sweep_up` returned. `tally`: the tally at the
    root. `choose`: takes the values of all ways to make a cell and returns the index of one. They are in
    this order: splits from the left, rules and chains by number, tallies of the left part, tallies of the
    right one.
    """
    steps: list[tuple[int, ...]] = []
    waiting = [Cell(problem.top, tally)]
    while waiting:
        cell = waiting.pop()
        choices = [
            choice
            for way in _possible(problem, cell.item, inside)
            for choice in _choices(problem, way, inside, cell.tally, algebra)
        ]
        is_word = choices[0].way.kind == WORD  # there is nothing to choose
        chosen = choices[0 if is_word else choose(np.array([choice.value for choice in choices]))]
        way, (_, start, width, _) = chosen.way, cell.item
        steps.append((way.kind, way.number, start, width, way.parts[0].width if way.kind == SPLIT else 0))
        waiting += reversed(chosen.cells)
    return np.array(steps, dtype=np.int32)


# ---------------------------------------------------------------- one way at a time


def _possible(problem: ChartProblem, item: Item, inside: Inside) -> Iterator[Way]:
    """Iterate over the ways whose parts exist."""
    return (way for way in problem.ways(item) if all(part in inside for part in way.parts))


def _message(problem: ChartProblem, way: Way, inside: Inside, algebra: Algebra) -> Table:
    if way.kind == WORD:
        return word(way.score, len(problem.caps), algebra)
    if way.kind == UNARY:
        (source,) = (inside[part] for part in way.parts)
        return unary(source, way.score, way.shift, algebra, problem.caps)
    left, right = (inside[part] for part in way.parts)
    return combine(left, right, way.score, algebra, problem.caps)


def _pulled(
    problem: ChartProblem, way: Way, inside: Inside, outside: Table, algebra: Algebra
) -> tuple[Table, ...]:
    """Propagate the outside of a way's result to its parts."""
    if way.kind == WORD:
        return ()
    if way.kind == UNARY:
        (source,) = (inside[part] for part in way.parts)
        return pull_unary(source, way.score, way.shift, outside, algebra, problem.caps)
    left, right = (inside[part] for part in way.parts)
    return pull_combine(left, right, way.score, outside, algebra, problem.caps)


def _choices(
    problem: ChartProblem, way: Way, inside: Inside, tally: Integers, algebra: Algebra
) -> Iterator[Choice]:
    """Iterate over the tallies of a way's parts that, with the way's own, add up to a tally."""
    tables = [inside[part] for part in way.parts]
    sums, values = way.shift, algebra.as_elements(algebra.one)
    for table in tables:
        sums = capped_sum(sums[..., None, :], table.tallies, problem.caps)
        values = algebra.times(values[..., None], table.values)
    values = algebra.times(values, algebra.lift(way.score))
    for place in np.argwhere(np.all(sums == tally, axis=-1)).tolist():
        parts = zip(way.parts, tables, place, strict=True)
        yield Choice(way, tuple(Cell(part, t.tallies[i]) for part, t, i in parts), values[tuple(place)])


def _total(inside: Table, outside: Table, algebra: Algebra) -> Array:
    return algebra.reduce(algebra.times(inside.values, outside.values), 0)
