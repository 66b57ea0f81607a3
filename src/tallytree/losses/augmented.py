"""Loss-augmented inference: the labelling that most violates the margin, exactly, for any loss of tallies.

A :class:`LossProfile` holds the best score for every tally of a loss, so margin and slack scaling, with every
margin, are look-ups in it. A loss that is linear in its statistics needs no tally under margin scaling: it
folds into the factors, and plain MAP answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.answers.certificate import BEST
from tallytree.answers.profile import Where
from tallytree.answers.solution import Solution, lifted, tally_type, unique_names
from tallytree.errors import BudgetError, CertificateError, ModelError
from tallytree.losses.base import Line, Loss
from tallytree.losses.path import MarginPath
from tallytree.losses.scaling import Scaling, checked_margin, checked_scaling, objective, scaled
from tallytree.model.blocks import Block
from tallytree.model.model import Model, checked_model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.orders import Order
from tallytree.reductions.reduction import Reduction, meet
from tallytree.solving import Posed, best_of, pose, solve
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import read_by
from tallytree.values import read_only

__all__ = [
    "AugmentedSolution",
    "LossProfile",
    "LossQuestion",
    "folded_model",
    "loss_augmented",
    "loss_augmented_path",
    "unfolded",
]


class AugmentedSolution(Solution):
    """The labelling that maximises a loss together with the score.

    Attributes
    ----------
    value : float
        ``loss + score - truth_score`` under margin scaling, ``loss·(1 + score - truth_score)`` under slack
        scaling.
    loss : float
        The loss of the labelling.
    truth_score : float
        The score of the truth.
    score, tally, assignment, labels
        As for every :class:`Solution`, on the model that was asked about.
    """

    loss: float
    truth_score: float

    def __init__(self, found: Solution, loss: float, truth_score: float) -> None:
        vars(self).update(vars(found), loss=loss, truth_score=truth_score)

    @classmethod
    def complete(cls, **content: Any) -> AugmentedSolution:
        """Make one of all that it has; the labelling is read-only already."""
        solution: AugmentedSolution = object.__new__(cls)
        vars(solution).update(content)
        return solution

    def __reduce__(self) -> tuple[Any, ...]:
        found = Solution(self.value, self.score, self.tally, self.assignment, self.model, self.certificate)
        return AugmentedSolution, (found, self.loss, self.truth_score)

    def __repr__(self) -> str:
        return f"AugmentedSolution(loss={self.loss:.6g}, {super().__repr__().removeprefix('Solution(')}"


class LossQuestion:
    """A loss on a model: the loss in the model's terms, the score of the truth, the reduction."""

    def __init__(
        self, model: Model, loss: Loss, truth: ArrayLike | None, fixed: Fixed | None, allowed: Allowed | None
    ) -> None:
        if not isinstance(loss, Loss):
            raise ModelError(f"a loss such as tallytree.losses.FBeta(truth) is needed, got {loss!r}")
        whole = checked_model(model)
        self.loss = loss.on(whole)
        self.truth_score = whole.score(self.loss.anchor(whole) if truth is None else truth)
        if self.truth_score == -np.inf:
            raise ModelError(
                "the truth scores -inf: the model forbids it, so no labelling can be compared with it"
            )
        self.model = whole.restricted(fixed, allowed)
        self.reduction: Reduction = self.loss.reduce(self.model)

    def answer(self, found: Solution, scaling: Scaling, margin: float) -> AugmentedSolution:
        """Put the loss to a solution, and certify it where it was counted on another model."""
        loss = float(self.loss.value(*found.tally[: len(self.reduction.statistics)]))
        if not self.reduction.trivial:
            self._certify(found.assignment, loss)
        value = float(scaled(scaling, loss, found.score - self.truth_score, margin))
        complete = found.retold(self.model, found.assignment, value, found.score, found.tally)
        return AugmentedSolution(complete, loss, self.truth_score)

    def _certify(self, assignment: NDArray[np.int64], loss: float) -> None:
        defined = self.loss(assignment)
        if abs(defined - loss) > 1e-9 * max(1.0, defined):
            raise CertificateError(
                f"the certificate failed: the reduced model promises loss {loss!r}, the labelling has "
                f"{defined!r}. This is a bug in tallytree, or in the loss: check that with "
                "tallytree.testing.check_loss"
            )


