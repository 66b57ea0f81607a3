"""Statistics: integers that labellings add up to, ``G(y) = Σ_t g_t(y_Ct)``, capped at will: ``min(cap, G)``.

A :class:`Statistic` is bound to variables by its scopes. ``count``, ``matches`` and ``mismatches`` make the
usual ones. Without a model, ``count`` gives a :class:`Recipe`, which becomes a statistic on each model it
meets.
"""

from __future__ import annotations

import hashlib
import operator
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any, final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.core.blocks import (
    Block,
    Pair,
    check_blocks,
    counted,
    evaluate,
    from_pairs,
    owned,
    read_only,
    set_once,
    unary_scopes,
)
from tallytree.core.expressions import Constraint, Domain, Expression, Term
from tallytree.errors import ModelError

__all__ = ["CountRecipe", "Recipe", "Statistic", "count", "matches", "mismatches", "read_by"]

State = str | int
"""A state, by its name or its number."""


@final
class Statistic(Term):
    """An integer statistic of labellings.

    Parameters
    ----------
    pairs : iterable of (scope, table)
        Each scope is a tuple of distinct variable numbers, each table an integer array with one axis per
        variable of its scope. Booleans and whole floats count as integers; magnitudes stay below 2**40.
    name : str
        What the tally is called. Two statistics with the same content are equal whatever their names.
    cap : int, optional
        The tally is ``min(cap, Σ g)``.

    Attributes
    ----------
    blocks : tuple of Block
        The tables in bulk, int64.
    key : bytes
        A digest of the blocks and the cap: hash and ``==`` go by it.
    cardinalities : int32 array or None
        The model shape it is bound to, if a helper made it for a model.

    Examples
    --------
    >>> import tallytree as tt
    >>> flips = tt.Statistic([((0, 1), [[0, 1], [1, 0]]), ((1, 2), [[0, 1], [1, 0]])], name="flips")
    >>> flips.tally([0, 1, 0])
    2
    >>> flips.capped(1).tally([0, 1, 0])
    1
    >>> flips >= 1
    flips >= 1
    """

    __slots__ = ("_key", "blocks", "cap", "cardinalities", "name")

    blocks: tuple[Block, ...]
    name: str
    cap: int | None
    cardinalities: NDArray[np.int32] | None
    _key: bytes | None

    def __init__(self, pairs: Iterable[Pair], name: str = "statistic", cap: int | None = None) -> None:
        self._fill(from_pairs(pairs, np.int64, noun=f"statistic {name!r}, part"), name, cap, None)

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Block],
        name: str = "statistic",
        cap: int | None = None,
        cardinalities: NDArray[np.int32] | None = None,
    ) -> Statistic:
        """Make a statistic of int64 blocks that are known to be well formed, for a model shape if given."""
        statistic: Statistic = object.__new__(cls)
        statistic._fill(tuple(blocks), name, cap, cardinalities)
        return statistic

    @classmethod
    def combination(cls, expression: Expression, name: str | None = None) -> Statistic:
        """Make one statistic of an integer combination of uncapped statistics.

        Examples
        --------
        >>> import tallytree as tt
        >>> a, b = tt.Statistic([((0,), [0, 1])], name="a"), tt.Statistic([((1,), [0, 1])], name="b")
        >>> both = tt.Statistic.combination(2 * a - b + 3)
        >>> both.name, both.tally([1, 1])
        ('2*a - b + 3', 4)
        """
        linear = expression.linear()
        blocks = [
            block.with_tables(read_only(block.tables * c))
            for statistic, c in ((_bound(term), c) for term, c in linear.terms)
            for block in _uncapped(statistic).blocks
        ]
        if linear.constant:
            blocks.extend(from_pairs([((), linear.constant)], np.int64, noun="constant"))
        return cls.from_blocks(blocks, name or repr(linear))

    def _fill(
        self, blocks: tuple[Block, ...], name: str, cap: int | None, cardinalities: NDArray[np.int32] | None
    ) -> None:
        set_once(self, "blocks", blocks)
        set_once(self, "name", _checked_name(name))
        set_once(self, "cap", cap if cap is None else _checked_cap(cap, name))
        set_once(
            self, "cardinalities", cardinalities if cardinalities is None else owned(cardinalities, np.int32)
        )
        set_once(self, "_key", None)

    @property
    def key(self) -> bytes:
        """A digest of the blocks and the cap, not of the name."""
        if self._key is None:
            set_once(self, "_key", _digest(self.blocks, self.cap))
        assert self._key is not None
        return self._key

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Statistic) or self is other:
            return super().__eq__(other)
        if self._make != other._make:  # seen before any table is read
            return False
        pairs = [(a.tables, b.tables) for a, b in zip(self.blocks, other.blocks, strict=True)]
        if all(a.shape == b.shape for a, b in pairs):
            return all((a == b).all() for a, b in pairs)
        return self.key == other.key

    def __hash__(self) -> int:
        return hash(self._make)

    @property
    def _make(self) -> tuple[object, ...]:
        """What equal statistics share, apart from the entries of their tables."""
        return (self.cap, *((block.key, block.tables.shape[1:]) for block in self.blocks))

    def tally(self, y: ArrayLike) -> int:
        """Compute the tally of a labelling, cap included.

        Parameters
        ----------
        y : integer array-like
            One state number per variable, 2-D on grids (``model.encode`` turns names into numbers).
        """
        total = int(_evaluated(self, y))
        return total if self.cap is None else min(self.cap, total)

    def capped(self, cap: int | None) -> Statistic:
        """Return the same statistic with another cap, or with none."""
        return Statistic.from_blocks(self.blocks, self.name, cap, self.cardinalities)

    def named(self, name: str) -> Statistic:
        """Return the same statistic under another name."""
        return Statistic.from_blocks(self.blocks, name, self.cap, self.cardinalities)

    def on(self, model: Domain) -> Statistic:
        """Return itself if it fits the model.

        Raises
        ------
        ModelError
            It was made for a model of another shape, or its scopes or tables do not fit.
        """
        if self.cardinalities is None:
            check_blocks(self.blocks, np.int64, model.cardinalities, noun=f"statistic {self.name!r}, part")
        elif self.cardinalities is not model.cardinalities:
            _check_same_shape(self.name, self.cardinalities, model.cardinalities)
        return self

    def __reduce__(self) -> tuple[Callable[..., Statistic], tuple[object, ...]]:
        return Statistic.from_blocks, (self.blocks, self.name, self.cap, self.cardinalities)

    def __repr__(self) -> str:
        parts = counted(sum(map(len, self.blocks)), "part")
        cap = "" if self.cap is None else f", cap={self.cap}"
        return f"Statistic({self.name!r}, {parts}{cap})"


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ModelError(f"the name of a statistic is a non-empty string, got {name!r}")
    return name


