"""A loss on a model or a forest: what it counts, the score of the truth, and the translation of answers.

The statistics of the loss make a :class:`tallytree.planning.query.Query`; margin and slack scaling, for any
margin, are objectives on its last table. A loss that is linear in its statistics can be folded into the score
instead, which needs no tally.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial, singledispatch
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.answers.certificate import BEST
from tallytree.answers.certification import certify_loss
from tallytree.answers.objective import Objective
from tallytree.answers.solution import Solution, lifted
from tallytree.answers.tallies import tally_type, unique_names
from tallytree.answers.tally_table import TallyTable, Where
from tallytree.bounding.answering import answered
from tallytree.bounding.question import Question
from tallytree.bounding.strategy import known_so_far
from tallytree.errors import BudgetError, ModelError
from tallytree.losses.base import Line, Loss, Values
from tallytree.losses.quotients import quotient
from tallytree.losses.scaling import Scaling, scaled
from tallytree.losses.sentence_search import SentenceSearch, Unfinished
from tallytree.losses.sequences import SequenceLoss
from tallytree.losses.solution import AugmentedSolution
from tallytree.model.model import Model, checked_model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.model.rounding import rounding
from tallytree.planning.options import Options
from tallytree.planning.query import Query, graph_query
from tallytree.reductions.folding import folded
from tallytree.reductions.reduction import Reduction
from tallytree.solving import best_of
from tallytree.statistics.statistic import Statistic, read_by

Augmented = TypeVar("Augmented")


class LossQuery(ABC, Generic[Augmented]):
    """A loss on a model or a forest."""

    model: Any  # the original model, restricted
    loss: Loss  # with the states or labels of the model
    truth_score: float  # the score of the truth
    query: Query[Any]  # what the loss counts, under the constraint

    @property
    @abstractmethod
    def line(self) -> Line | None:
        """The loss as a linear function of its counts: the constant and the coefficients."""

    @abstractmethod
    def value(self, *tallies: ArrayLike) -> Values:
        """Compute the loss from its counts, elementwise."""

    @abstractmethod
    def table(self, options: Options, scaling: Scaling, margins: Sequence[float] | None) -> TallyTable[Any]:
        """Plan and run the query; for given margins, tallies that cannot be optimal may be left out."""

    @abstractmethod
    def folded_best(self, margin: float, options: Options) -> Augmented:
        """Maximise ``λ·loss + F`` with the loss in the score."""

    def _folded_answer(
        self, query: Query[Any], margin: float, options: Options, unfold: Callable[[Any], Augmented]
    ) -> Augmented:
        """Answer a query with a multiple of the loss in the score, also at a limit in terms of values."""
        assert self.line is not None
        offset = margin * self.line[0] - self.truth_score
        try:
            return unfold(best_of(answered(query, options, partial(Question, offset=offset))))
        except BudgetError as error:
            error.best = None if error.best is None else unfold(error.best)
            raise

    @abstractmethod
    def augmented(self, answer: Any, scaling: Scaling, margin: float) -> Augmented:
        """Attach the loss to an answer of the query, certified by definition."""

    @abstractmethod
    def question(self, scaling: Scaling, margin: float) -> Question:
        """Ask for the optimum at one margin."""

    @property
    @abstractmethod
    def rounding(self) -> float:
        """The largest difference that rounding can cause between two sums of the same scores."""

    def searched(self, scaling: Scaling, margin: float, options: Options) -> Augmented | None:
        """Answer by a search that needs no table, if the loss supports it."""
        return None

    def objective(self, scaling: Scaling, margin: float) -> Objective:
        """Return ``H(score, *tallies)`` for the counts of the loss."""

        def objective(score: Any, *tallies: Any) -> Values:
            return scaled(scaling, self.value(*tallies), score - self.truth_score, margin)

        return objective


@singledispatch
def loss_query(
    model: Any,
    loss: Loss,
    *,
    truth: ArrayLike | None = None,
    where: Where = None,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
) -> LossQuery[Any]:
    """Make the query of a loss: the truth is encoded and scored, and the counts of the loss are bound."""
    return GraphLossQuery(checked_model(model), loss, truth, where, (fixed, allowed))


class GraphLossQuery(LossQuery[AugmentedSolution]):
    """A loss on a model.

    Attributes
    ----------
    model : Model
        The original model, restricted.
    """

    def __init__(
        self,
        model: Model,
        loss: Loss,
        truth: ArrayLike | None,
        where: Where,
        restriction: tuple[Fixed | None, Allowed | None],
    ) -> None:
        if not isinstance(loss, Loss):
            raise ModelError(f"expected a loss such as tallytree.losses.FBeta(truth), got {loss!r}")
        self.loss = loss.on(model)
        compared = self.loss.anchor(model) if truth is None else truth
        self.truth_score = model.score(compared)
        if self.truth_score == -np.inf:
            raise ModelError(
                "the truth scores -inf, so the model forbids it and no labelling can be compared with it"
            )
        self.model = model.restricted(*restriction)
        self._where, self._compared = where, compared

    @cached_property
    def reduction(self) -> Reduction:
        """The model on which the loss is counted, made on demand."""
        return self.loss.reduce(self.model)

    @cached_property
    def query(self) -> Query[Statistic]:  # type: ignore[override]
        """What the loss counts, under the constraint."""
        return _counted(self.reduction, self._where)

    @property
    def line(self) -> Line | None:
        """The loss as a linear function of what it counts."""
        return self.loss.linear()

    def value(self, *tallies: ArrayLike) -> Values:
        """Compute the loss from what it counts."""
        return self.loss.value(*tallies)

    def table(self, options: Options, scaling: Scaling, margins: Sequence[float] | None) -> TallyTable[Any]:
        """Plan and run the query."""
        question = None
        if margins is not None and len(margins) == 1:
            question = partial(self.question, scaling, margins[0])
        try:
            return answered(self.query, options, question)
        except BudgetError as error:
            if not self.loss.remedy:
                raise
            more = BudgetError(f"{error}. {self.loss.remedy}")
            more.bound, more.best = error.bound, error.best
            raise more from None

    @property
    def truth(self) -> NDArray[np.int64]:
        """The truth, as one state number per variable."""
        codes: NDArray[np.int64] = self.model.encode(self._compared)
        return codes

    @property
    def start(self) -> NDArray[np.int64] | None:
        """The truth, if the model that is solved is the original one."""
        trivial = self.query.reduction is not None and self.query.reduction.trivial
        return self.truth if trivial else None

    def question(self, scaling: Scaling, margin: float) -> Question:
        """Ask for the optimum at one margin, starting from the truth."""
        return Question(scaling, margin, self.truth_score, self.loss.value, quotient(self.loss), self.start)

    @property
    def rounding(self) -> float:
        """The largest difference that rounding can cause between two sums of the same scores."""
        return rounding(self.model.blocks)

    def searched(self, scaling: Scaling, margin: float, options: Options) -> AugmentedSolution | None:
        """Search for the best sentence; a long search falls back to a table, if possible."""
        if not isinstance(self.loss, SequenceLoss) or self._where is not None or options.strategy == "full":
            return None
        search = SentenceSearch(self.model, self.loss, self.truth, self.truth_score, scaling, margin)
        only = options.strategy == "bounds" or options.operation_limit is not None  # no machine is compiled
        answer = search.run(options, everything=only)
        if not isinstance(answer, Unfinished):
            return answer
        if only:
            raise known_so_far(None, answer)
        try:
            table = self.table(options._replace(strategy="full"), scaling, [margin])
        except BudgetError as error:
            answer = search.run(options, everything=True)
            if isinstance(answer, Unfinished):
                raise known_so_far(error, answer) from None
            return answer
        return self.augmented(best_of(table, self.objective(scaling, margin)), scaling, margin)

    def augmented(self, answer: Solution, scaling: Scaling, margin: float) -> AugmentedSolution:
        """Attach the loss to a solution, and certify it if it was counted on another model."""
        loss = float(self.loss.value(*answer.tally[: len(self.reduction.statistics)]))
        if not self.reduction.trivial:
            certify_loss(loss, self.loss(answer.assignment), source="the reduced model")
        value = float(scaled(scaling, loss, answer.score - self.truth_score, margin))
        light = answer.asked_again(partial(_asked, self.model, self.loss, self._where))
        complete = light.retold(self.model, answer.assignment, value, answer.score, answer.tally)
        return AugmentedSolution(complete, loss, self.truth_score)

    # --- folding ------------------------------------------------------------------------------------------

    def folded(self, margin: float) -> Query[Statistic]:
        """Return the query for the best labelling with a multiple of the loss folded into the score."""
        return _folded(self.query, self.loss, margin)

    def folded_best(self, margin: float, options: Options) -> AugmentedSolution:
        """Maximise ``λ·loss + F`` as plain MAP: the loss is a sum of local terms, like the score."""
        return self._folded_answer(
            self.folded(margin), margin, options, partial(self.unfolded, margin=margin)
        )

    def unfolded(self, answer: Solution, margin: float) -> AugmentedSolution:
        """Return a labelling of the folded model with its own score and tallies."""
        counted, constraint, reduction = self.query.read, self.query.constraint, self.query.reduction
        tally = [s.tally(answer.assignment) for s in counted]
        names = unique_names((*(s.name for s in counted), *answer.tally._fields))
        complete = tally_type(names)(*tally, *answer.tally)
        model: Model = self.query.subject
        score = model.score(answer.assignment)
        light = answer.asked_again(partial(_asked, self.model, self.loss, self._where, margin))
        plain = light.retold(model, answer.assignment, answer.value, score, complete)
        shown = (*counted, *(() if constraint is None else read_by(constraint)))
        claimed = plain.claiming(BEST, noun="value", among=self.query.where)
        return self.augmented(lifted(claimed, reduction, shown), "margin", margin)


def _asked(model: Model, loss: Loss, where: Where, margin: float | None = None) -> Query[Statistic]:
    """Make the query of a loss again; with a margin, that of the loss folded into the score."""
    query = _counted(loss.reduce(model), where)
    return query if margin is None else _folded(query, loss, margin)


def _counted(reduction: Reduction, where: Where) -> Query[Statistic]:
    return graph_query(reduction, reduction.statistics, where)


def _folded(query: Query[Statistic], loss: Loss, margin: float) -> Query[Statistic]:
    line = loss.linear()
    assert line is not None
    changed = folded(query.subject, zip(query.read, [margin * c for c in line[1]], strict=True))
    return graph_query(Reduction.identity(changed), (), query.constraint)
