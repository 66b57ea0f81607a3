"""Finite automata: sets of label sequences, as machines without outputs.

An automaton is deterministic and complete over its own labels and one more, which stands for all other
labels. A non-deterministic one (:class:`Nfa`) is determinised by the subset construction; equivalent
states are merged (Moore's refinement).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, ModelError
from tallytree.model.inputs import suggestion
from tallytree.transducers.machine import Machine, Move, State
from tallytree.transducers.trellis import Alphabet, Layer, Trellis, trimmed
from tallytree.values import counted

MOST_STATES = 20_000
"""The maximum number of states of an automaton."""

MOST_MOVES = 2**24
"""The maximum number of moves: states times labels."""

_MOST_LOOKS = 2**28
"""The maximum number of moves examined during minimisation."""


class Labels(NamedTuple):
    """A set of labels: those listed, or all others."""

    names: frozenset[str]
    negated: bool = False

    def has(self, label: str | None) -> bool:
        """Whether a label is in the set; None is a label that is never listed."""
        return (label in self.names) != self.negated


ANY = Labels(frozenset(), negated=True)


@final
@dataclass(frozen=True, eq=False)
class Automaton(Machine):
    """A deterministic, complete automaton; made by ``Nfa.determinised``, :func:`dfa` or a pattern.

    Attributes
    ----------
    labels : tuple of str
        The labels it distinguishes; state numbers are written as text.
    moves : int64 array of shape (states, labels + 1)
        The next state; the last column is for all other labels.
    accepting : boolean array
        For each state; state 0 is the start.
    """

    labels: tuple[str, ...]
    moves: NDArray[np.int64]
    accepting: NDArray[np.bool_]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Automaton) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.labels, self.moves.tobytes(), self.accepting.tobytes()

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {label: column for column, label in enumerate(self.labels)}

    @property
    def start(self) -> State:
        """State 0."""
        return 0

    def step(self, state: State, label: Hashable, at: Hashable) -> Move | None:
        """Look up the move."""
        assert isinstance(state, int)
        return int(self.moves[state, self._columns.get(str(label), -1)]), ()

    def stop(self, state: State) -> tuple[int, ...] | None:
        """Accept in accepting states."""
        assert isinstance(state, int)
        return () if self.accepting[state] else None

    def trellis(self, alphabets: tuple[Alphabet, ...]) -> Trellis | None:
        """Return its moves position by position."""
        layers = {labels: self._layer(labels) for labels in set(alphabets)}
        stops = np.zeros((len(self.moves), 0), dtype=np.int64)
        return trimmed([layers[labels] for labels in alphabets], 0, self.accepting, stops, merge=True)

    def _layer(self, labels: Alphabet) -> Layer:
        moves = self.moves[:, [self._columns.get(str(label), -1) for label in labels]]
        return Layer(moves, np.zeros((*moves.shape, 0), dtype=np.int64))

    def check(self, labels: frozenset[Hashable]) -> None:
        """Raise an error for a model without a label that is used here, which may be misspelt."""
        known = tuple(sorted(map(str, labels)))
        for label in self.labels:
            if label not in known:
                raise ModelError(
                    f"no variable of this model has the label {label!r} of the pattern; its labels are "
                    f"{', '.join(known[:12])}{', …' if len(known) > 12 else ''}{suggestion(label, known)}"
                )

    def __repr__(self) -> str:
        return f"Automaton({counted(len(self.moves), 'state')} over {', '.join(self.labels)})"


@dataclass
class Nfa:
    """A non-deterministic automaton, with moves that may read no label.

    Parameters
    ----------
    moves : list of (state, Labels or None, state)
        None moves without reading a label. States are integers from 0.
    start : int
    accepting : set of int

    Examples
    --------
    Sequences whose second to last label is B:

    >>> b = Labels(frozenset({"B"}))
    >>> automaton = Nfa([(0, ANY, 0), (0, b, 1), (1, ANY, 2)], 0, {2}).determinised()
    >>> automaton
    Automaton(4 states over B)
    >>> automaton.run("OBO"), automaton.run("BOO")
    ((), None)
    """

    moves: list[tuple[int, Labels | None, int]] = field(default_factory=list)
    start: int = 0
    accepting: set[int] = field(default_factory=set)

    def determinised(self) -> Automaton:
        """Return the smallest deterministic automaton that accepts the same sequences."""
        named = sorted({name for _, labels, _ in self.moves if labels is not None for name in labels.names})
        columns = {name: column for column, name in enumerate(named)}
        free, reading = self._split()
        start = _closed({self.start}, free)
        numbers, rows, waiting = {start: 0}, [], [start]
        for subset in waiting:
            moves = [move for state in subset for move in reading.get(state, ())]
            row = np.zeros(len(named) + 1, dtype=np.int64)
            for taken, targets in _targets(moves, columns):
                after = _closed(targets, free)
                if after not in numbers:
                    numbers[after] = len(numbers)
                    waiting.append(after)
                row[taken] = numbers[after]
            rows.append(row)
            _check_size(len(numbers), len(row))
        accepting = [not self.accepting.isdisjoint(subset) for subset in numbers]
        return _smallest(tuple(named), np.array(rows), np.array(accepting))

    def _split(self) -> tuple[dict[int, list[int]], dict[int, list[tuple[Labels, int]]]]:
        free: dict[int, list[int]] = {}
        reading: dict[int, list[tuple[Labels, int]]] = {}
        for source, labels, target in self.moves:
            if labels is None:
                free.setdefault(source, []).append(target)
            else:
                reading.setdefault(source, []).append((labels, target))
        return free, reading


def _targets(
    moves: Sequence[tuple[Labels, int]], columns: Mapping[str, int]
) -> list[tuple[NDArray[np.int64], set[int]]]:
    """Return which columns lead to which states, by their first column; the last is for all other labels.

    The columns of labels that no move lists lead to the same states: there may be thousands.
    """
    named = sorted({columns[name] for labels, _ in moves for name in labels.names})
    found: dict[int, set[int]] = {column: set() for column in named}
    others = set()
    for labels, target in moves:
        own = {columns[name] for name in labels.names}
        if labels.negated:
            others.add(target)
            own = found.keys() - own
        for column in own:
            found[column].add(target)
    rest = np.setdiff1d(np.arange(len(columns) + 1), named)
    parts = [(rest, others), *((np.array([column]), targets) for column, targets in found.items())]
    return sorted(parts, key=lambda part: int(part[0][0]))


def _check_size(states: int, columns: int) -> None:
    if states > MOST_STATES or states * columns > MOST_MOVES:
        raise BudgetError(
            f"the automaton has more than {min(MOST_STATES, MOST_MOVES // columns):,} states once it is "
            f"deterministic, with moves for {columns:,} labels; use a pattern with less memory, such as "
            "smaller counts in {m,n}"
        )


def _closed(states: set[int], free: Mapping[int, Sequence[int]]) -> frozenset[int]:
    """Add the states that are reachable without reading."""
    waiting = list(states)
    while waiting:
        for target in free.get(waiting.pop(), ()):
            if target not in states:
                states.add(target)
                waiting.append(target)
    return frozenset(states)


def _distances(moves: NDArray[Any], accepting: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the minimum number of labels from each state to acceptance; -1 if impossible."""
    targets = moves.ravel()
    order = np.argsort(targets, kind="stable")
    sources = order // max(moves.shape[1], 1)  # of the moves into each state, concatenated
    ends = np.searchsorted(targets, np.arange(len(moves) + 1), sorter=order).tolist()
    distances = np.where(accepting, 0, -1)
    last, distance = np.flatnonzero(accepting), 0
    while len(last):
        distance += 1
        before = np.concatenate([sources[ends[state] : ends[state + 1]] for state in last.tolist()])
        last = np.unique(before[distances[before] < 0])
        distances[last] = distance
    return distances


