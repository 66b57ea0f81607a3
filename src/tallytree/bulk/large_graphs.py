"""Problems of a batch that are not chains and have large tables: each is searched on its own.

Chains are searched natively, many at a time. For a tree or a grid whose table takes milliseconds or more, a
separate search by bounds is worthwhile: it takes a small fraction of the time.
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
"""The minimum numbers of variables: tables of smaller models are so small that the check does not pay off."""


def searched_alone(asked: LossArguments, options: BatchOptions) -> set[int]:
    """Return the problems of a batch that are searched by bounds, each on its own."""
    if options.strategy == "full" or asked.tallies > 1:
        return set()
    large = [
        (number, model)
        for number, model in enumerate(asked.models)
        if isinstance(model, Model) and len(model.cardinalities) >= _OTHERS
    ]
    chains = {model.key: is_chain(model) for model in {model.key: model for _, model in large}.values()}
    return {
        number
        for number, model in large
        if not chains[model.key] and _worth_it(asked, number, model, options)
    }


def _worth_it(asked: LossArguments, number: int, model: Model, options: BatchOptions) -> bool:
    links = sum(len(block) for block in model.blocks if block.arity > 1)
    if links < len(model) and len(model) < _FOREST:
        return False
    try:
        price = price_of(asked.problem(number).query(), Options(plan=options.plan))
    except TallytreeError:  # reported by the batch
        return False
    return price is not None and price.tried


def is_chain(model: Model) -> bool:
    """Return whether all factors are on single variables or on consecutive pairs."""
    return all(
        block.arity < 2 or (block.arity == 2 and bool(np.all(block.scopes[:, 1] == block.scopes[:, 0] + 1)))
        for block in model.blocks
    )
