"""Random problems of every shape."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallytree import losses
from tallytree.answers.tally_probabilities import generator_of
from tallytree.model.model import Model
from tallytree.statistics.statistic import Statistic
from tallytree.testing.enumeration import factors_of

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Factor = tuple[tuple[int, ...], npt.NDArray[Any]]

Scopes = list[tuple[int, ...]]

TREE_LOSSES: tuple[type[losses.Loss], ...] = (
    losses.FBeta,
    losses.Precision,
    losses.Recall,
    losses.FalsePositives,
    losses.SymmetricDifference,
    losses.IntersectionOverUnion,
    losses.ZeroOne,
    losses.CrossingBrackets,
    losses.CrossingBracketsRate,
)
"""The losses of parse trees; each takes the true tree."""


def _chain(rng: np.random.Generator, variables: int) -> Scopes:
    return [(v, v + 1) for v in range(variables - 1)]


def _tree(rng: np.random.Generator, variables: int) -> Scopes:
    return [(int(rng.integers(v)), v) for v in range(1, variables)]


def _star(rng: np.random.Generator, variables: int) -> Scopes:
    return [(0, v) for v in range(1, variables)]


def _cycle(rng: np.random.Generator, variables: int) -> Scopes:
    closing = [(variables - 1, 0)] if variables > 2 else []
    return _chain(rng, variables) + closing


def _grid(rng: np.random.Generator, variables: int) -> Scopes:
    # As square as the number of variables allows; the last row may be shorter.
    width = math.isqrt(variables)
    right: Scopes = [(v, v + 1) for v in range(variables - 1) if (v + 1) % width]
    down: Scopes = [(v, v + width) for v in range(variables - width)]
    return right + down


def _triples(rng: np.random.Generator, variables: int) -> Scopes:
    # Factors of two or three arbitrary variables.
    sizes = np.minimum(rng.integers(2, 4, size=variables), variables)
    return [tuple(rng.choice(variables, size, replace=False).tolist()) for size in sizes]


def _disconnected(rng: np.random.Generator, variables: int) -> Scopes:
    # A forest: some edges of a random tree are missing.
    return [edge for edge in _tree(rng, variables) if rng.random() < 0.6]


SHAPES: dict[str, Callable[[np.random.Generator, int], Scopes]] = {
    "chain": _chain,
    "tree": _tree,
    "star": _star,
    "cycle": _cycle,
    "grid": _grid,
    "triples": _triples,
    "disconnected": _disconnected,
}
"""The shapes of `random_model`: each gives the scopes of the factors with more than one variable."""


def random_model(
    rng: np.random.Generator | int,
    shape: str = "chain",
    *,
    variables: int = 5,
    states: int = 3,
    single_state: float = 0.0,
    forbidden: float = 0.0,
    feasible: bool = True,
    ties: bool = False,
    constants: int = 0,
    repeated: int = 0,
) -> Model:
    """Draw a small model.

    Parameters
    ----------
    rng
        The random generator, or its seed; the model is a function of it and of the parameters.
    shape
        A key of `SHAPES`.
    variables, states
        The number of variables, and the largest number of states of a variable.
    single_state
        The probability that a variable has only one state.
    forbidden
        The probability that an entry of a factor is ``-inf``.
    feasible
        Whether at least one labelling has a score above ``-inf``.
    ties
        Whether scores are small integers, so that many labellings have the same score.
    constants
        The number of factors without variables.
    repeated
        The number of additional factors on existing scopes, in any order of the variables.

    Examples
    --------
    >>> from tallytree.testing import brute_force
    >>> model = random_model(np.random.default_rng(0), "cycle", variables=4)
    >>> brute_force(model).labellings.shape[1]
    4
    """
    rng = generator_of(rng)
    cardinalities = rng.integers(min(2, states), states + 1, size=variables)
    cardinalities[rng.random(variables) < single_state] = 1
    scopes = [(v,) for v in range(variables) if rng.random() < 0.8] + SHAPES[shape](rng, variables)
    scopes += [scopes[rng.integers(len(scopes))] for _ in range(repeated if scopes else 0)]
    scopes = [_shuffled(rng, scope) for scope in scopes]
    witness = rng.integers(cardinalities)
    factors: list[Factor] = [((), np.array(float(rng.integers(-2, 3)))) for _ in range(constants)]
    for scope in scopes:
        table = _random_scores(rng, cardinalities[list(scope)], ties)
        forbid = rng.random(table.shape) < forbidden
        if feasible:
            forbid[tuple(witness[list(scope)])] = False
        factors.append((scope, np.where(forbid, -np.inf, table)))
    return Model(cardinalities.tolist(), factors)


def random_statistics(
    rng: np.random.Generator | int,
    model: Model,
    count: int = 1,
    *,
    low: int = -2,
    high: int = 2,
    arity: int = 3,
    terms: int | None = None,
    capped: float = 0.0,
    constants: int = 0,
    local: bool = False,
) -> list[Statistic]:
    """Draw statistics for a model, named ``g0, g1, ...``.

    Parameters
    ----------
    rng
        The random generator, or its seed.
    model
        The model; only its scopes and cardinalities are used.
    count
        The number of statistics.
    low, high
        The smallest and the largest entry.
    arity
        The largest number of variables of a scope.
    terms
        The number of (scope, table) pairs of each statistic. The default is the number of variables.
    capped
        The probability that a statistic has a cap: of any sign, and sometimes one that always or never binds.
    constants
        The number of entries without variables in each statistic.
    local
        Whether every scope is part of the scope of a factor of the model. Otherwise scopes are arbitrary.

    Examples
    --------
    >>> model = random_model(np.random.default_rng(0), "grid", variables=6)
    >>> [statistic.name for statistic in random_statistics(np.random.default_rng(1), model, 2)]
    ['g0', 'g1']
    """
    rng = generator_of(rng)
    cardinalities = model.cardinalities.tolist()
    homes: Scopes = [scope for scope, _ in factors_of(model.blocks) if scope] if local else []
    homes = homes or [tuple(range(len(cardinalities)))]
    statistics = []
    for p in range(count):
        scopes = [_part(rng, homes, arity) for _ in range(len(cardinalities) if terms is None else terms)]
        scopes += [()] * constants
        tables = [np.asarray(rng.integers(low, high + 1, size=[cardinalities[v] for v in s])) for s in scopes]
        cap = _random_cap(rng, tables) if rng.random() < capped else None
        statistics.append(Statistic(list(zip(scopes, tables, strict=True)), name=f"g{p}", cap=cap))
    return statistics


def _shuffled(rng: np.random.Generator, scope: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(rng.permutation(scope).tolist()) if scope else ()


def _part(rng: np.random.Generator, homes: Scopes, arity: int) -> tuple[int, ...]:
    """Draw up to `arity` variables of one of the scopes `homes`."""
    home = homes[rng.integers(len(homes))]
    size = rng.integers(1, min(arity, len(home)) + 1)
    return tuple(rng.choice(home, size, replace=False).tolist())


def _random_scores(rng: np.random.Generator, lengths: Integers, ties: bool) -> Floats:
    return rng.integers(-2, 3, size=lengths).astype(float) if ties else rng.normal(size=lengths)


def _random_cap(rng: np.random.Generator, tables: Sequence[Integers]) -> int:
    """Draw a cap between the smallest and the largest sum of the tables, and slightly beyond."""
    smallest, largest = sum(int(table.min()) for table in tables), sum(int(table.max()) for table in tables)
    return int(rng.integers(smallest - 1, largest + 2))
