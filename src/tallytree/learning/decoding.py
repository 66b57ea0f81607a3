"""Decoders: predict the best labelling, the k best, or the best one in expectation.

For parse forests, the same decoders return trees.

The labelling with the largest expected F is not the most probable one. With ``p(y) ∝ exp(scale · F(y))`` and
``|y|`` the number of nodes (positions that are not background), predicting ``h`` with ``k`` nodes gives

    E[F_β] = Σ_(i : h_i is a node) Σ_s (1 + β²) P(y_i = h_i, |y| = s) / (β² s + k)

and for ``k = 0`` it is ``P(|y| = 0)``. For given ``k`` the best ``h`` takes the best label at each position
and the ``k`` positions with the largest values, so trying every ``k`` is exact (Dembczyński, Waegeman,
Cheng and Hüllermeier, 2011). The probabilities come from the distribution that carries ``|y|`` as its tally.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from tallytree.answers.tally_table import Where
from tallytree.bulk.batch import solve_batch
from tallytree.bulk.best_corpus import BestCorpus, best_of_corpus
from tallytree.bulk.chains import Chains
from tallytree.bulk.jobs import Errors
from tallytree.deprecation import renamed
from tallytree.errors import BudgetError, InfeasibleError, ModelError, TallytreeError
from tallytree.kbest import k_best
from tallytree.learning.accepted import COUNT, FLAG, NATURAL, NUMBER, POSITIVE, check_all
from tallytree.learning.expected import (
    Choice,
    least_loss_of_model,
    least_loss_of_nodes,
    least_losses_of_chains,
)
from tallytree.learning.planes import Integers
from tallytree.losses import FBeta, Loss, as_loss
from tallytree.model.model import Model
from tallytree.parsing import Forest
from tallytree.running.charts import Scores
from tallytree.solving import solve
from tallytree.values import read_only

if not TYPE_CHECKING:  # pickles with the old names refer to this module
    __getattr__ = renamed(__name__, {"Best": "BestDecoder", "KBest": "KBestDecoder"})


def attempted(predict: Callable[[], Any], number: int, errors: Errors) -> Any:
    """Return a prediction; if there is none, raise an error that names the example, or return the error."""
    try:
        return predict()
    except (InfeasibleError, BudgetError) as error:
        if errors == "return":
            return error
        if isinstance(error, BudgetError):
            raise
        advice = "pass errors='return' to predict the others, with the error in place of this prediction"
        raise InfeasibleError(f"example {number}: {error}; {advice}") from error


class Decoder(ABC):
    """Makes a prediction from a model."""

    @abstractmethod
    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return the prediction among the labellings that satisfy a constraint."""

    def each(self, models: Iterable[Any], where: Where = None, errors: Errors = "raise") -> list[Any]:
        """Return the predictions for several models; errors name the example, counted from 0.

        With ``errors="return"``, examples without a prediction have the error in its place.
        """
        each = where if isinstance(where, list) else repeat(where)  # a list has one for each
        pairs = enumerate(zip(models, each, strict=False))
        return [attempted(partial(self, model, one), number, errors) for number, (model, one) in pairs]


@dataclass(frozen=True)
class BestDecoder(Decoder):
    """The labelling with the highest score."""

    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return its labels."""
        if isinstance(model, Forest):
            return (model.best() if where is None else solve(model, where=where)).tree
        return solve(model, where=where).labels

    def each(self, models: Iterable[Any], where: Where = None, errors: Errors = "raise") -> list[Any]:
        """Return the labels for several models, found in one batch."""
        solutions = solve_batch(models, where=where, errors="return")
        return [attempted(partial(_labels_of, one), number, errors) for number, one in enumerate(solutions)]


def _labels_of(answer: Any) -> Any:
    """Return the labels of an answer of a batch, or raise the error in its place."""
    if isinstance(answer, TallytreeError):
        raise answer
    return answer.labels


@dataclass(frozen=True)
class KBestDecoder(Decoder):
    """The k labellings with the highest scores, best first."""

    k: int = 5

    def __post_init__(self) -> None:
        check_all(self, k=COUNT)

    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return a list of their labels."""
        solutions = k_best(model, self.k, where=where)
        return [one.tree if isinstance(model, Forest) else one.labels for one in solutions]


@dataclass(frozen=True)
class MaxBrackets(Decoder):
    """The tree with the largest expected number of correct constituents, ``p(y) ∝ exp(scale · F(y))``.

    Parameters
    ----------
    penalty : float
        The penalty per constituent; see :meth:`tallytree.parsing.Forest.max_bracket`.
    scale : float
        A factor that turns scores into log-probabilities. Choose both on held-out data.
    """

    penalty: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_all(self, penalty=NUMBER, scale=POSITIVE)

    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return the tree. The expectation is over all trees, so constraints are not supported."""
        if not isinstance(model, Forest):
            raise ModelError("MaxBrackets is for trees; for labellings, use decode=ExpectedFBeta()")
        if where is not None:
            raise ModelError(
                "MaxBrackets does not support constraints; remove where=, or use decode=BestDecoder()"
            )
        s, factor = model.scores, self.scale
        scaled = (np.ascontiguousarray(factor * scores) for scores in (s.words, s.rules, s.chains))
        return model.rescored(Scores(*scaled)).max_bracket(self.penalty).tree


@dataclass(frozen=True)
class ExpectedFBeta(Decoder):
    """The labelling with the largest expected F under ``p(y) ∝ exp(scale · F(y))``, exactly.

    Parameters
    ----------
    beta : float
        The weight of recall relative to precision.
    background : str or int
        The negative label: positions with it are not nodes.
    scale : float, optional
        A factor that turns scores into log-probabilities; 1 by default, which is right for CRFs. The scores
        of an SVM are not log-probabilities: choose the factor on held-out data. Without it, there is a
        warning.

    Examples
    --------
    Each of three positions is probably background, but probably not all three at once:

    >>> import tallytree as tt
    >>> model = tt.Model.chain([[0.5, 0.0]] * 3, np.zeros((2, 2)), states=["O", "B"])
    >>> BestDecoder()(model).tolist(), ExpectedFBeta(background="O")(model).tolist()
    (['O', 'O', 'O'], ['B', 'B', 'B'])
    """

    beta: float = 1.0
    background: str | int = 0
    scale: float | None = None

    def __post_init__(self) -> None:
        self._loss  # noqa: B018  raise an error for its beta now rather than at prediction
        check_all(self, scale=POSITIVE.or_none())

    @property
    def _loss(self) -> FBeta:
        return FBeta(beta=self.beta, background=self.background)

    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return its labels. The expectation is over all labellings, so constraints are not supported."""
        _check_free(model, where, "ExpectedFBeta")
        return model.labels(self.assignment(model))

    def assignment(self, model: Model) -> Integers:
        """Return the labelling as state numbers."""
        return least_loss_of_nodes(scaled(model, self.scale), self._loss).labels

    def numbered(self, chains: Chains, threads: int | None = None) -> list[Integers]:
        """Return the predictions for many chains, as numbers."""
        return MaxExpected(self._loss, self.scale).numbered(chains, threads)


