"""Fewer labellings, the same scores: a variable may take some of its states only, ``y_v ∈ A_v``.

A forbidden state scores -inf. The -inf is written into the factors of one variable that a model has already,
so that a restricted model keeps the shape of the whole one, and its plans; a variable without such a factor
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
"""For some variables the state they must take, all by name or number."""

Allowed = Mapping[Any, Iterable[Any]]
"""For some variables the states they may take."""

Choices = Mapping[int, Sequence[int]]
"""For some variables, by number, the numbers of the states that are left."""


def checked_mapping(value: object, name: str) -> Mapping[Any, Any]:
    """Return a mapping of variables, empty for None, or refuse what is none."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ModelError(
            f"{name} maps variables to states, as {{0: 1}} or {{'noun': 'singular'}}; got {value!r}"
        )
    return value


def listed(value: object, what: str) -> list[Any]:
    """Return the states of an ``allowed`` entry as a list; one state stands for a list of one."""
    if isinstance(value, (str, int, np.integer)):
        return [value]
    if not isinstance(value, Iterable):
        raise ModelError(f"{what} is {value!r}; give a list of states, by name or number")
    states = list(value)
    if not states:
        raise ModelError(f"{what} is empty: no state would be left; give at least one, or leave it out")
    return states


def restricted_blocks(
    blocks: Sequence[Block], cardinalities: NDArray[np.int32], choices: Choices
) -> tuple[Block, ...]:
    """Return the factors with -inf on all states that are not left."""
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
