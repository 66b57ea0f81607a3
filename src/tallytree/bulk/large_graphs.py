"""Problems of a batch that are not chains, and whose tables would be large: each is searched on its own.

Chains are searched natively, many at a time. A tree or a grid whose table takes milliseconds or more is worth
a call of its own: by bounds that takes a small part of the time.
"""

from __future__ import annotations

import numpy as np

from tallytree.bounding.strategy import price_of
from tallytree.bulk.jobs import BatchOptions
from tallytree.bulk.loss_jobs import LossArguments
from tallytree.errors import TallytreeError
from tallytree.model.model import Model
from tallytree.planning.options import Options

_FOREST, _OTHERS = 150, 40
"""Smaller models have small tables: it takes longer to find out than it can save."""


def searched_alone(asked: LossArguments, options: BatchOptions) -> set[int]:
    """Return which problems of a batch are searched by bounds, each in a call of its own."""
    if options.strategy == "full" or asked.tallies > 1:
        return set()
    return {number for number in range(len(asked.models)) if _worth_it(asked, number, options)}


def _worth_it(asked: LossArguments, number: int, options: BatchOptions) -> bool:
    model = asked.models[number]
    if not isinstance(model, Model) or len(model) < _OTHERS or is_chain(model):
        return False
    links = sum(len(block) for block in model.blocks if block.arity > 1)
    if links < len(model) and len(model) < _FOREST:
        return False
    try:
        price = price_of(asked.problem(number).query(), Options(plan=options.plan))
    except TallytreeError:  # which the batch tells of
        return False
    return price is not None and price.tried


def is_chain(model: Model) -> bool:
    """Return whether factors are of single variables, or of one and the next alone."""
    return all(
        block.arity < 2 or (block.arity == 2 and bool(np.all(block.scopes[:, 1] == block.scopes[:, 0] + 1)))
        for block in model.blocks
    )
