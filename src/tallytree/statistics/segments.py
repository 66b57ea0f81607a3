"""Segments: how often neighbouring variables differ, and how many runs of a state there are.

A run of variables in some states ``S`` begins at the first variable, or after one outside ``S``. So the
number of runs is ``[y_0 ∈ S] + Σ_t [y_t ∉ S, y_{t+1} ∈ S]``, a sum over single variables and pairs, like the
number of changes, ``Σ_t [y_t ≠ y_{t+1}]``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, final, overload

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.model.blocks import Block
from tallytree.model.pairs import from_pairs
from tallytree.model.shapes import chain_scopes
from tallytree.statistics.domain import Domain
from tallytree.statistics.recipes import chosen_states, count_cap, field_name
from tallytree.statistics.statistic import Recipe, State, Statistic, checked_name
from tallytree.values import read_only, set_once

Pairs = NDArray[np.int32]
"""The two variables of each pair, one pair per row."""


class _NeighbourRecipe(Recipe):
    """A statistic of neighbouring variables, with a name and a cap."""

    __slots__ = ("cap", "name", "states")

    states: tuple[State, ...] | None
    name: str
    cap: int | None

    def __init__(self, states: tuple[State, ...] | None, name: str, cap: int | None) -> None:
        set_once(self, "states", states)
        set_once(self, "name", checked_name(name))
        set_once(self, "cap", cap if cap is None else count_cap(cap, name))

    @property
    def key(self) -> bytes:
        """The states and the cap, but not the name."""
        return repr((type(self).__name__, self.states, self.cap)).encode()

    def capped(self, cap: int | None) -> _NeighbourRecipe:
        """Return the same recipe with another cap, or without one."""
        return type(self)(self.states, self.name, cap)

    def named(self, name: str) -> _NeighbourRecipe:
        """Return the same recipe with another name."""
        return type(self)(self.states, name, self.cap)

    def __reduce__(self) -> tuple[type[_NeighbourRecipe], tuple[object, ...]]:
        return type(self), (self.states, self.name, self.cap)

    def _bound(self, model: Domain, blocks: tuple[Block, ...]) -> Statistic:
        return Statistic.from_blocks(blocks, self.name, self.cap, model.cardinalities, 1, model.shape)

    def _arguments(self) -> str:
        cap = "" if self.cap is None else f", cap={self.cap}"
        return f"name={self.name!r}{cap}"


@final
class ChangesRecipe(_NeighbourRecipe):
    """How many neighbouring pairs have different states; returned by ``changes`` without a model."""

    __slots__ = ()

    def on(self, model: Domain) -> Statistic:
        """Return the statistic for this model."""
        return self._bound(model, _changes(model, _neighbours(model)))

    def __repr__(self) -> str:
        return f"changes({self._arguments()})"


@final
class SegmentsRecipe(_NeighbourRecipe):
    """How many runs of some states there are; returned by ``segments`` without a model."""

    __slots__ = ()

    def on(self, model: Domain) -> Statistic:
        """Return the statistic for this model, which must be a chain."""
        _check_chain(model)
        if self.states is not None:
            return self._bound(model, _starts(model, self.states))
        first = from_pairs([((0,), np.ones(n)) for n in model.cardinalities[:1].tolist()], np.int64)
        return self._bound(model, (*first, *_changes(model, _neighbours(model))))

    def __repr__(self) -> str:
        several = self.states is not None and len(self.states) > 1
        state = "" if self.states is None else f"state={self.states if several else self.states[0]!r}, "
        return f"segments({state}{self._arguments()})"


@overload
def changes(model: None = None, *, name: str = "changes", cap: int | None = None) -> ChangesRecipe: ...
@overload
def changes(model: Domain, *, name: str = "changes", cap: int | None = None) -> Statistic: ...
def changes(
    model: Domain | None = None, *, name: str = "changes", cap: int | None = None
) -> Statistic | ChangesRecipe:
    """Count the pairs of neighbouring variables that have different states.

    On chains, neighbours are consecutive variables; on grids, trees and other models, variables that share a
    factor of two variables. All variables must have the same states.

    Parameters
    ----------
    model : Model, optional
        The model to count on. If omitted, a recipe is returned, which is bound when it is used, or by
        ``.on(model)``.
    name : str
        The name of the statistic.
    cap : int, optional
        The maximum of the count: larger counts are reported as ``cap``.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> chain = tt.Model.chain(np.zeros((5, 2)), np.eye(2))
    >>> grid = tt.Model.grid(np.zeros((2, 2, 2)), np.eye(2), np.eye(2))
    >>> tt.changes(chain).tally([0, 1, 1, 0, 0]), tt.changes(grid).tally([[0, 1], [0, 0]])
    (2, 2)
    """
    recipe = ChangesRecipe(None, name, cap)
    return recipe if model is None else recipe.on(model)


@overload
def segments(
    model: None = None,
    *,
    state: State | Collection[State] | None = None,
    name: str | None = None,
    cap: int | None = None,
) -> SegmentsRecipe: ...
@overload
def segments(
    model: Domain,
    *,
    state: State | Collection[State] | None = None,
    name: str | None = None,
    cap: int | None = None,
) -> Statistic: ...
def segments(
    model: Domain | None = None,
    *,
    state: State | Collection[State] | None = None,
    name: str | None = None,
    cap: int | None = None,
) -> Statistic | SegmentsRecipe:
    """Count the segments of a chain: the longest runs of consecutive variables with the same state.

    Parameters
    ----------
    model : Model, optional
        The model to count on, a chain. If omitted, a recipe is returned, which is bound when it is used, or
        by ``.on(model)``.
    state : str, int, or a collection of them, optional
        Count only segments of this state, by name or number; with several, runs of variables that take any of
        them. By default all segments count, one more than :func:`changes`.
    name : str, optional
        By default ``segments``, and the states.
    cap : int, optional
        The maximum of the count: larger counts are reported as ``cap``.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.zeros((6, 2)), np.eye(2), states=["-", "talk"])
    >>> utterances = tt.segments(state="talk", name="utterances")
    >>> y = model.encode(["talk", "-", "-", "talk", "talk", "-"])
    >>> utterances.on(model).tally(y), tt.segments(model).tally(y)
    (2, 4)
    """
    states = None if state is None else chosen_states(state)
    chosen = field_name("segments", states or ()) if name is None else name
    recipe = SegmentsRecipe(states, chosen, cap)
    return recipe if model is None else recipe.on(model)


# --- neighbours ---------------------------------------------------------------------------------------------


def _apart(model: Domain) -> Pairs | None:
    """Return the first scope with variables that are not consecutive; None for chains."""
    for block in model.blocks:
        far = np.ptp(block.scopes, axis=1) >= block.arity if block.arity > 1 else np.zeros(1, dtype=bool)
        if far.any():
            scope: Pairs = block.scopes[far.argmax()]
            return scope
    return None


def _check_chain(model: Domain) -> None:
    scope = _apart(model)
    if scope is not None:
        raise ModelError(
            "segments are runs of consecutive variables, but this model is not a chain: a factor joins "
            f"variables {', '.join(map(str, scope.tolist()))}; changes() counts neighbours that differ"
        )


def _neighbours(model: Domain) -> tuple[Pairs, bytes | None]:
    """Return consecutive variables of a chain, and of other models those that share a factor of two."""
    if _apart(model) is None:
        return chain_scopes(len(model.cardinalities))
    pairs = [np.sort(block.scopes, axis=1) for block in model.blocks if block.arity == 2]
    return np.unique(np.concatenate([np.empty((0, 2), dtype=np.int32), *pairs]), axis=0), None


def _changes(model: Domain, neighbours: tuple[Pairs, bytes | None]) -> tuple[Block, ...]:
    pairs, key = neighbours
    if not len(pairs):
        return ()
    if model.alike is None:
        raise ModelError(
            "neighbours can only be compared if all variables have the same states; to count the runs of one "
            "state, use segments(state=…)"
        )
    differ = 1 - np.eye(model.alike, dtype=np.int64)
    return (Block(pairs, read_only(differ[None]), key),)


def _starts(model: Domain, states: tuple[State, ...]) -> tuple[Block, ...]:
    """Return the tables ``[y_0 ∈ S]`` and ``[y_t ∉ S, y_{t+1} ∈ S]``."""
    codes = np.stack([model.state_codes(state) for state in states])

    def inside(variable: int) -> NDArray[np.bool_]:
        return np.isin(np.arange(model.cardinalities[variable]), codes[:, variable])

    def start(before: int) -> NDArray[Any]:
        return np.logical_and.outer(~inside(before), inside(before + 1)).astype(np.int64)

    size = len(model.cardinalities)
    first = from_pairs([((v,), inside(v)) for v in range(min(size, 1))], np.int64)
    if model.alike is not None and size > 1:
        scopes, key = chain_scopes(size)
        return (*first, Block(scopes, read_only(start(0)[None]), key))
    return (*first, *from_pairs([((v, v + 1), start(v)) for v in range(size - 1)], np.int64))
