"""The model: discrete variables and their score, ``F(y) = Σ_t f_t(y_Ct)``.

A :class:`Model` is built from (scope, table) pairs, or, much faster, from whole arrays: ``Model.chain``,
``Model.tree`` and ``Model.grid``. Invalid data is rejected here. The variables, states and names are those
of its :class:`Space`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree import html
from tallytree.errors import ModelError
from tallytree.kernels.evaluation import evaluator
from tallytree.model import shapes
from tallytree.model.blocks import Block
from tallytree.model.inputs import checked_cardinalities, listed_states, uniform
from tallytree.model.pairs import Pair, check_blocks, from_pairs
from tallytree.model.restriction import Allowed, Fixed, checked_mapping, restricted_blocks
from tallytree.model.space import Space
from tallytree.values import abbreviated, counted, digest, set_once


@final
class Model(Space):
    """Discrete variables and a sum of factors over small scopes.

    Parameters
    ----------
    cardinalities : sequence of int
        The number of states of each variable, at least one.
    factors : iterable of (scope, table)
        A scope is a tuple of distinct variable numbers in any order, and may be empty (a constant); axis
        ``i`` of the table belongs to ``scope[i]``. Scores are at most 1e290 in magnitude, or -inf to forbid.
        Scopes may be repeated: factors add up.
    variables : sequence of str, optional
        A name for each variable.
    states : sequence of str, or one such sequence per variable, optional
        The names of the states, shared by all variables or for each of them.

    Attributes
    ----------
    cardinalities : int32 array of shape (M,)
        The number of states of each variable.
    blocks : tuple of Block
        The factors in bulk, float64.
    shape : tuple of int
        The shape of a labelling: (M,), or (rows, columns) on grids.
    states : tuple of str, tuple of tuples of str, or None
        The names of the states, shared or for each variable.
    variables : tuple of str or None
        The names of the variables.
    alike : int or None
        The number of states if all variables have the same states, including names.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model([2, 3], [((0,), [0.0, 1.0]), ((1, 0), [[0, 1], [2, 3], [4, 5]])])
    >>> model
    Model(2 variables, 2 factors)
    >>> model.score([1, 2])
    6.0
    """

    __slots__ = ("_key", "blocks")

    blocks: tuple[Block, ...]
    _key: tuple[bytes, ...] | None

    def __init__(
        self,
        cardinalities: ArrayLike,
        factors: Iterable[Pair] = (),
        *,
        variables: Sequence[str] | None = None,
        states: Sequence[str] | Sequence[Sequence[str]] | None = None,
    ) -> None:
        sizes, n = checked_cardinalities(cardinalities)
        self._fill(sizes, from_pairs(factors, np.float64, sizes), (len(sizes),), states, variables, n)

    @classmethod
    def from_blocks(
        cls,
        cardinalities: ArrayLike,
        blocks: Iterable[Block],
        *,
        shape: tuple[int, ...] | None = None,
        variables: Sequence[str] | None = None,
        states: Sequence[str] | Sequence[Sequence[str]] | None = None,
    ) -> Model:
        """Make a model from float64 blocks, which are checked but not copied.

        Parameters
        ----------
        cardinalities : sequence of int
            The number of states of each variable.
        blocks : iterable of Block
            The factors in bulk.
        shape : tuple of int, optional
            The shape of a labelling; (M,) by default.
        variables, states : optional
            Names, as for :class:`Model`.
        """
        sizes, n = checked_cardinalities(cardinalities)
        parts = tuple(block for block in blocks if len(block))
        check_blocks(parts, np.float64, sizes, noun="factor")
        places = (len(sizes),) if shape is None else shape
        if prod(places) != len(sizes):
            raise ModelError(
                f"shape {places} has {prod(places)} entries, but the model has "
                f"{counted(len(sizes), 'variable')}"
            )
        return _made(sizes, parts, places, states, variables, n)

    @classmethod
    def chain(
        cls,
        unary: ArrayLike,
        pairwise: ArrayLike,
        *,
        variables: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
    ) -> Model:
        """Make a chain of M variables with N states each.

        Parameters
        ----------
        unary : array-like of shape (M, N)
            ``unary[i, a]`` is the score of state ``a`` at variable ``i``.
        pairwise : array-like of shape (N, N) or (M - 1, N, N)
            ``pairwise[i, a, b]`` is the score of ``a`` at variable ``i`` followed by ``b`` at ``i + 1``; a
            single table is used for all pairs.
        variables, states : sequence of str, optional
            The names of the M variables and of the N states.

        Examples
        --------
        >>> import tallytree as tt
        >>> model = tt.Model.chain([[0, 1], [2, 0], [0, 3]], [[0.5, 0.0], [0.0, 0.5]], states=["O", "B"])
        >>> model.score(["B", "O", "B"])
        6.0
        """
        return _shaped(shapes.chain(unary, pairwise, states), states, variables)

    @classmethod
    def tree(
        cls,
        parents: ArrayLike,
        unary: ArrayLike,
        pairwise: ArrayLike,
        *,
        variables: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
    ) -> Model:
        """Make a tree, or a forest, of M variables with N states each.

        Parameters
        ----------
        parents : integer array-like of shape (M,)
            The parent of each variable, negative for roots. Parents need not come before children.
        unary : array-like of shape (M, N)
            ``unary[i, a]`` is the score of state ``a`` at variable ``i``.
        pairwise : array-like of shape (N, N) or (M, N, N)
            ``pairwise[i, a, b]`` is the score of state ``a`` at the parent of ``i`` and ``b`` at ``i``
            itself; the entries of roots are ignored. A single table is used for all edges.
        variables, states : sequence of str, optional
            The names of the M variables and of the N states.

        Examples
        --------
        >>> import tallytree as tt
        >>> star = tt.Model.tree([-1, 0, 0], [[0, 1], [0, 0], [0, 0]], [[1, 0], [0, 5]])
        >>> star.score([1, 1, 0])
        6.0
        """
        return _shaped(shapes.tree(parents, unary, pairwise, states), states, variables)

    @classmethod
    def grid(
        cls,
        unary: ArrayLike,
        vertical: ArrayLike,
        horizontal: ArrayLike,
        *,
        states: Sequence[str] | None = None,
    ) -> Model:
        """Make a grid of R rows and C columns with N states each.

        Variable ``r * C + c`` is at row r and column c.

        Parameters
        ----------
        unary : array-like of shape (R, C, N)
            ``unary[r, c, a]`` is the score of state ``a`` at ``(r, c)``.
        vertical : array-like of shape (N, N) or (R - 1, C, N, N)
            ``vertical[r, c, a, b]`` is the score of ``a`` at ``(r, c)`` above ``b`` at ``(r + 1, c)``; a
            single table is used for all pairs.
        horizontal : array-like of shape (N, N) or (R, C - 1, N, N)
            ``horizontal[r, c, a, b]`` is the score of ``a`` at ``(r, c)`` left of ``b`` at ``(r, c + 1)``;
            a single table is used for all pairs.
        states : sequence of str, optional
            The names of the N states.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> smooth = tt.Model.grid(np.zeros((2, 3, 2)), np.eye(2), np.eye(2))
        >>> smooth
        Model(2 x 3 grid, 6 variables of 2 states, 13 factors)
        >>> smooth.score([[0, 0, 1], [0, 0, 1]])
        5.0
        """
        return _shaped(shapes.grid(unary, vertical, horizontal, states), states)

    def _fill(
        self,
        sizes: NDArray[np.int32],
        blocks: tuple[Block, ...],
        shape: tuple[int, ...],
        states: Sequence[Any] | None,
        variables: Sequence[str] | None,
        n: int | None,
    ) -> None:
        self._span(sizes, shape, states, variables, n)
        set_once(self, "blocks", blocks)
        set_once(self, "_key", None)

    @property
    def key(self) -> tuple[bytes, ...]:
        """Digests of the cardinalities and of the scopes of each block, used by the skeleton cache."""
        if self._key is None:
            size = len(self.cardinalities)
            first = digest(self.cardinalities) if self.alike is None else uniform(size, self.alike)[1]
            set_once(self, "_key", (first, *(block.key for block in self.blocks)))
        assert self._key is not None
        return self._key

    def score(self, labelling: ArrayLike) -> float:
        """Compute ``F(y)``, the sum of all factors at a labelling; -inf if it is forbidden."""
        return evaluator(self.cardinalities, self.blocks)(self.encode(labelling))[0]

    def restricted(self, fixed: Fixed | None = None, allowed: Allowed | None = None) -> Model:
        """Return the model restricted to fewer labellings; all others score -inf.

        Parameters
        ----------
        fixed : mapping of variable to state, optional
            The state that each given variable must take; variables and states by name or number, on grids
            also by ``(row, column)``.
        allowed : mapping of variable to list of states, optional
            The states that each given variable may take.

        Returns
        -------
        Model
            With the same shape, so that plans can be shared, if every restricted variable has a unary factor,
            as in chains, trees and grids.

        Raises
        ------
        ModelError
            There is no such variable or state, or a variable has no state left.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.array([[0., 1, 2], [0, 2, 5]]), np.zeros((3, 3)), states=list("OBI"))
        >>> tt.solve(model.restricted(fixed={0: "O"}, allowed={1: ["O", "B"]})).labels
        array(['O', 'B'], dtype=object)
        """
        states, lists = checked_mapping(fixed, "fixed"), checked_mapping(allowed, "allowed")
        if not states and not lists:
            return self
        choices = self.choices(states, lists)
        blocks = restricted_blocks(self.blocks, self.cardinalities, choices)
        return _restored(self.cardinalities, blocks, self.shape, self.states, self.variables, self.alike)

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[object, ...]]:
        return _restored, (
            self.cardinalities,
            self.blocks,
            self.shape,
            self.states,
            self.variables,
            self.alike,
        )

    def _repr_html_(self) -> str:
        """Show the model in a notebook: its variables, its states, and its factors by kind."""
        factors = Counter[tuple[int, ...]]()
        for block in self.blocks:
            factors[block.tables.shape[1:]] += len(block)
        kinds = [
            (f"factors of {counted(len(shape), 'variable')}", f"{number} of shape {shape}")
            for shape, number in factors.items()
        ]
        names = self.variables or ()
        some = ", ".join(abbreviated(name, 40) for name in names[:8]) + (", …" if len(names) > 8 else "")
        sizes = sorted(set(self.cardinalities.tolist()))
        states = listed_states(self._common, self.alike) if self.alike is not None else str(sizes)[1:-1]
        about = [("variables", f"{len(self)}" + (f": {some}" if some else "")), ("states", states)]
        if len(self.shape) == 2:
            about.append(("grid", " x ".join(map(str, self.shape))))
        return html.described("Model", [*about, *kinds])

    def __repr__(self) -> str:
        factors = sum(map(len, self.blocks))
        grid = "" if len(self.shape) == 1 else " x ".join(map(str, self.shape)) + " grid, "
        each = "" if self.alike is None else f" of {counted(self.alike, 'state')}"
        return f"Model({grid}{counted(len(self), 'variable')}{each}, {counted(factors, 'factor')})"


def checked_model(model: object) -> Model:
    """Return the argument if it is a model; raise :class:`ModelError` otherwise."""
    if not isinstance(model, Model):
        raise ModelError(f"the first argument must be a Model, got {type(model).__name__}")
    return model


# --- making -------------------------------------------------------------------------------------------------


def _made(*content: Any) -> Model:
    model = object.__new__(Model)
    model._fill(*content)
    return model


def _restored(
    sizes: NDArray[Any], blocks: Any, shape: Any, states: Any, variables: Any, alike: int | None
) -> Model:
    cardinalities, n = checked_cardinalities(sizes)
    return _made(cardinalities, blocks, shape, states, variables, n if alike is None else alike)


def _shaped(
    shaped: shapes.Shaped, states: Sequence[str] | None, variables: Sequence[str] | None = None
) -> Model:
    cardinalities, _ = uniform(prod(shaped.shape), shaped.n)
    return _made(cardinalities, shaped.blocks, shaped.shape, states, variables, shaped.n)
