"""Reductions: a model that is solved in place of another one, and the map between their labellings.

Some statistics do not decompose over small scopes of the given model, but do so over those of a larger one:
a chain whose states also include the state of a machine, for example. A :class:`Reduction` is that other
model, with the map between the two. Each original variable ``v`` is read from one variable of the other
model, ``sources[v]``, through a table ``emissions[v]`` of its states: ``y_v = emissions[v][z_sources[v]]``.
So a statistic of the original is a statistic of the other model, over equally small scopes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.model.model import Model, checked_model
from tallytree.model.restriction import Allowed, Fixed, checked_mapping, restricted_blocks
from tallytree.reductions.reading import read_through
from tallytree.statistics.constraints import Constraint, as_constraint, local_part
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import Frozen, Repeated, owned, set_once


@final
class Reduction(Frozen):
    """A model to solve in place of another one, and statistics on it.

    Parameters
    ----------
    original : Model
        The original model.
    model : Model
        The model that is solved. Each of its allowed labellings has the score of the labelling of the
        original that it maps to, and no two map to the same one.
    statistics : iterable of Statistic
        Statistics of ``model``.
    sources : sequence of int
        For each original variable, the variable of ``model`` that it is read from; all different.
    emissions : sequence of integer arrays
        For each original variable, and each state of that variable of ``model``, the original state.
    after : Reduction, optional
        The reduction that this one extends: its statistics come first, and are known under both forms.

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

    __slots__ = ("_carried", "_origins", "emissions", "model", "original", "sources", "statistics")

    original: Model
    model: Model
    statistics: tuple[Statistic, ...]
    sources: NDArray[np.int32] | None
    emissions: Repeated[NDArray[np.int64]] | None
    _origins: dict[Statistic, Statistic]  # maps pulled statistics to the original, for certificates
    _carried: dict[Statistic, Statistic]  # maps the statistics of the previous reduction to this one

    def __init__(
        self,
        original: Model,
        model: Model,
        statistics: Iterable[Statistic],
        sources: ArrayLike,
        emissions: Sequence[ArrayLike],
        *,
        after: Reduction | None = None,
    ) -> None:
        places = owned(np.asarray(sources), np.int32)
        tables = _shared(emissions)
        _check(original, model, places, tables)
        self._fill(original, model, statistics, places, tables)
        if after is not None:
            kept = dict(zip(after.statistics, self.statistics, strict=False))
            self._carried.update({old: kept[now] for old, now in after._carried.items()} | kept)

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
        set_once(self, "_origins", {})
        set_once(self, "_carried", {})

    @property
    def trivial(self) -> bool:
        """Whether the model is the original one."""
        return self.sources is None

    def lift(self, assignment: ArrayLike) -> NDArray[np.int64]:
        """Map a labelling of ``model`` to the original."""
        return self.lift_all(self.model.encode(assignment).reshape(1, -1)).reshape(-1)

    def lift_all(self, assignments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Map many labellings to the original, one per row."""
        if self.sources is None or self.emissions is None:
            return assignments
        lifted = np.empty((len(assignments), len(self.sources)), dtype=np.int64)
        for table, places in self.emissions.places:
            lifted[:, places] = table[assignments[:, self.sources[places]]]
        return lifted

    def pull(self, what: Any) -> Any:
        """Translate a statistic or a constraint of the original to ``model``.

        Parameters
        ----------
        what : Statistic, Recipe or Constraint
            Of the original model; recipes are bound to it. The reduction's own statistics are
            unchanged.
        """
        if isinstance(what, Constraint):
            return what.mapped(self._pulled)
        return self._pulled(what)

    def bound(self, term: Statistic | Recipe) -> Statistic:
        """Return a statistic of the original, with recipes bound to it, or one of the reduction's own."""
        if isinstance(term, Statistic) and not self.trivial:
            if term in self.statistics:
                return term
            if term in self._carried:
                return self._carried[term]
        return term.on(self.original)

    def _pulled(self, term: Statistic | Recipe) -> Statistic:
        statistic = self.bound(term)
        if self.sources is None or self.emissions is None or statistic in self.statistics:
            return statistic
        sizes = self.model.cardinalities
        blocks = read_through(statistic.blocks, self.sources, self.emissions)
        pulled = Statistic.from_blocks(blocks, statistic.name, statistic.cap, sizes)
        self._origins[pulled] = statistic
        return pulled

    def origin(self, statistic: Statistic) -> Statistic | None:
        """Return the statistic of the original that was translated to this one, or None."""
        if self.trivial:
            return statistic
        return self._origins.get(statistic) if self._origins else None  # hashing takes a while

    def restricted(self, fixed: Fixed | None = None, allowed: Allowed | None = None) -> Reduction:
        """Restrict some original variables to some states, as :meth:`Model.restricted` does."""
        states, lists = checked_mapping(fixed, "fixed"), checked_mapping(allowed, "allowed")
        if not states and not lists:
            return self
        original = self.original.restricted(fixed, allowed)
        if self.sources is None or self.emissions is None:
            return Reduction.identity(original, self.statistics)
        left = {
            int(self.sources[v]): np.flatnonzero(np.isin(self.emissions[v], kept)).tolist()
            for v, kept in self.original.choices(states, lists).items()
        }
        sizes = self.model.cardinalities
        model = Model.from_blocks(sizes, restricted_blocks(self.model.blocks, sizes, left))
        return Reduction(original, model, self.statistics, self.sources, self.emissions, after=self)

    def with_statistics(self, statistics: Iterable[Statistic]) -> Reduction:
        """Return the same reduction with other statistics of ``model``."""
        if self.sources is None or self.emissions is None:
            return Reduction.identity(self.model, statistics)
        changed = Reduction(self.original, self.model, statistics, self.sources, self.emissions)
        changed._origins.update(self._origins)
        return changed

    def fold(self, tables: Sequence[NDArray[Any]], ufunc: np.ufunc, initial: float) -> list[NDArray[Any]]:
        """Map a number per state of each variable to the original; states with equal images are combined."""
        if self.sources is None or self.emissions is None:
            return list(tables)
        folded = [np.full(n, initial) for n in self.original.cardinalities.tolist()]
        for table, source, emission in zip(folded, self.sources, self.emissions, strict=True):
            ufunc.at(table, emission, tables[source])
        return folded

    def __reduce__(self) -> tuple[Any, ...]:
        if self.sources is None or self.emissions is None:
            return Reduction.identity, (self.model, self.statistics)
        parts = (self.original, self.model, self.statistics, self.sources, self.emissions)
        return _restored, (parts, tuple(self._origins.items()), tuple(self._carried.items()))

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in self.statistics)
        kind = "the model itself" if self.trivial else repr(self.model)
        return f"Reduction(to {kind}, statistics ({names}))"