class LossProfile:
    """The best score for every tally of a loss: margin and slack scaling, whatever the margin, are look-ups.

    Parameters
    ----------
    model : Model
        The factor graph.
    loss : Loss
        Bound to a truth.
    truth : labelling, optional
        Whose score the others are compared with, where it is not the loss's own.
    where : Constraint, optional
        Only labellings that satisfy it.
    fixed, allowed : mapping, optional
        The state that a variable must take, the states it may take.
    order, memory_limit
        As for :func:`profile`.

    Attributes
    ----------
    model : Model
    loss : Loss
        In the state numbers of the model.
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
        model: Model,
        loss: Loss,
        *,
        truth: ArrayLike | None = None,
        where: Where = None,
        fixed: Fixed | None = None,
        allowed: Allowed | None = None,
        order: Order | None = None,
        memory_limit: float | None = None,
    ) -> None:
        self._ask(LossQuestion(model, loss, truth, fixed, allowed), where, order, memory_limit)

    @classmethod
    def _of(cls, question: LossQuestion, where: Where, order: Any, memory_limit: float | None) -> LossProfile:
        profile: LossProfile = object.__new__(cls)
        profile._ask(question, where, order, memory_limit)
        return profile

    def _ask(self, question: LossQuestion, where: Where, order: Any, memory_limit: float | None) -> None:
        self._question = question
        self.model, self.loss, self.truth_score = question.model, question.loss, question.truth_score
        reduction, self._where = question.reduction, where
        try:
            self._posed: Posed = pose(
                reduction, reduction.statistics, where, order=order, memory_limit=memory_limit
            )
        except BudgetError as error:
            raise BudgetError(f"{error}. {self.loss.remedy}" if self.loss.remedy else str(error)) from None

    @property
    def plan(self) -> Any:
        """The plan of the messages."""
        return self._posed.profile.plan

    def __len__(self) -> int:
        """Return the number of attainable tallies."""
        return len(self._posed.profile)

    def best(self, scaling: Scaling = "margin", margin: float = 1.0) -> AugmentedSolution:
        """Find the labelling that most violates the margin."""
        found = best_of(self._posed, self._objective(scaling, margin), self._where)
        return self._question.answer(found, scaling, margin)

    def top(self, count: int, scaling: Scaling = "margin", margin: float = 1.0) -> list[AugmentedSolution]:
        """Return the best labelling of each of the best tallies, best first; fewer if there are fewer."""
        found = self._posed.top(count, self._objective(scaling, margin))
        return [self._question.answer(one, scaling, margin) for one in found]

    def path(
        self, low: float = 0.0, high: float = np.inf, scaling: Scaling = "margin"
    ) -> MarginPath[AugmentedSolution]:
        """Return the optimum for every margin in a range."""
        checked_scaling(scaling, self.loss)
        tallies, scores = self.table()
        losses = np.broadcast_to(self.loss.value(*tallies.T), scores.shape)
        constants = scaled(scaling, losses, scores - self.truth_score, 0.0)
        return MarginPath(losses, constants, low, high, lambda row, at: self.row(row, scaling, at))

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the attainable tallies of the loss's statistics, (S, P), and the best score of each.

        A tally comes more than once where a constraint counts something else as well.
        """
        _, scores, tallies = self._posed.rows()
        return tallies[:, : self._posed.seen], scores

    def row(self, row: int, scaling: Scaling = "margin", margin: float = 1.0) -> AugmentedSolution:
        """Return the best labelling with the tally of a row of the table."""
        rows, _, _ = self._posed.rows()
        return self._question.answer(self._posed.profile.row(int(rows[row])), scaling, margin)

    def released(self) -> LossProfile:
        """Return the same profile without its tables; they are computed again for each labelling."""
        light = copy(self)
        light._posed = self._posed._replace(profile=copy(self._posed.profile))
        return light

    def _objective(self, scaling: Scaling, margin: float) -> Any:
        kind = checked_scaling(scaling, self.loss)
        return objective(self.loss, kind, self.truth_score, checked_margin(margin))


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
    order: Order | None = None,
    memory_limit: float | None = None,
) -> AugmentedSolution:
    """Find the labelling that most violates the margin.

    Parameters
    ----------
    model : Model
        The factor graph.
    loss : Loss
        Bound to a truth, as ``tallytree.losses.FBeta(truth, background=0)``.
    scaling : {"margin", "slack"}
        Maximise ``loss(y) + F(y) - F(truth)``, or ``loss(y)·(1 + F(y) - F(truth))``.
    margin : float
        In the place of the factor 1 of the loss, or of the 1 in the brackets.
    truth : labelling, optional
        Whose score the others are compared with, where it is not the loss's own.
    where, fixed, allowed, order, memory_limit
        As for :func:`solve`.

    Raises
    ------
    ModelError
        The truth is forbidden by the model; or the loss can be negative, with slack scaling.

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
    question = LossQuestion(model, loss, truth, fixed, allowed)
    checked_scaling(scaling, question.loss)
    line = question.loss.linear() if scaling == "margin" else None
    if line is None:
        return LossProfile._of(question, where, order, memory_limit).best(scaling, margin)
    return _folded(question, line, where, checked_margin(margin), order, memory_limit)


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
    order: Order | None = None,
    memory_limit: float | None = None,
) -> MarginPath[AugmentedSolution]:
    """Find the labelling that most violates the margin, for every margin λ in a range, in one pass.

    Maximises ``λ·loss(y) + F(y) - F(truth)``, or ``loss(y)·(λ + F(y) - F(truth))``. As a function of λ the
    optimum is convex and made of straight pieces, one labelling to each.

    Parameters
    ----------
    low, high : float
        The range of margins; ``high`` may be infinite.
    model, loss, scaling, truth, where, fixed, allowed, order, memory_limit
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
    found = LossProfile(
        model,
        loss,
        truth=truth,
        where=where,
        fixed=fixed,
        allowed=allowed,
        order=order,
        memory_limit=memory_limit,
    )
    return found.path(low, high, scaling)