def _checked_cap(cap: object, name: str) -> int:
    try:
        value = operator.index(cap)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"the cap of statistic {name!r} is an integer or None, got {cap!r}") from None
    if abs(value) >= 2**62:
        raise ModelError(f"the cap of statistic {name!r} is {value}, beyond 2**62; leave it out for no cap")
    return value


def _digest(blocks: Iterable[Block], cap: int | None) -> bytes:
    content = hashlib.blake2b(repr(cap).encode(), digest_size=16)
    for block in blocks:
        tables = _shared(block.tables)  # one key, whether equal tables came one by one or as one
        content.update(block.key)
        content.update(repr(tables.shape).encode())
        content.update(tables.data)
    return content.digest()


def _shared(tables: NDArray[Any]) -> NDArray[Any]:
    """Keep one table where all are equal."""
    return tables[:1] if len(tables) > 1 and (tables == tables[0]).all() else tables


def _evaluated(statistic: Statistic, y: ArrayLike) -> float:
    labelling = np.asarray(y)
    if labelling.size and labelling.dtype.kind not in "biu":
        raise ModelError(
            f"statistic {statistic.name!r} needs a labelling of state numbers, got an array of dtype "
            f"{labelling.dtype}; use model.encode(y) to turn names into numbers"
        )
    try:
        if labelling.min(initial=0) < 0:
            raise IndexError(f"there is no state {labelling.min()}")
        return evaluate(statistic.blocks, labelling.reshape(-1).astype(np.int64))
    except IndexError as error:
        raise ModelError(
            f"the labelling does not fit statistic {statistic.name!r}: {error}; give one state number per "
            "variable, each from 0 to its number of states less one"
        ) from None


def _check_same_shape(name: str, made_for: NDArray[np.int32], got: NDArray[np.int32]) -> None:
    if not np.array_equal(made_for, got):
        raise ModelError(
            f"statistic {name!r} was made for a model with {_sizes(made_for)} and does not fit one with "
            f"{_sizes(got)}; make it for this model, or use a recipe, such as count(state=…) without a model"
        )


def _sizes(cardinalities: NDArray[np.int32]) -> str:
    head = ", ".join(map(str, cardinalities[:8].tolist()))
    return f"{len(cardinalities)} variables of ({head}{', …' if len(cardinalities) > 8 else ''}) states"


def _bound(term: Term) -> Statistic:
    if not isinstance(term, Statistic):
        raise ModelError(f"{term!r} is a recipe, bound to no model yet; bind it first, with .on(model)")
    return term


def _uncapped(statistic: Statistic) -> Statistic:
    if statistic.cap is not None:
        raise ModelError(
            f"statistic {statistic.name!r} is capped at {statistic.cap}, so a combination of it is not a sum "
            "over scopes; use the uncapped one, .capped(None), or keep the two apart"
        )
    return statistic


def read_by(constraint: Constraint) -> tuple[Statistic, ...]:
    """Return the distinct statistics that a bound constraint reads, in order of first use.

    Raises
    ------
    ModelError
        A recipe is among them: bind the constraint with ``constraint.on(model)`` first.
    """
    return tuple(map(_bound, constraint.statistics))


# --- helpers and recipes ------------------------------------------------------------------------------------


