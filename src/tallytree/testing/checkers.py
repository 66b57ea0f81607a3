"""Answers held against enumeration."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tallytree.model.model import Model
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.testing.enumeration import brute_force, score_of, score_tolerance, tally_of

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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
    >>> from tallytree.testing import random_model, random_statistics
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
    >>> from tallytree.testing import random_model, random_statistics
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