# --- losses that fold ---------------------------------------------------------------------------------------


def _folded(
    question: LossQuestion,
    line: Line,
    where: Where,
    margin: float,
    order: Order | None,
    memory_limit: float | None,
) -> AugmentedSolution:
    """Maximise ``λ·loss + F`` as plain MAP: the loss is a sum of local terms, as the score is."""
    reduction, constraint = meet(question.reduction, where)
    changed = folded_model(reduction, line, margin)
    found = solve(changed, where=constraint, order=order, memory_limit=memory_limit)
    return unfolded(question, reduction, found, margin, where, constraint)


def folded_model(reduction: Reduction, line: Line, margin: float) -> Model:
    """Return the model with a multiple of the loss in its score."""
    weights = [margin * c for c in line[1]]
    return _with_terms(reduction.model, list(zip(reduction.statistics, weights, strict=True)))


def unfolded(
    question: LossQuestion,
    reduction: Reduction,
    found: Solution,
    margin: float,
    where: Where,
    constraint: Constraint | None,
) -> AugmentedSolution:
    """Return a labelling of the folded model with score and tallies of its own."""
    counted = reduction.statistics
    tally = [s.tally(found.assignment) for s in counted]
    names = unique_names((*(s.name for s in counted), *found.tally._fields))
    complete = tally_type(names)(*tally, *found.tally)
    score = reduction.model.score(found.assignment)
    plain = found.retold(reduction.model, found.assignment, found.value, score, complete)
    shown = (*counted, *(() if constraint is None else read_by(constraint)))
    answer = lifted(plain.claiming(BEST, noun="value", among=where), reduction, shown)
    return question.answer(answer, "margin", margin)


def _with_terms(model: Model, terms: Sequence[tuple[Any, float]]) -> Model:
    """Add multiples of statistics to the score."""
    blocks = list(model.blocks)
    for statistic, weight in terms:
        for block in statistic.blocks:
            _add(blocks, block, block.tables * weight)
    return Model.from_blocks(
        model.cardinalities, blocks, shape=model.shape, variables=model.variables, states=model.states
    )


def _add(blocks: list[Block], term: Block, scores: NDArray[np.float64]) -> None:
    """Add scores to the block with the same scopes, so that the model keeps its shape, or as a new block."""
    for i, block in enumerate(blocks):
        if block.key == term.key and block.tables.shape[1:] == scores.shape[1:]:
            blocks[i] = block.with_tables(read_only(block.tables + scores))
            return
    blocks.append(term.with_tables(read_only(scores.astype(np.float64))))
