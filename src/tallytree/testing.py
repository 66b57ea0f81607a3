"""Test tools: enumeration of all labellings, random problems, and checkers.

Everything here follows the definitions and none of the recursions: a score is a sum over factors, a tally a
capped sum over the entries of a statistic, and a profile the best score of each tally among all labellings.
Code that extends the library can be held to the same contract: draw a problem with `random_model` and
`random_statistics`, solve it, and pass the answer to `check_profile` or `check_distribution`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tallytree.core.blocks import Block
from tallytree.core.expressions import Constraint
from tallytree.core.model import Model
from tallytree.core.statistics import Recipe, Statistic, read_by
from tallytree.errors import InfeasibleError

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Factor = tuple[tuple[int, ...], npt.NDArray[Any]]

LABELLING_LIMIT = 1_000_000
"""The largest number of labellings that `brute_force` enumerates."""


# ---------------------------------------------------------------- definitions


def factors_of(blocks: Iterable[Block]) -> Iterator[Factor]:
    """Yield the (scope, table) pairs of some blocks.

    Examples
    --------
    >>> [scope for scope, table in factors_of(Model.chain(np.zeros((2, 3)), np.zeros((3, 3))).blocks)]
    [(0,), (1,), (0, 1)]
    """
    for block in blocks:
        tables = np.broadcast_to(block.tables, (len(block.scopes), *block.tables.shape[1:]))
        for scope, table in zip(block.scopes.tolist(), tables, strict=True):
            yield tuple(scope), np.asarray(table)


def score_of(model: Model, labellings: npt.ArrayLike) -> Floats:
    """Return ``F(y)`` for each row ``y`` of `labellings`."""
    return _sum_at(factors_of(model.blocks), np.atleast_2d(labellings), np.float64)


def tally_of(statistic: Statistic, labellings: npt.ArrayLike) -> Integers:
    """Return ``G(y)``, capped where the statistic is, for each row ``y`` of `labellings`."""
    total = _sum_at(factors_of(statistic.blocks), np.atleast_2d(labellings), np.int64)
    return total if statistic.cap is None else np.minimum(total, statistic.cap)


def _sum_at(
    factors: Iterable[Factor], labellings: npt.NDArray[Any], dtype: type[np.generic]
) -> npt.NDArray[Any]:
    total = np.zeros(len(labellings), dtype=dtype)
    for scope, table in factors:
        total += table[tuple(labellings[:, variable] for variable in scope)]
    return total


def score_tolerance(model: Model) -> float:
    """Return how far two ways to add up the same scores may differ: ``64 · eps · Σ max |f|``."""
    largest = [
        np.abs(table, where=table > -np.inf, out=np.zeros_like(table)).max()
        for _, table in factors_of(model.blocks)
    ]
    return 64 * float(np.finfo(np.float64).eps) * (1.0 + float(sum(largest)))


# ---------------------------------------------------------------- enumeration


class Best(NamedTuple):
    """A labelling, and what it is worth."""

    value: float
    score: float
    tally: tuple[int, ...]
    assignment: Integers


@dataclass(frozen=True, eq=False)
class Enumeration:
    """All labellings of a model, with their scores and tallies.

    Attributes
    ----------
    model, statistics
        The problem.
    labellings
        ``(L, M)``, one labelling per row, in lexicographic order.
    scores
        ``(L,)``; ``-inf`` for labellings that the model forbids.
    tallies
        ``(L, P)``.
    """

    model: Model
    statistics: tuple[Statistic, ...]
    labellings: Integers
    scores: Floats
    tallies: Integers

    @cached_property
    def _possible(self) -> npt.NDArray[np.bool_]:
        return self.scores > -np.inf

    @cached_property
    def _groups(self) -> tuple[Integers, Integers]:
        """The attainable tallies, and for each possible labelling the position of its tally."""
        tallies = self.tallies[self._possible]
        # A constant first column: np.unique wants at least one.
        keyed = np.column_stack([np.zeros(len(tallies), dtype=np.int64), tallies])
        unique, inverse = np.unique(keyed, axis=0, return_inverse=True)
        return unique[:, 1:], inverse.reshape(-1)

    def profile(self) -> tuple[Integers, Floats]:
        """Return the attainable tallies ``(S, P)``, sorted, and the best score ``(S,)`` of each.

        A tally is attainable if some labelling with a score above ``-inf`` has it.
        """
        tallies, group = self._groups
        best = np.full(len(tallies), -np.inf)
        np.maximum.at(best, group, self.scores[self._possible])
        return tallies, best

    def log_partitions(self) -> Floats:
        """Return ``log Σ exp F(y)`` over the labellings of each attainable tally."""
        _, group = self._groups
        _, best = self.profile()
        scaled = np.bincount(group, np.exp(self.scores[self._possible] - best[group]), minlength=len(best))
        return np.asarray(best + np.log(scaled))

    def log_partition(self) -> float:
        """Return ``log Σ exp F(y)`` over all labellings."""
        best = self.scores.max()
        return float(best + np.log(np.exp(self.scores - best).sum())) if best > -np.inf else -math.inf

    def probabilities(self) -> Floats:
        """Return the probability of each attainable tally where ``p(y)`` is proportional to ``exp F(y)``."""
        return np.asarray(np.exp(self.log_partitions() - self.log_partition()))

    def counts(self) -> tuple[int, ...]:
        """Return the number of labellings with a score above ``-inf`` for each attainable tally."""
        tallies, group = self._groups
        return tuple(np.bincount(group, minlength=len(tallies)).tolist())

    def marginals(self, tally: Sequence[int] | None = None) -> list[Floats]:
        """Return each variable's distribution over its states, given a tally if there is one."""
        chosen = self._possible
        if tally is not None:
            chosen = chosen & np.all(self.tallies == np.asarray(tally, dtype=np.int64), axis=1)
        if not chosen.any():
            raise InfeasibleError(f"no labelling has a score above -inf and the tally {tally}")
        scores, labellings = self.scores[chosen], self.labellings[chosen]
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        cardinalities = self.model.cardinalities.tolist()
        counted = (np.bincount(labellings[:, v], weights, minlength=n) for v, n in enumerate(cardinalities))
        return [probabilities.astype(np.float64) for probabilities in counted]

    def best(self, objective: Callable[..., Any] | None = None, where: Constraint | None = None) -> Best:
        """Return the labelling of the largest ``H(F(y), G(y))``; ties go to the first tally.

        Parameters
        ----------
        objective
            ``H``, elementwise on the arrays ``score, tally_1, ..., tally_P``. The default is the score.
        where
            A constraint that the labelling has to satisfy.
        """
        rows = np.flatnonzero(self._possible)
        if where is not None:
            rows = rows[_satisfied(where.on(self.model), self.labellings[rows])]
        if not len(rows):
            raise InfeasibleError("no labelling has a score above -inf and satisfies the constraint")
        if self.statistics:
            rows = rows[np.lexsort(self.tallies[rows].T[::-1])]
        scores = self.scores[rows]
        values = scores if objective is None else objective(scores, *self.tallies[rows].T)
        values = np.broadcast_to(values, scores.shape)
        first = int(np.argmax(values))
        row = rows[first]
        return Best(
            float(values[first]),
            float(self.scores[row]),
            tuple(self.tallies[row].tolist()),
            self.labellings[row],
        )


