"""A loss on a forest: what it counts, the score of the truth, and trees with a certified loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tallytree.answers.certificate import BEST, Claim
from tallytree.answers.certification import certify_loss
from tallytree.answers.tallies import tally_type, unique_names
from tallytree.answers.tally_table import TallyTable, Where
from tallytree.bounding.answering import answered
from tallytree.bounding.question import Question
from tallytree.errors import ModelError
from tallytree.losses.base import Line, Loss, Values
from tallytree.losses.brackets import CrossingBrackets, CrossingBracketsRate
from tallytree.losses.nodes import NodeLoss
from tallytree.losses.positions import ZeroOne
from tallytree.losses.query import LossQuery, loss_query
from tallytree.losses.quotients import Quotient, quotient
from tallytree.losses.scaling import Scaling, scaled
from tallytree.model.rounding import rounding_bound
from tallytree.parsing.counts import count, crossing_brackets, false_positives, true_positives, wrong_nodes
from tallytree.parsing.forest import Forest
from tallytree.parsing.parse import Parse
from tallytree.parsing.statistics import Chart, TreeStatistic
from tallytree.planning.options import Options
from tallytree.planning.query import Query
from tallytree.running.chart_bounds import labelling_of
from tallytree.running.charts import Scores
from tallytree.solving import ask
from tallytree.trees import Tree

# --- losses of trees as functions of tree statistics --------------------------------------------------------
# F-measures, precision and recall are determined by true and false positives, crossing brackets by their
# number. The chart carries those, and the loss is looked up at its root.


class CountedLoss(NamedTuple):
    """A loss as a function of tree statistics.

    Attributes
    ----------
    statistics : tuple of TreeStatistic
        The statistics that are counted.
    value : callable
        Computes the loss from their tallies, elementwise.
    line : (constant, coefficients) or None
        The value as a linear function, if it is linear.
    """

    statistics: tuple[TreeStatistic, ...]
    value: Callable[..., Any]
    line: Line | None = None


@singledispatch
def counted_loss(loss: Loss) -> CountedLoss:
    """Return the statistics that determine a loss of trees; register your own losses here."""
    raise ModelError(
        f"expected a loss of trees such as tallytree.losses.FBeta(tree), got {loss!r}; your own losses "
        "can be registered with tallytree.parsing.counted_loss"
    )


@counted_loss.register
def _(loss: NodeLoss) -> CountedLoss:
    made = {"tp": true_positives, "fp": false_positives}
    return CountedLoss(tuple(made[name](loss.truth) for name in loss.counted), loss.value, loss.linear())


@counted_loss.register
def _(loss: CrossingBrackets) -> CountedLoss:
    return CountedLoss((crossing_brackets(loss.truth),), loss.value, loss.linear())


@counted_loss.register
def _(loss: CrossingBracketsRate) -> CountedLoss:
    return CountedLoss((crossing_brackets(loss.truth), count()), loss.value)


@counted_loss.register
def _(loss: ZeroOne) -> CountedLoss:
    size = loss.truth.constituents().total()
    statistics = (true_positives(loss.truth), wrong_nodes(loss.truth, cap=1))
    return CountedLoss(statistics, partial(_zero_one, size))


def _zero_one(size: int, tp: Any, wrong: Any) -> Any:
    return np.where((tp == size) & (wrong == 0), 0.0, 1.0)


@dataclass(frozen=True)
class AugmentedParse(Parse):
    """The tree that maximises a combination of loss and score.

    Attributes
    ----------
    value : float
        ``loss + score - truth_score`` under margin scaling, ``loss·(1 + score - truth_score)`` under slack
        scaling.
    loss, score : float
        Of the tree.
    truth_score : float
        The score of the truth.
    tally : named tuple of int
        The counts of the loss, then those of the constraint.
    tree, certificate
        As for :class:`Parse`.
    """

    loss: float = field(kw_only=True)
    truth_score: float = field(kw_only=True)


class TreeLossQuery(LossQuery[AugmentedParse]):
    """A loss on a forest."""

    model: Forest

    def __init__(self, forest: Forest, loss: Loss, where: Where) -> None:
        if not isinstance(loss, Loss) or not isinstance(loss.truth, Tree):
            raise ModelError(
                f"expected a loss bound to a tree, such as tallytree.losses.FBeta(tree); got {loss!r}"
            )
        self.model, self.loss, self.counted = forest, loss, counted_loss(loss)
        self.truth_score, self._truth = forest.derived(loss.truth)
        if self.truth_score == -np.inf:
            raise ModelError(
                "the truth scores -inf: the grammar does not derive it, so no tree can be compared with it"
            )
        self.query: Query[TreeStatistic] = ask(forest, self.counted.statistics, where)

    @property
    def line(self) -> Line | None:
        """The loss as a sum over spans, if it is one."""
        return self.counted.line

    def value(self, *tallies: ArrayLike) -> Values:
        """Compute the loss from its counts."""
        values: Values = self.counted.value(*tallies)
        return values

    def table(self, options: Options, scaling: Scaling, margins: Sequence[float] | None) -> TallyTable[Any]:
        """Build the chart, or search for the optimum at one margin."""
        single = margins is not None and len(margins) == 1
        question = partial(self.question, scaling, margins[0]) if margins is not None and single else None
        return answered(self.query, options, question)

    def question(self, scaling: Scaling, margin: float) -> Question:
        """Ask for the optimum at one margin, starting from the truth."""
        start = None
        if self._truth is not None and all(s.levels == 1 for s in self.query.carried):
            start = labelling_of(self._truth, len(self.model))
        return Question(scaling, margin, self.truth_score, self._losses, self._quotient(), start)

    def _losses(self, *tallies: ArrayLike) -> Values:
        with np.errstate(all="ignore"):  # tallies that no tree has are among them
            return self.value(*tallies)

    def _quotient(self) -> Quotient | None:
        if isinstance(self.loss, NodeLoss):
            found = quotient(self.loss)
        else:
            found = None if self.line is None else (self.line, (1.0, (0.0,) * len(self.line[1])))
        counted = len(self.counted.statistics)
        return found if found is not None and len(found[0][1]) == counted else None

    @property
    def rounding(self) -> float:
        """The largest difference that rounding can cause between two sums of the same scores."""
        scores, words = self.model.scores, len(self.model)
        arrays = (scores.words, scores.rules, scores.chains)
        largest = max(float(np.abs(a[np.isfinite(a)]).max(initial=0)) for a in arrays)
        return float(rounding_bound(8 * words, 1 + 8 * words * largest))

    def augmented(self, answer: Parse, scaling: Scaling, margin: float) -> AugmentedParse:
        """Attach the loss to a tree: from its tallies, and certified by definition."""
        counted = [s.tally(answer.tree) for s in self.counted.statistics]
        loss = float(self.counted.value(*map(np.asarray, counted)))
        certify_loss(loss, self.loss(answer.tree), source="the chart", thing=answer.tree)
        value = float(scaled(scaling, loss, answer.score - self.truth_score, margin))
        return AugmentedParse(
            value,
            answer.score,
            answer.tally,
            answer.tree,
            answer.certificate,
            loss=loss,
            truth_score=self.truth_score,
        )

    # --- folding: the loss is a sum over spans, as the score is -------------------------------------------

    def folded_best(self, margin: float, options: Options) -> AugmentedParse:
        """Maximise ``λ·loss + F`` with the loss in the scores of chains of unary rules."""
        assert self.line is not None
        changed, where = self.gaining(self.line, margin, self.model.scores), self.query.where

        def unfold(answer: Parse) -> AugmentedParse:
            return self.augmented(self._unfolded(answer), "margin", margin)

        if where is None:
            return unfold(changed.best())
        return self._folded_answer(ask(changed, (), where), margin, options, unfold)

    def gaining(self, line: Line, margin: float, scores: Scores) -> Forest:
        """Return the forest with a multiple of the loss, minus its constant, added to its scores."""
        compiled, words = self.model.compiled, len(self.model.words)
        chart = Chart(compiled, self.model.starts, self.model.ends)
        gain = np.zeros((len(compiled.bags), len(self.model.starts)))
        for weight, statistic in zip(line[1], self.counted.statistics, strict=True):
            gain += margin * weight * statistic.weights(chart)
        chains = np.ascontiguousarray(scores.chains + compiled.spread(gain, words))
        return self.model.rescored(Scores(scores.words, scores.rules, chains))

    def _unfolded(self, answer: Parse) -> Parse:
        """Convert a tree of the folded forest to one of the original forest."""
        assert answer.certificate is not None
        every = self.query.reported
        tally = tally_type(unique_names(tuple(s.name for s in every)))(*(s.tally(answer.tree) for s in every))
        score = self.model.score(answer.tree)
        off = answer.certificate.promised - answer.certificate.score  # the chart's error does not change
        proof = replace(
            answer.certificate,
            claim=Claim(BEST, self.query.where, "value").words("tree"),
            score=score,
            promised=score + off,
            tally=dict(zip(tally._fields, tally, strict=True)),
        )
        return replace(answer, score=score, tally=tally, certificate=proof)


@loss_query.register
def _(
    forest: Forest,
    loss: Loss,
    *,
    truth: Any = None,
    where: Where = None,
    fixed: Any = None,
    allowed: Any = None,
) -> TreeLossQuery:
    if truth is not None:
        raise ModelError("a loss on trees has its own truth; bind it with loss.against(tree)")
    if fixed or allowed:
        raise ModelError("fixed= and allowed= restrict the variables of a model, but a forest has none")
    return TreeLossQuery(forest, loss, where)
