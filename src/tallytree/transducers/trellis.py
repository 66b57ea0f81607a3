"""The moves of a machine by position, as arrays: only states that are reachable and lead to the end.

A layer holds ``moves[q, a]``, the state after label ``a`` in state ``q`` (-1: forbidden), and
``outputs[q, a, p]``. States are numbered from 0 in every layer; the first layer only has the start. The
outputs of stopping are added to the last moves, so that stopping has no output.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, ModelError
from tallytree.model.blocks import LARGEST_INTEGER
from tallytree.values import Repeated

if TYPE_CHECKING:
    from tallytree.transducers.machine import Machine, Move, State


Alphabet = tuple[Hashable, ...]
"""The labels at a position."""

MOST_MOVES = 1_000_000
"""The maximum number of moves of a machine, over all distinct positions: some seconds of Python."""


class Layer(NamedTuple):
    """The moves at one position."""

    moves: NDArray[np.int64]
    outputs: NDArray[np.int64]


class Trellis(NamedTuple):
    """The moves at all positions, the number of states at the end, and constant outputs."""

    layers: tuple[Layer, ...]
    final: int
    constants: tuple[int, ...]

    @property
    def states(self) -> list[int]:
        """The number of states before each position."""
        return [len(layer.moves) for layer in self.layers]


def unrolled(machine: Machine, alphabets: Sequence[Alphabet], *, merge: bool = True) -> Trellis | None:
    """Follow all moves of a machine from its start, and keep those that lead to acceptance.

    `machine` and `alphabets`: the machine, and the labels of each position. `merge`: as for :func:`trimmed`.
    Raises BudgetError if there are more than ``MOST_MOVES``.
    """
    known: dict[tuple[Hashable, Alphabet], _Rows] = {}
    states: tuple[State, ...] = (checked_state(machine, machine.start),)
    layers, total = [], 0
    for position, labels in enumerate(alphabets):
        at = machine.at(position)
        rows = known.setdefault((at, labels), _Rows(machine, at, labels))
        total += 0 if states in rows.layers else len(states) * len(labels)
        if total > MOST_MOVES:
            raise BudgetError(_too_many(machine, position, len(states), len(labels)))
        layer, states = rows.layer(states)
        layers.append(layer)
        if not states:
            return None
    ends = [machine.stop(state) for state in states]
    accepting = np.array([end is not None for end in ends], dtype=np.bool_)
    return trimmed(layers, 0, accepting, _integers(machine, ends), merge=merge)


class _Rows:
    """The moves of a machine at positions that are alike: each is computed once."""

    def __init__(self, machine: Machine, at: Hashable, labels: Alphabet) -> None:
        self.machine, self.at, self.labels = machine, at, labels
        self.rows: dict[State, tuple[list[Move | None], NDArray[np.int64]]] = {}
        self.layers: dict[tuple[State, ...], tuple[Layer, tuple[State, ...]]] = {}

    def layer(self, states: tuple[State, ...]) -> tuple[Layer, tuple[State, ...]]:
        """Return the moves of some states, and the states that they lead to in order of appearance."""
        if states not in self.layers:
            rows = [self._row(state) for state in states]
            numbers: dict[State, int] = {}
            after = [
                [-1 if move is None else numbers.setdefault(move[0], len(numbers)) for move in moves]
                for moves, _ in rows
            ]
            layer = Layer(np.array(after, dtype=np.int64), np.stack([outputs for _, outputs in rows]))
            self.layers[states] = layer, tuple(numbers)
        return self.layers[states]

    def _row(self, state: State) -> tuple[list[Move | None], NDArray[np.int64]]:
        if state not in self.rows:
            steps = (self.machine.step(state, label, self.at) for label in self.labels)
            moves = [checked_move(self.machine, move) for move in steps]
            outputs = _integers(self.machine, [None if move is None else move[1] for move in moves])
            self.rows[state] = moves, outputs
        return self.rows[state]


def _integers(machine: Machine, given: Sequence[tuple[int, ...] | None]) -> NDArray[np.int64]:
    """Return outputs, one row each, zeros for None; raise an error unless there is one integer per output."""
    names = machine.outputs
    nothing = (0,) * len(names)
    rows = [nothing if one is None else one for one in given]
    whole = [_is_row(row) and len(row) == len(names) and all(map(_is_integer, row)) for row in rows]
    if not all(whole):
        raise ModelError(
            f"{type(machine).__name__} returned {rows[whole.index(False)]!r}, but its outputs are "
            f"{names!r}: return one integer for each, below 2**40 in magnitude"
        )
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(names))


def checked_move(machine: Machine, move: object) -> Move | None:
    """Return the result of a machine's step; raise an error if it is malformed."""
    if move is None:
        return None
    if not isinstance(move, (tuple, list)) or len(move) != 2:
        raise ModelError(
            f"{type(machine).__name__}.step returned {move!r}; it must return the next state and a tuple "
            "with one integer for each output, as in (state, ()), or None to forbid the move"
        )
    return checked_state(machine, move[0]), move[1]


