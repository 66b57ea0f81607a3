"""Loss-augmented inference: the labelling that most violates the margin, exactly, for any loss of tallies.

A :class:`LossProfile` holds the best score for every tally of a loss, so margin and slack scaling, for every
margin, are look-ups in it. A loss that is linear in its statistics needs no tally under margin scaling: it is
folded into the factors, and plain MAP solves it. Both work for models and for forests.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.answers.tally_table import TallyTable, Where
from tallytree.losses.base import Loss
from tallytree.losses.path import MarginPath, checked_range
from tallytree.losses.path_search import searched_path
from tallytree.losses.query import LossQuery, loss_query
from tallytree.losses.scaling import Scaling, checked_margin, checked_scaling, scaled
from tallytree.losses.solution import AugmentedSolution
from tallytree.model.model import Model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.options import Keywords, Options, read_options
from tallytree.solving import best_of


class LossProfile:
    """The best score for every tally of a loss: margin and slack scaling are look-ups, for any margin.

    Parameters
    ----------
    model : Model or Forest
        The factor graph, or the parse forest of a sentence.
    loss : Loss
        A loss that is bound to a truth.
    truth : labelling, optional
        The labelling whose score the others are compared with, if not the truth of the loss.
    where : Constraint, optional
        Only labellings that satisfy this constraint.
    fixed, allowed : mapping, optional
        The state that a variable must take, or the states it may take.
    **options
        ``order``, ``memory_limit``, ``layout`` and ``threads``, as for :func:`profile`.

    Attributes
    ----------
    model : Model
        The model, restricted to fixed and allowed states.
    loss : Loss
        The loss, with states as numbers.
    truth_score : float
        ``F(y*)``.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> found = tt.losses.LossProfile(model, tt.losses.FBeta([0, 0, 1], background=0))
    >>> found.best("margin").assignment, found.best("slack").assignment
    (array([1, 1, 1]), array([1, 1, 1]))
    """

    def __init__(
        self,
        model: Any,
        loss: Loss,
        *,
        truth: ArrayLike | None = None,
        where: Where = None,
        fixed: Fixed | None = None,
        allowed: Allowed | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        query = loss_query(model, loss, truth=truth, where=where, fixed=fixed, allowed=allowed)
        self._fill(query, read_options(options, LossProfile, single=False))

    @classmethod
    def of(
        cls,
        query: LossQuery[Any],
        options: Options,
        scaling: Scaling = "margin",
        margins: Sequence[float] | None = None,
    ) -> LossProfile:
        """Run a query; for given margins, tallies that cannot be optimal at them may be left out."""
        profile: LossProfile = object.__new__(cls)
        profile._fill(query, options, scaling, margins)
        return profile

    def _fill(
        self,
        query: LossQuery[Any],
        options: Options,
        scaling: Scaling = "margin",
        margins: Sequence[float] | None = None,
    ) -> None:
        self._query: LossQuery[Any] = query
        self._table: TallyTable[Any] = query.table(options, scaling, margins)

    @property
    def model(self) -> Any:
        """The model, restricted."""
        return self._query.model

    @property
    def loss(self) -> Loss:
        """The loss, with states as numbers of the model."""
        return self._query.loss

    @property
    def truth_score(self) -> float:
        """The score of the truth."""
        return self._query.truth_score

    @property
    def plan(self) -> Any:
        """The plan of the messages."""
        return self._table.plan

    def __len__(self) -> int:
        """Return the number of attainable tallies."""
        return len(self._table)

    def best(self, scaling: Scaling = "margin", margin: float = 1.0) -> Any:
        """Find the labelling that most violates the margin."""
        best = best_of(self._table, self._objective(scaling, margin))
        return self._query.augmented(best, scaling, margin)

    def top(self, count: int, scaling: Scaling = "margin", margin: float = 1.0) -> list[Any]:
        """Return the best labelling of each of the best tallies, best first; fewer if there are fewer."""
        top = self._table.top(count, self._objective(scaling, margin))
        return [self._query.augmented(answer, scaling, margin) for answer in top]

    def path(self, low: float = 0.0, high: float = np.inf, scaling: Scaling = "margin") -> MarginPath[Any]:
        """Return the optimum for every margin in a range."""
        checked_scaling(scaling, self.loss)
        tallies, scores = self.table()
        losses = np.broadcast_to(self._query.value(*tallies.T), scores.shape)
        constants = scaled(scaling, losses, scores - self.truth_score, 0.0)
        return MarginPath(losses, constants, low, high, partial(_at_margin, self, scaling))

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the attainable tallies of the loss's statistics, (S, P), and the best score of each.

        A tally occurs more than once if a constraint counts something else as well.
        """
        rows = self._rows()
        return self._table.tallies[rows, : len(self._table.query.read)], self._table.scores[rows]

    def row(self, row: int, scaling: Scaling = "margin", margin: float = 1.0) -> Any:
        """Return the best labelling with the tally of a row of the table."""
        rows = self._rows()
        return self._query.augmented(self._table.row(int(rows[row])), scaling, margin)

    def _rows(self) -> NDArray[np.int64]:
        """Return the rows that satisfy the constraint; if there are none, report the nearest tallies."""
        if not self._table.satisfiable:
            best_of(self._table)
        return self._table.rows_where()

    def released(self) -> LossProfile:
        """Return the same profile without its tables; they are recomputed for each labelling."""
        light = copy(self)
        light._table = self._table.released()
        return light

    def _objective(self, scaling: Scaling, margin: float) -> Any:
        kind = checked_scaling(scaling, self.loss)
        return self._query.objective(kind, checked_margin(margin))


