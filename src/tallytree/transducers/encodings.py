"""The product of a chain and a machine, as a model: the machine's state becomes part of the variables.

There are two exact encodings; :func:`transduced` uses the one whose messages cost less
(``docs/decisions/0018-transducers.md``).

* **Pairs**: a variable's states are the pairs (label, state of the machine after it) that occur; two
  neighbours are compatible if the second follows from the first. Almost free if the label nearly determines
  the state.
* **Split**: the machine's states are separate variables between the labels, linked by factors over (state,
  label, next state). Cheaper if there are many states per label.

Either way an accepted labelling has exactly one labelling of the new model, with the same score, and
the outputs are statistics over the scopes of the moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, InfeasibleError, ModelError
from tallytree.model.blocks import Block, grouped, stacked
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit
from tallytree.reductions.reading import read_through
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.statistic import Statistic
from tallytree.transducers.machine import Machine
from tallytree.transducers.trellis import Alphabet, Layer, Trellis
from tallytree.values import Repeated, counted, each

EncodingName = Literal["pairs", "split"]
Integers = NDArray[np.int64]
Table = tuple[tuple[int, ...], NDArray[Any]]


def transduced(
    reduction: Reduction,
    machine: Machine,
    *,
    encoding: EncodingName | None = None,
    memory_limit: float | None = None,
) -> Reduction:
    """Return a further reduction whose labellings are accepted by the machine, with its outputs.

    Raises ModelError if the original model is not a chain, InfeasibleError if the machine accepts no
    labelling of this length, and BudgetError if the tables exceed the memory limit.
    """
    original = reduction.original
    _check_chain(original)
    alphabets = alphabets_of(original)
    if alphabets:  # without variables there are no labels to check
        machine.check(frozenset(label for labels in set(alphabets) for label in labels))
    trellis = machine.trellis(alphabets)
    layers: Repeated[Layer] = Repeated.of(()) if trellis is None else _read(trellis, reduction)
    if trellis is None or not all((layer.moves >= 0).any() for layer in layers.distinct):
        raise InfeasibleError(
            f"no labelling of {counted(len(original), 'variable')} is accepted by {machine!r}"
        )
    chosen = _chosen(reduction, layers, trellis.final, encoding)
    limit = default_memory_limit() if memory_limit is None else memory_limit
    if 8 * chosen.entries > limit:
        raise BudgetError(
            f"the moves of {type(machine).__name__}, with up to {max(trellis.states)} states at a position, "
            f"need tables of {8 * chosen.entries / 2**20:,.0f} MiB, but the limit is {limit / 2**20:,.0f} "
            "MiB. Use a machine with fewer states, a shorter chain or fewer labels"
        )
    return chosen.reduction(machine.outputs, trellis.constants)


def _chosen(
    reduction: Reduction, layers: Repeated[Layer], final: int, name: EncodingName | None
) -> _Split | _Pairs:
    """Return the requested encoding, or the cheaper one; pairs need a chain."""
    encodings: dict[EncodingName, _Split | _Pairs] = {"split": _Split(reduction, layers)}
    if _is_chain(reduction.model) and np.array_equal(_sources(reduction), np.arange(len(reduction.model))):
        encodings["pairs"] = _Pairs(reduction, layers, final)
    if name is not None and name not in encodings:
        raise ModelError(f"encoding must be {' or '.join(map(repr, encodings))} here, got {name!r}")
    return min(encodings.values(), key=lambda one: one.cost) if name is None else encodings[name]


def alphabets_of(model: Model) -> tuple[Alphabet, ...]:
    """Return the labels of each variable: names if the model has them, numbers otherwise."""
    numbers = {n: tuple(range(n)) for n in set(model.cardinalities.tolist())}
    return tuple(model.states_of(v) or numbers[n] for v, n in enumerate(model.cardinalities.tolist()))


def _is_chain(model: Model) -> bool:
    return all(
        block.arity < 2 or (block.arity == 2 and (np.abs(np.diff(block.scopes, axis=1)) == 1).all())
        for block in model.blocks
    )


def _check_chain(model: Model) -> None:
    if not _is_chain(model):
        scopes = (tuple(scope) for block in model.blocks for scope in block.scopes.tolist())
        wrong = next(s for s in scopes if len(s) > 2 or (len(s) == 2 and abs(s[0] - s[1]) != 1))
        raise ModelError(
            f"a machine needs a chain: variables 0 to {len(model) - 1} in order, with factors of one "
            f"variable or of two neighbours; this model has a factor over {wrong}"
        )


def _sources(reduction: Reduction) -> NDArray[np.int32]:
    if reduction.sources is None:
        return np.arange(len(reduction.original), dtype=np.int32)
    return reduction.sources


def _emissions(reduction: Reduction) -> Sequence[Integers]:
    if reduction.emissions is None:
        numbers = {n: np.arange(n) for n in set(reduction.original.cardinalities.tolist())}
        return [numbers[n] for n in reduction.original.cardinalities.tolist()]
    return reduction.emissions


def _read(trellis: Trellis, reduction: Reduction) -> Repeated[Layer]:
    """Return the layers over the states from which the labels are read."""
    layers = Repeated.of(trellis.layers)
    if reduction.trivial:
        return layers

    def read(layer: Layer, emission: Integers) -> Layer:
        return Layer(layer.moves[:, emission], layer.outputs[:, emission])

    return each(read, layers, Repeated.of(_emissions(reduction)))


def _after(layers: Repeated[Layer], final: int) -> Repeated[int]:
    """Return the number of states after each position."""
    states = layers.values(lambda layer: len(layer.moves))
    distinct, numbers = np.unique(np.append(states[1:], final), return_inverse=True)
    return Repeated(distinct.tolist(), numbers.reshape(-1)[: len(layers)])


def _forbidding(allowed: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.where(allowed, 0.0, -np.inf)


def _given(outputs: Integers, allowed: NDArray[np.bool_] | None = None) -> Integers | None:
    """Return a table of outputs; None if all are zero. Forbidden moves do not widen its range."""
    if allowed is not None and not allowed.all():
        outputs = np.where(allowed, outputs, outputs[allowed].min())
    return outputs if outputs.any() else None


class _Split:
    """Variables for the states of the machine between the labels: after label i comes ``first + i``.

    No variable is needed for the state after the last label.
    """

    def __init__(self, reduction: Reduction, layers: Repeated[Layer]) -> None:
        self.old, self.layers = reduction, layers
        self.first = len(reduction.model)
        self.sources = _sources(reduction).tolist()

    @cached_property
    def _after(self) -> Repeated[int]:
        return _after(self.layers, 1)

    @cached_property
    def _sizes(self) -> tuple[Integers, Integers, Integers]:
        """The numbers of states, labels and next states at each position."""
        states = self.layers.values(lambda layer: layer.moves.shape[0])
        labels = self.layers.values(lambda layer: layer.moves.shape[1])
        return states, labels, self._after.values(int)

    @property
    def cost(self) -> int:
        """The approximate number of operations of plain MAP."""
        states, labels, after = self._sizes
        return int((states * labels * (np.append(1, labels)[: len(labels)] + after)).sum())

    @property
    def entries(self) -> int:
        """The number of entries of the tables."""
        outputs = self.layers[0].outputs.shape[2] if self.layers else 0
        states, labels, after = self._sizes
        return int((states * labels * (after + outputs)).sum())

    def reduction(self, names: Sequence[str], constants: Sequence[int]) -> Reduction:
        """Build it."""
        old = self.old
        sizes = np.concatenate([old.model.cardinalities, self._sizes[0][1:].astype(np.int32)])
        model = Model.from_blocks(sizes, [*old.model.blocks, *stacked(self._structure())])
        kept = [Statistic.from_blocks(s.blocks, s.name, s.cap, model.cardinalities) for s in old.statistics]
        new = _statistics(self, names, constants, model)
        return Reduction(old.original, model, [*kept, *new], _sources(old), _emissions(old), after=old)

    def _scope(self, position: int) -> tuple[int, ...]:
        """Return the state before a label, and the label."""
        label = self.sources[position]
        return (self.first + position - 1, label) if position else (label,)

    def _structure(self) -> Iterator[Table]:
        def tied(layer: Layer, after: int) -> NDArray[np.float64]:
            return _forbidding(layer.moves[..., np.newaxis] == np.arange(after))

        for i, table in enumerate(each(tied, self.layers[:-1], self._after[:-1])):
            yield (*self._scope(i), self.first + i), table if i else table[0]
        last = len(self.layers) - 1
        if self.layers and (self.layers[last].moves < 0).any():
            moves = self.layers[last].moves if last else self.layers[last].moves[0]
            yield self._scope(last), _forbidding(moves >= 0)

    def outputs(self, p: int) -> tuple[Block, ...]:
        """Return the non-zero outputs at each position."""
        given = each(lambda layer: _given(layer.outputs[..., p], layer.moves >= 0), self.layers)
        return stacked(
            (self._scope(i), table if i else table[0]) for i, table in enumerate(given) if table is not None
        )


class _Column(NamedTuple):
    """The pairs (state of the variable, state of the machine after it) at one position, and their outputs."""

    labels: Integers
    states: Integers
    given: Integers
    settled: NDArray[np.bool_]  # for each output, whether the pair alone determines it


class _Pairs:
    """Pairs of a label and the state after it, in place of the labels."""

    def __init__(self, reduction: Reduction, layers: Repeated[Layer], final: int) -> None:
        self.old, self.layers = reduction, layers
        self.columns = each(_column, layers, _after(layers, final))

    @property
    def cost(self) -> int:
        """The approximate number of operations of plain MAP."""
        return int((self._sizes[:-1] * self._sizes[1:]).sum())

    @cached_property
    def _sizes(self) -> Integers:
        return np.append(1, self.columns.values(lambda column: len(column.labels)))

    @property
    def entries(self) -> int:
        """The number of entries of the tables."""
        tables = self.columns.values(lambda column: 2 + int((~column.settled).sum()))
        return int((self._sizes[:-1] * self._sizes[1:] * tables).sum())

    def reduction(self, names: Sequence[str], constants: Sequence[int]) -> Reduction:
        """Build it."""
        old = self.old
        sizes = self._sizes[1:].astype(np.int32)
        places = np.arange(len(sizes), dtype=np.int32)
        inner = each(lambda column: column.labels, self.columns)
        blocks = read_through(old.model.blocks, places, inner)
        model = Model.from_blocks(sizes, [*blocks, *self._structure()])
        sizes = model.cardinalities
        kept = [
            Statistic.from_blocks(read_through(s.blocks, places, inner), s.name, s.cap, sizes)
            for s in old.statistics
        ]
        new = _statistics(self, names, constants, model)
        emissions = each(lambda emission, labels: emission[labels], Repeated.of(_emissions(old)), inner)
        return Reduction(old.original, model, [*kept, *new], places, emissions, after=old)

    @cached_property
    def _before(self) -> Repeated[Integers]:
        """The states of the pairs before each position."""
        states = [*(column.states for column in self.columns.distinct), np.zeros(1, dtype=np.int64)]
        start = len(states) - 1
        return Repeated(states, np.append(start, self.columns.numbers)[: len(self.columns)])

    @cached_property
    def _fits(self) -> Repeated[NDArray[np.bool_]]:
        """For each position, which pairs may follow which."""

        def fits(layer: Layer, before: Integers, column: _Column) -> NDArray[np.bool_]:
            return np.equal(layer.moves[before[:, np.newaxis], column.labels], column.states)

        return each(fits, self.layers, self._before, self.columns)

    @cached_property
    def _scopes(self) -> NDArray[np.int32]:
        """For each position, the one before it and itself."""
        own = np.arange(len(self.columns), dtype=np.int32)
        return np.stack([own - 1, own], axis=1)

    def _structure(self) -> tuple[Block, ...]:
        """Return the factors that forbid pairs to follow others."""
        return self._blocks(each(lambda fits: None if fits.all() else _forbidding(fits), self._fits), 1)

    def outputs(self, p: int) -> tuple[Block, ...]:
        """Return the non-zero outputs at each position."""

        def given(
            layer: Layer, before: Integers, column: _Column, fits: NDArray[np.bool_]
        ) -> Integers | None:
            if column.settled[p]:
                return _given(column.given[:, p])
            return _given(layer.outputs[before[:, np.newaxis], column.labels, p], fits)

        return self._blocks(each(given, self.layers, self._before, self.columns, self._fits))

    def _blocks(self, tables: Repeated[NDArray[Any] | None], first: int = 0) -> tuple[Block, ...]:
        """Return the factors with these tables, from a position on; None is none."""
        none = tables.values(lambda table: table is None).astype(bool)
        places = np.flatnonzero(~none[first:]) + first
        there: Repeated[Any] = Repeated(tables.distinct, tables.numbers[places])
        return grouped(self._scopes[places], there)


def _column(layer: Layer, after: int) -> _Column:
    states, labels = np.nonzero(layer.moves >= 0)
    keys = labels * after + layer.moves[states, labels]
    example = np.full(layer.moves.shape[1] * after, -1)  # for each pair a move that leads to it
    example[keys] = np.arange(len(keys))
    pairs = np.flatnonzero(example >= 0)
    outputs = layer.outputs[states, labels]
    settled = (outputs == outputs[example[keys]]).all(axis=0)
    return _Column(pairs // after, pairs % after, outputs[example[pairs]], settled)


def _statistics(
    encoding: _Split | _Pairs, names: Sequence[str], constants: Sequence[int], model: Model
) -> list[Statistic]:
    """Make one statistic for each output."""
    made = []
    for p, (name, constant) in enumerate(zip(names, constants, strict=True)):
        always = stacked([((), np.array(constant))] if constant else [])
        blocks = (*encoding.outputs(p), *always)
        made.append(Statistic.from_blocks(blocks, name, None, model.cardinalities))
    return made
