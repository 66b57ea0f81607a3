"""The explicit construction (section 3.1 of the paper): a plain model whose variables hold the tallies.

Each clique ``C_i`` of a clique tree gets one more variable ``l_i``, the tally of everything at and below it,
and one factor that forbids inconsistent tallies:

    l_i = g_i(y_C) + Σ_k l_k        over the children k of C_i.

The last one, the **hub** ``l_root = G(y)``, is an ordinary variable, so ``F(y) + η(G(y))`` is an ordinary
factor graph with ``η`` as a unary factor of the hub, and every MAP solver can maximise it. Any
other ``H`` is handled by fixing the hub: for each tally ``l`` the best score with ``G(y) = l``.

It is for solvers that do not support tallies, and for comparison. The messages of :func:`profile`
carry the tallies instead, which needs no factor over ``l_i`` and ``l_k`` at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.algebra.tallies import (
    cap_array,
    move_minima_out,
    put_minima_back,
    unique_rows,
    unique_sums,
)
from tallytree.answers.solution import Solution
from tallytree.answers.tallies import tally_type, unique_names
from tallytree.errors import BudgetError, InfeasibleError, ModelError
from tallytree.model.model import Model, checked_model
from tallytree.model.pairs import from_pairs
from tallytree.paper.cliquetree import CliqueTree, clique_tree
from tallytree.planning.budget import default_memory_limit, readable_bytes
from tallytree.planning.query import bind
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.values import Frozen, counted, read_only, set_once

Eta = Callable[..., ArrayLike]
Integers = NDArray[np.int64]


class _Sum(NamedTuple):
    """How the auxiliary variable of a clique depends on what is below it."""

    inputs: tuple[int, ...]  # variables of the clique's statistics, then the children's auxiliary variables
    states: Integers  # the state of the auxiliary variable, for all states of the inputs
    tallies: Integers  # the meaning of its states


@final
class ExplicitModel(Frozen):
    """A plain model in which the tallies of another one are variables; returned by :func:`explicit_model`.

    Attributes
    ----------
    original : Model
        The model whose tallies became variables.
    statistics : tuple of Statistic
        The statistics of the original.
    model : Model
        The original's variables come first, with its factors; then one auxiliary variable for each clique.
    tree : CliqueTree
        Clique ``i`` has the auxiliary variable ``len(original) + i``.
    hub : int
        The auxiliary variable of the root.
    tallies : (S, P) int64 array
        The tallies of the states of the hub.
    eta : (S,) float64 array or None
        The factor of the hub.
    """

    __slots__ = ("_sums", "eta", "hub", "model", "original", "statistics", "tallies", "tree")

    original: Model
    statistics: tuple[Statistic, ...]
    model: Model
    tree: CliqueTree
    hub: int
    tallies: Integers
    eta: NDArray[np.float64] | None
    _sums: tuple[_Sum, ...]

    def __init__(
        self, original: Model, statistics: tuple[Statistic, ...], eta: Eta | None, memory_limit: float
    ) -> None:
        tree = clique_tree(original, statistics).cloned()
        parts = _Statistics(original, statistics)
        sums = _sums(tree, parts, len(original), memory_limit)
        hub = len(original) + tree.root
        tallies = read_only(parts.lifted(sums[tree.root].tallies))
        values = None if eta is None else _evaluated(eta, tallies, statistics)
        sizes = [*original.cardinalities.tolist(), *(len(s.tallies) for s in sums)]
        factors = [((*s.inputs, len(original) + i), _table(s)) for i, s in enumerate(sums)]
        if values is not None:
            factors.append(((hub,), values))
        cardinalities = np.array(sizes, dtype=np.int32)
        blocks = [*original.blocks, *from_pairs(factors, np.float64, cardinalities)]
        set_once(self, "original", original)
        set_once(self, "statistics", statistics)
        set_once(self, "model", Model.from_blocks(cardinalities, blocks))
        set_once(self, "tree", tree)
        set_once(self, "hub", hub)
        set_once(self, "tallies", tallies)
        set_once(self, "eta", values)
        set_once(self, "_sums", sums)

    def clamp(self, *tally: int) -> Model:
        """Return the model with the hub fixed to a tally, and without η.

        Its best labelling is the best one with exactly this tally, so maximising ``H(score, tally)`` over
        all tallies works for any objective, including slack scaling.

        Raises
        ------
        InfeasibleError
            No labelling can have this tally.
        """
        if len(tally) != len(self.statistics):
            raise ModelError(f"a tally needs {len(self.statistics)} integers here, got {tally}")
        states = np.flatnonzero((self.tallies == np.array(tally, dtype=np.int64)).all(axis=1))
        if not len(states):
            raise InfeasibleError(f"no labelling has the tally {tally}; see .tallies for the possible ones")
        fixed = np.full(len(self.tallies), -np.inf)
        fixed[states] = 0.0 if self.eta is None else -self.eta[states]
        blocks = (*self.model.blocks, *from_pairs([((self.hub,), fixed)], np.float64))
        return Model.from_blocks(self.model.cardinalities, blocks)

    def complete(self, labelling: ArrayLike) -> Integers:
        """Return a labelling of the original, followed by the states of the auxiliary variables."""
        y = self.original.encode(labelling)
        states = np.concatenate([y, np.zeros(len(self._sums), dtype=np.int64)])
        for i in _upwards(self.tree):
            one = self._sums[i]
            states[len(y) + i] = one.states[tuple(states[list(one.inputs)])]
        return states

    def lift(self, assignment: ArrayLike) -> Integers:
        """Return the labelling of the original for a labelling of the model.

        Raises
        ------
        ModelError
            The auxiliary variables do not match the tallies: the solver returned a forbidden labelling.
        """
        states = self.model.encode(assignment)
        y = states[: len(self.original)]
        if (self.complete(y) != states).any():
            raise ModelError(
                "the auxiliary variables of this labelling are inconsistent, so it scores -inf; did the "
                "solver prove its answer?"
            )
        return y

    def solution(self, assignment: ArrayLike) -> Solution:
        """Return the answer of a MAP solver in terms of the original."""
        y = self.lift(assignment)
        tally = tuple(s.tally(y) for s in self.statistics)
        score = self.original.score(y)
        state = int(self.model.encode(assignment)[self.hub])
        value = score if self.eta is None else score + float(self.eta[state])
        names = unique_names(tuple(s.name for s in self.statistics))
        return Solution(value, score, tally_type(names)(*tally), y, self.original)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "an ExplicitModel cannot be pickled; pickle its .model, or create it again with explicit_model"
        )

    def __repr__(self) -> str:
        variables = counted(len(self._sums), "auxiliary variable")
        return f"ExplicitModel({variables}, {counted(len(self.tallies), 'tally')})"


def explicit_model(
    model: Model,
    statistics: Iterable[Statistic | Recipe],
    eta: Eta | None = None,
    *,
    memory_limit: float | None = None,
) -> ExplicitModel:
    """Turn tallies into variables of a plain model, for solvers without tallies.

    Parameters
    ----------
    model : Model
        The factor graph ``F``.
    statistics : iterable of Statistic or Recipe
        The statistics to tally, ``G``.
    eta : callable, optional
        ``η(*tallies)``, elementwise: the best labelling of the result maximises ``F(y) + η(G(y))``.
    memory_limit : float, optional
        In bytes. A clique with R tallies and a child with R' has a factor of R·R' entries for each state.

    Raises
    ------
    BudgetError
        The factors exceed the limit.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> explicit = tt.explicit_model(model, [tt.count(state=1)], eta=lambda ones: -3.0 * ones)
    >>> found = tt.solve(explicit.model)  # or any other program: tallytree.io.write_uai writes it
    >>> explicit.solution(found.assignment)
    Solution(value=1, score=4, tally=(count_1=1))
    >>> explicit.lift(tt.solve(explicit.clamp(2)).assignment)
    array([0, 1, 1])
    """
    limit = default_memory_limit() if memory_limit is None else float(memory_limit)
    return ExplicitModel(checked_model(model), bind(model, statistics), eta, limit)


# --- tallies ------------------------------------------------------------------------------------------------


class _Statistics:
    """The statistics as sums of tables, with the minima of capped ones moved out."""

    def __init__(self, model: Model, statistics: Sequence[Statistic]) -> None:
        self.cardinalities: list[int] = model.cardinalities.tolist()
        self.caps = cap_array([s.cap for s in statistics])
        self.terms: list[list[tuple[tuple[int, ...], Integers]]] = []
        offsets, rooms = [], []
        for statistic in statistics:
            scopes = [tuple(scope) for block in statistic.blocks for scope in block.scopes.tolist()]
            tables = [
                table
                for block in statistic.blocks
                for table in np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:]))
            ]
            moved, offset, room = move_minima_out(tables, statistic.cap)
            self.terms.append(list(zip(scopes, moved, strict=True)))
            offsets.append(offset)
            rooms.append(room)
        self.offsets, self.rooms = np.array(offsets, dtype=np.int64), np.array(rooms, dtype=np.int64)

    def held(self, scopes: Iterable[tuple[int, ...]]) -> tuple[tuple[int, ...], Integers]:
        """Return the variables that the statistics read in some scopes, and ``g`` for all their states."""
        homes = set(scopes)
        held = [[t for t in terms if tuple(sorted(t[0])) in homes] for terms in self.terms]
        variables = tuple(sorted({v for terms in held for scope, _ in terms for v in scope}))
        shape = [self.cardinalities[v] for v in variables]
        sums = np.zeros((*shape, len(self.terms)), dtype=np.int64)
        for p, terms in enumerate(held):
            for scope, table in terms:
                order = np.argsort(scope, kind="stable")
                places = [variables.index(v) for v in scope]
                across = [shape[i] if i in places else 1 for i in range(len(shape))]
                sums[..., p] += table.transpose(order).reshape(across)
        return variables, sums

    def lifted(self, tallies: Integers) -> Integers:
        """Convert sums of tables to the user's tallies."""
        return put_minima_back(tallies, self.offsets, self.caps)


