"""The interface of training problems: joint features, a model for given weights, truths and a loss.

The score of a labelling is linear in the weights, ``F(y) = ⟨w, Ψ(x, y)⟩``, and decomposes over small scopes,
so that for given weights it is a :class:`tallytree.Model`. Your own problem is a class with four methods.

Two things may be added: a part of the score that does not depend on the weights
(:meth:`TrainingProblem.offset`), such as prior knowledge; and outputs that are not labellings of a model,
such as trees, by implementing the search for the most violated ones (:meth:`TrainingProblem.task`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallytree.answers.tally_probabilities import generator_of
from tallytree.errors import ModelError
from tallytree.learning.fingerprints import contents, fingerprint_of
from tallytree.learning.inference import ModelTask, Task
from tallytree.learning.planes import Features, Floats, Integers, collected
from tallytree.losses import Loss
from tallytree.model.model import Model
from tallytree.parsing import Forest, k_best

Labelling = Any
"""A prediction: state numbers for a :class:`tallytree.Model`, a tree for a forest."""


class TrainingProblem(ABC):
    """A training set, as used by solvers.

    Attributes
    ----------
    dimension : int
        The number of weights.
    loss : Loss
        A recipe: the loss of an example is ``loss.against(truth)``. Override :meth:`loss_of` for losses that
        need more than the truth.

    Examples
    --------
    Spins in a row that tend to agree with observations and with each other, with one weight for each:

    >>> import numpy as np
    >>> import tallytree as tt
    >>> from tallytree.learning import TrainingProblem, train
    >>> class Spins(TrainingProblem):
    ...     dimension = 2
    ...     loss = tt.losses.HammingDistance()
    ...
    ...     def __init__(self, seen, truths):
    ...         self.seen, self.truths = seen, truths
    ...
    ...     def __len__(self):
    ...         return len(self.seen)
    ...
    ...     def truth(self, example):
    ...         return self.truths[example]
    ...
    ...     def model(self, example, weights):
    ...         evidence = np.eye(2)[self.seen[example]]
    ...         return tt.Model.chain(weights[0] * evidence, weights[1] * np.eye(2))
    ...
    ...     def features(self, example, labelling):
    ...         agree = np.sum(labelling == self.seen[example])
    ...         return [0, 1], [agree, np.sum(labelling[1:] == labelling[:-1])]
    >>> seen = np.array([[0, 1, 0, 0], [1, 1, 0, 1]])
    >>> truths = np.array([[0, 0, 0, 0], [1, 1, 1, 1]])
    >>> result = train(Spins(seen, truths), C=10.0, tolerance=1e-6)
    >>> result.weights.round(3)
    array([2., 2.])
    """

    dimension: int
    loss: Loss

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of examples."""

    @abstractmethod
    def truth(self, example: int) -> Labelling:
        """Return the true labelling of an example, as state numbers."""

    @abstractmethod
    def model(self, example: int, weights: Floats) -> Any:
        """Return the model whose scores are ``⟨w, Ψ(x, y)⟩``, a :class:`tallytree.Model`."""

    @abstractmethod
    def features(self, example: int, labelling: Labelling) -> tuple[ArrayLike, ArrayLike]:
        """Return ``Ψ(x, y)``: the non-zero indices, possibly repeated, and their values."""

    def offset(self, example: int, labelling: Labelling) -> float:
        """Return the part of a labelling's score besides ``⟨w, Ψ(x, y)⟩``; 0 by default."""
        return 0.0

    def models(self, examples: Sequence[int], weights: Floats) -> list[Any]:
        """Return the models of several examples; override it if that can be done at once."""
        return [self.model(example, weights) for example in examples]

    def task(self, examples: Sequence[int], weights: Floats) -> Task:
        """Return the inference task of several examples; override it if they need no models."""
        models = self.models(examples, weights)
        truths = [self.truth(example) for example in examples]
        if type(self).loss_of is TrainingProblem.loss_of:
            return ModelTask(models, truths, self.loss)  # one recipe for all, which is bound in bulk
        return ModelTask(models, truths, [self.loss_of(example) for example in examples])

    def differences(self, examples: Sequence[int], labellings: Sequence[Labelling]) -> list[Features]:
        """Return the differences of several examples: each index once, in ascending order."""
        return [collected(*self.difference(*pair)) for pair in zip(examples, labellings, strict=True)]

    def truth_loss(self, example: int) -> float:
        """Return the loss of the truth itself, which is 0 if the loss compares with it."""
        return self.cost(example, self.truth(example))

    def cost(self, example: int, labelling: Labelling) -> float:
        """Return the loss of a labelling."""
        model = self.model(example, np.zeros(self.dimension))
        return float(self.loss_of(example).on(model)(labelling))

    def lead(self, example: int, labelling: Labelling) -> float:
        """Return how far the truth is ahead of a labelling in the part independent of the weights."""
        return self.offset(example, self.truth(example)) - self.offset(example, labelling)

    def difference(self, example: int, labelling: Labelling) -> Features:
        """Return ``Ψ(x, truth) − Ψ(x, y)``; override it if it can be computed directly."""
        right, wrong = (
            (np.asarray(indices, dtype=np.int64), np.asarray(values, dtype=np.float64))
            for indices, values in (
                self.features(example, self.truth(example)),
                self.features(example, labelling),
            )
        )
        return np.concatenate((right[0], wrong[0])), np.concatenate((right[1], -wrong[1]))

    def loss_of(self, example: int) -> Loss:
        """Return the loss of an example, bound to its truth."""
        return self.loss.against(self.truth(example))

    def fingerprint(self) -> str:
        """Return a digest that identifies this problem in checkpoints and warm starts.

        By default it covers everything that the problem holds, including the truths and their features.
        Override it if attributes change during training, as caches do, or have no content. It must
        differ whenever examples, features or losses do: results for other examples certify nothing here.

        Raises
        ------
        ModelError
            An attribute has no content to identify it by.
        """
        truths = [self.truth(example) for example in range(len(self))]
        features = [self.features(example, truth) for example, truth in enumerate(truths)]
        rounded = [
            (np.asarray(indices, dtype=np.int64), np.asarray(values).astype(np.float32))
            for indices, values in features
        ]
        return self._digest(truths, rounded)

    def _digest(self, *seen: Any, without: Iterable[str] = ()) -> str:
        """Return a digest of the attributes, except some, and of what else is known about the examples."""
        known = (type(self).__qualname__, len(self), self.dimension, self.loss)
        return fingerprint_of((known, contents(self, without), seen))


