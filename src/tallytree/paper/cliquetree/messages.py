"""Algorithm 1 of the paper, literally, with dictionaries: to read and to test against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.paper.cliquetree.rules import braces, not_held, upwards
from tallytree.statistics.statistic import Statistic

if TYPE_CHECKING:
    from tallytree.paper.cliquetree.tree import CliqueTree

States: TypeAlias = tuple[int, ...]
Tally: TypeAlias = tuple[int, ...]
Message: TypeAlias = dict[States, dict[Tally, float]]
Placed: TypeAlias = list[list[tuple[list[int], NDArray[Any]]]]


def best_scores(tree: CliqueTree, model: Model, statistics: Sequence[Statistic]) -> dict[Tally, float]:
    """Pass messages from the leaves to the root: the best score of every attainable tally."""
    potentials = Potentials(tree, model, statistics)
    messages: dict[int, Message] = {}
    for i in upwards(tree.parent):
        messages[i] = _message(tree, i, potentials, {k: messages.pop(k) for k in tree.children[i]})
    return {potentials.lifted(t): score for t, score in messages[tree.root].get((), {}).items()}


def _message(tree: CliqueTree, i: int, potentials: Potentials, received: Mapping[int, Message]) -> Message:
    """Compute the message of clique ``i`` to its parent: a table ``[separator states][tally]``."""
    message: Message = {}
    for y in product(*(range(potentials.cardinalities[v]) for v in tree.cliques[i])):
        row = message.setdefault(_restrict(tree, i, y, i), {})
        below = [table[_restrict(tree, i, y, k)] for k, table in received.items()]
        f, g = potentials.score(i, y), potentials.tally(i, y)
        for parts in product(*(table.items() for table in below)):
            tally = potentials.add([g, *(t for t, _ in parts)])
            score = f + sum(s for _, s in parts)
            if score > row.get(tally, -np.inf):
                row[tally] = score
    return message


def _restrict(tree: CliqueTree, i: int, y: States, k: int) -> States:
    """Restrict the states ``y`` of clique ``i`` to the separator of clique ``k`` towards its parent."""
    return tuple(y[tree.cliques[i].index(v)] for v in tree.separators[k])


class Potentials:
    """``f_i`` and ``g_i``: the sums of the tables of each clique, and how tallies add up."""

    def __init__(self, tree: CliqueTree, model: Model, statistics: Sequence[Statistic]) -> None:
        self.cardinalities: list[int] = model.cardinalities.tolist()
        variables = {v for clique in tree.cliques for v in clique}
        if variables != set(range(len(self.cardinalities))):
            raise ModelError(
                f"the cliques cover the variables {braces(sorted(variables))}, "
                f"but the model has {len(self.cardinalities)}, numbered from 0"
            )
        self.scores = _placed(tree, model.blocks)
        self.tallies = [_placed(tree, statistic.blocks) for statistic in statistics]
        self.minima = [_move_minima(tables) for tables in self.tallies]
        self.caps = [statistic.cap for statistic in statistics]

    def score(self, clique: int, y: States) -> float:
        """``f_i(y_C)``."""
        return float(sum(table[tuple(y[p] for p in places)] for places, table in self.scores[clique]))

    def tally(self, clique: int, y: States) -> Tally:
        """``g_i(y_C)`` above its minimum."""
        return tuple(
            sum(int(table[tuple(y[p] for p in places)]) for places, table in tables[clique])
            for tables in self.tallies
        )

    def add(self, parts: Iterable[Tally]) -> Tally:
        """``min(cap − Σ min g, Σ parts)``: the sum above the minima, capped."""
        sums = map(sum, zip(*parts, strict=True))
        caps = zip(self.caps, self.minima, strict=True)
        return tuple(
            t if cap is None else min(max(cap - low, 0), t) for t, (cap, low) in zip(sums, caps, strict=True)
        )

    def lifted(self, tally: Tally) -> Tally:
        """Put the minima back."""
        parts = zip(self.caps, self.minima, tally, strict=True)
        return tuple(low + t if cap is None else min(cap, low + t) for cap, low, t in parts)


def _placed(tree: CliqueTree, blocks: Iterable[Block]) -> Placed:
    """List the tables of each clique, with the positions of their variables in it."""
    home = {scope: i for i, scopes in enumerate(tree.scopes) for scope in scopes}
    placed: Placed = [[] for _ in tree.cliques]
    for scope, table in (pair for block in blocks for pair in _pairs(block)):
        clique = home.get(tuple(sorted(scope)))
        if clique is None:
            raise not_held(scope)
        placed[clique].append(([tree.cliques[clique].index(v) for v in scope], table))
    return placed


def _pairs(block: Block) -> Iterator[tuple[list[int], NDArray[Any]]]:
    tables = np.broadcast_to(block.tables, (len(block.scopes), *block.tables.shape[1:]))
    return zip(block.scopes.tolist(), tables, strict=True)


def _move_minima(placed: Placed) -> int:
    """Subtract each table's minimum; returns their sum."""
    moved = 0
    for held in placed:
        for k, (places, table) in enumerate(held):
            held[k] = places, table - table.min()
            moved += int(table.min())
    return moved
