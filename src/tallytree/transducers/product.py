"""A chain whose states say more than its labels, and the model that is solved in its place.

A state stands for one label. Which states may follow each other, and what is counted in a state or in
two neighbours, are tables that a few kinds of positions share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.model.blocks import SHARED, Block, grouped, stacked
from tallytree.model.model import Model
from tallytree.reductions.reading import read_through
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.statistic import Statistic
from tallytree.values import Repeated, each

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


class ChainProduct(NamedTuple):
    """The states of each position, and how they follow each other.

    Attributes
    ----------
    labels : Repeated
        For each position, the label that each state stands for.
    fits : Repeated
        For each position but the first, which states may follow which of the position before.
    given : sequence of Repeated
        For each output: at each position, the counts of its states; None for zeros.
    moved : sequence of Repeated
        For each output: at each position but the first, the counts of two neighbours; None for zeros.
    """

    labels: Repeated[Integers]
    fits: Repeated[Booleans]
    given: Sequence[Repeated[Integers | None]]
    moved: Sequence[Repeated[Integers | None]]

    @property
    def sizes(self) -> NDArray[np.int32]:
        """The number of states of each position."""
        return self.labels.values(len).astype(np.int32)

    def entries(self, blocks: Iterable[Block]) -> int:
        """Return how many entries the tables of neighbours have at most, given the factors of labels."""

        def size(fits: Booleans, *moved: Integers | None) -> tuple[int, int]:
            return fits.size, sum(table.size for table in moved if table is not None)

        return most_entries(each(size, self.fits, *self.moved), blocks)

    def reduction(self, old: Reduction, names: Sequence[str], constants: Sequence[int]) -> Reduction:
        """Return the model over these states in place of a chain; each output is a statistic."""
        places = np.arange(len(self.labels), dtype=np.int32)
        model = Model.from_blocks(self.sizes, self._scores(old.model.blocks, places))
        sizes = model.cardinalities
        kept = [
            Statistic.from_blocks(read_through(s.blocks, places, self.labels), s.name, s.cap, sizes)
            for s in old.statistics
        ]
        new = [
            Statistic.from_blocks(self._counts(p, constant), name, None, sizes)
            for p, (name, constant) in enumerate(zip(names, constants, strict=True))
        ]
        emissions = self.labels
        if old.emissions is not None:
            emissions = each(lambda emission, labels: emission[labels], old.emissions, self.labels)
        return Reduction(old.original, model, [*kept, *new], places, emissions, after=old)

    def _scores(self, blocks: Sequence[Block], places: NDArray[np.int32]) -> list[Block]:
        """Return the factors over states; the first factor of two neighbours also forbids pairs of states."""
        waiting = ~self.fits.values(lambda fits: int(fits.all())).astype(
            np.bool_
        )  # links whose pairs are not forbidden
        number = len(self.fits.distinct)
        tables = [forbidding(fits) for fits in self.fits.distinct]
        extra: list[NDArray[np.float64] | None] = [None, *tables, *(table.T for table in tables)]
        made: list[Block] = []
        for block in blocks:
            if block.arity < 2:
                made += read_through([block], places, self.labels)
                continue
            links, turned = block.scopes.min(axis=1), block.scopes[:, 0] > block.scopes[:, 1]
            first = np.zeros(len(links), dtype=np.bool_)  # a link may have several factors in one block
            first[np.unique(links, return_index=True)[1]] = True
            numbers = np.where(first & waiting[links], 1 + self.fits.numbers[links] + number * turned, 0)
            waiting[links] = False
            made += read_through([block], places, self.labels, Repeated(extra, numbers))
        left = np.flatnonzero(waiting)
        return [*made, *grouped(_neighbours(left), Repeated(tables, self.fits.numbers[left]))]

    def _counts(self, p: int, constant: int) -> tuple[Block, ...]:
        """Return what an output counts."""
        own, links = _there(self.given[p]), _there(self.moved[p])
        single = grouped(own.places.astype(np.int32)[:, np.newaxis], own.tables)
        return (*single, *grouped(_neighbours(links.places), links.tables), *always(constant))


class _There(NamedTuple):
    """The positions that have a table, and their tables."""

    places: Integers
    tables: Repeated[NDArray[Any]]


def _there(tables: Repeated[Integers | None]) -> _There:
    places = np.flatnonzero(tables.values(lambda table: table is not None))
    distinct: list[Any] = list(tables.distinct)
    return _There(places, Repeated(distinct, tables.numbers[places]))


def _neighbours(links: Integers) -> NDArray[np.int32]:
    """Return the scopes of links: of each position and the next one."""
    return np.stack([links, links + 1], axis=1).astype(np.int32)


def forbidding(allowed: Booleans) -> NDArray[np.float64]:
    """Return scores that forbid everything else."""
    return np.where(allowed, 0.0, -np.inf)


def most_entries(links: Repeated[tuple[int, int]], blocks: Iterable[Block]) -> int:
    """Return how many entries the tables of neighbours have at most.

    `links`: for each position but the first, those of a factor and those of what is counted. `blocks`: the
    factors of labels; tables of few kinds are shared, unless each factor has its own.
    """
    factors, counts = (_at_most(links, part) for part in range(2))
    if any(block.arity == 2 and len(block.tables) > 1 for block in blocks):
        factors = int(links.values(lambda sizes: sizes[0]).sum())
    return factors + counts


def _at_most(links: Repeated[tuple[int, int]], part: int) -> int:
    every = int(links.values(lambda sizes: sizes[part]).sum())
    return min(every, SHARED * sum(sizes[part] for sizes in links.distinct))


def always(constant: int) -> tuple[Block, ...]:
    """Return a constant as a part of a statistic; none for 0."""
    return stacked([((), np.array(constant))] if constant else [])


def nonzero(outputs: Integers, allowed: Booleans | None = None) -> Integers | None:
    """Return a table of outputs; None if all are zero. Forbidden moves do not widen its range."""
    if allowed is not None and not allowed.all():
        outputs = np.where(allowed, outputs, outputs[allowed].min())
    return outputs if outputs.any() else None
