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
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, InfeasibleError, ModelError
from tallytree.model.blocks import Block, stacked
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.statistic import Statistic
from tallytree.transducers.machine import Machine
from tallytree.transducers.product import ChainProduct, always, forbidding, most_entries, nonzero
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
    check_chain(original)
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
    check_entries(chosen.entries, type(machine).__name__, max(trellis.states, default=0), memory_limit)
    return chosen.reduction(machine.outputs, trellis.constants)


def check_entries(entries: int, machine: str, states: int, memory_limit: float | None = None) -> None:
    """Raise an error if the tables of a machine exceed the memory limit."""
    limit = default_memory_limit() if memory_limit is None else memory_limit
    if 8 * entries > limit:
        raise BudgetError(
            f"the moves of {machine}, with up to {states} states at a position, need tables of "
            f"{8 * entries / 2**20:,.0f} MiB, but the limit is {limit / 2**20:,.0f} MiB. Use a machine with "
            "fewer states, a shorter chain or fewer labels"
        )


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


def check_chain(model: Model) -> None:
    """Raise an error if a model is not a chain."""
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


def _emissions(reduction: Reduction) -> Repeated[Integers]:
    if reduction.emissions is None:
        sizes, numbers = np.unique(reduction.original.cardinalities, return_inverse=True)
        return Repeated([np.arange(n) for n in sizes.tolist()], numbers.reshape(-1))
    return reduction.emissions


def _read(trellis: Trellis, reduction: Reduction) -> Repeated[Layer]:
    """Return the layers over the states from which the labels are read."""
    layers = Repeated.of(trellis.layers)
    if reduction.trivial:
        return layers

    def read(layer: Layer, emission: Integers) -> Layer:
        return Layer(layer.moves[:, emission], layer.outputs[:, emission])

    return each(read, layers, _emissions(reduction))


def _after(layers: Repeated[Layer], final: int) -> Repeated[int]:
    """Return the number of states after each position."""
    states = layers.values(lambda layer: len(layer.moves))
    distinct, numbers = np.unique(np.append(states[1:], final), return_inverse=True)
    return Repeated(distinct.tolist(), numbers.reshape(-1)[: len(layers)])


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
        new = [
            Statistic.from_blocks((*self._outputs(p), *always(constant)), name, None, model.cardinalities)
            for p, (name, constant) in enumerate(zip(names, constants, strict=True))
        ]
        return Reduction(old.original, model, [*kept, *new], _sources(old), _emissions(old), after=old)

    def _scope(self, position: int) -> tuple[int, ...]:
        """Return the state before a label, and the label."""
        label = self.sources[position]
        return (self.first + position - 1, label) if position else (label,)

    def _structure(self) -> Iterator[Table]:
        def tied(layer: Layer, after: int) -> NDArray[np.float64]:
            return forbidding(layer.moves[..., np.newaxis] == np.arange(after))

        for i, table in enumerate(each(tied, self.layers[:-1], self._after[:-1])):
            yield (*self._scope(i), self.first + i), table if i else table[0]
        last = len(self.layers) - 1
        if self.layers and (self.layers[last].moves < 0).any():
            moves = self.layers[last].moves if last else self.layers[last].moves[0]
            yield self._scope(last), forbidding(moves >= 0)

    def _outputs(self, p: int) -> tuple[Block, ...]:
        """Return the non-zero outputs at each position."""
        given = each(lambda layer: nonzero(layer.outputs[..., p], layer.moves >= 0), self.layers)
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
        sizes = np.append(1, self.columns.values(lambda column: len(column.labels)))
        return int((sizes[:-1] * sizes[1:]).sum())

    @property
    def entries(self) -> int:
        """The number of entries of the tables."""

        def size(before: _Column, column: _Column) -> tuple[int, int]:
            pairs = len(before.labels) * len(column.labels)
            return pairs, pairs * int((~column.settled).sum())

        return most_entries(each(size, self.columns[:-1], self.columns[1:]), self.old.model.blocks)

    def reduction(self, names: Sequence[str], constants: Sequence[int]) -> Reduction:
        """Build it."""
        return self._product(len(names)).reduction(self.old, names, constants)

    def _product(self, outputs: int) -> ChainProduct:
        labels = each(lambda column: column.labels, self.columns)
        links = self.layers[1:], self.columns[:-1], self.columns[1:]
        fits = each(_fits, *links)
        given = [each(partial(_given, p), self.columns) for p in range(outputs)]
        moved = [each(partial(_moved, p), *links, fits) for p in range(outputs)]
        return ChainProduct(labels, fits, given, moved)


def _column(layer: Layer, after: int) -> _Column:
    states, labels = np.nonzero(layer.moves >= 0)
    keys = labels * after + layer.moves[states, labels]
    example = np.full(layer.moves.shape[1] * after, -1)  # for each pair a move that leads to it
    example[keys] = np.arange(len(keys))
    pairs = np.flatnonzero(example >= 0)
    outputs = layer.outputs[states, labels]
    settled = (outputs == outputs[example[keys]]).all(axis=0)
    return _Column(pairs // after, pairs % after, outputs[example[pairs]], settled)


def _fits(layer: Layer, before: _Column, column: _Column) -> NDArray[np.bool_]:
    """Return which pairs may follow which."""
    return np.equal(layer.moves[before.states[:, np.newaxis], column.labels], column.states)


def _given(p: int, column: _Column) -> Integers | None:
    """Return an output if the pair alone determines it."""
    return nonzero(column.given[:, p]) if column.settled[p] else None


def _moved(
    p: int, layer: Layer, before: _Column, column: _Column, fits: NDArray[np.bool_]
) -> Integers | None:
    """Return an output if it takes two neighbours to determine it."""
    if column.settled[p]:
        return None
    return nonzero(layer.outputs[before.states[:, np.newaxis], column.labels, p], fits)
