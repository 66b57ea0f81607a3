"""Machines that read a labelling from left to right, move between states and output integers.

A machine is **deterministic**: a state, a label and a position determine the move. It may omit moves,
which forbids them, and decides at the end whether it accepts, with a last output. So every labelling has at
most one run, and its outputs, summed over the run, are integers ``G(y)`` of the labelling. Machines can be
combined: ``a & b`` runs both, accepts what both accept and has the outputs of both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import final

from tallytree.errors import ModelError
from tallytree.transducers.trellis import Alphabet, Trellis, checked_move, unrolled

State = Hashable
Move = tuple[State, tuple[int, ...]]
"""The next state, and one integer for each output."""


class Machine(ABC):
    """A deterministic machine over label sequences, with integer outputs.

    Your own machine needs :attr:`start`, :meth:`step` and :meth:`stop`, and :attr:`outputs` if it outputs
    anything; and :meth:`at` if its moves depend on the position. Labels are the names of the states of a
    model, or their numbers if it has no names. A machine is a value: it must not change once it is used.

    Examples
    --------
    How often does the label change? A machine that remembers the last label:

    >>> import numpy as np
    >>> import tallytree as tt
    >>> class Changes(tt.Machine):
    ...     outputs = ("changes",)
    ...     start = None
    ...
    ...     def step(self, state, label, at):
    ...         return label, (int(state not in (None, label)),)
    ...
    ...     def stop(self, state):
    ...         return (0,)
    >>> Changes().run(["O", "B", "B", "O"])
    (2,)
    >>> model = tt.Model.chain([[0, 1], [2, 0], [0, 3]], np.zeros((2, 2)), states=["O", "B"])
    >>> reduction = tt.transduce(model, Changes())
    >>> tt.profile(reduction, reduction.statistics).at(changes=1).labels
    array(['O', 'O', 'B'], dtype=object)
    """

    outputs: tuple[str, ...] = ()
    """The names of the outputs."""

    @property
    @abstractmethod
    def start(self) -> State:
        """The state before the first label."""

    @abstractmethod
    def step(self, state: State, label: Hashable, at: Hashable) -> Move | None:
        """Return the next state and the outputs of a move; None forbids it."""

    @abstractmethod
    def stop(self, state: State) -> tuple[int, ...] | None:
        """Return the outputs of stopping in a state; None if it does not accept there."""

    def at(self, position: int) -> Hashable:
        """Return what the moves depend on at a position; by default nothing."""
        return None

    def run(self, labels: Iterable[Hashable]) -> tuple[int, ...] | None:
        """Return the sums of the outputs over the run of a labelling; None if it is not accepted."""
        state, totals = self.start, (0,) * len(self.outputs)
        for position, label in enumerate(labels):
            move = checked_move(self, self.step(state, label, self.at(position)))
            if move is None:
                return None
            state, totals = move[0], _added(totals, move[1])
        last = self.stop(state)
        return None if last is None else _added(totals, last)

    def trellis(self, alphabets: tuple[Alphabet, ...]) -> Trellis | None:
        """Return its moves position by position; None if it accepts no labelling of this length."""
        return unrolled(self, alphabets)

    def check(self, labels: frozenset[Hashable]) -> None:  # noqa: B027
        """Raise an error for a model without some label; by default any model is accepted."""

    def __and__(self, other: object) -> Product:
        if not isinstance(other, Machine):
            return NotImplemented
        return Product(self, other)


def _added(totals: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(totals, more, strict=True))


@final
@dataclass(frozen=True)
class Product(Machine):
    """The product of two machines: both must accept, and their outputs are concatenated."""

    left: Machine
    right: Machine

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The outputs of the one, then of the other."""
        return (*self.left.outputs, *self.right.outputs)

    @property
    def start(self) -> State:
        """Both starts."""
        return self.left.start, self.right.start

    def step(self, state: State, label: Hashable, at: Hashable) -> Move | None:
        """Move in both, or in neither."""
        (a, b), (here, there) = _two(state), _two(at)
        left = self.left.step(a, label, here)
        right = None if left is None else self.right.step(b, label, there)
        return None if left is None or right is None else ((left[0], right[0]), (*left[1], *right[1]))

    def stop(self, state: State) -> tuple[int, ...] | None:
        """Accept where both do."""
        a, b = _two(state)
        left, right = self.left.stop(a), self.right.stop(b)
        return None if left is None or right is None else (*left, *right)

    def at(self, position: int) -> Hashable:
        """Return what each depends on at a position."""
        return self.left.at(position), self.right.at(position)

    def check(self, labels: frozenset[Hashable]) -> None:
        """Raise the errors of either."""
        self.left.check(labels)
        self.right.check(labels)


def _two(pair: Hashable) -> tuple[Hashable, Hashable]:
    assert isinstance(pair, tuple)
    return pair[0], pair[1]


@final
@dataclass(frozen=True)
class Complement(Machine):
    """Accepts what a machine without outputs rejects."""

    machine: Machine

    def __post_init__(self) -> None:
        if self.machine.outputs:
            raise ModelError(
                f"the machine has the outputs {', '.join(self.machine.outputs)}, which are undefined for "
                "rejected labellings: only machines without outputs have a complement"
            )

    @property
    def start(self) -> State:
        """The start, not forbidden yet."""
        return (self.machine.start,)

    def step(self, state: State, label: Hashable, at: Hashable) -> Move | None:
        """Move, or stay in the empty state after a forbidden move."""
        assert isinstance(state, tuple)
        move = self.machine.step(state[0], label, at) if state else None
        return ((move[0],) if move is not None else (), ())

    def stop(self, state: State) -> tuple[int, ...] | None:
        """Accept where the machine does not."""
        assert isinstance(state, tuple)
        return () if not state or self.machine.stop(state[0]) is None else None

    def at(self, position: int) -> Hashable:
        """Return what the machine depends on at a position."""
        return self.machine.at(position)

    def check(self, labels: frozenset[Hashable]) -> None:
        """Raise the errors of the machine."""
        self.machine.check(labels)
