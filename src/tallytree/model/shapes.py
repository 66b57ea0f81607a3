"""Chains, trees and grids: the blocks of models whose variables all have the same states, from whole arrays.

Scopes depend only on the shape. Those of chains and grids are computed once and shared by models of a shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.model.blocks import Block, unary_scopes
from tallytree.model.inputs import Scores, check_labels, checked_parents, pairwise_scores, unary_scores
from tallytree.values import digest, read_only

Scopes = tuple[NDArray[np.int32], bytes]
"""Scopes and their digest."""

States = Sequence[Any] | None
"""The names of the states, in the order of the tables."""


class Shaped(NamedTuple):
    """The factors of a model of some shape."""

    shape: tuple[int, ...]  # the shape of a labelling
    n: int  # the number of states of each variable
    blocks: tuple[Block, ...]  # the unary factors, then those of pairs


def chain(unary: ArrayLike, pairwise: ArrayLike, states: States = None) -> Shaped:
    """Check the arrays of :meth:`Model.chain`; return its factors."""
    check_labels(states, unary=unary, pairwise=pairwise)
    scores = unary_scores(unary, ("M", "N"))
    size, n = scores.shape
    links = pairwise_scores(pairwise, "pairwise", (max(size - 1, 0),), scores.shape)
    return Shaped((size,), n, _blocks((unary_scopes(size), scores), (chain_scopes(size), links)))


def tree(parents: ArrayLike, unary: ArrayLike, pairwise: ArrayLike, states: States = None) -> Shaped:
    """Check the arrays of :meth:`Model.tree`; return its factors."""
    check_labels(states, unary=unary, pairwise=pairwise)
    scores = unary_scores(unary, ("M", "N"))
    size, n = scores.shape
    above = checked_parents(parents, size)
    children = np.flatnonzero(above >= 0)
    links = pairwise_scores(pairwise, "pairwise", (size,), scores.shape, ignored=above < 0)
    used = links if len(links) == 1 else links[children]
    scopes = read_only(np.column_stack((above[children], children)).astype(np.int32))
    return Shaped((size,), n, _blocks((unary_scopes(size), scores), ((scopes, digest(scopes)), used)))


def grid(unary: ArrayLike, vertical: ArrayLike, horizontal: ArrayLike, states: States = None) -> Shaped:
    """Check the arrays of :meth:`Model.grid`; return its factors."""
    check_labels(states, vertical=vertical, horizontal=horizontal)
    scores = unary_scores(unary, ("R", "C", "N"))
    rows, columns, n = scores.shape
    down = pairwise_scores(vertical, "vertical", (max(rows - 1, 0), columns), scores.shape)
    right = pairwise_scores(horizontal, "horizontal", (rows, max(columns - 1, 0)), scores.shape)
    below, beside = _grid_scopes(rows, columns)
    single = scores.reshape(rows * columns, n)
    blocks = _blocks((unary_scopes(rows * columns), single), (below, down), (beside, right))
    return Shaped((rows, columns), n, blocks)


def _blocks(*parts: tuple[Scopes, Scores]) -> tuple[Block, ...]:
    """Combine scopes and their tables, if there are any."""
    return tuple(Block(scopes, read_only(tables), key) for (scopes, key), tables in parts if len(scopes))


@lru_cache(maxsize=256)
def chain_scopes(size: int) -> Scopes:
    """Return the pairs of consecutive variables."""
    first = np.arange(max(size - 1, 0), dtype=np.int32)
    scopes = read_only(np.column_stack((first, first + 1)))
    return scopes, digest(scopes)


@lru_cache(maxsize=256)
def _grid_scopes(rows: int, columns: int) -> tuple[Scopes, Scopes]:
    """Return the pairs (upper, lower) and the pairs (left, right)."""
    places = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    below = read_only(np.stack((places[:-1], places[1:]), axis=-1).reshape(-1, 2))
    beside = read_only(np.stack((places[:, :-1], places[:, 1:]), axis=-1).reshape(-1, 2))
    return (below, digest(below)), (beside, digest(beside))
