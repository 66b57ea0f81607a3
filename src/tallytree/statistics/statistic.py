"""Statistics: integer sums over labellings, ``G(y) = Σ_t g_t(y_Ct)``, optionally capped: ``min(cap, G)``.

A :class:`Statistic` is bound to variables by its scopes; a :class:`Recipe` becomes a statistic on each model
it is used with. ``recipes.py`` has the common ones.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.model.blocks import LARGEST_INTEGER, Block, evaluate
from tallytree.model.pairs import Pair, check_blocks, from_pairs
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.domain import Domain, check_grid, check_same_shape
from tallytree.statistics.entries import check_reach, checked_cap, ends_of_blocks, joined, largest, multiplied
from tallytree.statistics.linear import Counted, Expression, Term
from tallytree.statistics.operands import unbound
from tallytree.values import counted, is_masked, owned, read_only, set_once

State = str | int
"""A state, by its name or its number."""


@final
class Statistic(Counted):
    """An integer statistic of labellings.

    Parameters
    ----------
    pairs : iterable of (scope, table)
        Each scope is a tuple of distinct variable numbers, each table an integer array with one axis per
        variable of its scope. Booleans and integral floats count as integers; magnitudes stay below 2**40.
    name : str
        The name of the tally. Statistics with the same content are equal whatever their names.
    cap : int, optional
        The tally is ``min(cap, Σ g)``.

    Attributes
    ----------
    blocks : tuple of Block
        The tables in bulk, int64.
    key : bytes
        A digest of the blocks and the cap, used for hashing and ``==``.
    cardinalities : int32 array or None
        The cardinalities of the model it was made for, if any.
    shape : tuple of int or None
        The shape of a labelling of that model, if known.

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

    __slots__ = ("_ends", "_hash", "_key", "_scale", "blocks", "cap", "cardinalities", "name", "shape")

    entry_limit = LARGEST_INTEGER

    blocks: tuple[Block, ...]
    name: str
    cap: int | None
    cardinalities: NDArray[np.int32] | None
    shape: tuple[int, ...] | None
    _ends: tuple[int, int] | None  # without the cap
    _hash: int | None
    _key: bytes | None
    _scale: int

    def __init__(self, pairs: Iterable[Pair], name: str = "statistic", cap: int | None = None) -> None:
        if isinstance(pairs, np.ndarray) and pairs.dtype != object:
            raise ModelError(
                f"statistic {name!r}: expected (scope, table) pairs, got an array of shape {pairs.shape}; "
                "for one integer per state of each variable, use tallytree.node_statistic"
            )
        self._fill(from_pairs(pairs, np.int64, noun=f"statistic {name!r}, part"), name, cap, None)

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Block],
        name: str = "statistic",
        cap: int | None = None,
        cardinalities: NDArray[np.int32] | None = None,
        scale: int = 0,
        shape: tuple[int, ...] | None = None,
    ) -> Statistic:
        """Make a statistic from valid int64 blocks, optionally for a model of these cardinalities and shape.

        The scale may be given if known: it is 1 if all entries are 0 or 1.
        """
        statistic: Statistic = object.__new__(cls)
        statistic._fill(tuple(blocks), name, cap, cardinalities, scale, shape)
        return statistic

    @classmethod
    def combination(cls, expression: Expression, name: str | None = None) -> Statistic:
        """Return an integer combination of uncapped statistics as a single statistic.

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
            block.with_tables(read_only(multiplied(block.tables, c, linear)))
            for statistic, c in ((_bound(term), c) for term, c in linear.terms)
            for block in _uncapped(statistic).blocks
        ]
        blocks = joined(blocks)
        if linear.constant:
            blocks.extend(from_pairs([((), linear.constant)], np.int64, noun="constant"))
        return cls.from_blocks(blocks, name or repr(linear))

    def _fill(
        self,
        blocks: tuple[Block, ...],
        name: str,
        cap: int | None,
        cardinalities: NDArray[np.int32] | None,
        scale: int = 0,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        set_once(self, "blocks", blocks)
        set_once(self, "name", checked_name(name))
        check_reach(blocks, name)
        set_once(self, "cap", cap if cap is None else checked_cap(cap, name))
        set_once(
            self, "cardinalities", cardinalities if cardinalities is None else owned(cardinalities, np.int32)
        )
        set_once(self, "shape", shape)
        set_once(self, "_hash", None)
        set_once(self, "_key", None)
        set_once(self, "_ends", None)
        set_once(self, "_scale", scale)

    @property
    def key(self) -> bytes:
        """A digest of the blocks and the cap, but not of the name."""
        if self._key is None:
            set_once(self, "_key", _digest(self.blocks, self.cap))
        assert self._key is not None
        return self._key

    @property
    def scale(self) -> int:
        """Roughly how far one scope moves the tally: the widest table, rounded down to a power of two.

        All that the planner's cost model uses of the entries, so that the examples of a data set share it.
        """
        if not self._scale:
            widths = [int(block.tables.max()) - int(block.tables.min()) for block in self.blocks]
            set_once(self, "_scale", 1 << max(max(widths, default=1).bit_length() - 1, 0))
        return self._scale

    @property
    def extent(self) -> tuple[int, int]:
        """Bounds on the tally: the sums of the smallest and of the largest entries of all scopes."""
        low, high = ends = self._ends or ends_of_blocks(self.blocks)
        set_once(self, "_ends", ends)
        return (low, high) if self.cap is None else (min(low, self.cap), min(high, self.cap))

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Statistic) or self is other:
            return super().__eq__(other)
        if self.cap != other.cap or len(self.blocks) != len(other.blocks):
            return False
        if hash(self) != hash(other) or self._make != other._make:
            return False
        pairs = [(a.tables, b.tables) for a, b in zip(self.blocks, other.blocks, strict=True)]
        if all(a.shape == b.shape for a, b in pairs):
            return all((a == b).all() for a, b in pairs)
        return self.key == other.key

    def __hash__(self) -> int:
        if self._hash is None:
            # the same hash whether equal tables were given separately or as one
            tables = tuple([shared(block.tables).tobytes() for block in self.blocks])
            set_once(self, "_hash", hash((self._make, tables)))
        assert self._hash is not None
        return self._hash

    @property
    def _make(self) -> tuple[object, ...]:
        """What equal statistics share, apart from the entries of their tables."""
        return (self.cap, *((block.key, block.tables.shape[1:]) for block in self.blocks))

    def tally(self, y: ArrayLike) -> int:
        """Compute the tally of a labelling, with the cap applied.

        Parameters
        ----------
        y : integer array-like
            One state number per variable, 2-D for grids (``model.encode`` turns names into numbers).
        """
        total = int(_evaluated(self, y))
        return total if self.cap is None else min(self.cap, total)

    @property
    def largest_entry(self) -> int:
        """The largest magnitude in its tables."""
        return max((largest(block.tables) for block in self.blocks), default=0)

    def capped(self, cap: int | None) -> Statistic:
        """Return the same statistic with another cap, or without one."""
        return self._again(self.name, cap)

    def merged_from(self, threshold: int) -> Statistic:
        """Return the same statistic capped at the threshold."""
        return self.capped(threshold)

    def named(self, name: str) -> Statistic:
        """Return the same statistic with another name."""
        return self._again(name, self.cap)

    def _again(self, name: str, cap: int | None) -> Statistic:
        return Statistic.from_blocks(self.blocks, name, cap, self.cardinalities, self._scale, self.shape)

    def on(self, model: Domain) -> Statistic:
        """Return itself if it fits the model.

        Raises
        ------
        ModelError
            It was made for a model of a different shape, or its scopes or tables do not fit.
        """
        if self.cardinalities is None:
            check_blocks(self.blocks, np.int64, model.cardinalities, noun=f"statistic {self.name!r}, part")
        elif self.cardinalities is not model.cardinalities or self.shape not in (None, model.shape):
            check_same_shape(self.name, self.cardinalities, self.shape, model)
        return self

    def __reduce__(self) -> tuple[Callable[..., Statistic], tuple[object, ...]]:
        return Statistic.from_blocks, (self.blocks, self.name, self.cap, self.cardinalities, 0, self.shape)

    def __repr__(self) -> str:
        parts = counted(sum(map(len, self.blocks)), "part")
        cap = "" if self.cap is None else f", cap={self.cap}"
        return f"Statistic({self.name!r}, {parts}{cap})"


def checked_name(name: object) -> str:
    """Return the name of a statistic; raise an error if it is invalid."""
    if not isinstance(name, str) or not name:
        raise ModelError(f"the name of a statistic must be a non-empty string, got {name!r}")
    return name


def _digest(blocks: Iterable[Block], cap: int | None) -> bytes:
    content = hashlib.blake2b(repr(cap).encode(), digest_size=16)
    for block in blocks:
        tables = shared(block.tables)  # the same key whether equal tables are stored once or many times
        content.update(block.key)
        content.update(repr(tables.shape).encode())
        content.update(tables.data)
    return content.digest()


def shared(tables: NDArray[Any]) -> NDArray[Any]:
    """Keep a single table if all are equal."""
    if len(tables) > 1 and tables[-1].tobytes() == tables[0].tobytes() and (tables == tables[0]).all():
        return tables[:1]
    return tables


def _evaluated(statistic: Statistic, y: ArrayLike) -> float:
    labelling = np.asarray(y)
    if is_masked(y):
        raise ModelError(
            f"statistic {statistic.name!r} needs every state, but some entries of the labelling are masked"
        )
    if labelling.size and labelling.dtype.kind not in "biu":
        raise ModelError(
            f"statistic {statistic.name!r} needs a labelling of state numbers, got an array of dtype "
            f"{labelling.dtype}; use model.encode(y) to turn names into numbers"
        )
    check_grid("the labelling", labelling.shape, f"the grid of statistic {statistic.name!r}", statistic.shape)
    try:
        if labelling.min(initial=0) < 0:
            raise IndexError(f"there is no state {labelling.min()}")
        return evaluate(statistic.blocks, labelling.reshape(-1).astype(np.int64))
    except IndexError as error:
        raise ModelError(
            f"the labelling does not fit statistic {statistic.name!r}: {error}; give one state number per "
            "variable, from 0 to its number of states minus one"
        ) from None


def _bound(term: Term) -> Statistic:
    if not isinstance(term, Statistic):
        raise ModelError(f"{term!r} is a recipe that is not bound to a model yet; bind it with .on(model)")
    return term


def _uncapped(statistic: Statistic) -> Statistic:
    if statistic.cap is not None:
        raise ModelError(
            f"statistic {statistic.name!r} is capped at {statistic.cap}, so a combination of it is not a sum "
            "over scopes; use .capped(None), or keep the two apart"
        )
    return statistic


def read_by(constraint: Constraint) -> tuple[Statistic, ...]:
    """Return the distinct statistics that a bound constraint reads, in order of first use.

    Raises ModelError if a recipe is among them: bind the constraint with ``constraint.on(model)`` first.
    """
    return tuple(map(_bound, constraint.statistics))


# --- recipes ------------------------------------------------------------------------------------------------


class Recipe(Term):
    """A statistic for any model: bound by ``.on(model)``, or when it is used."""

    __slots__ = ()

    @abstractmethod
    def on(self, model: Domain) -> Statistic:
        """Return the statistic for this model; it must treat all variables and states alike."""

    def __getattr__(self, name: str) -> NoReturn:
        raise unbound(self, name, not name.startswith("_") and hasattr(Statistic, name))