def _satisfied(constraint: Constraint, labellings: Integers) -> npt.NDArray[np.bool_]:
    tallies = {statistic: tally_of(statistic, labellings) for statistic in read_by(constraint)}
    return np.broadcast_to(constraint.holds(tallies), len(labellings))


def brute_force(model: Model, statistics: Sequence[Statistic | Recipe] = ()) -> Enumeration:
    """Score every labelling of a small model.

    Examples
    --------
    >>> coins = Model([2, 2], [((0,), [0.0, 2.0]), ((1,), [0.0, 1.0])])
    >>> heads = Statistic([((0,), [0, 1]), ((1,), [0, 1])], name="heads")
    >>> tallies, scores = brute_force(coins, [heads]).profile()
    >>> tallies.ravel().tolist(), scores.tolist()
    ([0, 1, 2], [0.0, 2.0, 3.0])
    """
    cardinalities = tuple(model.cardinalities.tolist())
    total = math.prod(cardinalities)
    if total > LABELLING_LIMIT:
        raise ValueError(f"{total} labellings are too many to enumerate; at most {LABELLING_LIMIT} are")
    labellings = np.indices(cardinalities, dtype=np.int64).reshape(len(cardinalities), total).T
    bound = tuple(statistic.on(model) for statistic in statistics)
    tallies = np.zeros((total, len(bound)), dtype=np.int64)
    for p, statistic in enumerate(bound):
        tallies[:, p] = tally_of(statistic, labellings)
    return Enumeration(model, bound, labellings, score_of(model, labellings), tallies)


# ---------------------------------------------------------------- random problems

Scopes = list[tuple[int, ...]]


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
    # Factors of two or three variables that lie anywhere.
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
"""The shapes of `random_model`: each gives the scopes of the factors of more than one variable."""