def _upwards(tree: CliqueTree) -> list[int]:
    """Return the cliques, every child before its parent."""
    order = [tree.root]
    for i in order:
        order.extend(tree.children[i])
    return order[::-1]


def _sums(tree: CliqueTree, parts: _Statistics, first: int, memory_limit: float) -> tuple[_Sum, ...]:
    """Compute the tallies of the auxiliary variables; raise an error for those that are too large."""
    sums: dict[int, _Sum] = {}
    budget = _Budget(memory_limit)
    for i in _upwards(tree):
        below = [(first + k, sums[k].tallies) for k in tree.children[i]]
        sums[i] = _sum(*parts.held(tree.scopes[i]), below, parts.rooms, budget)
        budget.spend(sums[i].states.size * len(sums[i].tallies))
    return tuple(sums[i] for i in range(len(sums)))


def _sum(
    variables: tuple[int, ...],
    g: Integers,
    below: Sequence[tuple[int, Integers]],
    rooms: Integers,
    budget: _Budget,
) -> _Sum:
    tallies, states = unique_rows(np.minimum(g.reshape(prod(g.shape[:-1]), len(rooms)), rooms))
    states = states.reshape(g.shape[:-1])
    for _, others in below:
        budget.check(states.size * len(others))
        tallies, pairs = unique_sums(tallies, others, rooms)
        states = pairs[states]
    return _Sum((*variables, *(k for k, _ in below)), states, tallies)


