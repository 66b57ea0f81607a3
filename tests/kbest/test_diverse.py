"""Diverse labellings, compared with a greedy search through all labellings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranked_labellings import satisfying
from strategies import models

import tallytree as tt
from tallytree.testing import score_tolerance

# ---------------------------------------------------------------- far from each other


def greedy(model, k, distances, measure, where=None):
    """Return the scores of the definition: each the best of those that are far enough from all before it.

    Ties may be broken in any way, so the labellings of the answer are followed.
    """
    labellings, scores = satisfying(model, where)
    chosen = yield None
    for rank in range(k):
        far = np.ones(len(scores), dtype=bool)
        for y in chosen[:rank]:
            far &= measure(labellings, y) >= distances[rank - 1]
        yield float(scores[far][0]) if far.any() else None


def check_diverse(found, model, k, distances, measure, where=None):
    expected = greedy(model, k, distances, measure, where)
    next(expected)
    wanted = [expected.send([s.assignment for s in found]), *expected]
    wanted = wanted[: wanted.index(None)] if None in wanted else wanted
    np.testing.assert_allclose([s.score for s in found], wanted, rtol=0, atol=score_tolerance(model))
    for rank, solution in enumerate(found):
        distances_to = [int(measure(solution.assignment[None], s.assignment)[0]) for s in found[:rank]]
        assert all(d >= distances[rank - 1] for d in distances_to)
        if len(set(solution.tally._fields)) == rank:
            assert list(solution.tally) == distances_to


def hamming(labellings, y):
    return (labellings != y).sum(axis=1)


@given(model=models(largest=5), k=st.integers(1, 5), m=st.integers(1, 4))
@settings(max_examples=200)
def test_diverse_labellings_follow_the_definition(model, k, m):
    check_diverse(tt.diverse_k_best(model, k, m), model, k, [m] * k, hamming)


@given(
    model=models(largest=5),
    k=st.integers(1, 4),
    m=st.integers(1, 3),
    most=st.integers(0, 5),
    strategy=st.sampled_from(["auto", "bounds", "full"]),
)
@settings(max_examples=200)
def test_diverse_labellings_under_a_constraint(model, k, m, most, strategy):
    zeros = tt.count(model, state=0, name="zeros")
    where = (zeros <= most) & (zeros >= most - 2)
    try:
        found = tt.diverse_k_best(model, k, m, where=where, strategy=strategy)
    except tt.InfeasibleError:
        assert not len(satisfying(model, where)[1])
        return
    check_diverse(found, model, k, [m] * k, hamming, where)
    assert all(s.tally._fields[0] == "zeros" for s in found)
    named = tt.diverse_k_best(model, k, m, [zeros], where=f"{most - 2} <= zeros <= {most}", strategy=strategy)
    assert [s.assignment.tolist() for s in named] == [s.assignment.tolist() for s in found]


def test_patterns_and_constraints_that_nothing_satisfies():
    model = tt.Model.chain(np.random.default_rng(0).normal(size=(6, 3)), np.zeros((3, 3)))
    where = tt.regular("[^1]* 1 [^1]*") & (tt.count(state=2) <= 3)
    found = tt.diverse_k_best(model, 3, 2, where=where)
    same = (tt.count(model, state=1) == 1) & (tt.count(model, state=2) <= 3)
    check_diverse(found, model, 3, [2] * 3, hamming, same)
    with pytest.raises(tt.InfeasibleError, match="the nearest attainable tallies"):
        tt.diverse_k_best(model, 3, 2, where=tt.count(state=2) == 7)
    assert len(tt.diverse_k_best(model, 3, 7, where=tt.count(state=2) == 1)) == 1


@given(model=models(largest=5), distances=st.lists(st.integers(1, 4), min_size=1, max_size=4))
@settings(max_examples=100)
def test_distances_may_differ(model, distances):
    k = len(distances) + 1
    check_diverse(tt.diverse_k_best(model, k, distances), model, k, distances, hamming)


@given(model=models(largest=5), m=st.integers(1, 4))
@settings(max_examples=60)
def test_other_distances(model, m):
    """Variables weigh their number plus one."""

    def distance(y):
        return tt.Statistic(
            [((v,), (v + 1) * (np.arange(n) != y[v])) for v, n in enumerate(model.cardinalities.tolist())],
            name="weighted",
        )

    def measure(labellings, y):
        return ((labellings != y) * (1 + np.arange(len(y)))).sum(axis=1)

    found = tt.diverse_k_best(model, 4, m, statistic=distance)
    check_diverse(found, model, 4, [m] * 4, measure)


def test_few_tallies_for_diversity():
    model = tt.Model.chain(np.random.default_rng(0).normal(size=(40, 3)), np.zeros((3, 3)))
    near = [tt.mismatches(model, s.assignment, cap=3) for s in tt.diverse_k_best(model, 3, 3)]
    assert tt.plan(model, near).tallies <= 4**3


def test_wrong_distances_are_refused():
    model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match="a distance must be at least 1, got 0"):
        tt.diverse_k_best(model, 2, 0)
    with pytest.raises(
        tt.ModelError, match="4 labellings need 3 distances, one for each except the first; got 2"
    ):
        tt.diverse_k_best(model, 4, [1, 2])
    with pytest.raises(tt.ModelError, match="a distance must be an integer"):
        tt.diverse_k_best(model, 4, 1.5)
    assert tt.diverse_k_best(model, 0, 1) == []
    assert tt.diverse_k_best(tt.Model([1], [((0,), [-np.inf])]), 2, 1) == []


def test_hundreds_of_exclusions_both_ways():
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(120, 3)), rng.normal(size=(3, 3)))
    best = tt.k_best(model, 301)
    outputs = [s.assignment for s in best[:300]] * 2
    for method in ("ranking", "statistics"):
        found = tt.exclude(model, outputs, method=method)
        assert found.score == pytest.approx(best[300].score, abs=1e-12)


def test_a_list_that_is_too_long_says_how_far_it_came():
    rng = np.random.default_rng(0)
    model = tt.Model.grid(rng.normal(size=(5, 5, 3)), np.eye(3), np.eye(3))
    with pytest.raises(
        tt.BudgetError,
        match=r"^\d labellings found, but not the next: its distance to each of them is one more statistic, "
        r"and the plan needs .*\. Ask for fewer labellings, or for a smaller distance$",
    ):
        tt.diverse_k_best(model, 12, 10, memory_limit=2**21)
