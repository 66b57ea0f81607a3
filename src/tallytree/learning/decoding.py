"""Choices of what to predict from a model: the best labelling, the k best, or the best one in expectation.

From a forest of parses the same choices give trees.

The labelling of largest expected F is not the most probable one. With ``p(y) ∝ exp(scale · F(y))`` and
``|y|`` the number of nodes (positions that are not background), predicting ``h`` with ``k`` nodes is worth

    E[F_β] = Σ_(i : h_i is a node) Σ_s (1 + β²) P(y_i = h_i, |y| = s) / (β² s + k)

and for ``k = 0`` it is ``P(|y| = 0)``. For given ``k`` the best ``h`` takes the best label at each position
and the ``k`` positions where that is worth most, so that trying every ``k`` is exact (Dembczyński, Waegeman,
Cheng and Hüllermeier, 2011). The probabilities come from the distribution that carries ``|y|`` as its tally.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tallytree.answers.tally_table import Where
from tallytree.bulk.batch import solve_batch
from tallytree.deprecation import renamed
from tallytree.errors import ModelError
from tallytree.kbest import k_best
from tallytree.learning.planes import Floats, Integers
from tallytree.model.model import Model
from tallytree.parsing import Forest
from tallytree.running.charts import Scores
from tallytree.solving import distribution, solve
from tallytree.statistics.recipes import mismatches
from tallytree.values import read_only

if not TYPE_CHECKING:  # pickles of the old names say this module
    __getattr__ = renamed(__name__, {"Best": "BestDecoder", "KBest": "KBestDecoder"})


class Decoder(ABC):
    """A way to make a prediction from a model."""

    @abstractmethod
    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return the prediction, among the labellings that satisfy a constraint."""

    def each(self, models: Iterable[Any], where: Where = None) -> list[Any]:
        """Return the predictions for several models."""
        return [self(model, where) for model in models]


@dataclass(frozen=True)
class BestDecoder(Decoder):
    """The labelling of the highest score."""

    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return its labels."""
        if isinstance(model, Forest):
            return (model.best() if where is None else solve(model, where=where)).tree
        return solve(model, where=where).labels

    def each(self, models: Iterable[Any], where: Where = None) -> list[Any]:
        """Return the labels for several models, found in one batch."""
        return [solution.labels for solution in solve_batch(models, where=where)]


@dataclass(frozen=True)
class KBestDecoder(Decoder):
    """The k labellings of the highest scores, best first."""

    k: int = 5

    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return a list of their labels."""
        found = k_best(model, self.k, where=where)
        return [one.tree if isinstance(model, Forest) else one.labels for one in found]


@dataclass(frozen=True)
class MaxBrackets(Decoder):
    """The tree with the most constituents that are expected to be right, under ``p(y) ∝ exp(scale · F(y))``.

    Parameters
    ----------
    penalty : float
        What each constituent must earn; see :meth:`tallytree.parsing.Forest.max_bracket`.
    scale : float
        What scores are multiplied by to be log-probabilities. Choose both on held-out data.
    """

    penalty: float = 0.0
    scale: float = 1.0

    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return the tree. The expectation is over all trees: a constraint is refused."""
        if not isinstance(model, Forest):
            raise ModelError("brackets are those of trees; for labellings there is decode=ExpectedFBeta()")
        if where is not None:
            raise ModelError(
                "the most expected brackets are found over all trees; leave out where=, or use "
                "decode=BestDecoder()"
            )
        s, factor = model.scores, _positive(self.scale)
        scaled = (np.ascontiguousarray(factor * scores) for scores in (s.words, s.rules, s.chains))
        return model.rescored(Scores(*scaled)).max_bracket(self.penalty).tree


@dataclass(frozen=True)
class ExpectedFBeta(Decoder):
    """The labelling of the largest expected F under ``p(y) ∝ exp(scale · F(y))``, exactly.

    Parameters
    ----------
    beta : float
        How much recall counts against precision.
    background : str or int
        The label of positions that are no nodes.
    scale : float
        What scores are multiplied by to be log-probabilities. Those of an SVM are not calibrated: choose it
        on held-out data.

    Examples
    --------
    Three positions that are likely background one by one, but one of them rarely all together:

    >>> import tallytree as tt
    >>> model = tt.Model.chain([[0.5, 0.0]] * 3, np.zeros((2, 2)), states=["O", "B"])
    >>> BestDecoder()(model).tolist(), ExpectedFBeta(background="O")(model).tolist()
    (['O', 'O', 'O'], ['B', 'B', 'B'])
    """

    beta: float = 1.0
    background: str | int = 0
    scale: float = 1.0

    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return its labels. The expectation is over all labellings: a constraint is refused."""
        if isinstance(model, Forest):
            raise ModelError("expected F is that of labellings; for trees there is decode=MaxBrackets()")
        if where is not None:
            raise ModelError(
                "the best expected F is found over all labellings; leave out where=, or use "
                "decode=BestDecoder()"
            )
        return model.labels(self.assignment(model))

    def assignment(self, model: Model) -> Integers:
        """Return the labelling as state numbers."""
        nothing = model.state_codes(self.background)
        if (nothing < 0).any():
            raise ModelError(f"every variable needs the background {self.background!r} among its states")
        sizes, sized, joint = _joint(_times(model, self.scale), nothing)
        labels, best = nothing.copy(), float(sized[sizes == 0].sum())
        square = self.beta**2
        for k in range(1, len(model) + 1):
            worth = np.tensordot((1.0 + square) / (square * sizes + k), joint, axes=1)
            choice, value = worth.argmax(axis=1), worth.max(axis=1)
            nodes = np.argsort(-value, kind="stable")[:k]
            total = float(value[nodes].sum())
            if total > best:
                labels, best = nothing.copy(), total
                labels[nodes] = choice[nodes]
        return labels


def _positive(scale: float) -> float:
    if not 0.0 < scale < np.inf:
        raise ModelError(f"scale must be a positive number, got {scale!r}")
    return scale


def _times(model: Model, scale: float) -> Model:
    blocks = [block.with_tables(read_only(block.tables * _positive(scale))) for block in model.blocks]
    return Model.from_blocks(model.cardinalities, blocks)


def _joint(model: Model, nothing: Integers) -> tuple[Integers, Floats, Floats]:
    """Return all ``s``, ``P(|y| = s)``, and ``P(y_i = a, |y| = s)``, which is -inf where ``a`` is no node."""
    found = distribution(model, [mismatches(model, nothing)])
    joint = np.full((len(found.tallies), len(model), int(model.cardinalities.max())), -np.inf)
    for row, (tally, probability) in enumerate(zip(found.tallies, found.probabilities, strict=True)):
        for variable, marginal in enumerate(found.marginals(tally=tally.tolist())):
            joint[row, variable, : len(marginal)] = probability * marginal
    joint[:, np.arange(len(model)), nothing] = -np.inf
    return found.tallies[:, 0], found.probabilities, joint
