"""Statistics folded into the score: ``F(y) + Σ_p w_p·G_p(y)`` is again a factor graph.

A loss that is linear in its statistics needs no tally under margin scaling, and a relaxation replaces its
constraint by prices: both are plain MAP on the model with these terms in its factors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.statistics.statistic import Statistic
from tallytree.values import read_only

Terms = Iterable[tuple[Statistic, float]]


def folded(model: Model, terms: Terms) -> Model:
    """Add multiples of statistics to the score of a model.

    If a statistic has scopes of the model, its terms are added to those factors, so that the model keeps
    its shape, and plans can be reused.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model([2, 2], [((0,), [0.0, 1.0]), ((1,), [0.0, 2.0])])
    >>> folded(model, [(tt.count(model, state=1), -1.5)]).score([1, 1])
    0.0
    """
    blocks = list(model.blocks)
    for block in weighted(terms):
        _add(blocks, block, block.tables)
    return Model.from_blocks(
        model.cardinalities, blocks, shape=model.shape, variables=model.variables, states=model.states
    )


def weighted(terms: Terms) -> Sequence[Block]:
    """Return multiples of statistics as factors of a score."""
    return [
        block.with_tables(read_only(block.tables * float(weight)))
        for statistic, weight in terms
        for block in statistic.blocks
    ]


def flat(block: Block) -> Block:
    """Keep what is forbidden, and set everything else to the score 0."""
    return block.with_tables(read_only(np.where(np.isneginf(block.tables), -np.inf, 0.0)))


def _add(blocks: list[Block], term: Block, scores: NDArray[Any]) -> None:
    """Add scores to the block with the same scopes, or as a new block."""
    for i, block in enumerate(blocks):
        if block.key == term.key and block.tables.shape[1:] == scores.shape[1:]:
            blocks[i] = block.with_tables(read_only(block.tables + scores))
            return
    blocks.append(term)
