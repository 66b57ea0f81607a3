"""Problems of a batch that are searched one at a time: models that are not chains, and have large tables.

Most problems are searched natively, many at a time, from lists of all their tallies. That does not work for
problems with constraints, and is slow for trees and grids with many variables, which have too many tallies.
If their table takes milliseconds or more, a separate search over boxes of tallies is worthwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tallytree.bounding.strategy import price_of
from tallytree.bulk.jobs import BatchOptions
from tallytree.bulk.loss_jobs import LossArguments
from tallytree.errors import TallytreeError
from tallytree.model.model import Model
from tallytree.planning.options import Options

_FOREST, _OTHERS = 150, 40
"""The minimum numbers of variables: tables of smaller models are so small that the check does not pay off."""


_ALONE = 5e5
"""The units of work of asking a question by itself: the query, and the answer with its certificate."""

MOST_LISTED = 192
"""Up to this many variables, listing all tallies of two counts is faster than a search over boxes."""


def searched_alone(asked: LossArguments, numbers: Iterable[int], options: BatchOptions) -> set[int]:
    """Return which of some problems of a batch are searched by bounds, each on its own."""
    if options.strategy == "full" or asked.tallies > 1:
        return set()
    large = [
        (number, model)
        for number, model in ((number, asked.models[number]) for number in numbers)
        if isinstance(model, Model) and len(model.cardinalities) >= _OTHERS
    ]
    first = {model.key: (number, model) for number, model in reversed(large)}  # one of each shape is priced
    alone = {
        key: not is_chain(model) and _worth_it(asked, number, model, options)
        for key, (number, model) in first.items()
    }
    return {number for number, model in large if alone[model.key]}


def _worth_it(asked: LossArguments, number: int, model: Model, options: BatchOptions) -> bool:
    links = sum(len(block) for block in model.blocks if block.arity > 1)
    if links < len(model) and len(model) < _FOREST:
        return False
    try:
        price = price_of(asked.problem(number).query(), Options(plan=options.plan))
    except TallytreeError:  # reported by the batch
        return False
    return price is not None and price.allowance(_ALONE) > 0


def is_chain(model: Model) -> bool:
    """Return whether all factors are on single variables or on consecutive pairs."""
    return all(
        block.arity < 2 or (block.arity == 2 and bool(np.all(block.scopes[:, 1] == block.scopes[:, 0] + 1)))
        for block in model.blocks
    )
