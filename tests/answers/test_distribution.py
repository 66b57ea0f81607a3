"""The distribution of the tally: compared with enumeration and closed forms; samples by their frequencies."""

import math

import numpy as np
import pytest
from frequencies import check_frequencies
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import little
from strategies import problems

import tallytree as tt
from tallytree.testing import brute_force, check_distribution, random_model, random_statistics, score_of

pytest.importorskip("scipy.stats")

# ---------------------------------------------------------------- against enumeration


@given(problems())
@settings(max_examples=200)
def test_distribution_equals_enumeration(problem):
    model, statistics = problem
    check_distribution(tt.distribution(model, statistics), model, statistics)


@pytest.mark.parametrize("tallies", ["rows", "cells"])
@given(problem=problems())
@settings(max_examples=100)
def test_both_layouts_equal_enumeration(tallies, problem):
    model, statistics = problem
    check_distribution(tt.distribution(model, statistics, layout=tallies), model, statistics)


@given(problem=problems(largest=4, most=2))
@settings(max_examples=60)
def test_reference_backend_equals_enumeration(problem):
    model, statistics = problem
    check_distribution(tt.distribution(model, statistics, backend="reference"), model, statistics)


@given(problem=problems(largest=5, most=2), order=st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_every_elimination_order_gives_the_same_distribution(problem, order):
    model, statistics = problem
    shuffled = list(range(len(model)))
    order.shuffle(shuffled)
    check_distribution(tt.distribution(model, statistics, order=shuffled), model, statistics)


# ---------------------------------------------------------------- closed forms


def uniform_chain(size, states):
    return tt.Model.chain(np.zeros((size, states)), np.zeros((states, states)))


def test_counts_are_exact_beyond_64_bits():
    assert sum(tt.distribution(uniform_chain(100, 3), [tt.count(state=1)]).counts) == 3**100
    assert tt.distribution(uniform_chain(100, 3)).counts == (3**100,)


@pytest.mark.parametrize("tallies", ["rows", "cells"])
def test_the_number_of_ones_is_binomial(tallies):
    d = tt.distribution(uniform_chain(200, 2), [tt.count(state=1)], layout=tallies)
    assert d.counts == tuple(math.comb(200, k) for k in range(201))
    np.testing.assert_allclose(d.log_partitions, [math.log(n) for n in d.counts], rtol=1e-12)
    capped = tt.distribution(uniform_chain(200, 2), [tt.count(state=1, cap=2)], layout=tallies)
    assert capped.counts == (1, 200, 2**200 - 201)


def test_counts_are_exact_through_long_joins():
    """Many products of large residues in one sum: the accumulator must not wrap."""
    star = tt.Model.tree([-1] + [0] * 599, np.zeros((600, 2)), np.zeros((2, 2)))
    assert tt.distribution(star, [tt.count(state=1)]).counts == tuple(math.comb(600, k) for k in range(601))


def test_counts_leave_out_what_is_forbidden():
    never_twice = np.array([[0.0, 0.0], [0.0, -np.inf]])
    d = tt.distribution(tt.Model.chain(np.zeros((300, 2)), never_twice), [tt.count(state=1)])
    assert d.counts == tuple(math.comb(301 - k, k) for k in range(151))


def test_scores_too_large_to_exponentiate_do_no_harm():
    unary = np.array([[0.0, 2000.0], [-3000.0, 0.0], [0.0, math.log(3)]])
    d = tt.distribution(tt.Model.chain(unary, np.zeros((2, 2))), [tt.count(state=1)])
    assert d.log_partition == pytest.approx(2000 + math.log(4), abs=1e-9)
    np.testing.assert_allclose(d.probabilities, [0, 0, 0.25, 0.75], atol=1e-12)
    np.testing.assert_allclose(np.array(d.marginals()), [[0, 1], [0, 1], [0.25, 0.75]], atol=1e-12)


@pytest.mark.parametrize("shape", ["tree", "cycle", "grid"])
def test_larger_marginals_add_up_to_the_expected_count(shape):
    model = random_model(np.random.default_rng(5), shape, variables=36, states=2)
    ones = tt.count(model, state=1)
    d = tt.distribution(model, [ones])
    expected = float(d.probabilities @ d.tallies[:, 0])
    assert sum(m[1] for m in d.marginals()) == pytest.approx(expected, abs=1e-9)
    for k in (1, 18, 35):
        given_k = d.marginals(tally=[k])
        assert sum(m[1] for m in given_k) == pytest.approx(k, abs=1e-9)
        np.testing.assert_allclose([m.sum() for m in given_k], 1.0, atol=1e-9)


# ---------------------------------------------------------------- samples


def sampled_problem(statistics):
    """A few tallies with many labellings each: what is drawn below the root matters most."""
    rng = np.random.default_rng(2)
    model = random_model(rng, "cycle", variables=5, states=3, forbidden=0.1, constants=1)
    return model, random_statistics(rng, model, statistics, low=0, high=1, terms=3, capped=0.5)


@pytest.mark.parametrize("tallies", ["rows", "cells"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_samples_come_as_often_as_their_probability_says(count, tallies):
    model, statistics = sampled_problem(count)
    everything = brute_force(model, statistics)
    weights = np.exp(everything.scores)
    d = tt.distribution(model, statistics, layout=tallies)
    check_frequencies(d.sample(20_000, rng=0), everything.labellings, weights / weights.sum())
    for tally in d.tallies[np.argsort(-d.probabilities)[:4]]:
        within = np.where((everything.tallies == tally).all(axis=1), weights, 0.0)
        samples = d.sample(10_000, tally=tally, rng=1)
        check_frequencies(samples, everything.labellings, within / within.sum())


@given(problem=problems(), seed=st.integers(0, 99))
@settings(max_examples=100)
def test_samples_have_the_tally_asked_for_and_a_finite_score(problem, seed):
    model, statistics = problem
    d = tt.distribution(model, statistics)
    tally = d.tallies[seed % len(d.tallies)]
    samples = d.sample(5, tally=tally, rng=seed)
    assert samples.shape == (5, len(model))
    assert np.isfinite(score_of(model, samples)).all()
    assert all([s.tally(y) for s in statistics] == tally.tolist() for y in samples)


def test_samples_are_reproducible_whatever_is_kept_in_memory():
    model, statistics = uniform_chain(150, 4), [tt.count(state=1)]
    d = tt.distribution(model, statistics)
    first = d.sample(20, rng=7)
    np.testing.assert_array_equal(first, d.sample(20, rng=7))
    np.testing.assert_array_equal(first, d.sample(20, rng=np.random.default_rng(7)))
    assert (first != d.sample(20, rng=8)).any()
    cut = tt.distribution(model, statistics, memory_limit=little(d.plan, 1 / 3))
    assert cut.plan.segments > 1
    np.testing.assert_array_equal(first, cut.sample(20, rng=7))
    with pytest.raises(tt.BudgetError, match="checkpoints"):
        cut.marginals()


def test_one_sample_none_and_many():
    d = tt.distribution(uniform_chain(6, 2), [tt.count(state=1)])
    assert d.sample(rng=0).shape == (6,)
    assert d.sample(0, rng=0).shape == (0, 6)
    assert d.sample(3, tally=[6], rng=0).tolist() == [[1] * 6] * 3


# ---------------------------------------------------------------- refusals


def test_tallies_that_do_not_occur_are_refused():
    d = tt.distribution(uniform_chain(6, 2), [tt.count(state=1, name="ones")])
    for ask in (d.marginals, lambda tally: d.sample(tally=tally)):
        with pytest.raises(tt.InfeasibleError, match="ones=7"):
            ask(tally=[7])
        with pytest.raises(tt.ModelError, match="one integer for each of"):
            ask(tally=[1, 2])


def test_a_tally_that_is_not_whole_is_refused():
    d = tt.distribution(uniform_chain(6, 2), [tt.count(state=1)])
    with pytest.raises(tt.ModelError, match="integer"):
        d.marginals(tally=[1.5])


def test_what_is_no_randomness_and_no_size_is_refused():
    d = tt.distribution(uniform_chain(6, 2), [tt.count(state=1)])
    for wrong in ("x", -1, [0.5]):
        with pytest.raises(
            tt.ModelError, match=r"rng must be a numpy.random.Generator, a non-negative integer seed"
        ):
            d.sample(rng=wrong)
    with pytest.raises(
        tt.ModelError, match=r"rng must be a numpy.random.Generator, a non-negative integer seed .* got 'x'"
    ):
        random_model("x")
    for wrong in ("x", -1, 2.5, (2, 3)):
        with pytest.raises(tt.ModelError, match=r"size must be a non-negative integer"):
            d.sample(wrong)


def test_there_is_no_distribution_over_nothing():
    with pytest.raises(tt.InfeasibleError, match="forbidden"):
        tt.distribution(tt.Model([2], [((0,), [-np.inf, -np.inf])]))


def test_tallies_by_name():
    model = tt.Model.chain(np.zeros((6, 2)), np.eye(2))
    d = tt.distribution(model, [tt.count(state=1, name="ones"), tt.count(state=0, name="zeros")])
    assert (d.sample(5, tally={"zeros": 4, "ones": 2}, rng=3) == d.sample(5, tally=[2, 4], rng=3)).all()
    for named, ordered in zip(d.marginals({"ones": 2, "zeros": 4}), d.marginals([2, 4]), strict=True):
        assert (named == ordered).all()
    for wrong in ({"ones": 2}, {"ones": 2, "zeroes": 4}, [2], [2, 4, 6]):
        with pytest.raises(tt.ModelError, match=r"one integer for each of \(ones, zeros\)"):
            d.sample(tally=wrong)


def test_a_distribution_in_a_notebook():
    model = tt.Model.chain(np.zeros((12, 2)), np.eye(2))
    shown = tt.distribution(model, [tt.count(state=1, name="<ones>")])._repr_html_()
    assert "<b>Distribution of &lt;ones&gt;: 13 tallies</b>" in shown
    assert "<svg" in shown
    assert "the 10 most probable of 13" in shown
    assert "<ones>" not in shown