def random_model(
    rng: np.random.Generator,
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
        The source of randomness; the model is a function of it and of the parameters.
    shape
        A key of `SHAPES`.
    variables, states
        The number of variables, and the largest number of states of one.
    single_state
        The probability that a variable has one state only.
    forbidden
        The probability that an entry of a factor is ``-inf``.
    feasible
        Whether at least one labelling keeps a score above ``-inf``.
    ties
        Whether scores are small integers, so that many labellings score the same.
    constants
        The number of factors without variables.
    repeated
        The number of further factors on scopes that have one already, in any order of the variables.

    Examples
    --------
    >>> model = random_model(np.random.default_rng(0), "cycle", variables=4)
    >>> brute_force(model).labellings.shape[1]
    4
    """
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
    rng: np.random.Generator,
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
        The source of randomness.
    model
        The model; only its scopes and cardinalities are looked at.
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
        Whether every scope is part of the scope of a factor of the model. Otherwise scopes are drawn freely.

    Examples
    --------
    >>> model = random_model(np.random.default_rng(0), "grid", variables=6)
    >>> [statistic.name for statistic in random_statistics(np.random.default_rng(1), model, 2)]
    ['g0', 'g1']
    """
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
    """Draw a cap between the smallest and the largest sum of the tables, and a little beyond."""
    smallest, largest = sum(int(table.min()) for table in tables), sum(int(table.max()) for table in tables)
    return int(rng.integers(smallest - 1, largest + 2))


# ---------------------------------------------------------------- checkers


class SolutionLike(Protocol):
    """What `check_solution` reads."""

    @property
    def score(self) -> float:
        """The labelling's score."""

    @property
    def tally(self) -> tuple[int, ...]:
        """The labelling's tally."""

    @property
    def assignment(self) -> npt.NDArray[Any]:
        """The labelling: one state per variable, in any shape."""


class ProfileLike(Protocol):
    """What `check_profile` reads."""

    @property
    def tallies(self) -> Integers:
        """The attainable tallies, ``(S, P)``, sorted."""

    @property
    def scores(self) -> npt.NDArray[Any]:
        """Their best scores, ``(S,)``."""

    def at(self, *tally: int) -> SolutionLike:
        """Return the best labelling with exactly this tally."""


class DistributionLike(Protocol):
    """What `check_distribution` reads."""

    @property
    def tallies(self) -> Integers:
        """The attainable tallies, ``(S, P)``, sorted."""

    @property
    def log_partitions(self) -> Floats:
        """The log-partition of each tally, ``(S,)``."""

    @property
    def probabilities(self) -> Floats:
        """The probability of each tally, ``(S,)``."""

    @property
    def counts(self) -> Sequence[int]:
        """The number of labellings of each tally."""

    def marginals(self, tally: Any = None) -> Sequence[npt.NDArray[Any]]:
        """Return each variable's distribution over its states, given a tally if there is one."""


def check_solution(solution: SolutionLike, model: Model, statistics: Sequence[Statistic | Recipe]) -> None:
    """Check that a solution's score and tally are those of its assignment.

    Raises
    ------
    AssertionError
        With what was expected and what was got.
    """
    assignment = np.asarray(solution.assignment).reshape(1, -1)
    tally = tuple(int(tally_of(statistic.on(model), assignment)[0]) for statistic in statistics)
    _require(
        tuple(solution.tally) == tally, f"the assignment's tally is {tally}, not {tuple(solution.tally)}"
    )
    score = float(score_of(model, assignment)[0])
    close = abs(score - solution.score) <= score_tolerance(model)
    _require(close, f"the assignment's score is {score}, not {solution.score}")


def check_profile(profile: ProfileLike, model: Model, statistics: Sequence[Statistic | Recipe]) -> None:
    """Check a profile against enumeration: its tallies, their scores, and the labelling decoded for each.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = random_model(np.random.default_rng(0), "tree")
    >>> statistics = random_statistics(np.random.default_rng(1), model, 2)
    >>> check_profile(tt.profile(model, statistics), model, statistics)
    """
    tallies, scores = brute_force(model, statistics).profile()
    np.testing.assert_array_equal(profile.tallies, tallies, err_msg="the attainable tallies differ")
    tolerance = score_tolerance(model)
    np.testing.assert_allclose(
        profile.scores, scores, rtol=0, atol=tolerance, err_msg="the best scores differ"
    )
    for tally, score in zip(tallies.tolist(), scores.tolist(), strict=True):
        solution = profile.at(*tally)
        _require(list(solution.tally) == tally, f"asked for the tally {tally}, got {solution.tally}")
        close = abs(solution.score - score) <= tolerance
        _require(close, f"the best score of tally {tally} is {score}, not {solution.score}")
        check_solution(solution, model, statistics)


def check_distribution(
    distribution: DistributionLike, model: Model, statistics: Sequence[Statistic | Recipe]
) -> None:
    """Check a distribution of tallies, its counts and its marginals against enumeration.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = random_model(np.random.default_rng(0), "grid", variables=4)
    >>> statistics = random_statistics(np.random.default_rng(1), model)
    >>> check_distribution(tt.distribution(model, statistics), model, statistics)
    """
    expected = brute_force(model, statistics)
    tallies, _ = expected.profile()
    np.testing.assert_array_equal(distribution.tallies, tallies, err_msg="the attainable tallies differ")
    _require_close(distribution.log_partitions, expected.log_partitions(), "the log-partitions differ")
    _require_close(distribution.probabilities, expected.probabilities(), "the probabilities differ")
    counts = [*distribution.counts]
    _require(counts == [*expected.counts()], f"the counts are {expected.counts()}, not {counts}")
    for tally in [None, *map(tuple, tallies.tolist())]:
        pairs = zip(distribution.marginals(tally), expected.marginals(tally), strict=True)
        for variable, (got, wanted) in enumerate(pairs):
            _require_close(
                got, wanted, f"the marginal of variable {variable} given the tally {tally} differs"
            )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _require_close(got: npt.NDArray[Any], wanted: Floats, message: str) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11, err_msg=message)
