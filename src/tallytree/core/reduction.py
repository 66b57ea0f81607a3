"""Another model that answers for one: its labellings, read through a table, are those of the original.

Some statistics do not decompose over small scopes of the model at hand, but do so over those of a longer one:
a chain whose states also say where a machine stands, for example. A :class:`Reduction` is that other model,
with what is needed to go back and forth. Each original variable ``v`` is read off one variable of the other
model, ``sources[v]``, through a table ``emissions[v]`` of its states: ``y_v = emissions[v][z_sources[v]]``.
So a statistic of the original is a statistic of the other model, over scopes as small as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.core.blocks import Block, Frozen, from_pairs, owned, read_only, set_once
from tallytree.core.expressions import Constraint
from tallytree.core.model import Model
from tallytree.core.statistics import Recipe, Statistic
from tallytree.errors import ModelError

__all__ = ["Reduction"]


@final
class Reduction(Frozen):
    """A model to solve in the place of another one, and statistics on it.

    Parameters
    ----------
    original : Model
        The model that is asked about.
    model : Model
        The one that is solved. Of its possible labellings, each has the score of the labelling of the
        original that it is read as, and no two are read as the same.
    statistics : iterable of Statistic
        Statistics of ``model``.
    sources : sequence of int
        For each original variable the variable of ``model`` that it is read off, no two the same.
    emissions : sequence of integer arrays
        For each original variable, and each state of that variable of ``model``, the original state.

    Examples
    --------
    Two variables without their middle states, in the opposite order:

    >>> import tallytree as tt
    >>> model = tt.Model([3, 3], [((0,), [0.0, 1.0, 2.0]), ((1,), [0.0, 3.0, 5.0])])
    >>> smaller = tt.Model([2, 2], [((0,), [0.0, 5.0]), ((1,), [0.0, 2.0])])
    >>> reduction = Reduction(model, smaller, [], sources=[1, 0], emissions=[[0, 2], [0, 2]])
    >>> reduction.lift([1, 0])
    array([0, 2])
    >>> twos = reduction.pull(tt.count(state=2, name="twos"))
    >>> tt.solve(smaller, where=twos == 1).assignment
    array([1, 0])
    """

    __slots__ = ("emissions", "model", "original", "sources", "statistics")

    original: Model
    model: Model
    statistics: tuple[Statistic, ...]
    sources: NDArray[np.int32] | None
    emissions: tuple[NDArray[np.int64], ...] | None

    def __init__(
        self,
        original: Model,
        model: Model,
        statistics: Iterable[Statistic],
        sources: ArrayLike,
        emissions: Sequence[ArrayLike],
    ) -> None:
        places = owned(np.asarray(sources), np.int32)
        tables = _shared(emissions)
        _check(original, model, places, tables)
        self._fill(original, model, statistics, places, tables)

    @classmethod
    def identity(cls, model: Model, statistics: Iterable[Statistic | Recipe] = ()) -> Reduction:
        """Return the reduction of a model to itself."""
        reduction: Reduction = object.__new__(cls)
        reduction._fill(model, model, (s.on(model) for s in statistics), None, None)
        return reduction

    def _fill(
        self, original: Model, model: Model, statistics: Iterable[Statistic], sources: Any, emissions: Any
    ) -> None:
        set_once(self, "original", original)
        set_once(self, "model", model)
        set_once(self, "statistics", tuple(statistics))
        set_once(self, "sources", sources)
        set_once(self, "emissions", emissions)

    @property
    def trivial(self) -> bool:
        """Whether the model is the original one."""
        return self.sources is None

    def lift(self, assignment: ArrayLike) -> NDArray[np.int64]:
        """Bring a labelling of ``model`` back, as a labelling of the original."""
        z = self.model.encode(assignment)
        if self.sources is None or self.emissions is None:
            return z
        return np.array(
            [table[z[source]] for source, table in zip(self.sources, self.emissions, strict=True)],
            dtype=np.int64,
        )

    def pull(self, what: Any) -> Any:
        """Carry a statistic or a constraint of the original over: the same thing, said of ``model``.

        Parameters
        ----------
        what : Statistic, Recipe or Constraint
            About the original model; recipes are bound to it.
        """
        if isinstance(what, Constraint):
            return what.mapped(self._pulled)
        return self._pulled(what)

    def _pulled(self, term: Statistic | Recipe) -> Statistic:
        statistic = term.on(self.original)
        if self.trivial:
            return statistic
        blocks = (part for block in statistic.blocks for part in self._block(block))
        return Statistic.from_blocks(blocks, statistic.name, statistic.cap, self.model.cardinalities)

    def _block(self, block: Block) -> tuple[Block, ...]:
        """Return the factors of a block, read through the emissions."""
        assert self.sources is not None and self.emissions is not None
        common = [self._common(variables) for variables in block.scopes.T.tolist()]
        tables = [table for table in common if table is not None]
        if len(tables) == block.arity:
            entries = block.tables
            for axis, table in enumerate(tables, start=1):
                entries = entries.take(table, axis=axis)
            return (Block(self.sources[block.scopes], read_only(np.ascontiguousarray(entries))),)
        return from_pairs(self._pairs(block), block.tables.dtype.type, self.model.cardinalities)

    def _common(self, variables: Sequence[int]) -> NDArray[np.int64] | None:
        """Return the emission that all variables have in common, None if they do not have one."""
        assert self.emissions is not None
        first = self.emissions[variables[0]]
        return first if all(self.emissions[v] is first for v in variables) else None

    def _pairs(self, block: Block) -> Iterator[tuple[tuple[int, ...], NDArray[Any]]]:
        assert self.sources is not None and self.emissions is not None
        tables = np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:]))
        for scope, table in zip(block.scopes.tolist(), tables, strict=True):
            yield (
                tuple(self.sources[scope].tolist()),
                table[np.ix_(*(self.emissions[v] for v in scope))] if scope else table,
            )

    def __reduce__(self) -> tuple[Any, ...]:
        if self.sources is None or self.emissions is None:
            return Reduction.identity, (self.model, self.statistics)
        return Reduction, (self.original, self.model, self.statistics, self.sources, self.emissions)

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in self.statistics)
        kind = "the model itself" if self.trivial else repr(self.model)
        return f"Reduction(to {kind}, statistics ({names}))"


def _shared(emissions: Sequence[ArrayLike]) -> tuple[NDArray[np.int64], ...]:
    """Return the tables as owned arrays; equal ones are one object, so that it shows."""
    known: dict[bytes, NDArray[np.int64]] = {}
    tables = (owned(np.asarray(table), np.int64) for table in emissions)
    return tuple(known.setdefault(table.tobytes(), table) for table in tables)


def _check(
    original: Model, model: Model, sources: NDArray[np.int32], emissions: tuple[NDArray[np.int64], ...]
) -> None:
    if len(sources) != len(original) or len(emissions) != len(original):
        raise ModelError(
            f"a reduction reads each of the {len(original)} original variables off one variable, got "
            f"{len(sources)} sources and {len(emissions)} emissions"
        )
    if len(np.unique(sources)) < len(sources):
        raise ModelError(f"two original variables are read off the same one: sources are {sources.tolist()}")
    for v, (source, table) in enumerate(zip(sources.tolist(), emissions, strict=True)):
        if table.shape != (model.cardinalities[source],):
            raise ModelError(
                f"variable {v} is read off variable {source}, which has {model.cardinalities[source]} "
                f"states, through a table of shape {table.shape}"
            )
        if table.min(initial=0) < 0 or table.max(initial=0) >= original.cardinalities[v]:
            raise ModelError(
                f"variable {v} has states 0 to {original.cardinalities[v] - 1}; its emissions are "
                f"{table.tolist()[:8]}"
            )
