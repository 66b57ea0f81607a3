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
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, InfeasibleError, ModelError
from tallytree.model.blocks import stacked
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit
from tallytree.reductions.reading import read_through
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.statistic import Statistic
from tallytree.transducers.machine import Machine
from tallytree.transducers.trellis import Alphabet, Layer, Trellis
from tallytree.values import Once, counted

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
    layers = [] if trellis is None else _read(trellis, reduction)
    if trellis is None or not all((layer.moves >= 0).any() for layer in layers):
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
    reduction: Reduction, layers: Sequence[Layer], final: int, name: EncodingName | None
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


def _read(trellis: Trellis, reduction: Reduction) -> list[Layer]:
    """Return the layers over the states from which the labels are read."""
    if reduction.trivial:
        return list(trellis.layers)
    read = Once(lambda layer, emission: Layer(layer.moves[:, emission], layer.outputs[:, emission]))
    return [read(*both) for both in zip(trellis.layers, _emissions(reduction), strict=True)]


def _after(layers: Sequence[Layer], final: int) -> list[int]:
    """Return the number of states after each position."""
    return [*(len(layer.moves) for layer in layers[1:]), final] if layers else []


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

    def __init__(self, reduction: Reduction, layers: Sequence[Layer]) -> None:
        self.old, self.layers = reduction, layers
        self.first = len(reduction.model)
        self.sources = _sources(reduction).tolist()

    @property
    def _sizes(self) -> list[tuple[int, int, int]]:
        """(states, labels, next states) at each position."""
        return [(*layer.moves.shape, n) for layer, n in zip(self.layers, _after(self.layers, 1), strict=True)]

    @property
    def cost(self) -> int:
        """The approximate number of operations of plain MAP."""
        sizes = self._sizes
        labels_before = [1, *(labels for _, labels, _ in sizes)]
        return sum(
            states * labels * (before + after)
            for (states, labels, after), before in zip(sizes, labels_before, strict=False)
        )

    @property
    def entries(self) -> int:
        """The number of entries of the tables."""
        outputs = self.layers[0].outputs.shape[2] if self.layers else 0
        return sum(states * labels * (after + outputs) for states, labels, after in self._sizes)

    def reduction(self, names: Sequence[str], constants: Sequence[int]) -> Reduction:
        """Build it."""
        old = self.old
        added = [len(layer.moves) for layer in self.layers[1:]]
        sizes = np.concatenate([old.model.cardinalities, np.array(added, dtype=np.int32)])
        model = Model.from_blocks(sizes, [*old.model.blocks, *stacked(self._structure())])
        kept = [Statistic.from_blocks(s.blocks, s.name, s.cap, model.cardinalities) for s in old.statistics]
        new = _statistics(self, names, constants, model)
        return Reduction(old.original, model, [*kept, *new], _sources(old), _emissions(old), after=old)

    def _scope(self, position: int) -> tuple[int, ...]:
        """Return the state before a label, and the label."""
        label = self.sources[position]
        return (self.first + position - 1, label) if position else (label,)

    def _structure(self) -> Iterator[Table]:
        tied = Once(lambda moves, after: _forbidding(moves[..., np.newaxis] == np.arange(after)))
        for i, (layer, (_, _, after)) in enumerate(zip(self.layers, self._sizes, strict=True)):
            moves = layer.moves if i else layer.moves[0]
            if i + 1 < len(self.layers):
                yield (*self._scope(i), self.first + i), tied(moves, after)
            elif (moves < 0).any():
                yield self._scope(i), _forbidding(moves >= 0)

    def outputs(self, p: int) -> Iterator[Table]:
        """Yield the non-zero outputs at each position."""
        given = Once(lambda layer: _given(layer.outputs[..., p], layer.moves >= 0))
        for i, layer in enumerate(self.layers):
            table = given(layer)
            if table is not None:
                yield self._scope(i), table if i else table[0]


class _Column(NamedTuple):
    """The pairs (state of the variable, state of the machine after it) at one position, and their outputs."""

    labels: Integers
    states: Integers
    given: Integers
    settled: NDArray[np.bool_]  # for each output, whether the pair alone determines it


class _Pairs:
    """Pairs of a label and the state after it, in place of the labels."""

    def __init__(self, reduction: Reduction, layers: Sequence[Layer], final: int) -> None:
        self.old, self.layers = reduction, layers
        column = Once(_column)
        self.columns = [column(layer, n) for layer, n in zip(layers, _after(layers, final), strict=True)]

    @property
    def cost(self) -> int:
        """The approximate number of operations of plain MAP."""
        return sum(a * b for a, b in pairwise(self._sizes))

    @property
    def _sizes(self) -> list[int]:
        return [1, *(len(column.labels) for column in self.columns)]

    @property
    def entries(self) -> int:
        """The number of entries of the tables."""
        return sum(
            before * len(column.labels) * (2 + int((~column.settled).sum()))
            for before, column in zip(self._sizes, self.columns, strict=False)
        )

    def reduction(self, names: Sequence[str], constants: Sequence[int]) -> Reduction:
        """Build it."""
        old = self.old
        sizes = np.array(self._sizes[1:], dtype=np.int32)
        places, inner = np.arange(len(sizes), dtype=np.int32), [column.labels for column in self.columns]
        blocks = read_through(old.model.blocks, places, inner)
        model = Model.from_blocks(sizes, [*blocks, *stacked(self._structure())])
        sizes = model.cardinalities
        kept = [
            Statistic.from_blocks(read_through(s.blocks, places, inner), s.name, s.cap, sizes)
            for s in old.statistics
        ]
        new = _statistics(self, names, constants, model)
        emitted = Once(lambda emission, labels: emission[labels])
        emissions = [emitted(*both) for both in zip(_emissions(old), inner, strict=True)]
        return Reduction(old.original, model, [*kept, *new], places, emissions, after=old)

    def _before(self, position: int) -> Integers:
        """Return the states of the pairs before a position."""
        return self.columns[position - 1].states if position else np.zeros(1, dtype=np.int64)

    @cached_property
    def _fits(self) -> list[NDArray[np.bool_]]:
        """For each position, which pairs may follow which."""
        fits = Once(
            lambda layer, before, column: layer.moves[before[:, np.newaxis], column.labels] == column.states
        )
        return [
            fits(layer, self._before(i), column)
            for i, (layer, column) in enumerate(zip(self.layers, self.columns, strict=True))
        ]

    def _structure(self) -> Iterator[Table]:
        forbidding = Once(lambda fits: None if fits.all() else _forbidding(fits))
        for i, fits in enumerate(self._fits):
            table = forbidding(fits)
            if i and table is not None:
                yield (i - 1, i), table

    def outputs(self, p: int) -> Iterator[Table]:
        """Yield the non-zero outputs at each position."""
        settled = Once(lambda column: _given(column.given[:, p]))
        moving = Once(
            lambda layer, before, column, fits: _given(
                layer.outputs[before[:, np.newaxis], column.labels, p], fits
            )
        )
        for i, (layer, column) in enumerate(zip(self.layers, self.columns, strict=True)):
            own = bool(column.settled[p])
            table = settled(column) if own else moving(layer, self._before(i), column, self._fits[i])
            if table is not None:
                yield (i,) if own else (i - 1, i), table


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
        tables: list[Table] = list(encoding.outputs(p))
        if constant:
            tables.append(((), np.array(constant)))
        made.append(Statistic.from_blocks(stacked(tables), name, None, model.cardinalities))
    return made
