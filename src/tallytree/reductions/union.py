"""The union of several models: its labellings consist of a labelling of each.

Scores and statistics add up, so a question about their sums is a question about one model.
If all of them are chains, factors of zeros link each to the next: one long chain needs no joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.statistics.statistic import Statistic
from tallytree.values import read_only


class Union(NamedTuple):
    """The union of several models.

    Attributes
    ----------
    model : Model
    starts : (K + 1,) int64 array
        Where the variables of each model start; the last entry is the number of variables.
    linked : bool
        Whether the union is one chain.
    """

    model: Model
    starts: NDArray[np.int64]
    linked: bool

    def statistic(self, parts: Sequence[Statistic]) -> Statistic:
        """Return the sum of one statistic of each model."""
        cap = parts[0].cap
        assert all(part.cap == cap for part in parts) and cap is None, "capped statistics cannot be summed"
        blocks = _side_by_side(
            ((part.blocks, at) for part, at in zip(parts, self.starts.tolist(), strict=False))
        )
        return Statistic.from_blocks(blocks, parts[0].name, cardinalities=self.model.cardinalities)

    def split(self, labelling: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the labelling of each model."""
        return [read_only(part) for part in np.split(labelling, self.starts[1:-1])]


def union(models: Sequence[Model], statistics: Iterable[Statistic] = (), states: Any = None) -> Union:
    """Combine models into one.

    Parameters
    ----------
    models : sequence of Model
    statistics : iterable of Statistic
        Of any of the models: a chain with statistics beyond neighbouring variables does not count as a chain.
    states : optional
        The names of the states.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> chain = tt.Model.chain(np.array([[0., 1], [0, 2]]), np.zeros((2, 2)))
    >>> both = union([chain, chain])
    >>> both.model.score([1, 1, 0, 1]), both.starts, both.linked
    (5.0, array([0, 2, 4]), True)
    """
    cardinalities = np.concatenate([model.cardinalities for model in models])
    starts = np.cumsum([0, *(len(model) for model in models)])
    blocks = _side_by_side(((model.blocks, at) for model, at in zip(models, starts.tolist(), strict=False)))
    along = all(_neighbours(block) for block in blocks) and all(
        _neighbours(block) for statistic in statistics for block in statistic.blocks
    )
    links = _links(cardinalities, blocks) if along else []
    return Union(Model.from_blocks(cardinalities, (*blocks, *links), states=states), starts, along)


def _side_by_side(parts: Iterable[tuple[Iterable[Block], int]]) -> list[Block]:
    """Shift the scopes of each part, and combine blocks of the same kind; shared tables stay shared."""
    shared: dict[Any, tuple[list[NDArray[np.int32]], NDArray[Any]]] = {}
    own: dict[Any, tuple[list[NDArray[np.int32]], list[NDArray[Any]]]] = {}
    for blocks, at in parts:
        for block in blocks:
            scopes, tables = block.scopes + np.int32(at), block.tables
            if len(tables) != len(scopes):
                shared.setdefault((tables.shape, tables.tobytes()), ([], tables))[0].append(scopes)
                continue
            kept = own.setdefault(tables.shape[1:], ([], []))
            kept[0].append(scopes)
            kept[1].append(tables)
    joined = [Block(read_only(np.concatenate(scopes)), tables) for scopes, tables in shared.values()]
    joined += [
        Block(read_only(np.concatenate(scopes)), read_only(np.concatenate(tables)))
        for scopes, tables in own.values()
    ]
    return joined


def _neighbours(block: Block) -> bool:
    """Whether all scopes are of one variable, or of one and the next."""
    if block.arity < 2:
        return True
    return block.arity == 2 and bool((np.abs(block.scopes[:, 0] - block.scopes[:, 1]) == 1).all())


def _links(cardinalities: NDArray[np.int32], blocks: Sequence[Block]) -> list[Block]:
    """Return factors of zeros over neighbours that have no common factor."""
    free = np.ones(max(len(cardinalities) - 1, 0), dtype=bool)
    for block in blocks:
        if block.arity == 2:
            free[block.scopes.min(axis=1)] = False
    left = np.flatnonzero(free).astype(np.int32)
    shapes = np.stack([cardinalities[left], cardinalities[left + 1]], axis=1)
    links = []
    for shape in np.unique(shapes, axis=0):
        some = left[(shapes == shape).all(axis=1)]
        links.append(Block(np.stack([some, some + 1], axis=1), np.zeros((1, *shape.tolist()))))
    return links
