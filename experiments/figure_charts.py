"""The figure's questions to a sentence with a grammar: the same losses, of constituents."""

from collections.abc import Callable
from typing import Any

import numpy as np
from figure_questions import MARGIN, OTHER, SLACK, Answer, Ask, Counted, Question, both_scalings, timed

import tallytree as tt
from tallytree import parsing
from tallytree.losses import Loss

QUICK = 0.05  # seconds: a shorter pass is timed again


class Chart:
    """A sentence, its tree, and the passes over its chart that were made.

    Losses that count the same share a pass, as they do for a user who asks for several of them. Each is
    charged for all of it, and for its own objective and tree. A pass of more operations than ``most`` is not
    made; what it would take is known from its plan.
    """

    def __init__(self, grammar: parsing.Grammar, truth: parsing.Tree, most: float) -> None:
        self.truth, self.most = truth, most
        self.forest = parsing.Forest(grammar, truth.words)
        self.truth_score = self.forest.score(truth)
        self._passes: dict[tuple[str, ...], tuple[float, Any, float]] = {}

    def passed(self, statistics: tuple[parsing.TreeStatistic, ...]) -> tuple[float, Any, float]:
        """Return the seconds of a pass, its profile and its operations."""
        key = tuple(statistic.name for statistic in statistics)
        if key not in self._passes or self._passes[key][0] < QUICK:
            before, *_ = self._passes.get(key, (np.inf,))
            operations = parsing.plan(self.forest, statistics, memory_limit=np.inf).operations
            if operations > self.most:
                self._passes[key] = (np.nan, None, operations)
            else:
                seconds, profile = timed(lambda: parsing.profile(self.forest, statistics))
                self._passes[key] = (min(seconds, before), profile, operations)
        return self._passes[key]

    def best(self, statistics: tuple[parsing.TreeStatistic, ...], objective: Any) -> Answer:
        """Make or take a pass, and look an objective up in it."""
        seconds, profile, operations = self.passed(statistics)
        if profile is None:
            return Answer(np.nan, operations)
        return Answer(seconds + timed(lambda: profile.best(objective))[0], operations)

    def alone(self, run: Callable[[], list[parsing.Parse]]) -> Answer:
        """Time something that makes its own passes."""
        if not self.most:
            return Answer(np.nan, np.nan)
        seconds, found = timed(run)
        return Answer(seconds, sum(parse.certificate.price.operations for parse in found))


def parsing_questions() -> list[Question]:
    """Constituents are the nodes; a tree has no background."""
    losses = tt.losses
    nodes = [
        Counted("0/1", losses.ZeroOne(), (1, 1), (1, 1)),
        Counted("false positives", losses.FalsePositives(), (0, 0), (1, 1)),
        Counted("recall", losses.Recall(), (0, 0), (1, 1)),
        Counted("precision", losses.Precision(), (2, 2), (2, 2)),
        Counted("F1", losses.FBeta(), (2, 2), (2, 2)),
        Counted("intersection over union", losses.IntersectionOverUnion(), (2, 2), (2, 2)),
        Counted("crossing brackets", losses.CrossingBrackets(), (0, 0), (1, 1)),
        Counted("crossing brackets rate", losses.CrossingBracketsRate(), (2, 2), (2, 2)),
    ]
    return [
        *both_scalings(nodes, _augmented),
        Question("2 diverse outputs", OTHER, (1, 1), _diverse, "false positives"),
        Question("bound of F1", OTHER, (2, 2), _within_margin, "F1"),
        Question("F1 by slack, pruned", OTHER, (2, 2), _pruned, "F1"),
    ]


def _augmented(loss: Loss, scaling: str) -> Ask:
    def ask(chart: Chart) -> Answer:
        bound = loss.against(chart.truth)
        counted = parsing.counted_loss(bound)
        if scaling == MARGIN and counted.line is not None:
            answer = chart.alone(lambda: [parsing.loss_augmented(chart.forest, bound)])
            return answer._replace(operations=parsing.plan(chart.forest).operations)

        def margin(score: Any, *tallies: Any) -> Any:
            return counted.value(*tallies) + score - chart.truth_score

        def slack(score: Any, *tallies: Any) -> Any:
            return counted.value(*tallies) * (1 + score - chart.truth_score)

        return chart.best(counted.statistics, margin if scaling == MARGIN else slack)

    return ask


def _pruned(chart: Chart) -> Answer:
    """Ask as training does: without the items that cannot be part of the answer.

    What is left of the operations depends on the scores more than on the length, so they are not fitted.
    """
    loss = tt.losses.FBeta(chart.truth)
    answer = chart.alone(lambda: [parsing.loss_augmented(chart.forest, loss, SLACK)])
    return answer._replace(operations=np.nan)


def _diverse(chart: Chart) -> Answer:
    distance = max(1, len(chart.truth) // 4)
    return chart.alone(lambda: parsing.diverse_k_best(chart.forest, 2, distance))


def _within_margin(chart: Chart) -> Answer:
    """The bound's maximum, with the number of constituents that only one of two trees has as distance."""
    counted = parsing.counted_loss(tt.losses.FBeta(chart.truth))
    size = chart.truth.constituents().total()

    def objective(score: Any, tp: Any, fp: Any) -> Any:
        return np.where(chart.truth_score - score <= size - tp + fp, counted.value(tp, fp), 0.0)

    return chart.best(counted.statistics, objective)
