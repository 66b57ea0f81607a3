"""A check for problems of your own: that models, features and truths say the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallytree.answers.probabilities import generator_of
from tallytree.errors import ModelError
from tallytree.learning.planes import Integers, collected
from tallytree.learning.problem import Labelling, TrainingProblem
from tallytree.model.model import Model
from tallytree.parsing import Forest, k_best

_CLOSE = 1e-9


def check_problem(
    problem: TrainingProblem, *, labellings: int = 5, rng: int | np.random.Generator = 0
) -> None:
    """Check that a problem keeps its contract, on random weights and labellings of each example.

    The score of a labelling must be ``⟨w, Ψ(x, y)⟩`` plus the offset, the truth must be a labelling of the
    model with loss 0, and what is overridden for speed (``models``, ``difference``, ``lead``) must agree with
    what it replaces. Of a forest, the best trees are looked at.

    Raises
    ------
    ModelError
        Naming the example and what disagrees.
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
            f"example {example}: features() names weight {int(index.max())} of {problem.dimension}"
        )
    return index, value


def _agree(example: int, what: str, got: float, wanted: float) -> None:
    if abs(got - wanted) > _CLOSE * (1.0 + abs(wanted)):
        raise ModelError(f"example {example}: {what} is {got!r}, and should be {wanted!r}")