def _smallest(labels: tuple[str, ...], moves: NDArray[Any], accepting: NDArray[np.bool_]) -> Automaton:
    """Merge equivalent states: split classes until every move respects them.

    States at different distances from acceptance are distinguished by the shortest accepted
    continuation, so classes start with that: on a long pattern there is then hardly anything left to split.
    """
    classes, count, looks = np.unique(_distances(moves, accepting), return_inverse=True)[1], 0, 0
    while classes.max() + 1 > count:
        looks += moves.size
        if looks > _MOST_LOOKS:
            raise BudgetError(
                f"minimising the automaton takes too long: it has {len(moves):,} states with moves for "
                f"{moves.shape[1]:,} labels; use a shorter pattern, or one with fewer labels"
            )
        count = int(classes.max()) + 1
        rows = np.column_stack([classes, classes[moves]])
        _, first, classes = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        classes = classes.reshape(-1)
        if len(first) == count:
            break
    # number the classes in the order in which the states were found, starting with the start
    order = np.argsort(first, kind="stable")
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order))
    kept = first[order]
    return Automaton(labels, numbers[classes[moves[kept]]], accepting[kept])


def dfa(
    moves: Mapping[tuple[Hashable, Hashable], Hashable], start: Hashable, accepting: Iterable[Hashable]
) -> Automaton:
    """Make an automaton from its moves ``{(state, label): next state}``; a missing move forbids.

    Parameters
    ----------
    moves : mapping of (state, label) to state
        Labels by name, or by number on models without names.
    start : hashable
    accepting : iterable of states

    Examples
    --------
    An even number of B:

    >>> even = dfa({(0, "O"): 0, (0, "B"): 1, (1, "O"): 1, (1, "B"): 0}, start=0, accepting=[0])
    >>> even.run("OBOB"), even.run("OBO")
    ((), None)
    """
    ends = set(accepting)
    names = [start, *(s for s, _ in moves), *moves.values(), *ends]
    numbers = {state: number for number, state in enumerate(dict.fromkeys(names))}
    listed: list[tuple[int, Labels | None, int]] = [
        (numbers[source], Labels(frozenset({str(label)})), numbers[target])
        for (source, label), target in moves.items()
    ]
    return Nfa(listed, 0, {numbers[state] for state in ends}).determinised()