def checked_state(machine: Machine, state: Any) -> State:
    """Return a state of a machine; raise an error if it is not hashable."""
    try:
        hash(state)
    except TypeError:
        raise ModelError(
            f"{state!r} is a state of {type(machine).__name__}, but states must be hashable: use a tuple "
            "instead of a list, a frozenset instead of a set"
        ) from None
    known: State = state
    return known


def _is_row(value: object) -> TypeGuard[Sequence[int]]:
    return isinstance(value, (tuple, list))


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and abs(int(value)) < LARGEST_INTEGER


def _too_many(machine: Machine, position: int, states: int, labels: int) -> str:
    return (
        f"{type(machine).__name__} reaches {states:,} states at position {position}, with {labels} labels "
        f"each: more than {MOST_MOVES:,} moves in total. Use a machine with fewer states"
    )


def trimmed(
    layers: Sequence[Layer],
    start: int,
    accepting: NDArray[np.bool_],
    stops: NDArray[np.int64],
    *,
    merge: bool = False,
) -> Trellis | None:
    """Keep the states that are reachable from the start and lead to acceptance; None if there are none.

    `layers`: with states numbered arbitrarily; the moves of a layer lead to states of the next. `start`,
    `accepting` and `stops`: the first state; for each last state whether it accepts, and its ``(states,
    outputs)``. `merge`: whether to merge equivalent states.
    Then a state no longer determines the outputs on the way to it, which may be more useful.
    """
    if not layers:
        return Trellis((), 1, tuple(stops[start].tolist())) if accepting[start] else None
    same, every = _Equal(), Repeated.of(layers)
    onward = _Known(lambda layer, states: same.array(_after(layer, states)), every.distinct)
    reached = [np.array([start])]
    for number in every.numbers[:-1].tolist():
        reached.append(onward(number, reached[-1]))
    last = layers[-1]
    stopping = Layer(last.moves, last.outputs + stops[last.moves])
    ends = last.moves[reached[-1]]
    ends = np.unique(ends[(ends >= 0) & accepting[ends]])
    numbers = np.full(len(accepting), -1)  # the final numbers of the states of the next layer
    numbers[ends] = 0 if merge else np.arange(len(ends))
    final = int(numbers.max()) + 1
    renumbered = _Known(
        lambda layer, states, after: same.layer(*_renumbered(layer, states, after, merge)),
        [*every.distinct, stopping],
    )
    kept: list[Layer] = []
    for number in (len(every.distinct), *every.numbers[-2::-1].tolist()):
        trimmed_layer, numbers = renumbered(number, reached.pop(), numbers)
        kept.append(trimmed_layer)
    return Trellis(tuple(reversed(kept)), final, (0,) * stops.shape[1]) if len(kept[-1].moves) else None


class _Known:
    """Calls a function once for each layer and arrays, which are compared by identity."""

    def __init__(self, function: Callable[..., Any], layers: Sequence[Layer]) -> None:
        self._function, self._layers = function, layers
        self._known: dict[tuple[int, ...], tuple[Any, tuple[Any, ...]]] = {}

    def __call__(self, number: int, *arrays: NDArray[np.int64]) -> Any:
        key = (number, *map(id, arrays))
        known = self._known.get(key)
        if known is None:  # the arrays are kept, so that no other one has their number
            known = self._known[key] = self._function(self._layers[number], *arrays), arrays
        return known[0]


class _Equal:
    """Returns the same object for equal arrays, so that derived objects are computed once."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[Any, ...], NDArray[np.int64]] = {}
        self._layers: dict[tuple[int, int], Layer] = {}

    def array(self, array: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first equal array."""
        return self._arrays.setdefault((array.shape, array.tobytes()), array)

    def layer(self, layer: Layer, numbers: NDArray[np.int64]) -> tuple[Layer, NDArray[np.int64]]:
        """Return the first equal layer and numbers."""
        parts = Layer(self.array(layer.moves), self.array(layer.outputs))
        return self._layers.setdefault((id(parts.moves), id(parts.outputs)), parts), self.array(numbers)


def _after(layer: Layer, states: NDArray[np.int64]) -> NDArray[np.int64]:
    after = layer.moves[states]
    return np.unique(after[after >= 0])


def _renumbered(
    layer: Layer, states: NDArray[np.int64], after: NDArray[np.int64], merge: bool
) -> tuple[Layer, NDArray[np.int64]]:
    """Return a layer of the states that lead on, and the new numbers of all its states."""
    moves = layer.moves[states]
    moves = np.where(moves >= 0, after[moves], -1)
    alive = (moves >= 0).any(axis=1)
    moves, states = moves[alive], states[alive]
    outputs = np.where(moves[:, :, np.newaxis] >= 0, layer.outputs[states], 0)
    numbers = np.full(len(layer.moves), -1)
    if merge and len(states) > 1:
        futures = np.concatenate([moves, outputs.reshape(len(states), -1)], axis=1)
        _, first, kind = np.unique(futures, axis=0, return_index=True, return_inverse=True)
        numbers[states] = kind.reshape(-1)
        return Layer(moves[first], outputs[first]), numbers
    numbers[states] = np.arange(len(states))
    return Layer(moves, outputs), numbers