class Recipe(Term):
    """A statistic for any model: bound by ``.on(model)``, or when it is used."""

    __slots__ = ()

    @abstractmethod
    def on(self, model: Domain) -> Statistic:
        """Make the statistic of this model."""


@final
class CountRecipe(Recipe):
    """How many variables take one of some states; made by ``count`` without a model."""

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
        set_once(self, "name", _checked_name(name))
        set_once(self, "cap", cap if cap is None else _checked_cap(cap, name))

    @property
    def key(self) -> bytes:
        """States, variables and cap, not the name."""
        return repr((self.states, self.variables, self.cap)).encode()

    def capped(self, cap: int | None) -> CountRecipe:
        """Return the same recipe with another cap, or with none."""
        return CountRecipe(self.states, self.variables, self.name, cap)

    def named(self, name: str) -> CountRecipe:
        """Return the same recipe under another name."""
        return CountRecipe(self.states, self.variables, name, self.cap)

    def on(self, model: Domain) -> Statistic:
        """Make the statistic of this model."""
        if self.variables is None and model.alike is not None:
            blocks = _count_alike(model, self.states)
        else:
            blocks = _count_some(model, self.states, self.variables)
        return Statistic.from_blocks(blocks, self.name, self.cap, model.cardinalities)

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
        The model to count on. Without one the result is a recipe, bound when it is used, or by
        ``.on(model)``.
    state : str, int, or a collection of them
        The state, by name or number; with several, a variable counts if it takes any of them. A variable that
        has no such state counts 0, but at least one must have it.
    variables : iterable of str or int, optional
        The variables to look at, by name or number; all by default.
    name : str, optional
        By default ``count_`` and the states.
    cap : int, optional
        Count no further than this.

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
    states = _states(state)
    chosen = None if variables is None else tuple(_plain(v) for v in variables)
    recipe = CountRecipe(states, chosen, _count_name(states) if name is None else name, cap)
    return recipe if model is None else recipe.on(model)


def _states(state: State | Collection[State]) -> tuple[State, ...]:
    if isinstance(state, (str, int, np.integer)):
        return (_plain(state),)
    try:
        states = tuple(dict.fromkeys(_plain(one) for one in state))
    except TypeError:
        raise ModelError(f"state must be a name, a number or a collection of them, got {state!r}") from None
    if not states:
        raise ModelError("state is an empty collection; name at least one state to count")
    return states


def _plain(name: State) -> State:
    """Return a name or a number as a plain str or int, so that equal recipes have equal keys."""
    return str(name) if isinstance(name, str) else operator.index(name)


@lru_cache(maxsize=256)
def _count_name(states: tuple[State, ...]) -> str:
    # a name that can be a field of the tally: count_B_NP for the state B-NP
    return re.sub(r"\W", "_", "_".join(("count", *map(str, states))))


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
                f"none of the variables {_some(chosen)} has the state {state!r}; nothing to count"
            )
    return _by_cardinality(
        model, chosen, lambda rows, n: _shared((codes[:, rows, None] == np.arange(n)).any(axis=0))
    )


def _some(chosen: NDArray[Any]) -> str:
    return ", ".join(map(str, chosen[:8].tolist())) + (", …" if len(chosen) > 8 else "")


def _all_alike(model: Domain, tables: NDArray[Any]) -> tuple[Block, ...]:
    """One block of all variables, one by one; none if there are none."""
    scopes, key = unary_scopes(len(model.cardinalities))
    return (Block(scopes, read_only(tables), key),) if len(scopes) else ()


def _by_cardinality(
    model: Domain, chosen: NDArray[Any], tables: Callable[[Any, int], NDArray[np.bool_]]
) -> tuple[Block, ...]:
    """Make a block for each number of states; ``tables(rows, n)`` is about the variables ``chosen[rows]``."""
    sizes = model.cardinalities[chosen]
    groups = [(np.flatnonzero(sizes == n), n) for n in np.unique(sizes).tolist()]
    return tuple(Block(chosen[rows, None], tables(rows, n).astype(np.int64)) for rows, n in groups)


def matches(
    model: Domain,
    labelling: ArrayLike,
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
        What to agree with, as names or numbers.
    background : str or int, optional
        Agreement on this state does not count: true positives.
    name : str
        The name of the statistic.
    cap : int, optional
        Count no further than this.

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
    labelling: ArrayLike,
    background: State | None = None,
    *,
    name: str = "mismatches",
    cap: int | None = None,
) -> Statistic:
    """Count the variables that disagree with a labelling: the Hamming distance to it.

    Parameters
    ----------
    model : Model
        The model to count on.
    labelling : array-like
        What to disagree with, as names or numbers.
    background : str or int, optional
        A variable that takes this state does not count, even if the labelling has another: false positives.
    name : str
        The name of the statistic.
    cap : int, optional
        Count no further than this.

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
    labelling: ArrayLike,
    background: State | None,
    relation: Callable[[Any, Any], Any],
    name: str,
    cap: int | None,
) -> Statistic:
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
    return Statistic.from_blocks(blocks, name, cap, model.cardinalities)
