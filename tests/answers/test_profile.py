"""Profiles compared with enumeration: every shape, every option, every tally decoded."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import little
from strategies import generators, problems

import tallytree as tt
from tallytree.testing import brute_force, check_profile, score_tolerance


@given(problems())
@settings(max_examples=600)
def test_profile_equals_enumeration(problem):
    model, statistics = problem
    check_profile(tt.profile(model, statistics), model, statistics)


@pytest.mark.parametrize("tallies", ["rows", "cells"])
@given(problem=problems(most=3))
@settings(max_examples=400)
def test_both_layouts_equal_enumeration(tallies, problem):
    model, statistics = problem
    check_profile(tt.profile(model, statistics, layout=tallies), model, statistics)


@given(
    size=st.integers(2, 7),
    weights=st.lists(st.sampled_from([40, 900, 10**6, 10**12]), min_size=1, max_size=3),
    few=st.booleans(),
    rng=generators(),
)
@settings(max_examples=60)
def test_weights_far_apart_equal_enumeration(size, weights, few, rng):
    """Supports far too sparse for a box: sorted and merged, or hashed where sums do not fit one number."""
    parents = [-1, *(int(rng.integers(0, i)) for i in range(1, size))]
    model = tt.Model.tree(
        parents, rng.integers(-2, 3, (size, 2)) * 1.0, rng.integers(-2, 3, (size, 2, 2)) * 1.0
    )
    statistics = []
    for top in weights:
        values = rng.integers(-top, top, 3)  # few of them: many labellings share a tally
        tables = rng.choice(values, (size, 2)) if few else rng.integers(-top, top, (size, 2))
        statistics.append(tt.Statistic([((v,), table) for v, table in enumerate(tables)]))
    check_profile(tt.profile(model, statistics), model, statistics)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.sanitize
def test_tallies_far_from_zero_keep_their_order(sign, seed):
    """The box of the sums has 62 bits, but the one that reaches from there to zero has more."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(4, 13, 2).tolist()
    model = tt.Model(counts, [((v,), rng.integers(-9, 9, count) * 1.0) for v, count in enumerate(counts)])
    far, near = rng.permutation(2).tolist()
    steps = [rng.integers(0, 10, (2, count)) for count in counts]
    first = [((far,), 10**9 + 3 * 10**7 * steps[far][0]), ((near,), 3 * 10**7 * steps[near][0])]
    second = [((v,), 5 * 10**8 * steps[v][1]) for v in range(2)]
    statistics = [
        tt.Statistic([(scope, sign * table) for scope, table in pairs], name=name)
        for name, pairs in (("first", first), ("second", second))
    ]
    check_profile(tt.profile(model, statistics, layout="cells"), model, statistics)


@given(problem=problems(largest=5), order=st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_every_elimination_order_gives_the_same_profile(problem, order):
    model, statistics = problem
    shuffled = list(range(len(model)))
    order.shuffle(shuffled)
    check_profile(tt.profile(model, statistics, order=shuffled), model, statistics)


@given(problem=problems(largest=4, most=2))
@settings(max_examples=100)
def test_reference_backend_equals_enumeration(problem):
    model, statistics = problem
    check_profile(tt.profile(model, statistics, backend="reference"), model, statistics)


@given(problem=problems(feasible=False))
@settings(max_examples=150)
def test_best_is_the_best_labelling_or_says_that_there_is_none(problem):
    model, statistics = problem
    scores = brute_force(model, statistics).scores
    prof = tt.profile(model, statistics)
    if scores.max() == -np.inf:
        assert len(prof) == 0
        with pytest.raises(tt.InfeasibleError, match="forbidden"):
            prof.best()
    else:
        assert abs(prof.best().score - scores.max()) <= score_tolerance(model)


@given(problem=problems(largest=5))
@settings(max_examples=150)
def test_little_memory_gives_the_same_answers_from_checkpoints(problem):
    model, statistics = problem
    full = tt.plan(model, statistics)
    share = 1.0
    for _ in range(30):
        share *= 0.9
        limit = little(full, share)
        try:
            prof = tt.profile(model, statistics, memory_limit=limit)
        except tt.BudgetError as error:
            assert "limit" in str(error)
            break
        assert prof.plan.peak_bytes <= limit
        check_profile(prof, model, statistics)


def test_a_cap_is_named_where_nothing_satisfies_a_constraint():
    model = tt.Model.chain(np.zeros((6, 2)), np.zeros((2, 2)))
    ones, few = tt.count(state=1, name="ones"), tt.count(state=1, name="few", cap=3)
    says = r"are \(few=3\), \(few=2\), \(few=1\); few is capped, so 3 means 3 or more$"
    with pytest.raises(tt.InfeasibleError, match=says):
        tt.solve(model, where=few == 5)
    with pytest.raises(tt.InfeasibleError, match=says):
        tt.profile(model, [few]).best(where=few == 5)
    for where in (ones >= 7, (ones >= 7) & (few >= 1), ones == 7):
        with pytest.raises(tt.InfeasibleError) as raised:
            tt.solve(model, where=where)
        assert "ones is capped" not in str(raised.value)


def test_a_capped_statistic_is_named_as_such_where_the_whole_one_is_missing():
    model = tt.Model.chain(np.zeros((5, 2)), np.eye(2))
    ones = tt.count(model, state=1, name="ones")
    with pytest.raises(tt.ModelError, match=r"it has ones capped at 3"):
        tt.profile(model, [ones.capped(3)]).best(where=ones >= 2)
