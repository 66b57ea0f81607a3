"""A whole problem with the operations of `reference.py`: up in an elimination order, and down again.

`sweep_up` runs unit, join, absorb and project, and keeps the output and the transpose of every step;
`sweep_down` propagates weights of the last table through these, to the marginals of all variables.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from tallytree.algebra.scores import Algebra
from tallytree.algebra.tallies import Integers
from tallytree.kernels.reference import (
    Array,
    Factor,
    Table,
    absorb,
    join,
    marginal,
    project,
    pull_absorb,
    pull_join,
    pull_project,
    unit,
)


@dataclass(frozen=True)
class Problem:
    """Scores and statistics as (scope, table) pairs; `shifts` has one sequence of pairs for each statistic.

    The entries of capped statistics are non-negative; `caps` is ``(P,)``.
    """

    cardinalities: Sequence[int]
    factors: Sequence[Factor]
    shifts: Sequence[Sequence[Factor]]
    caps: Integers


@dataclass(frozen=True)
class Step:
    """One operation that was run: its output, the numbers of the steps it read, and its transpose.

    `pull` maps the outside of the output to the outside of each input. `eliminated` is the variable that the
    next step projects out of the output, if any.
    """

    output: Table
    inputs: tuple[int, ...] = ()
    pull: Callable[[Table], tuple[Table, ...]] = lambda outside: ()
    eliminated: int | None = None


def sweep_up(problem: Problem, order: Sequence[int], algebra: Algebra) -> list[Step]:
    """Eliminate the variables in the given order; the last step's output is the profile.

    Examples
    --------
    Two coins, where heads (1) scores 2, and the number of heads is counted:

    >>> from tallytree.algebra import MaxPlus
    >>> from tallytree.algebra.tallies import cap_array
    >>> scores, heads = [0.0, 2.0], [0, 1]
    >>> factors, shifts = [((0,), scores), ((1,), scores)], [[((0,), heads), ((1,), heads)]]
    >>> coins = Problem([2, 2], factors, shifts, cap_array([None]))
    >>> profile = sweep_up(coins, [0, 1], MaxPlus())[-1].output
    >>> profile.tallies.ravel(), profile.values
    (array([0, 1, 2]), array([0., 2., 4.]))
    """
    sweep = _Sweep(problem, algebra)
    factors, shifts = _owned(problem.factors, order), [_owned(pairs, order) for pairs in problem.shifts]
    messages = [sweep.empty()]
    for variable in order:
        readers = [message for message in messages if variable in sweep.steps[message].output.scope]
        messages = [message for message in messages if message not in readers]
        table = reduce(sweep.join, readers or [sweep.unit(variable)])
        table = sweep.absorb(table, factors[variable], [pairs[variable] for pairs in shifts], variable)
        messages.append(sweep.project(table, variable))
    root = reduce(sweep.join, messages)
    sweep.absorb(root, factors[None], [pairs[None] for pairs in shifts])
    return sweep.steps


def sweep_down(steps: Sequence[Step], weights: Array, algebra: Algebra) -> dict[int, Array]:
    """Return every variable's marginal, given `weights` of the tallies of the profile.

    `steps`: what `sweep_up` returned. `weights`: one element of the algebra for each tally of the profile:
    ``one`` for the selected tallies, ``zero`` for the others. `algebra`: the algebra of the upward
    sweep.

    Examples
    --------
    Of the two labellings of two coins with one head, one has it on the first coin:

    >>> from tallytree.algebra import Counting
    >>> from tallytree.algebra.tallies import cap_array
    >>> fair, heads = [0.0, 0.0], [0, 1]
    >>> coins = Problem([2, 2], [((0,), fair)], [[((0,), heads), ((1,), heads)]], cap_array([None]))
    >>> sweep_down(sweep_up(coins, [0, 1], Counting()), np.array([0, 1, 0], dtype=object), Counting())[0]
    array([1, 1], dtype=object)
    """
    outsides = {len(steps) - 1: steps[-1].output.with_values(weights)}
    marginals = {}
    for number in reversed(range(len(steps))):
        step, outside = steps[number], outsides[number]
        if step.eliminated is not None:
            marginals[step.eliminated] = marginal(step.output, outside, step.eliminated, algebra)
        outsides.update(zip(step.inputs, step.pull(outside), strict=True))
    return marginals


def _owned(factors: Sequence[Factor], order: Sequence[int]) -> dict[int | None, list[Factor]]:
    """Assign each factor to the first variable of its scope to be eliminated, constants to None."""
    owned: dict[int | None, list[Factor]] = {variable: [] for variable in (*order, None)}
    for scope, table in factors:
        owned[min(scope, key=list(order).index, default=None)].append((scope, table))
    return owned


class _Sweep:
    """The steps so far; each method runs one operation and returns the number of its step."""

    def __init__(self, problem: Problem, algebra: Algebra) -> None:
        self.problem = problem
        self.algebra = algebra
        self.steps: list[Step] = []

    def add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def empty(self) -> int:
        # The part of the problem without variables: ``one`` at tally 0.
        tallies = np.zeros((1, len(self.problem.shifts)), dtype=np.int64)
        return self.add(Step(Table((), tallies, self.algebra.full((1,), self.algebra.one))))

    def unit(self, variable: int) -> int:
        cardinality = self.problem.cardinalities[variable]
        return self.add(Step(unit(variable, cardinality, len(self.problem.shifts), self.algebra)))

    def join(self, left: int, right: int) -> int:
        a, b, algebra, caps = (
            self.steps[left].output,
            self.steps[right].output,
            self.algebra,
            self.problem.caps,
        )

        def pull(outside: Table) -> tuple[Table, ...]:
            return pull_join(a, b, outside, algebra, caps)

        return self.add(Step(join(a, b, algebra, caps), (left, right), pull))

    def absorb(
        self,
        number: int,
        factors: Sequence[Factor],
        shifts: Sequence[Sequence[Factor]],
        eliminated: int | None = None,
    ) -> int:
        table, algebra, caps = self.steps[number].output, self.algebra, self.problem.caps

        def pull(outside: Table) -> tuple[Table, ...]:
            return (pull_absorb(table, factors, shifts, outside, algebra, caps),)

        return self.add(Step(absorb(table, factors, shifts, algebra, caps), (number,), pull, eliminated))

    def project(self, number: int, variable: int) -> int:
        table = self.steps[number].output

        def pull(outside: Table) -> tuple[Table, ...]:
            return (pull_project(table, variable, outside),)

        return self.add(Step(project(table, variable, self.algebra), (number,), pull))
