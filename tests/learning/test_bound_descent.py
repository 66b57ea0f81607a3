"""Minimising the bound: soft maxima compared with enumeration, slopes with differences, and the descent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from learning_problems import sequences

import tallytree as tt
from tallytree.bounds import softened_maxima, worst_within_margin
from tallytree.bounds.theorem import norm_terms
from tallytree.learning import minimise_bound
from tallytree.learning.bound_descent import _Objective
from tallytree.testing import brute_force

LOSSES = [
    tt.losses.FBeta(background=0),
    tt.losses.FBeta(),
    tt.losses.HammingLoss(),
    tt.losses.IntersectionOverUnion(background=1),
    tt.losses.ZeroOne(),
]


def softened(problem, example, weights, softness):
    """Every labelling with its softened loss, from the definitions."""
    model, truth = problem.model(example, weights), problem.truth(example)
    loss = problem.loss_of(example).on(model)
    everything = brute_force(model)
    away = (everything.labellings != truth).sum(axis=1) - (model.score(truth) - everything.scores)
    weight = 1 / (1 + np.exp(-away / softness))
    return everything.labellings, weight * np.array([loss(y) for y in everything.labellings])


def whole(problem, weights, softness, delta=0.05):
    """The softened bound by enumeration."""
    values = [softened(problem, i, weights, softness)[1].max() for i in range(len(problem))]
    return norm_terms(len(problem), weights @ weights, problem.dimension, delta)[0] + np.mean(values)


@settings(max_examples=15)
@given(st.integers(0, 99), st.sampled_from(LOSSES), st.sampled_from([0.1, 1.0, 5.0]), st.integers(2, 3))
def test_soft_maxima_against_enumeration(seed, loss, softness, labels):
    problem = sequences(seed, loss, examples=3, longest=3, labels=labels)
    weights = np.random.default_rng(seed).normal(size=problem.dimension)
    found = softened_maxima(
        problem.models(range(3), weights),
        [problem.loss_of(i) for i in range(3)],
        [problem.truth(i) for i in range(3)],
        softness,
    )
    for example, one in enumerate(found):
        labellings, values = softened(problem, example, weights, softness)
        assert one.value == pytest.approx(values.max(), abs=1e-12)
        at = (labellings == one.assignment).all(axis=1).argmax()
        assert values[at] == pytest.approx(one.value, abs=1e-12)


@settings(max_examples=10)
@given(st.integers(0, 99), st.sampled_from(LOSSES), st.sampled_from([0.5, 2.0]))
def test_slopes_are_those_of_the_whole_bound(seed, loss, softness):
    problem = sequences(seed, loss, examples=3, longest=3, labels=2, features=2)
    rng = np.random.default_rng(seed)
    weights, direction = rng.normal(size=(2, problem.dimension))
    slope = _Objective(problem, softness, 0.05).slope(range(3), weights)
    size = 1e-6
    high, low = (whole(problem, weights + sign * size * direction, softness) for sign in (1, -1))
    assert slope @ direction == pytest.approx((high - low) / (2 * size), abs=1e-5)


def test_a_hard_margin_is_the_limit_of_soft_ones():
    problem = sequences(5, LOSSES[0], examples=8)
    weights = np.random.default_rng(5).normal(size=problem.dimension)
    losses, truths = (
        [problem.loss_of(i) for i in range(8)],
        [problem.truth(i) for i in range(8)],
    )
    models = problem.models(range(8), weights)
    soft = softened_maxima(models, losses, truths, 1e-6)
    hard = [worst_within_margin(*each) for each in zip(models, losses, truths, strict=True)]
    assert [one.value for one in soft] == pytest.approx([one.loss for one in hard], abs=1e-9)
    assert any(one.loss > 0 for one in hard)


def test_the_way_down_leads_down():
    problem = sequences(2, LOSSES[0], examples=40, longest=3, labels=2)
    start = np.random.default_rng(0).normal(size=problem.dimension)
    seen = []
    found = minimise_bound(
        problem, start, passes=5, step=0.1, batch=8, callback=lambda n, b: seen.append((n, b))
    )
    assert [n for n, _ in seen] == [1, 2, 3, 4, 5] and found.history[1:] == [b for _, b in seen]
    assert found.best.value < found.history[0].value - 0.05
    assert found.best.value == pytest.approx(whole(problem, found.weights, 1.0), abs=1e-9)
    again = minimise_bound(problem, start, passes=5, step=0.1, batch=8)
    assert again.weights.tobytes() == found.weights.tobytes()


@pytest.mark.parametrize("weights", [np.zeros(18), np.ones(3), np.full(18, np.inf)])
def test_weights_to_start_from_are_checked(weights):
    problem = sequences(1, LOSSES[0])
    assert problem.dimension == 18
    with pytest.raises(tt.ModelError, match="the initial weights must be 18 finite numbers, not all zero"):
        minimise_bound(problem, weights)


def test_softness_is_positive_and_losses_are_shares():
    problem = sequences(1, LOSSES[0])
    with pytest.raises(tt.ModelError, match="softness of a margin must be a positive number, got 0"):
        minimise_bound(problem, np.ones(18), softness=0.0)
    with pytest.raises(tt.ModelError, match="the bound needs a loss between 0 and 1"):
        minimise_bound(sequences(1, tt.losses.HammingDistance()), np.ones(18))


@pytest.mark.parametrize(
    "change", [{"passes": -1}, {"passes": "3"}, {"step": 0.0}, {"step": "1"}, {"batch": 0}, {"seed": -1}]
)
def test_settings_of_the_descent_are_checked(change):
    (name,) = change
    with pytest.raises(tt.ModelError, match=f"^{name} must be .*, got"):
        minimise_bound(sequences(1, LOSSES[0]), np.ones(18), **change)