class _Budget:
    """The remaining memory for factors."""

    def __init__(self, limit: float) -> None:
        self.limit = self.left = limit

    def check(self, entries: int) -> None:
        if 8.0 * entries > self.left:
            raise BudgetError(
                f"the factors of the auxiliary variables need more than {readable_bytes(self.limit)}: one of "
                f"them has {entries:,} entries. Use tallytree.profile, whose messages carry the tallies, or "
                "raise memory_limit="
            )

    def spend(self, entries: int) -> None:
        self.check(entries)
        self.left -= 8.0 * entries


# --- factors ------------------------------------------------------------------------------------------------


def _table(one: _Sum) -> NDArray[np.float64]:
    """Return 0 where the auxiliary variable is consistent with the others, and -inf elsewhere."""
    table = np.full((*one.states.shape, len(one.tallies)), -np.inf)
    np.put_along_axis(table, one.states[..., None], 0.0, axis=-1)
    return table


def _evaluated(eta: Eta, tallies: Integers, statistics: Sequence[Statistic]) -> NDArray[np.float64]:
    names = ", ".join(s.name for s in statistics)
    try:
        values = np.broadcast_to(np.asarray(eta(*tallies.T), dtype=np.float64), len(tallies))
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"eta takes one array for each of ({names}) and returns one number per row: {error}"
        ) from None
    if not values.max(initial=-np.inf) < np.inf:
        row = int(np.argmax(~(values < np.inf)))
        raise ModelError(
            f"eta is {values[row]} at the tally {tuple(tallies[row].tolist())}; it must be finite, or -inf"
        )
    return read_only(values.copy())