def _at_margin(profile: LossProfile, scaling: Scaling, row: int, margin: float) -> Any:
    """Return the best labelling with the tally of a row; a function, so that paths can be pickled."""
    return profile.row(row, scaling, margin)


@overload
def loss_augmented(
    model: Model,
    loss: Loss,
    scaling: Scaling = "margin",
    *,
    margin: float = 1.0,
    truth: ArrayLike | None = None,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    prune: bool = True,
    **options: Unpack[Keywords],
) -> AugmentedSolution: ...
@overload
def loss_augmented(model: Any, *arguments: Any, **keywords: Any) -> Any: ...
def loss_augmented(
    model: Any,
    loss: Loss,
    scaling: Scaling = "margin",
    *,
    margin: float = 1.0,
    truth: ArrayLike | None = None,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    prune: bool = True,
    **options: Unpack[Keywords],
) -> Any:
    """Find the labelling, or the tree, that most violates the margin.

    Parameters
    ----------
    model : Model or Forest
        The factor graph, or the parse forest of a sentence.
    loss : Loss
        Bound to a truth, as in ``tallytree.losses.FBeta(truth, background=0)``; for a forest, to a tree.
    scaling : {"margin", "slack"}
        Maximise ``loss(y) + F(y) - F(truth)``, or ``loss(y)·(1 + F(y) - F(truth))``.
    margin : float
        Replaces the factor 1 of the loss, or the 1 in the parentheses.
    truth : labelling, optional
        The labelling whose score the others are compared with, if not the truth of the loss.
    where, fixed, allowed
        As for :func:`solve`.
    prune : bool
        If False, the same as ``strategy="full"``. It only changes the cost, not the result.
    **options
        ``order``, ``memory_limit``, ``layout`` and ``threads``, as for :func:`profile`; ``strategy`` and
        ``operation_limit``, as for :func:`solve`. Losses of sentences are solved by bounds, unless
        ``strategy`` is ``"full"``.

    Returns
    -------
    AugmentedSolution
        Or a :class:`tallytree.parsing.AugmentedParse`, for a forest.

    Raises
    ------
    ModelError
        The truth is forbidden by the model or the grammar; or the loss can be negative, under slack scaling.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)), states=["O", "B"])
    >>> loss = tt.losses.FBeta(["O", "O", "B"], background="O")
    >>> found = tt.loss_augmented(model, loss, scaling="slack")
    >>> found.labels.tolist(), found.loss, found.value
    (['B', 'B', 'B'], 0.5, 2.0)
    """
    chosen = _chosen(read_options(options, loss_augmented, single=False, one=True), prune)
    query = loss_query(model, loss, truth=truth, where=where, fixed=fixed, allowed=allowed)
    checked_scaling(scaling, query.loss)
    at = checked_margin(margin)
    found = query.searched(scaling, at, chosen)
    if found is not None:
        return found
    if scaling == "margin" and query.line is not None:
        return query.folded_best(at, chosen)
    return LossProfile.of(query, chosen, scaling, [at]).best(scaling, at)


def _chosen(options: Options, prune: bool) -> Options:
    return options if prune else options._replace(strategy="full")


@overload
def loss_augmented_path(
    model: Model,
    loss: Loss,
    low: float = 0.0,
    high: float = np.inf,
    scaling: Scaling = "margin",
    *,
    truth: ArrayLike | None = None,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    prune: bool = True,
    **options: Unpack[Keywords],
) -> MarginPath[AugmentedSolution]: ...
@overload
def loss_augmented_path(model: Any, *arguments: Any, **keywords: Any) -> Any: ...
def loss_augmented_path(
    model: Any,
    loss: Loss,
    low: float = 0.0,
    high: float = np.inf,
    scaling: Scaling = "margin",
    *,
    truth: ArrayLike | None = None,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    prune: bool = True,
    **options: Unpack[Keywords],
) -> Any:
    """Find the labelling that most violates the margin, for every margin λ in a range, in one pass.

    Maximises ``λ·loss(y) + F(y) - F(truth)``, or ``loss(y)·(λ + F(y) - F(truth))``. As a function of λ the
    optimum is convex and piecewise linear, with one labelling for each piece.

    Parameters
    ----------
    model, loss
        As for :func:`loss_augmented`.
    low, high : float
        The range of margins; ``high`` may be infinite. A finite range is searched by bounds if that is
        likely to be faster than a full table; see ``strategy`` of :func:`loss_augmented`.
    scaling, truth, where, fixed, allowed, prune, **options
        As for :func:`loss_augmented`.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> path = tt.loss_augmented_path(model, tt.losses.HammingDistance([1, 1, 1]), 0, 5)
    >>> path.breakpoints
    array([1., 2., 4.])
    >>> path.at(3.0).assignment
    array([0, 0, 1])
    """
    chosen = _chosen(read_options(options, loss_augmented_path, single=False, one=True), prune)
    query = loss_query(model, loss, truth=truth, where=where, fixed=fixed, allowed=allowed)
    margins = checked_range(low, high)
    checked_scaling(scaling, query.loss)
    if (path := searched_path(query, scaling, *margins, chosen)) is not None:
        return path
    return LossProfile.of(query, chosen, scaling).path(low, high, scaling)