_Pairs = Iterable[tuple[Statistic, Statistic]]


def _restored(parts: tuple[Any, ...], origins: _Pairs, carried: _Pairs) -> Reduction:
    reduction = Reduction(*parts)
    reduction._origins.update(origins)
    reduction._carried.update(carried)
    return reduction


def as_reduction(
    model: Model | Reduction, fixed: Fixed | None = None, allowed: Allowed | None = None
) -> Reduction:
    """Return a model or a reduction as a reduction, optionally with restricted states."""
    if isinstance(model, Reduction):
        return model.restricted(fixed, allowed)
    checked_model(model)
    return Reduction.identity(model if fixed is allowed is None else model.restricted(fixed, allowed))


def meet(reduction: Reduction, where: Constraint | None) -> tuple[Reduction, Constraint | None]:
    """Extend a reduction to satisfy constraints that tallies cannot express; return the rest, translated."""
    if where is None:
        return reduction, None
    constraint = as_constraint(where)
    for part in constraint.reducing:
        reduction = part.reduce(reduction)
    rest = local_part(constraint)
    return reduction, None if rest is None else reduction.pull(rest)


def restricted_states(
    reduction: Reduction, kept: Sequence[NDArray[np.int64]], statistics: Iterable[Statistic] = ()
) -> tuple[Reduction, Callable[[Statistic], Statistic]]:
    """Remove states of the variables that are solved.

    Parameters
    ----------
    reduction : Reduction
    kept : sequence of int arrays
        For each variable of its model, the states to keep, in order.
    statistics : iterable of Statistic
        Of that model.

    Returns
    -------
    (Reduction, callable)
        The callable translates each of the statistics to the smaller model.
    """
    model, places = reduction.model, np.arange(len(kept), dtype=np.int32)
    sizes = np.array([len(states) for states in kept], dtype=np.int32)

    def smaller(statistic: Statistic) -> Statistic:
        blocks = read_through(statistic.blocks, places, kept)
        return Statistic.from_blocks(blocks, statistic.name, statistic.cap, sizes)

    known = {statistic: smaller(statistic) for statistic in (*reduction.statistics, *statistics)}
    sources = places if reduction.sources is None else reduction.sources
    emissions = [
        kept[source] if reduction.emissions is None else reduction.emissions[v][kept[source]]
        for v, source in enumerate(sources.tolist())
    ]
    solved = Model.from_blocks(sizes, read_through(model.blocks, places, kept))
    own = [known[statistic] for statistic in reduction.statistics]
    made = Reduction(reduction.original, solved, own, sources, emissions, after=reduction)
    for statistic, now in known.items():
        origin = reduction.origin(statistic)
        if origin is not None:
            made._origins[now] = origin
    return made, lambda statistic: known[statistic]


def _shared(emissions: Sequence[ArrayLike]) -> Repeated[NDArray[np.int64]]:
    """Return the tables as owned arrays, with equal ones as the same object."""
    known: dict[bytes, NDArray[np.int64]] = {}

    def first(given: ArrayLike) -> NDArray[np.int64]:
        table = owned(np.asarray(given), np.int64)
        return known.setdefault(table.tobytes(), table)

    tables = Repeated.of(emissions)
    same = Repeated.of([first(table) for table in tables.distinct])
    return Repeated(same.distinct, same.numbers[tables.numbers])


def _check(
    original: Model, model: Model, sources: NDArray[np.int32], emissions: Repeated[NDArray[np.int64]]
) -> None:
    if len(sources) != len(original) or len(emissions) != len(original):
        raise ModelError(
            f"a reduction reads each of the {len(original)} original variables from one variable, got "
            f"{len(sources)} sources and {len(emissions)} emissions"
        )
    if len(np.unique(sources)) < len(sources):
        raise ModelError(f"two original variables are read from the same one: sources are {sources.tolist()}")
    wrong = emissions.values(lambda t: len(t) if t.ndim == 1 else -1) != model.cardinalities[sources]
    beyond = emissions.values(lambda table: int(table.max(initial=0))) >= original.cardinalities
    beyond |= emissions.values(lambda table: int(table.min(initial=0))) < 0
    if not (wrong | beyond).any():
        return
    v = int((wrong | beyond).argmax())
    source, table = int(sources[v]), emissions[v]
    if wrong[v]:
        raise ModelError(
            f"variable {v} is read from variable {source}, which has {model.cardinalities[source]} "
            f"states, through a table of shape {table.shape}"
        )
    raise ModelError(
        f"variable {v} has states 0 to {original.cardinalities[v] - 1}, but its emissions are "
        f"{table.tolist()[:8]}"
    )