_CLOSE = 1e-9


def check_problem(
    problem: TrainingProblem, *, labellings: int = 5, rng: int | np.random.Generator = 0
) -> None:
    """Check that a problem satisfies its contract, on random weights and labellings of each example.

    The score of a labelling must be ``⟨w, Ψ(x, y)⟩`` plus the offset, the truth must be a labelling of the
    model with loss 0, and methods overridden for speed (``models``, ``difference``, ``lead``) must agree with
    the originals. For forests, the best trees are checked.

    Raises
    ------
    ModelError
        With the number of the example and what disagrees.
    """
    generator = generator_of(rng)
    everyone = range(len(problem))
    weights = generator.normal(size=problem.dimension)
    for example, model in zip(everyone, problem.models(everyone, weights), strict=True):
        truth, alone = _known(model, problem.truth(example)), problem.model(example, weights)
        _agree(example, "the loss of the truth", problem.cost(example, truth), 0.0)
        for y in _drawn(model, labellings, generator):
            indices, values = _features(problem, example, y)
            score, offset = model.score(y), problem.offset(example, y)
            _agree(example, "the score of a labelling", score, offset + float(values @ weights[indices]))
            _agree(example, "the score in models() and in model()", score, alone.score(y))
            given = collected(*problem.difference(example, y))
            right = _features(problem, example, truth)
            wanted = collected(np.concatenate((right[0], indices)), np.concatenate((right[1], -values)))
            _agree(example, "difference()", *(float(v @ weights[i]) for i, v in (given, wanted)))
            ahead = problem.offset(example, truth) - offset
            _agree(example, "lead()", problem.lead(example, y), ahead)


def _known(model: Model | Forest, truth: Labelling) -> Labelling:
    return truth if isinstance(model, Forest) else model.encode(truth)


def _drawn(model: Model | Forest, count: int, generator: np.random.Generator) -> list[Any]:
    """Return some labellings of a model, or trees of a forest."""
    if isinstance(model, Forest):
        return [parse.tree for parse in k_best(model, count)]
    return [generator.integers(0, model.cardinalities).astype(np.int64) for _ in range(count)]


def _features(problem: TrainingProblem, example: int, y: Labelling) -> tuple[Integers, np.ndarray]:
    indices, values = problem.features(example, y)
    index, value = np.asarray(indices, dtype=np.int64), np.asarray(values, dtype=np.float64)
    if index.shape != value.shape or index.ndim != 1:
        raise ModelError(
            f"example {example}: features() gives indices of shape {index.shape} and values of {value.shape}"
        )
    if index.size and not (index.min() >= 0 and index.max() < problem.dimension):
        raise ModelError(
            f"example {example}: features() uses weight {int(index.max())}, but there are {problem.dimension}"
        )
    return index, value


def _agree(example: int, what: str, got: float, wanted: float) -> None:
    if abs(got - wanted) > _CLOSE * (1.0 + abs(wanted)):
        raise ModelError(f"example {example}: {what} is {got!r}, but should be {wanted!r}")
