"""The parts of a plan that outlive it: its cost, and the shape of its model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.planning.precision import Precision


class Price(NamedTuple):
    """The cost of a pass over a model, as kept in certificates."""

    # as in :class:`Plan`
    variables: int
    width: int
    degree: int
    tallies: int
    operations: float
    peak_bytes: int
    precision: Precision


class Shape:
    """What a plan needs to know about a model: everything except scores."""

    def __init__(self, model: Model) -> None:
        self.key = model.key
        self.cardinalities = model.cardinalities
        self.scopes = tuple([block.scopes for block in model.blocks])
        self.tables = tuple([len(block.tables) for block in model.blocks])  # 1: all scopes share one

    def model(self) -> Model:
        """Return a model of this shape."""
        shapes = [tuple(self.cardinalities[scopes[0]].tolist()) for scopes in self.scopes]
        blocks = [
            Block(scopes, np.broadcast_to(0.0, (count, *n)))
            for scopes, count, n in zip(self.scopes, self.tables, shapes, strict=True)
        ]
        return Model.from_blocks(self.cardinalities, blocks)
