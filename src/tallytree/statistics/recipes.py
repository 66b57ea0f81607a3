"""Common statistics: how many variables take a state, agree with a labelling, or disagree with it.

Without a model, :func:`count` returns a recipe, which becomes a statistic on each model it is used with.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.model.blocks import Block, unary_scopes
from tallytree.model.pairs import integer_tables, numeric
from tallytree.statistics.domain import Domain
from tallytree.statistics.entries import checked_cap
from tallytree.statistics.statistic import Recipe, State, Statistic, checked_name, shared
from tallytree.values import read_only, set_once


@final
class CountRecipe(Recipe):
    """How many variables take one of some states; returned by ``count`` without a model."""

    __slots__ = ("cap", "name", "states", "variables")

    states: tuple[State, ...]
    variables: tuple[State, ...] | None
    name: str
    cap: int | None

    def __init__(
        self, states: tuple[State, ...], variables: tuple[State, ...] | None, name: str, cap: int | None
    ) -> None:
        set_once(self, "states", states)
        set_once(self, "variables", variables)
        set_once(self, "name", checked_name(name))
        set_once(self, "cap", cap if cap is None else count_cap(cap, name))

    @property
    def key(self) -> bytes:
        """States, variables and cap, but not the name."""
        return repr((self.states, self.variables, self.cap)).encode()

    def capped(self, cap: int | None) -> CountRecipe:
        """Return the same recipe with another cap, or without one."""
        return CountRecipe(self.states, self.variables, self.name, cap)

    def named(self, name: str) -> CountRecipe:
        """Return the same recipe with another name."""
        return CountRecipe(self.states, self.variables, name, self.cap)

    def on(self, model: Domain) -> Statistic:
        """Return the statistic for this model."""
        if self.variables is None and model.alike is not None:
            blocks = _count_alike(model, self.states)
        else:
            blocks = _count_some(model, self.states, self.variables)
        return Statistic.from_blocks(blocks, self.name, self.cap, model.cardinalities, 1, model.shape)

    def __reduce__(self) -> tuple[type[CountRecipe], tuple[object, ...]]:
        return CountRecipe, (self.states, self.variables, self.name, self.cap)

    def __repr__(self) -> str:
        state = self.states[0] if len(self.states) == 1 else self.states
        variables = "" if self.variables is None else f", variables={self.variables}"
        cap = "" if self.cap is None else f", cap={self.cap}"
        return f"count(state={state!r}{variables}, name={self.name!r}{cap})"


@overload
def count(
    model: None = None,
    *,
    state: State | Collection[State],
    variables: Iterable[State] | None = None,
    name: str | None = None,
    cap: int | None = None,
) -> CountRecipe: ...
@overload
def count(
    model: Domain,
    *,
    state: State | Collection[State],
    variables: Iterable[State] | None = None,
    name: str | None = None,
    cap: int | None = None,
) -> Statistic: ...
def count(
    model: Domain | None = None,
    *,
    state: State | Collection[State],
    variables: Iterable[State] | None = None,
    name: str | None = None,
    cap: int | None = None,
) -> Statistic | CountRecipe:
    """Count the variables that take a state.

    Parameters
    ----------
    model : Model, optional
        The model to count on. If omitted, a recipe is returned, which is bound when it is used, or by
        ``.on(model)``.
    state : str, int, or a collection of them
        The state, by name or number; with several, a variable counts if it takes any of them. A variable
        without such a state counts 0, but at least one variable must have it.
    variables : iterable of str or int, optional
        The variables to count, by name or number; all by default.
    name : str, optional
        By default ``count_`` and the states.
    cap : int, optional
        The maximum of the count: larger counts are reported as ``cap``.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.zeros((4, 3)), np.zeros((3, 3)), states=["B", "I", "O"])
    >>> chunks = tt.count(model, state="B")
    >>> chunks.name, chunks.tally(model.encode(["B", "I", "B", "O"]))
    ('count_B', 2)
    >>> inside = tt.count(state=["B", "I"], name="inside")  # a recipe
    >>> inside.on(model).tally(model.encode(["B", "I", "B", "O"]))
    3
    >>> (inside >= 2).on(model)
    inside >= 2
    """
    states = chosen_states(state)
    chosen = None if variables is None else tuple(_plain(v) for v in variables)
    recipe = CountRecipe(states, chosen, field_name("count", states) if name is None else name, cap)
    return recipe if model is None else recipe.on(model)


def count_cap(cap: object, name: str) -> int:
    """Return the cap of a count, which is never negative."""
    value = checked_cap(cap, name)
    if value < 0:
        raise ModelError(
            f"the cap of {name!r} is {value}, but a count is never negative; use 0 or more, or None"
        )
    return value


def chosen_states(state: State | Collection[State]) -> tuple[State, ...]:
    """Return one or several states as a tuple of distinct ones."""
    if isinstance(state, (str, int, np.integer)):
        return (_plain(state),)
    try:
        states = tuple(dict.fromkeys(_plain(one) for one in state))
    except TypeError:
        raise ModelError(f"state must be a name, a number or a collection of them, got {state!r}") from None
    if not states:
        raise ModelError("state is an empty collection; give at least one state to count")
    return states


def _plain(name: State) -> State:
    """Return a name or a number as a plain str or int, so that equal recipes have equal keys."""
    return str(name) if isinstance(name, str) else operator.index(name)


@lru_cache(maxsize=256)
def field_name(noun: str, states: tuple[State, ...]) -> str:
    """Return a name for a statistic that is a valid field of a tally: ``count_B_NP`` for the state B-NP."""
    return re.sub(r"\W", "_", "_".join((noun, *map(str, states))))


def _count_alike(model: Domain, states: tuple[State, ...]) -> tuple[Block, ...]:
    """One table for all variables: ``g(y_i) = [y_i in states]``."""
    table = np.zeros((1, model.alike or 0), dtype=np.int64)
    for state in states:
        table[0, model.state_codes(state)[:1]] = 1
    return _all_alike(model, table)


def _count_some(
    model: Domain, states: tuple[State, ...], variables: tuple[State, ...] | None
) -> tuple[Block, ...]:
    size = len(model.cardinalities)
    chosen = np.arange(size) if variables is None else model.variable_indices(variables)
    codes = np.stack([model.state_codes(state)[chosen] for state in states])
    for state, row in zip(states, codes, strict=True):
        if len(row) and (row < 0).all():
            raise ModelError(
                f"none of the variables {_some(chosen)} has the state {state!r}, so there is nothing to count"
            )
    return _by_cardinality(
        model, chosen, lambda rows, n: shared((codes[:, rows, None] == np.arange(n)).any(axis=0))
    )


def _some(chosen: NDArray[Any]) -> str:
    return ", ".join(map(str, chosen[:8].tolist())) + (", …" if len(chosen) > 8 else "")


def _all_alike(model: Domain, tables: NDArray[Any]) -> tuple[Block, ...]:
    """Return one block with all variables, or none if there are no variables."""
    scopes, key = unary_scopes(len(model.cardinalities))
    return (Block(scopes, read_only(tables), key),) if len(scopes) else ()


def _by_cardinality(
    model: Domain, chosen: NDArray[Any], tables: Callable[[Any, int], NDArray[np.bool_]]
) -> tuple[Block, ...]:
    """Make a block for each number of states; ``tables(rows, n)`` is for the variables ``chosen[rows]``."""
    sizes = model.cardinalities[chosen]
    groups = [(np.flatnonzero(sizes == n), n) for n in np.unique(sizes).tolist()]
    return tuple(Block(chosen[rows, None], tables(rows, n).astype(np.int64)) for rows, n in groups)


def matches(
    model: Domain,
    labelling: ArrayLike | None = None,
    background: State | None = None,
    *,
    name: str = "matches",
    cap: int | None = None,
) -> Statistic:
    """Count the variables that agree with a labelling.

    Parameters
    ----------
    model : Model
        The model to count on.
    labelling : array-like
        The labelling to compare with, as names or numbers.
    background : str or int, optional
        Agreement on this state does not count: only true positives are counted.
    name : str
        The name of the statistic.
    cap : int, optional
        The maximum of the count.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    >>> right = tt.matches(model, [0, 1, 1])
    >>> true_positives = tt.matches(model, [0, 1, 1], background=0)
    >>> right.tally([0, 1, 0]), true_positives.tally([0, 1, 0])
    (2, 1)
    """
    return _agreement(model, labelling, background, operator.eq, name, cap)


def mismatches(
    model: Domain,
    labelling: ArrayLike | None = None,
    background: State | None = None,
    *,
    name: str = "mismatches",
    cap: int | None = None,
) -> Statistic:
    """Count the variables that disagree with a labelling (the Hamming distance to it).

    Parameters
    ----------
    model : Model
        The model to count on.
    labelling : array-like
        The labelling to compare with, as names or numbers.
    background : str or int, optional
        Variables in this state do not count, even if the labelling differs: only false positives are counted.
    name : str
        The name of the statistic.
    cap : int, optional
        The maximum of the count.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    >>> wrong = tt.mismatches(model, [0, 1, 1])
    >>> false_positives = tt.mismatches(model, [0, 1, 1], background=0)
    >>> wrong.tally([1, 1, 0]), false_positives.tally([1, 1, 0])
    (2, 1)
    """
    return _agreement(model, labelling, background, operator.ne, name, cap)


def _agreement(
    model: Domain,
    labelling: ArrayLike | None,
    background: State | None,
    relation: Callable[[Any, Any], Any],
    name: str,
    cap: int | None,
) -> Statistic:
    if labelling is None or not hasattr(model, "encode"):
        raise ModelError("pass the model and a labelling of it, as in tt.mismatches(model, labelling)")
    if cap is not None:
        count_cap(cap, name)
    codes = model.encode(labelling)
    ignored = np.full(len(codes), -1) if background is None else model.state_codes(background)

    def tables(rows: Any, n: int) -> NDArray[np.bool_]:
        states = np.arange(n)
        indicator: NDArray[np.bool_] = relation(codes[rows, None], states) & (ignored[rows, None] != states)
        return indicator

    if model.alike is None:
        blocks = _by_cardinality(model, np.arange(len(codes)), tables)
    else:
        blocks = _all_alike(model, tables(slice(None), model.alike).astype(np.int64))
    return Statistic.from_blocks(blocks, name, cap, model.cardinalities, 1, model.shape)


def node_statistic(entries: ArrayLike, *, name: str = "statistic", cap: int | None = None) -> Statistic:
    """Make a statistic from an array: the integer that each variable adds in each of its states.

    Parameters
    ----------
    entries : (M, N) or (rows, columns, N) array of int
        ``entries[v, s]`` is what variable ``v`` adds in state ``s``; for a grid, ``entries[row, column, s]``.
        It is an error to use the statistic of one grid with a grid of another shape.
    name, cap
        As for :class:`Statistic`.

    Examples
    --------
    >>> import tallytree as tt
    >>> cost = tt.node_statistic([[0, 3], [0, 5], [0, 1]], name="cost")
    >>> cost.tally([1, 0, 1])
    4
    """
    array = numeric(entries, "the array of entries")
    if array.ndim not in (2, 3):
        raise ModelError(
            "a node statistic needs one row of states per variable: shape (M, N), or (rows, columns, N) for "
            f"a grid; got an array of shape {array.shape}"
        )
    tables = integer_tables(array.reshape(-1, array.shape[-1]), lambda k: f"variable {k}")
    scopes, _ = unary_scopes(len(tables))
    states = read_only(np.full(len(tables), tables.shape[1], dtype=np.int32))
    blocks = [Block(scopes, read_only(tables.copy()))]
    return Statistic.from_blocks(blocks, name, cap, states, shape=array.shape[:-1])
