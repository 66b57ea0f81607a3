"""Comparisons of answers with enumeration."""

from collections.abc import Sequence
from itertools import product
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tallytree.losses.augmented import LossProfile, loss_augmented
from tallytree.losses.base import Loss
from tallytree.losses.scaling import Scaling, scaled
from tallytree.losses.solution import AugmentedSolution
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.statistic import Recipe, Statistic
from tallytree.testing.enumeration import brute_force, score_of, score_tolerance, tally_of

# --- the contract of a loss, checked against enumeration ----------------------------------------------------
# A loss defines three things: the cost of a labelling by definition, its tally, and the cost of that
# tally. They must agree on every labelling; then loss-augmented inference must find the best of them.

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class SolutionLike(Protocol):
    """The interface needed by `check_solution`."""

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
    """The interface needed by `check_profile`."""

    @property
    def tallies(self) -> Integers:
        """The attainable tallies, ``(S, P)``, sorted."""

    @property
    def scores(self) -> npt.NDArray[Any]:
        """Their best scores, ``(S,)``."""

    def at(self, *tally: int) -> SolutionLike:
        """Return the best labelling with exactly this tally."""


class DistributionLike(Protocol):
    """The interface needed by `check_distribution`."""

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
        """Return each variable's distribution over its states, optionally given a tally."""


def check_solution(solution: SolutionLike, model: Model, statistics: Sequence[Statistic | Recipe]) -> None:
    """Check that a solution's score and tally are those of its assignment.

    Raises
    ------
    AssertionError
        The message has the expected and the actual result.
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
        _require(list(solution.tally) == tally, f"at({tally}) has the tally {solution.tally}")
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
        pairs = zip(model.by_variable(distribution.marginals(tally)), expected.marginals(tally), strict=True)
        for variable, (got, wanted) in enumerate(pairs):
            _require_close(
                got, wanted, f"the marginal of variable {variable} given the tally {tally} differs"
            )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _require_close(got: npt.NDArray[Any], wanted: Floats, message: str) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11, err_msg=message)


def check_loss(loss: Loss, model: Model, *, margins: tuple[float, ...] = (0.0, 0.5, 1.0, 3.0)) -> None:
    """Check a bound loss on a small model, on all labellings.

    Parameters
    ----------
    loss : Loss
        Bound to a truth that the model allows.
    model : Model
        With few labellings: they are enumerated.
    margins : tuple of float
        The margins at which the path of optima is checked.

    Raises
    ------
    AssertionError
        The message has the labelling, and the expected and the actual result.

    Examples
    --------
    >>> import tallytree as tt
    >>> from tallytree.testing import check_loss, random_model
    >>> model = random_model(np.random.default_rng(0), "cycle", variables=4)
    >>> check_loss(tt.losses.FBeta([0, 1, 1, 0], background=0), model)
    """
    bound = loss.on(model)
    assert loss.against(loss.truth) == loss, "against(truth) changes something other than the truth"
    everything = brute_force(model, [])
    possible = everything.scores > -np.inf
    labellings, scores = everything.labellings[possible], everything.scores[possible]
    costs = np.array([bound(y) for y in labellings], dtype=np.float64)
    _check_range(bound, labellings, costs)
    _check_reduction(bound, model, labellings, costs)
    difference = scores - model.score(bound.anchor(model))
    for scaling in _scalings(bound):
        _check_optimum(loss, model, scaling, costs, difference, margins)


def _scalings(loss: Loss) -> tuple[Scaling, ...]:
    return ("margin", "slack") if loss.bounds[0] >= 0 else ("margin",)


def _check_range(loss: Loss, labellings: Integers, costs: Floats) -> None:
    low, high = loss.bounds
    outside = ~((costs >= low - 1e-12) & (costs <= high + 1e-12))  # true for nan
    if outside.any():
        i = int(outside.argmax())
        raise AssertionError(f"loss({labellings[i].tolist()}) is {costs[i]}, outside {loss.bounds}")


def _check_reduction(loss: Loss, model: Model, labellings: Integers, costs: Floats) -> None:
    """Every possible labelling has exactly one labelling of the reduced model, with its score and cost."""
    reduction = loss.reduce(model)
    reduced = _possible(reduction)
    found = {tuple(reduction.lift(z).tolist()): k for k, z in enumerate(reduced)}
    wanted = list(map(tuple, labellings.tolist()))
    assert len(found) == len(reduced), "two labellings of the reduced model are lifted to the same one"
    assert set(found) == set(wanted), "the reduced model does not have the labellings of the original"
    order = [found[y] for y in wanted]
    expected, got = score_of(model, labellings), score_of(reduction.model, reduced)[order]
    np.testing.assert_allclose(got, expected, rtol=0, atol=score_tolerance(model), err_msg="scores differ")
    tallies = [tally_of(s, reduced)[order] for s in reduction.statistics]
    values = np.broadcast_to(loss.value(*tallies), len(order))
    _check_values(values, costs, labellings, "value")
    line = loss.linear()
    if line is not None:
        straight = line[0] + sum(c * tally for c, tally in zip(line[1], tallies, strict=True))
        _check_values(np.broadcast_to(straight, len(order)), costs, labellings, "linear")


def _check_values(values: Floats, costs: Floats, labellings: Integers, name: str) -> None:
    wrong = ~(np.abs(values - costs) <= 1e-12 * np.maximum(1.0, np.abs(costs)))
    if wrong.any():
        i = int(wrong.argmax())
        raise AssertionError(
            f"{name} gives {values[i]} for the tally of {labellings[i].tolist()}, but loss(y) is {costs[i]}"
        )


def _possible(reduction: Reduction) -> Integers:
    states = map(range, reduction.model.cardinalities.tolist())
    everything = np.array(list(product(*states)), dtype=np.int64)
    return everything[score_of(reduction.model, everything) > -np.inf]


def _check_optimum(
    loss: Loss,
    model: Model,
    scaling: Scaling,
    costs: Floats,
    difference: Floats,
    margins: tuple[float, ...],
) -> None:
    profile = LossProfile(model, loss)
    path = profile.path(min(margins), max(margins), scaling)
    for margin in margins:
        best = float(scaled(scaling, costs, difference, margin).max())
        tolerance = (1 + margin) * (1 + float(np.abs(costs).max())) * (score_tolerance(model) + 1e-12)
        answers = {
            "loss_augmented": loss_augmented(model, loss, scaling, margin=margin),
            "LossProfile.best": profile.best(scaling, margin),
            "LossProfile.top": profile.top(3, scaling, margin)[0],
            "path.at": path.at(margin),
        }
        for name, answer in answers.items():
            assert abs(answer.value - best) <= tolerance, (
                f"{name}: {scaling} {margin}, {answer.value} < {best}"
            )
            _check_answer(name, answer, loss, model, scaling, margin, tolerance)
        assert abs(float(path.value(margin)) - best) <= tolerance, f"path.value({margin}) is not {best}"


def _check_answer(
    name: str,
    answer: AugmentedSolution,
    loss: Loss,
    model: Model,
    scaling: Scaling,
    margin: float,
    tolerance: float,
) -> None:
    y, score = answer.assignment, model.score(answer.assignment)
    cost = loss.on(model)(y)
    value = float(scaled(scaling, cost, score - answer.truth_score, margin))
    told = (answer.loss, answer.score, answer.value)
    defined = (cost, score, value)
    assert np.allclose(told, defined, rtol=0, atol=tolerance), f"{name}: {y} has {defined}, not {told}"
