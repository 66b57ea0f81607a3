"""Models restricted to fewer labellings: a variable may take only some of its states, ``y_v ∈ A_v``.

A forbidden state scores -inf. The -inf is written into the existing unary factors of the model,
so that a restricted model keeps the shape of the original, and its plans; a variable without a unary factor
gets one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.model.blocks import Block
from tallytree.model.pairs import from_pairs
from tallytree.values import read_only

Fixed = Mapping[Any, Any]
"""The state that each given variable must take, all by name or number."""

Allowed = Mapping[Any, Iterable[Any]]
"""The states that each given variable may take."""

Choices = Mapping[int, Sequence[int]]
"""The numbers of the remaining states of each given variable, by number."""


def checked_mapping(value: object, name: str) -> Mapping[Any, Any]:
    """Return a mapping of variables, empty for None; raise an error for anything without ``items()``."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    items = getattr(value, "items", None)  # a pandas Series is not a Mapping
    if not callable(items):
        raise ModelError(
            f"{name} must map variables to states, as in {{0: 1}} or {{'noun': 'singular'}}; got {value!r}"
        )
    return dict(items())


def listed(value: object, what: str) -> list[Any]:
    """Return the states of an ``allowed`` entry as a list; a single state becomes a list of one."""
    if isinstance(value, (str, int, np.integer)):
        return [value]
    if not isinstance(value, Iterable):
        raise ModelError(f"{what} is {value!r}; give a list of states, by name or number")
    states = list(value)
    if not states:
        raise ModelError(f"{what} is empty, so no state would be left; give at least one, or remove it")
    return states


def restricted_blocks(
    blocks: Sequence[Block], cardinalities: NDArray[np.int32], choices: Choices
) -> tuple[Block, ...]:
    """Return the factors with -inf on all states that are not allowed."""
    penalties = {v: _penalty(int(cardinalities[v]), states) for v, states in choices.items()}
    single = {v for block in blocks if block.arity == 1 for v in block.scopes[:, 0].tolist()}
    further = [((v,), penalty) for v, penalty in penalties.items() if v not in single]
    return (
        *(_penalised(block, penalties) for block in blocks),
        *from_pairs(further, np.float64, cardinalities),
    )


def _penalty(size: int, states: Sequence[int]) -> NDArray[np.float64]:
    penalty = np.full(size, -np.inf)
    penalty[list(states)] = 0.0
    return penalty


def _penalised(block: Block, penalties: Mapping[int, NDArray[np.float64]]) -> Block:
    if block.arity != 1:
        return block
    rows = [(k, v) for k, v in enumerate(block.scopes[:, 0].tolist()) if v in penalties]
    if not rows:
        return block
    tables = np.array(np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:])))
    for k, v in rows:
        tables[k] += penalties[v]
    return block.with_tables(read_only(tables))
