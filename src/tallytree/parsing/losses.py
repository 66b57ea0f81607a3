"""Losses of trees in terms of statistics of trees.

F-measures, precision and recall are determined by true and false positives, crossing brackets by their
number. The chart carries those, and the loss is looked up at its root.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, singledispatch
from typing import Any, NamedTuple

import numpy as np

from tallytree.errors import ModelError
from tallytree.losses.base import Line, Loss
from tallytree.losses.brackets import CrossingBrackets, CrossingBracketsRate
from tallytree.losses.nodes import NodeLoss
from tallytree.losses.positions import ZeroOne
from tallytree.parsing.comparisons import crossing_brackets, false_positives, true_positives, wrong_nodes
from tallytree.parsing.counts import count
from tallytree.parsing.statistics import TreeStatistic


class CountedLoss(NamedTuple):
    """A loss in terms of statistics of trees.

    Attributes
    ----------
    statistics : tuple of TreeStatistic
        What is counted.
    value : callable
        The loss from their tallies, elementwise.
    line : (constant, coefficients) or None
        The value where it is linear.
    """

    statistics: tuple[TreeStatistic, ...]
    value: Callable[..., Any]
    line: Line | None = None


@singledispatch
def counted_loss(loss: Loss) -> CountedLoss:
    """Say which statistics of trees determine a loss; register losses of your own here."""
    raise ModelError(
        f"a loss of trees such as tallytree.losses.FBeta(tree) is needed, got {loss!r}; losses of your own "
        "are registered with tallytree.parsing.counted_loss"
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