@dataclass(frozen=True)
class MaxExpected(Decoder):
    """The labelling with the smallest expected loss under ``p(y) ∝ exp(scale · F(y))``.

    Exact for Hamming losses and for losses of nodes that are linear in the true positives (F-measures,
    precision, recall, ...); on chains also for F-measures of whole chunks. No exact algorithm is known for
    other losses: with ``samples``, the best of that many random labellings and the most probable one is
    used.

    Parameters
    ----------
    loss : Loss or str
        A recipe such as ``ChunkFBeta(beta=2.0)``, or its name, such as ``"chunk-f2"``; see
        :func:`tallytree.losses.as_loss`.
    scale : float, optional
        A factor that turns scores into log-probabilities; 1 by default, which is right for CRFs. The scores
        of an SVM are not log-probabilities: choose the factor on held-out data. Without it, there is a
        warning.
    samples : int, optional
        The number of labellings to draw for losses without an exact method; without it, they raise an error.
    seed : int
        The seed of the samples.
    corpus : bool
        Whether to maximise a single F-measure over all sequences that are predicted together, rather than
        one for each: for ``FBeta`` with a background and ``ChunkFBeta``.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model.chain([[0.5, 0.0]] * 3, np.zeros((2, 2)), states=["O", "B"])
    >>> decoder = MaxExpected(tt.losses.FBeta(background="O"))
    >>> decoder(model).tolist()
    ['B', 'B', 'B']
    >>> choice = decoder.choice(model)
    >>> round(choice.loss, 3), choice.error, choice.exact
    (0.514, 0.0, True)
    """

    loss: Loss | str
    scale: float | None = None
    samples: int | None = None
    seed: int = 0
    corpus: bool = False

    def __post_init__(self) -> None:
        as_loss(self.loss)  # raise an error for an unknown name now rather than at prediction
        check_all(self, scale=POSITIVE.or_none(), samples=COUNT.or_none(), seed=NATURAL, corpus=FLAG)

    @property
    def _recipe(self) -> Loss:
        return as_loss(self.loss)

    def __call__(self, model: Any, where: Where = None) -> Any:
        """Return its labels. The expectation is over all labellings, so constraints are not supported."""
        choice = self.choice(model, where)
        return model.labels(choice.labels)

    def choice(self, model: Any, where: Where = None) -> Choice:
        """Return the labelling with its expected loss, and whether it is proven to be optimal."""
        _check_free(model, where, "MaxExpected")
        if self.corpus:
            raise ModelError("corpus=True is for predict() of a sequence estimator, which sees all sequences")
        return least_loss_of_model(scaled(model, self.scale), self._recipe, self.samples, self.seed)

    def of_chains(self, chains: Chains, threads: int | None = None) -> list[Choice]:
        """Return the choices for many chains, found in one batch."""
        return least_losses_of_chains(self._scaled(chains), self._recipe, self.samples, self.seed, threads)

    def of_corpus(self, chains: Chains, threads: int | None = None) -> BestCorpus:
        """Return the labellings that maximise a single F-measure over many chains, and its value."""
        return best_of_corpus(self._scaled(chains), self._recipe, threads)

    def numbered(self, chains: Chains, threads: int | None = None) -> list[Integers]:
        """Return the predictions for many chains, as numbers."""
        if self.corpus:
            return np.split(self.of_corpus(chains, threads).labels, np.cumsum(chains.lengths)[:-1])
        return [choice.labels for choice in self.of_chains(chains, threads)]

    def _scaled(self, chains: Chains) -> Chains:
        factor = 1.0 if self.scale is None else self.scale
        return chains._replace(emissions=chains.emissions * factor, links=chains.links * factor)


def _check_free(model: Any, where: Where, what: str) -> None:
    if isinstance(model, Forest):
        raise ModelError(f"{what} is for labellings; for trees, use decode=MaxBrackets()")
    if where is not None:
        raise ModelError(f"{what} does not support constraints; remove where=, or use decode=BestDecoder()")


def scaled(model: Model, scale: float | None) -> Model:
    """Return a model with all scores multiplied by a number, if one is given."""
    if scale is None:
        return model
    blocks = [block.with_tables(read_only(block.tables * scale)) for block in model.blocks]
    return Model.from_blocks(
        model.cardinalities, blocks, shape=model.shape, variables=model.variables, states=model.states
    )
